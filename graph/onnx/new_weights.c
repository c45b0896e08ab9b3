#include "graph/onnx/new_weights.h"

#include "graph/graph_internal.h"

#include <math.h>
#include <string.h>

// ---- Names ------------------------------------------------------------------------------------

struct name_list {
    const char **names;
    size_t n;
    struct msc_graph_names table; // maps the names to their indices
};

// A part that the names in one list contain and the names in the other list lack, such as a
// wrapper's "module.".
struct surplus {
    const char *text; // ends with a dot; NULL: no such part
    size_t length;
    const char *with, *without; // example: a name with the part, and without it
    size_t n;                   // names that match once the part is removed
};

struct name_check {
    const struct msc_array_list *weights;
    struct msc_arena arena;
    struct msc_graph_names known;
    struct name_list unknown; // new weights that the model does not have
    struct name_list missing; // weights of the model that are not among the new ones
    char *buffer;             // scratch space for one name
};

// True for num_batches_tracked, the number of training batches of a normalisation. No computation
// uses it.
static bool is_counter(const char *name) {
    static const char ending[] = "num_batches_tracked";
    size_t n = strlen(name), n_ending = sizeof ending - 1;
    return n >= n_ending && strcmp(name + n - n_ending, ending) == 0 &&
           (n == n_ending || name[n - n_ending - 1] == '.');
}

static bool has_name(const struct msc_graph_names *table, const char *name) {
    return msc_graph__names_find(table, name) != MSC_NO_ID;
}

static enum msc_status add_name(struct name_list *list, const char *name) {
    list->names[list->n] = name;
    return msc_graph__names_put(&list->table, name, (int32_t)list->n++);
}

static enum msc_status list_names(struct name_check *c, const char *const known[], size_t n) {
    size_t longest = 0;
    c->unknown.names = msc_arena_array(&c->arena, c->weights->n + 1, sizeof(known[0]));
    c->missing.names = msc_arena_array(&c->arena, n + 1, sizeof(known[0]));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_graph__names_put(&c->known, known[i], 0));
        longest = strlen(known[i]) > longest ? strlen(known[i]) : longest;
    }
    for (size_t i = 0; i < c->weights->n; i++) {
        longest = strlen(c->weights->names[i]) > longest ? strlen(c->weights->names[i]) : longest;
    }
    c->buffer = msc_arena_alloc(&c->arena, longest + sizeof "running_mean");
    MSC_TRY(MSC_ALLOCATED(c->unknown.names && c->missing.names && c->buffer));
    for (size_t i = 0; i < c->weights->n; i++) {
        const char *name = c->weights->names[i];
        if (!has_name(&c->known, name) && !is_counter(name)) {
            MSC_TRY(add_name(&c->unknown, name));
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (msc_array_list_find(c->weights, known[i]) == NULL) {
            MSC_TRY(add_name(&c->missing, known[i]));
        }
    }
    return MSC_OK;
}

// The part of the name after the next dot; NULL if there is no further dot.
static const char *next_component(const char *at) {
    const char *dot = strchr(at, '.');
    return dot != NULL ? dot + 1 : NULL;
}

// Copies the name to the buffer, without the `length` characters at `at`.
static const char *cut(struct name_check *c, const char *name, const char *at, size_t length) {
    size_t n_before = (size_t)(at - name);
    memcpy(c->buffer, name, n_before);
    memmove(c->buffer + n_before, at + length, strlen(at + length) + 1);
    return c->buffer;
}

// The position of the components `text` in the name; NULL if the name does not contain them.
static const char *find_components(const char *name, const char *text, size_t length) {
    while (name != NULL && strncmp(name, text, length) != 0) {
        name = next_component(name);
    }
    return name;
}

// Counts the names in `with` that match a name in `without` once the part `text` is removed. This
// explains unknown names only if all names in `with` have the part, or if the count is at least
// half of the unknown names; otherwise returns 0.
static size_t count_explained(struct name_check *c, const struct name_list *with,
                              const struct name_list *without, const char *text, size_t length) {
    size_t n = 0, n_with = 0;
    for (size_t i = 0; i < with->n; i++) {
        const char *at = find_components(with->names[i], text, length);
        n_with += at != NULL;
        n += at != NULL && has_name(&without->table, cut(c, with->names[i], at, length));
    }
    return n_with == with->n || 2 * n >= c->unknown.n ? n : 0;
}

static void find_surplus(struct surplus *best, struct name_check *c, const struct name_list *with,
                         const struct name_list *without) {
    for (size_t i = 0; i < with->n; i++) {
        const char *name = with->names[i];
        for (const char *from = name; from != NULL; from = next_component(from)) {
            for (const char *to = next_component(from); to != NULL; to = next_component(to)) {
                size_t length = (size_t)(to - from);
                bool is_best = best->text != NULL && best->length == length &&
                               strncmp(best->text, from, length) == 0;
                if (is_best || !has_name(&without->table, cut(c, name, from, length))) {
                    continue;
                }
                size_t n = count_explained(c, with, without, from, length);
                if (n > best->n) {
                    int32_t at = msc_graph__names_find(&without->table, cut(c, name, from, length));
                    *best = (struct surplus){from, length, name, without->names[at], n};
                }
            }
        }
    }
}

// Length of the name of the batch normalisation that this new weight belongs to, if the program
// that wrote the model may have folded the normalisation into another layer. 0 if the weight
// belongs to no normalisation, if the model has another weight of this normalisation, or if no new
// weight matches the model.
static int lost_norm(struct name_check *c, size_t n_known, const char *name) {
    static const char *const parts[] = {"running_mean", "running_var", "weight"};
    const char *dot = strrchr(name, '.');
    size_t n_stem = dot != NULL ? (size_t)(dot - name) : 0;
    bool has_statistics = false, may_be = c->missing.n < n_known;
    for (size_t k = 0; n_stem > 0 && k < sizeof parts / sizeof parts[0]; k++) {
        memcpy(c->buffer, name, n_stem + 1);
        strcpy(c->buffer + n_stem + 1, parts[k]);
        has_statistics = has_statistics || (k < 2 && has_name(&c->unknown.table, c->buffer));
        for (const char *at = c->buffer; at != NULL; at = next_component(at)) {
            may_be = may_be && !has_name(&c->known, at);
        }
    }
    return has_statistics && may_be ? (int)n_stem : 0;
}

static enum msc_status fail_unknown(struct name_check *c, size_t n_known) {
    struct surplus given = {0}, own = {0};
    find_surplus(&given, c, &c->unknown, &c->missing);
    find_surplus(&own, c, &c->missing, &c->unknown);
    if (given.n > 0 && given.n >= own.n) {
        return MSC_FAIL(MSC_E_INVALID,
                        "new weight '%s' is not in the model, which has '%s': remove '%.*s' "
                        "from the names of the new weights",
                        given.with, given.without, (int)given.length, given.text);
    }
    if (own.n > 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "new weight '%s' is not in the model, which has '%s': add '%.*s' to "
                        "the names of the new weights",
                        own.without, own.with, (int)own.length, own.text);
    }
    for (size_t i = 0; i < c->unknown.n; i++) {
        const char *name = c->unknown.names[i];
        int n_stem = lost_norm(c, n_known, name);
        if (n_stem > 0) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "new weight '%s' is not in the model; if the batch normalisation %.*s was folded "
                "into another layer when this file was exported, weights trained with it do not "
                "fit: export the model with the normalisation (torch.onnx.export: optimize=False, "
                "or training=TrainingMode.PRESERVE), or with the new weights",
                name, n_stem, name);
        }
    }
    return MSC_FAIL(MSC_E_INVALID, "new weight '%s' is not in the model", c->unknown.names[0]);
}

enum msc_status msc_new_weights__check_names(const struct msc_array_list *weights,
                                             const char *const known[], size_t n) {
    struct name_check c = {.weights = weights};
    enum msc_status status = list_names(&c, known, n);
    if (status == MSC_OK && c.unknown.n > 0) {
        status = fail_unknown(&c, n);
    }
    msc_graph__names_finish(&c.known);
    msc_graph__names_finish(&c.unknown.table);
    msc_graph__names_finish(&c.missing.table);
    msc_arena_finish(&c.arena);
    return status;
}

// ---- Layers -----------------------------------------------------------------------------------

// All weights of a layer are replaced together: nobody has trained a convolution with new weights
// and an old batch normalisation, or with an old bias that contains a folded normalisation.
enum msc_status msc_new_weights__check_layers(const struct msc_array_list *weights,
                                              const struct msc_layer_weight list[], size_t n,
                                              size_t n_layers) {
    const char **given = msc_alloc_zero(n_layers + 1, sizeof(given[0]));
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(given));
    for (size_t i = 0; i < n; i++) {
        if (msc_array_list_find(weights, list[i].name) != NULL) {
            given[list[i].layer] = list[i].name;
        }
    }
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        const char *name = given[list[i].layer];
        if (name != NULL && msc_array_list_find(weights, list[i].name) == NULL) {
            status =
                MSC_FAIL(MSC_E_INVALID,
                         "the new weights have '%s' but not '%s', which belongs to the same "
                         "layer; give all weights of a layer, or export the model with the new "
                         "weights",
                         name, list[i].name);
        }
    }
    msc_free(given);
    return status;
}

// ---- Elements ---------------------------------------------------------------------------------

static enum msc_status fail_form(const char *name, const struct msc_array *weight,
                                 enum msc_dtype dtype, int n_dims, const int64_t dims[]) {
    char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
    enum msc_dtype other = msc_array_dtype(weight);
    const char *type = msc_dtype_name(dtype), *fix = "";
    if (msc_dtype_is_float(dtype) && !msc_dtype_is_float(other)) {
        fix = "; integers may be codes of a quantised layer: save the weights as floats instead";
    } else if (dtype != other && !msc_dtype_is_float(dtype)) {
        fix = "; save it in the type of the initialiser";
    }
    return MSC_FAIL(MSC_E_INVALID, "initialiser '%s' is %s%s, but its replacement is %s%s%s", name,
                    type, msc_dims_format(expected, n_dims, dims), msc_dtype_name(other),
                    msc_dims_format(found, msc_array_n_dims(weight), msc_array_dims(weight)), fix);
}

enum msc_status msc_new_weights__fit(struct msc_array **out, const char *name,
                                     const struct msc_array *weight, enum msc_dtype dtype,
                                     int n_dims, const int64_t dims[]) {
    enum msc_dtype from = msc_array_dtype(weight);
    bool fits = msc_array_n_dims(weight) == n_dims &&
                (from == dtype || (msc_dtype_is_float(from) && msc_dtype_is_float(dtype)));
    for (int i = 0; fits && i < n_dims; i++) {
        fits = msc_array_dim(weight, i) == dims[i];
    }
    if (!fits) {
        return fail_form(name, weight, dtype, n_dims, dims);
    }
    for (int64_t i = 0; msc_dtype_is_float(from) && i < msc_array_n_elements(weight); i++) {
        if (isnan(msc_array_get_double(weight, i))) {
            return MSC_FAIL(MSC_E_INVALID,
                            "element %lld of %lld of the new '%s' is NaN: check the training",
                            (long long)i, (long long)msc_array_n_elements(weight), name);
        }
    }
    if (from == dtype) {
        *out = msc_array_retain(weight);
        return MSC_OK;
    }
    struct msc_array *converted;
    MSC_TRY(msc_array_convert(&converted, weight, dtype));
    for (int64_t i = 0; i < msc_array_n_elements(weight); i++) {
        double element = msc_array_get_double(weight, i);
        if (isfinite(element) && !isfinite(msc_array_get_double(converted, i))) {
            msc_array_release(converted);
            return MSC_FAIL(MSC_E_INVALID,
                            "initialiser '%s' is %s: element %lld of %lld of its replacement, "
                            "%g, is beyond the range of this type",
                            name, msc_dtype_name(dtype), (long long)i,
                            (long long)msc_array_n_elements(weight), element);
        }
    }
    *out = converted;
    return MSC_OK;
}

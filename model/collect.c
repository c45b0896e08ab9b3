// Collects tensors in up to two passes over the samples: one to learn the shapes, unless the graph
// gives them, and one to write the values.
#include "model/collect.h"

#include "base/alloc.h"
#include "base/str.h"
#include "data/array_file.h"
#include "graph/passes/bind.h"
#include "graph/wide.h"
#include "model/model_internal.h"
#include "model/output.h"

#include <string.h>

// Type and shape of a tensor in one batch.
struct shape {
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};

struct collecting {
    struct msc_arena arena;
    struct msc_collect *collect;
    const struct msc_model *model;
    const struct msc_dataset *data;
    size_t n, n_batches;  // n tensors; n_batches is 1 if all batches have the same shapes
    int32_t *wanted;      // [n]
    const char **names;   // [n]
    struct shape *shapes; // [n_batches * n]
    size_t *first;        // [n] the first array of each tensor in the file
    bool *is_split;       // [n] true: an array for each batch
    bool *is_stacked;     // [n] true: samples are along a new first axis
    struct msc_array_file *file;
};

// ---- Which tensors ----------------------------------------------------------------------------

// True for tensors that the network computes.
static bool is_computed(const struct msc_graph *g, const struct msc_tensor *t) {
    if (t->producer == MSC_NO_ID || t->data) {
        return false;
    }
    enum msc_op op = msc_graph_joint(g, t->producer)->op;
    return op != MSC_OP_INPUT && op != MSC_OP_CONSTANT;
}

static void add_wanted(struct collecting *c, int32_t tensor) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->wanted[i] == tensor) {
            return;
        }
    }
    c->wanted[c->n] = tensor;
    c->names[c->n++] = msc_tensor_label(msc_graph_tensor(c->model->graph, tensor));
}

// Adds the computed tensors that match the pattern, in the order of computation. If none matches,
// adds the tensor of exactly this name, even if no joint computes it.
static enum msc_status add_pattern(struct collecting *c, const char *pattern) {
    const struct msc_graph *g = c->model->graph;
    bool is_found = false;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_outputs; k++) {
            const struct msc_tensor *t = msc_graph_tensor(g, j->outputs[k]);
            if (is_computed(g, t) && (msc_glob_match(pattern, t->name) ||
                                      msc_glob_match(pattern, msc_tensor_label(t)))) {
                add_wanted(c, j->outputs[k]);
                is_found = true;
            }
        }
    }
    int32_t named = is_found ? MSC_NO_ID : msc_graph_find_tensor(g, pattern);
    if (named != MSC_NO_ID) {
        add_wanted(c, named);
    }
    return is_found || named != MSC_NO_ID
               ? MSC_OK
               : MSC_FAIL(MSC_E_NOT_FOUND,
                          "%s: there is no tensor \"%s\"; `mscgym graph` lists them",
                          c->model->path, pattern);
}

static enum msc_status find_wanted(struct collecting *c) {
    const struct msc_graph *g = c->model->graph;
    size_t most = (size_t)msc_graph_n_tensors(g) + 1;
    c->wanted = msc_arena_array(&c->arena, most, sizeof *c->wanted);
    c->names = msc_arena_array(&c->arena, most, sizeof *c->names);
    MSC_TRY(MSC_ALLOCATED(c->wanted && c->names));
    for (size_t i = 0; i < c->collect->n_patterns; i++) {
        MSC_TRY(add_pattern(c, c->collect->patterns[i]));
    }
    for (int32_t i = 0; c->collect->n_patterns == 0 && i < msc_graph_n_outputs(g); i++) {
        add_wanted(c, msc_graph_output(g, i));
    }
    return MSC_OK;
}

// ---- Tensors that depend on the samples -------------------------------------------------------

static bool is_named(const struct collecting *c, size_t i) {
    const struct msc_tensor *t = msc_graph_tensor(c->model->graph, c->wanted[i]);
    for (size_t k = 0; k < c->collect->n_patterns; k++) {
        const char *pattern = c->collect->patterns[k];
        if (strcmp(pattern, t->name) == 0 || strcmp(pattern, c->names[i]) == 0) {
            return true;
        }
    }
    return c->collect->n_patterns == 0;
}

// Drops tensors that become constants once the shapes are bound. A tensor requested by name is
// kept, so that the run fails with an error about it.
static enum msc_status drop_constants(struct collecting *c) {
    struct msc_graph *bound = NULL;
    size_t n = 0;
    MSC_TRY(msc_model__bind_first(&bound, c->model, c->data));
    for (size_t i = 0; i < c->n; i++) {
        const char *name = msc_graph_tensor(c->model->graph, c->wanted[i])->name;
        if (is_named(c, i) || msc_graph_find_tensor(bound, name) != MSC_NO_ID) {
            c->wanted[n] = c->wanted[i];
            c->names[n++] = c->names[i];
        }
    }
    msc_graph_destroy(bound);
    c->n = n;
    return n > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: all requested tensors are constant for these inputs",
                          c->model->path);
}

// ---- Shapes -----------------------------------------------------------------------------------

// The symbol that counts samples (always 1 in a batch); MSC_NO_ID: none.
static int32_t sample_symbol(const struct msc_model *m) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (m->specs[i].is_batched) {
            return msc_graph_tensor(m->graph, msc_graph_input(m->graph, (int32_t)i))
                ->prims[m->specs[i].axis];
        }
    }
    return MSC_NO_ID;
}

// True if all wanted tensors have the same shape for every sample.
static bool are_shapes_fixed(const struct collecting *c) {
    int32_t symbol = sample_symbol(c->model);
    for (size_t i = 0; i < c->n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->model->graph, c->wanted[i]);
        for (int k = 0; k < t->n_dims; k++) {
            if (t->dims[k] < 0 && t->prims[k] != symbol) {
                return false;
            }
        }
    }
    return !msc_dataset_is_sequence(c->data);
}

static enum msc_status take_shapes(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    struct collecting *c = payload;
    (void)trial;
    for (size_t i = 0; i < c->n; i++) {
        struct shape *s = &c->shapes[batch * c->n + i];
        enum msc_dtype own = msc_graph_tensor(msc_graph_own(c->model->graph), c->wanted[i])->dtype;
        *s = (struct shape){.dtype = own, .n_dims = values[i].n_dims};
        memcpy(s->dims, values[i].dims, (size_t)s->n_dims * sizeof s->dims[0]);
    }
    return MSC_OK;
}

static enum msc_status find_shapes(struct collecting *c) {
    const struct msc_sink sink = {.batch = take_shapes, .payload = c};
    struct msc_dataset *one = NULL;
    bool is_fixed = are_shapes_fixed(c);
    c->n_batches = is_fixed ? 1 : msc_dataset_n_batches(c->data);
    c->shapes = msc_arena_array(&c->arena, c->n_batches * c->n + 1, sizeof *c->shapes);
    MSC_TRY(MSC_ALLOCATED(c->shapes));
    if (is_fixed) {
        MSC_TRY(msc_dataset_create_part(&one, c->data, 0, 1));
    }
    enum msc_status status = msc_model__feed(c->model, c->collect->strategy, one ? one : c->data,
                                             c->wanted, c->n, &sink);
    msc_dataset_destroy(one);
    return status;
}

// ---- Arrays -----------------------------------------------------------------------------------

static const struct shape *shape_in(const struct collecting *c, size_t batch, size_t i) {
    return &c->shapes[(c->n_batches > 1 ? batch : 0) * c->n + i];
}

// Rows that a batch adds to an array that is not stacked: one, or one per chunk.
static int64_t rows_of(const struct collecting *c, size_t batch) {
    return msc_dataset_batch_samples(c->data, batch);
}

// True if the values of all batches fit in one array. Only the number of rows may differ, and only
// for sequences.
static bool fits_one_array(const struct collecting *c, size_t i) {
    const struct shape *s = shape_in(c, 0, i);
    int first = msc_dataset_is_sequence(c->data) ? 1 : 0;
    for (size_t b = 1; b < c->n_batches; b++) {
        const struct shape *other = shape_in(c, b, i);
        bool is_equal = other->n_dims == s->n_dims;
        for (int k = first; is_equal && k < s->n_dims; k++) {
            is_equal = other->dims[k] == s->dims[k];
        }
        if (!is_equal) {
            return false;
        }
    }
    return true;
}

static void fill_form(struct msc_array_form *form, const struct collecting *c, size_t i,
                      const struct shape *s) {
    int shift = c->is_stacked[i] ? 1 : 0;
    form->dtype = s->dtype;
    form->n_dims = s->n_dims + shift;
    memcpy(form->dims + shift, s->dims, (size_t)s->n_dims * sizeof s->dims[0]);
    if (!c->is_split[i]) {
        form->dims[0] = msc_dataset_n_samples(c->data);
    }
}

// Describes the arrays of tensor `i`, which begin at index *n of the file.
static enum msc_status add_forms(struct collecting *c, struct msc_array_form forms[], size_t *n,
                                 size_t i) {
    const struct shape *s = shape_in(c, 0, i);
    c->first[i] = *n;
    c->is_split[i] = !fits_one_array(c, i);
    c->is_stacked[i] =
        !c->is_split[i] && !msc_dataset_is_sequence(c->data) && (s->n_dims == 0 || s->dims[0] != 1);
    if (c->is_stacked[i] && s->n_dims == MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: tensor %s has %d axes, so no axis for the samples can be added",
                        c->model->path, c->names[i], s->n_dims);
    }
    size_t n_arrays = c->is_split[i] ? c->n_batches : 1;
    for (size_t b = 0; b < n_arrays; b++) {
        struct msc_array_form *form = &forms[(*n)++];
        form->name =
            c->is_split[i] ? msc_arena_printf(&c->arena, "%s/%zu", c->names[i], b) : c->names[i];
        MSC_TRY(MSC_ALLOCATED(form->name));
        fill_form(form, c, i, shape_in(c, b, i));
    }
    return MSC_OK;
}

static enum msc_status begin_file(struct collecting *c) {
    struct msc_array_form *forms =
        msc_arena_array(&c->arena, c->n_batches * c->n + 1, sizeof *forms);
    size_t n = 0;
    c->first = msc_arena_array(&c->arena, c->n + 1, sizeof *c->first);
    c->is_split = msc_arena_array(&c->arena, c->n + 1, sizeof *c->is_split);
    c->is_stacked = msc_arena_array(&c->arena, c->n + 1, sizeof *c->is_stacked);
    MSC_TRY(MSC_ALLOCATED(forms && c->first && c->is_split && c->is_stacked));
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(add_forms(c, forms, &n, i));
    }
    return msc_array_file_begin(&c->file, msc_array_file_kind_of(c->collect->path),
                                c->collect->path, forms, n);
}

static enum msc_status write_batch(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    struct collecting *c = payload;
    (void)trial;
    for (size_t i = 0; i < c->n; i++) {
        int64_t n = msc_view_n_elements(&values[i]);
        int64_t rows = rows_of(c, batch);
        int64_t row = (int64_t)batch * msc_dataset_batch_size(c->data);
        size_t array = c->first[i] + (c->is_split[i] ? batch : 0);
        int64_t first = c->is_split[i] ? 0 : row * (n / rows);
        if (!msc_graph_is_widened(c->model->graph, c->wanted[i])) {
            MSC_TRY(msc_array_file_put(c->file, array, first, values[i].data, n));
            continue;
        }
        struct msc_array *value;
        MSC_TRY(msc_array_create_from(&value, values[i].dtype, values[i].n_dims, values[i].dims,
                                      values[i].data));
        enum msc_status status = msc_model__narrow(&value, c->model->graph, c->wanted[i]);
        if (status == MSC_OK) {
            status = msc_array_file_put(c->file, array, first, msc_array_data(value), n);
        }
        msc_array_release(value);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// ---- Collecting -------------------------------------------------------------------------------

static enum msc_status collect_check(const struct collecting *c) {
    if (msc_array_file_kind_of(c->collect->path) == MSC_ARRAY_FILE_NONE) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected a name that ends in .npz or .safetensors",
                        c->collect->path);
    }
    if (!c->data) {
        return MSC_FAIL(MSC_E_STATE, "%s: no samples are loaded", c->model->path);
    }
    if (msc_dataset_batch_size(c->data) != 1 && !msc_dataset_is_sequence(c->data)) {
        return MSC_FAIL(MSC_E_STATE, "%s: expected batches of one sample", c->model->path);
    }
    return MSC_OK;
}

enum msc_status msc_collect(struct msc_model *model, struct msc_collect *collect) {
    struct collecting c = {.collect = collect, .model = model, .data = model->dataset};
    const struct msc_sink sink = {.batch = write_batch, .payload = &c};
    enum msc_status status = MSC_OK;
    MSC_TRY(collect_check(&c));
    msc_model__settle_memory(model);
    MSC_TRY_OUT(find_wanted(&c));
    MSC_TRY_OUT(drop_constants(&c));
    MSC_TRY_OUT(msc_output_check_arrays(collect->path, c.names, c.n));
    MSC_TRY_OUT(find_shapes(&c));
    MSC_TRY_OUT(begin_file(&c));
    MSC_TRY_OUT(msc_model__feed(model, collect->strategy, c.data, c.wanted, c.n, &sink));
    MSC_TRY_OUT(msc_array_file_commit(c.file));
    collect->n_tensors = c.n;
    collect->n_samples = msc_dataset_n_samples(c.data);
    collect->n_bytes = msc_array_file_bytes(c.file);
out:
    msc_array_file_close(c.file);
    msc_arena_finish(&c.arena);
    return status;
}

// The pruning part of a strategy: removed channels, and replaced elements of weights.
#include "base/base64.h"
#include "base/str.h"
#include "tools/strategy_internal.h"

#include <stdio.h>
#include <string.h>

bool msc_strategy_prunes(const struct msc_strategy *s) {
    return s->n_groups > 0 || s->n_replaced > 0 || s->n_multiplied > 0;
}

// ---- Adding -----------------------------------------------------------------------------------

static enum msc_status add_group(struct msc_strategy *s, const struct msc_strategy_group *model) {
    struct msc_strategy_group group = *model;
    group.name = msc_arena_strdup(&s->arena, model->name);
    group.label = msc_arena_strdup(&s->arena, model->label);
    group.kept = msc_arena_array(&s->arena, (size_t)model->n_kept + 1, sizeof(group.kept[0]));
    MSC_TRY(MSC_ALLOCATED(group.name && group.label && group.kept));
    memcpy(group.kept, model->kept, (size_t)model->n_kept * sizeof(group.kept[0]));
    MSC_TRY(msc_grow(&s->groups, &s->groups_capacity, s->n_groups + 1, sizeof(s->groups[0])));
    s->groups[s->n_groups++] = group;
    return MSC_OK;
}

enum msc_status msc_strategy_prune_group(struct msc_strategy *s,
                                         const struct msc_channel_group *group, const char *label,
                                         const bool is_gone[]) {
    struct msc_strategy_group model = {
        .name = group->name, .label = label, .n_units = group->n_units};
    model.kept = msc_alloc_zero((size_t)group->n_units + 1, sizeof(model.kept[0]));
    MSC_TRY(MSC_ALLOCATED(model.kept));
    for (int32_t i = 0; i < group->n_units; i++) {
        if (!is_gone[i]) {
            model.kept[model.n_kept++] = i;
        }
    }
    enum msc_status status = add_group(s, &model);
    msc_free(model.kept);
    return status;
}

enum msc_status msc_strategy_replace(struct msc_strategy *s, const char *tensor,
                                     const struct msc_array *elements) {
    const char *name = msc_arena_strdup(&s->arena, tensor);
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(
        msc_grow(&s->replaced, &s->replaced_capacity, s->n_replaced + 1, sizeof(s->replaced[0])));
    MSC_TRY(msc_strategy__keep_array(s, elements));
    s->replaced[s->n_replaced++] = (struct msc_strategy_weight){name, elements};
    return MSC_OK;
}

size_t msc_strategy_n_replaced(const struct msc_strategy *s) {
    return s->n_replaced;
}

const char *msc_strategy_replaced(const struct msc_strategy *s, size_t index) {
    return s->replaced[index].tensor;
}

static struct msc_strategy_group *find_group(const struct msc_strategy *s, const char *name) {
    for (size_t i = 0; i < s->n_groups; i++) {
        if (strcmp(s->groups[i].name, name) == 0) {
            return &s->groups[i];
        }
    }
    return NULL;
}

enum msc_status msc_strategy_prune_after(struct msc_strategy *s,
                                         const struct msc_strategy *before) {
    for (size_t i = 0; i < before->n_groups; i++) {
        const struct msc_strategy_group *first = &before->groups[i];
        struct msc_strategy_group *group = find_group(s, first->name);
        if (!group) {
            MSC_TRY(add_group(s, first));
            continue;
        }
        if (group->n_units != first->n_kept) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "channels of %s cannot be pruned again: %d of them remained, but now "
                            "%d form one group; exclude this group",
                            group->name, (int)first->n_kept, (int)group->n_units);
        }
        for (int32_t k = 0; k < group->n_kept; k++) {
            group->kept[k] = first->kept[group->kept[k]];
        }
        group->n_units = first->n_units;
    }
    return MSC_OK;
}

enum msc_status msc_strategy__merge_prunes(struct msc_strategy *s,
                                           const struct msc_strategy *later) {
    if (msc_strategy_prunes(later) && (msc_strategy_prunes(s) || s->n > 0)) {
        return MSC_FAIL(MSC_E_STATE,
                        "a strategy that prunes must come first and be the only one that prunes");
    }
    for (size_t i = 0; i < later->n_groups; i++) {
        MSC_TRY(add_group(s, &later->groups[i]));
    }
    for (size_t i = 0; i < later->n_replaced; i++) {
        MSC_TRY(msc_strategy_replace(s, later->replaced[i].tensor, later->replaced[i].elements));
    }
    for (size_t i = 0; i < later->n_multiplied; i++) {
        const struct msc_strategy_weight *m = &later->multiplied[i];
        MSC_TRY(msc_strategy_multiply(s, m->tensor, m->elements));
    }
    return MSC_OK;
}

static struct msc_hash hash_arrays(struct msc_hash h, const struct msc_strategy_weight list[],
                                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        h = msc_hash_add_text(h, list[i].tensor);
        h = msc_hash_combine(h, msc_array_hash(list[i].elements));
    }
    return h;
}

struct msc_hash msc_strategy__hash_prunes(struct msc_hash h, const struct msc_strategy *s) {
    for (size_t i = 0; i < s->n_groups; i++) {
        const struct msc_strategy_group *group = &s->groups[i];
        h = msc_hash_add_text(h, group->name);
        for (int32_t k = 0; k < group->n_kept; k++) {
            h = msc_hash_add_u64(h, (uint64_t)group->kept[k]);
        }
    }
    h = hash_arrays(h, s->replaced, s->n_replaced);
    return s->n_multiplied > 0
               ? hash_arrays(msc_hash_add_text(h, "multiply"), s->multiplied, s->n_multiplied)
               : h;
}

bool msc_strategy_prunes_as(const struct msc_strategy *s, const struct msc_strategy *other) {
    const struct msc_hash begin = {0};
    return msc_hash_equal(msc_strategy__hash_prunes(begin, s),
                          msc_strategy__hash_prunes(begin, other));
}

// ---- JSON -------------------------------------------------------------------------------------

static enum msc_status group_to_json(const struct msc_strategy_group *group, cJSON *list) {
    cJSON *object = cJSON_CreateObject(), *kept = cJSON_CreateArray();
    enum msc_status status = msc_json_push(list, object);
    if (status != MSC_OK) {
        cJSON_Delete(kept);
        return status;
    }
    MSC_TRY(msc_json_add(object, "kept", kept));
    MSC_TRY(msc_json_add_text(object, "group", group->name));
    MSC_TRY(msc_json_add_text(object, "choice", group->label));
    MSC_TRY(msc_json_add_number(object, "units", group->n_units));
    for (int32_t i = 0; i < group->n_kept; i++) {
        MSC_TRY(msc_json_push(kept, cJSON_CreateNumber(group->kept[i])));
    }
    return MSC_OK;
}

static enum msc_status weight_to_json(const struct msc_strategy_weight *w, cJSON *list) {
    const struct msc_array *a = w->elements;
    cJSON *object = cJSON_CreateObject(), *shape = cJSON_CreateArray();
    enum msc_status status = msc_json_push(list, object);
    if (status != MSC_OK) {
        cJSON_Delete(shape);
        return status;
    }
    MSC_TRY(msc_json_add(object, "shape", shape));
    MSC_TRY(msc_json_add_text(object, "tensor", w->tensor));
    for (int i = 0; i < msc_array_n_dims(a); i++) {
        MSC_TRY(msc_json_push(shape, cJSON_CreateNumber((double)msc_array_dim(a, i))));
    }
    return msc_strategy__bytes_to_json(object, "elements", msc_array_data(a), msc_array_n_bytes(a));
}

static enum msc_status weights_to_json(cJSON *root, const char *key,
                                       const struct msc_strategy_weight list[], size_t n) {
    if (n == 0) {
        return MSC_OK;
    }
    cJSON *array = cJSON_CreateArray();
    MSC_TRY(msc_json_add(root, key, array));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(weight_to_json(&list[i], array));
    }
    return MSC_OK;
}

enum msc_status msc_strategy__prunes_to_json(const struct msc_strategy *s, cJSON *root) {
    if (s->n_groups > 0) {
        cJSON *groups = cJSON_CreateArray();
        MSC_TRY(msc_json_add(root, "prune", groups));
        for (size_t i = 0; i < s->n_groups; i++) {
            MSC_TRY(group_to_json(&s->groups[i], groups));
        }
    }
    MSC_TRY(weights_to_json(root, "replace", s->replaced, s->n_replaced));
    return weights_to_json(root, "multiply", s->multiplied, s->n_multiplied);
}

static bool take_kept(struct msc_strategy_group *group, const cJSON *list) {
    const cJSON *item;
    int64_t last = -1;
    cJSON_ArrayForEach(item, list) {
        if (!msc_json_read_i64(&last, item, last + 1, group->n_units - 1)) {
            return false;
        }
        group->kept[group->n_kept++] = (int32_t)last;
    }
    return group->n_kept > 0;
}

static enum msc_status read_group(struct msc_strategy *s, const cJSON *object, const char *where) {
    static const char *const keys[] = {"group", "choice", "units", "kept"};
    struct msc_strategy_group group = {.n_kept = 0};
    const cJSON *list;
    int64_t n_units;
    MSC_TRY(msc_json_check_keys(object, keys, 4, where));
    MSC_TRY(msc_json_get_text(&group.name, object, "group", where));
    MSC_TRY(msc_json_get_text(&group.label, object, "choice", where));
    MSC_TRY(msc_json_get_i64(&n_units, object, "units", where));
    MSC_TRY(msc_json_get_array(&list, object, "kept", where));
    if (n_units < 1 || n_units > INT32_MAX || cJSON_GetArraySize(list) > n_units) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: kept lists %d units, but units is %lld", where,
                        cJSON_GetArraySize(list), (long long)n_units);
    }
    group.n_units = (int32_t)n_units;
    group.kept = msc_alloc_zero((size_t)cJSON_GetArraySize(list) + 1, sizeof(group.kept[0]));
    enum msc_status status = MSC_ALLOCATED(group.kept);
    if (status == MSC_OK && !take_kept(&group, list)) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: kept must list ascending indices of %lld units", where,
                          (long long)n_units);
    }
    if (status == MSC_OK) {
        status = add_group(s, &group);
    }
    msc_free(group.kept);
    return status;
}

static enum msc_status read_shape(int64_t dims[MSC_MAX_DIMS], int *n_dims, const cJSON *list,
                                  const char *where) {
    const cJSON *item;
    *n_dims = 0;
    cJSON_ArrayForEach(item, list) {
        if (*n_dims == MSC_MAX_DIMS || !msc_json_read_i64(&dims[*n_dims], item, 1, INT32_MAX)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: shape must list at most %d lengths", where,
                            MSC_MAX_DIMS);
        }
        (*n_dims)++;
    }
    return MSC_OK;
}

static enum msc_status read_elements(struct msc_strategy *s, const cJSON *object, const char *where,
                                     enum msc_status (*add)(struct msc_strategy *s,
                                                            const char *tensor,
                                                            const struct msc_array *elements)) {
    static const char *const keys[] = {"tensor", "shape", "elements"};
    struct msc_array *elements = NULL;
    const char *tensor, *text;
    const cJSON *list;
    int64_t dims[MSC_MAX_DIMS];
    size_t n_bytes;
    int n_dims;
    MSC_TRY(msc_json_check_keys(object, keys, 3, where));
    MSC_TRY(msc_json_get_text(&tensor, object, "tensor", where));
    MSC_TRY(msc_json_get_text(&text, object, "elements", where));
    MSC_TRY(msc_json_get_array(&list, object, "shape", where));
    MSC_TRY(read_shape(dims, &n_dims, list, where));
    if (msc_base64_count(&n_bytes, text) != MSC_OK) {
        return msc_status_prefix(MSC_E_FORMAT, "%s: elements", where);
    }
    double n = sizeof(float);
    for (int i = 0; i < n_dims; i++) {
        n *= (double)dims[i];
    }
    if (n != (double)n_bytes) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: elements has %zu bytes, expected %.0f for this shape",
                        where, n_bytes, n);
    }
    MSC_TRY(msc_array_create(&elements, MSC_DTYPE_F32, n_dims, dims));
    enum msc_status status = msc_base64_read(msc_array_data(elements), n_bytes, text) == MSC_OK
                                 ? add(s, tensor, elements)
                                 : msc_status_prefix(MSC_E_FORMAT, "%s: elements", where);
    msc_array_release(elements);
    return status;
}

static enum msc_status read_weight(struct msc_strategy *s, const cJSON *object, const char *where) {
    return read_elements(s, object, where, msc_strategy_replace);
}

static enum msc_status read_factors(struct msc_strategy *s, const cJSON *object,
                                    const char *where) {
    return read_elements(s, object, where, msc_strategy_multiply);
}

static enum msc_status
read_list(struct msc_strategy *s, const cJSON *root, const char *key, const char *name,
          enum msc_status (*read)(struct msc_strategy *s, const cJSON *object, const char *where)) {
    const cJSON *list;
    const cJSON *item;
    int i = 0;
    if (!msc_json_get(root, key)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, root, key, name));
    cJSON_ArrayForEach(item, list) {
        char where[256];
        snprintf(where, sizeof where, "%.200s: %s[%d]", name, key, i++);
        MSC_TRY(cJSON_IsObject(item) ? read(s, item, where)
                                     : MSC_FAIL(MSC_E_FORMAT, "%s: expected an object", where));
    }
    return MSC_OK;
}

enum msc_status msc_strategy__read_prunes(struct msc_strategy *s, const cJSON *root,
                                          const char *name) {
    MSC_TRY(read_list(s, root, "prune", name, read_group));
    MSC_TRY(read_list(s, root, "replace", name, read_weight));
    return read_list(s, root, "multiply", name, read_factors);
}

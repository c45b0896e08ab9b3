#include "tools/strategy.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define SCHEMA "mscgym.strategy.1"

struct edit {
    const char *site, *tensor, *label;
    size_t n_joints; // 0: all that read the tensor
    const char **joints;
    struct msc_quant quant;
};

struct msc_strategy {
    struct msc_arena arena;
    struct edit *edits;
    size_t n, capacity;
};

enum msc_status msc_strategy_create(struct msc_strategy **out) {
    *out = msc_alloc_zero(1, sizeof(**out));
    return *out ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
}

void msc_strategy_destroy(struct msc_strategy *s) {
    if (s) {
        msc_free(s->edits);
        msc_arena_finish(&s->arena);
        msc_free(s);
    }
}

size_t msc_strategy_n_edits(const struct msc_strategy *s) {
    return s->n;
}

// ---- Adding -----------------------------------------------------------------------------------

static enum msc_status copy_quant(struct msc_strategy *s, struct msc_quant *out,
                                  const struct msc_quant *in) {
    float *scales = msc_arena_array(&s->arena, (size_t)in->n, sizeof(scales[0]));
    int32_t *zeros = msc_arena_array(&s->arena, (size_t)in->n, sizeof(zeros[0]));
    if (!scales || !zeros) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
    }
    memcpy(scales, in->scales, (size_t)in->n * sizeof(scales[0]));
    memcpy(zeros, in->zero_points, (size_t)in->n * sizeof(zeros[0]));
    *out = *in;
    out->scales = scales;
    out->zero_points = zeros;
    msc_quant_seal(out);
    return MSC_OK;
}

// Copies an edit whose text and numbers belong to somebody else.
static enum msc_status add_edit(struct msc_strategy *s, const struct edit *model) {
    struct edit e = {.n_joints = model->n_joints};
    e.site = msc_arena_strdup(&s->arena, model->site);
    e.tensor = msc_arena_strdup(&s->arena, model->tensor);
    e.label = msc_arena_strdup(&s->arena, model->label);
    e.joints = msc_arena_array(&s->arena, model->n_joints + 1, sizeof(e.joints[0]));
    bool is_whole = e.site && e.tensor && e.label && e.joints;
    for (size_t i = 0; is_whole && i < model->n_joints; i++) {
        e.joints[i] = msc_arena_strdup(&s->arena, model->joints[i]);
        is_whole = e.joints[i] != NULL;
    }
    if (!is_whole) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
    }
    MSC_TRY(copy_quant(s, &e.quant, &model->quant));
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->edits[i].site, e.site) == 0) {
            s->edits[i] = e;
            return MSC_OK;
        }
    }
    MSC_TRY(msc_grow(&s->edits, &s->capacity, s->n + 1, sizeof(s->edits[0])));
    s->edits[s->n++] = e;
    return MSC_OK;
}

enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site, const char *label,
                                 const struct msc_quant *quant) {
    const struct msc_site *at = &sites->sites[site];
    const char *tensor = msc_graph_tensor(g, at->tensor)->name;
    struct edit e = {.site = at->name, .tensor = tensor, .label = label, .quant = *quant};
    const char *joint = NULL;
    if (strcmp(at->name, tensor) != 0) {
        joint = msc_graph_joint(g, sites->slots[at->slots[0]].joint)->name;
        e.joints = &joint;
        e.n_joints = 1;
    }
    return add_edit(s, &e);
}

enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later) {
    for (size_t i = 0; i < later->n; i++) {
        MSC_TRY(add_edit(s, &later->edits[i]));
    }
    return MSC_OK;
}

// ---- JSON -------------------------------------------------------------------------------------

static enum msc_status numbers_to_json(cJSON *object, const struct msc_quant *q) {
    cJSON *scales = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "scales", scales));
    cJSON *zeros = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "zero_points", zeros));
    for (int32_t i = 0; i < q->n; i++) {
        MSC_TRY(msc_json_push(scales, cJSON_CreateNumber((double)q->scales[i])));
        MSC_TRY(msc_json_push(zeros, cJSON_CreateNumber(q->zero_points[i])));
    }
    return MSC_OK;
}

static enum msc_status edit_to_json(const struct edit *e, cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "site", e->site));
    MSC_TRY(msc_json_add_text(object, "tensor", e->tensor));
    if (e->n_joints > 0) {
        cJSON *joints = cJSON_CreateArray();
        MSC_TRY(msc_json_add(object, "joints", joints));
        for (size_t i = 0; i < e->n_joints; i++) {
            MSC_TRY(msc_json_push(joints, cJSON_CreateString(e->joints[i])));
        }
    }
    MSC_TRY(msc_json_add_text(object, "choice", e->label));
    MSC_TRY(msc_json_add_number(object, "bits", e->quant.bits));
    MSC_TRY(msc_json_add_number(object, "low", e->quant.low));
    MSC_TRY(msc_json_add_number(object, "high", e->quant.high));
    MSC_TRY(msc_json_add_number(object, "axis", e->quant.axis));
    return numbers_to_json(object, &e->quant);
}

enum msc_status msc_strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                     cJSON **out) {
    char hash[MSC_HASH_TEXT_BYTES];
    enum msc_status status;
    cJSON *root = cJSON_CreateObject();
    cJSON *edits = cJSON_CreateArray();
    if (!root || !edits) {
        cJSON_Delete(edits);
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
        goto out;
    }
    status = msc_json_add_text(root, "schema", SCHEMA);
    if (status == MSC_OK) {
        status = msc_json_add_text(root, "graph", msc_hash_format(hash, msc_graph_hash(g)));
    }
    MSC_TRY_OUT(msc_json_add(root, "edits", edits));
    for (size_t i = 0; i < s->n; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY_OUT(msc_json_push(edits, object));
        MSC_TRY_OUT(edit_to_json(&s->edits[i], object));
    }
    *out = root;
    root = NULL;
out:
    cJSON_Delete(root);
    return status;
}

static enum msc_status get_int32(int32_t *out, const cJSON *object, const char *key, int64_t low,
                                 int64_t high, const char *where) {
    int64_t value;
    MSC_TRY(msc_json_get_i64(&value, object, key, where));
    if (value < low || value > high) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s is %lld, expected %lld to %lld", where, key,
                        (long long)value, (long long)low, (long long)high);
    }
    *out = (int32_t)value;
    return MSC_OK;
}

static enum msc_status read_numbers(struct msc_strategy *s, struct msc_quant *q,
                                    const cJSON *object, const char *where) {
    const cJSON *scales;
    const cJSON *zeros;
    MSC_TRY(msc_json_get_array(&scales, object, "scales", where));
    MSC_TRY(msc_json_get_array(&zeros, object, "zero_points", where));
    q->n = cJSON_GetArraySize(scales);
    if (q->n < 1 || cJSON_GetArraySize(zeros) != q->n || (q->axis < 0 && q->n != 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %d scales and %d zero points do not go with axis %d",
                        where, q->n, cJSON_GetArraySize(zeros), q->axis);
    }
    float *scale = msc_arena_array(&s->arena, (size_t)q->n, sizeof(scale[0]));
    int32_t *zero = msc_arena_array(&s->arena, (size_t)q->n, sizeof(zero[0]));
    if (!scale || !zero) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
    }
    const cJSON *z = zeros->child;
    int32_t i = 0;
    const cJSON *x;
    cJSON_ArrayForEach(x, scales) {
        scale[i] = (float)x->valuedouble;
        if (!cJSON_IsNumber(x) || !(scale[i] > 0) || !isfinite(scale[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: scales[%d] is no positive number", where, i);
        }
        if (!cJSON_IsNumber(z) || z->valuedouble < q->low || z->valuedouble > q->high ||
            z->valuedouble != floor(z->valuedouble)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: zero_points[%d] is no integer from %d to %d", where,
                            i, q->low, q->high);
        }
        zero[i++] = (int32_t)z->valuedouble;
        z = z->next;
    }
    q->scales = scale;
    q->zero_points = zero;
    msc_quant_seal(q);
    return MSC_OK;
}

static enum msc_status read_joints(struct msc_strategy *s, struct edit *e, const cJSON *object,
                                   const char *where) {
    const cJSON *list;
    const cJSON *item;
    if (!cJSON_GetObjectItemCaseSensitive(object, "joints")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, object, "joints", where));
    e->joints = msc_arena_array(&s->arena, (size_t)cJSON_GetArraySize(list) + 1,
                                sizeof(e->joints[0]));
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: joints: expected names", where);
        }
        if (!e->joints) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
        }
        e->joints[e->n_joints++] = item->valuestring;
    }
    return MSC_OK;
}

static enum msc_status read_edit(struct msc_strategy *s, const cJSON *object, const char *where) {
    static const char *const keys[] = {"site", "tensor", "joints", "choice", "bits",
                                       "low",  "high",   "axis",   "scales", "zero_points"};
    struct edit e = {0};
    MSC_TRY(msc_json_check_keys(object, keys, sizeof(keys) / sizeof(keys[0]), where));
    MSC_TRY(msc_json_get_text(&e.site, object, "site", where));
    MSC_TRY(msc_json_get_text(&e.tensor, object, "tensor", where));
    MSC_TRY(msc_json_get_text(&e.label, object, "choice", where));
    MSC_TRY(get_int32(&e.quant.bits, object, "bits", 2, 16, where));
    MSC_TRY(get_int32(&e.quant.low, object, "low", -32768, 0, where));
    MSC_TRY(get_int32(&e.quant.high, object, "high", 1, 65535, where));
    MSC_TRY(get_int32(&e.quant.axis, object, "axis", -1, MSC_MAX_DIMS - 1, where));
    MSC_TRY(read_joints(s, &e, object, where));
    MSC_TRY(read_numbers(s, &e.quant, object, where));
    return add_edit(s, &e);
}

static enum msc_status read_all(struct msc_strategy *s, const cJSON *json, const char *name) {
    static const char *const keys[] = {"schema", "graph", "edits"};
    const char *schema;
    const cJSON *list;
    const cJSON *item;
    struct msc_str where = {0};
    enum msc_status status = MSC_OK;
    int i = 0;
    MSC_TRY(msc_json_check_keys(json, keys, 3, name));
    MSC_TRY(msc_json_get_text(&schema, json, "schema", name));
    if (strcmp(schema, SCHEMA) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: schema is \"%s\", expected \"" SCHEMA "\"", name,
                        schema);
    }
    MSC_TRY(msc_json_get_array(&list, json, "edits", name));
    cJSON_ArrayForEach(item, list) {
        msc_str_clear(&where);
        msc_str_printf(&where, "%s: edits[%d]", name, i++);
        MSC_TRY_OUT(msc_str_status(&where));
        if (!cJSON_IsObject(item)) {
            status = MSC_FAIL(MSC_E_FORMAT, "%s: expected an object", msc_str_text(&where));
            goto out;
        }
        MSC_TRY_OUT(read_edit(s, item, msc_str_text(&where)));
    }
out:
    msc_str_finish(&where);
    return status;
}

enum msc_status msc_strategy_from_json(struct msc_strategy **out, const cJSON *json,
                                       const char *name) {
    struct msc_strategy *s;
    MSC_TRY(msc_strategy_create(&s));
    enum msc_status status = read_all(s, json, name);
    if (status != MSC_OK) {
        msc_strategy_destroy(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

enum msc_status msc_strategy_load(struct msc_strategy **out, const char *path) {
    cJSON *json;
    MSC_TRY(msc_json_load(&json, path));
    enum msc_status status = msc_strategy_from_json(out, json, path);
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_strategy_save(const struct msc_strategy *s, const struct msc_graph *g,
                                  const char *path) {
    struct msc_str text = {0};
    cJSON *json;
    MSC_TRY(msc_strategy_to_json(s, g, &json));
    msc_json_write_pretty(&text, json);
    msc_str_char(&text, '\n');
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(path, text.data, text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

// ---- Applying ---------------------------------------------------------------------------------

static bool names_joint(const struct edit *e, const char *joint) {
    for (size_t i = 0; i < e->n_joints; i++) {
        if (strcmp(e->joints[i], joint) == 0) {
            return true;
        }
    }
    return e->n_joints == 0;
}

static enum msc_status apply_edit(const struct edit *e, const struct msc_graph *g,
                                  const struct msc_sites *sites, const struct msc_quant *edits[]) {
    int32_t tensor = msc_graph_find_tensor(g, e->tensor);
    bool found = false;
    if (tensor == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_STATE, "the strategy names tensor %s, which the model lacks",
                        e->tensor);
    }
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (e->quant.axis >= t->n_dims ||
        (e->quant.axis >= 0 && t->dims[e->quant.axis] != e->quant.n)) {
        return MSC_FAIL(MSC_E_STATE, "the strategy has %d scales for axis %d of tensor %s", //
                        e->quant.n, e->quant.axis, e->tensor);
    }
    for (int32_t i = 0; i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == tensor && names_joint(e, msc_graph_joint(g, slot->joint)->name)) {
            edits[i] = &e->quant;
            found = true;
        }
    }
    return found ? MSC_OK
                 : MSC_FAIL(MSC_E_STATE, "the strategy quantises tensor %s, which no joint of the "
                                         "model reads as such",
                            e->tensor);
}

enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites,
                                   const struct msc_quant *edits[]) {
    for (size_t i = 0; i < s->n; i++) {
        MSC_TRY(apply_edit(&s->edits[i], g, sites, edits));
    }
    return MSC_OK;
}

struct msc_hash msc_strategy_hash(const struct msc_strategy *s) {
    struct msc_hash h = msc_hash_bytes(SCHEMA, sizeof(SCHEMA) - 1);
    for (size_t i = 0; i < s->n; i++) {
        h = msc_hash_add_text(h, s->edits[i].site);
        h = msc_hash_combine(h, s->edits[i].quant.hash);
    }
    return h;
}

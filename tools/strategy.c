#include "tools/strategy.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
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

static bool names_joint(const struct edit *e, const char *joint) {
    for (size_t i = 0; i < e->n_joints; i++) {
        if (strcmp(e->joints[i], joint) == 0) {
            return true;
        }
    }
    return e->n_joints == 0;
}

// Takes away from earlier edits what `e` is about: its joints, or the whole tensor. An earlier edit
// of the whole tensor stays under one of some joints, which is applied after it.
static void give_way(struct msc_strategy *s, const struct edit *e) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct edit *x = &s->edits[i];
        bool is_same = strcmp(x->tensor, e->tensor) == 0;
        size_t n = 0;
        for (size_t k = 0; is_same && k < x->n_joints; k++) {
            if (!names_joint(e, x->joints[k])) {
                x->joints[n++] = x->joints[k];
            }
        }
        bool stays = !is_same || n > 0 || (x->n_joints == 0 && e->n_joints > 0);
        x->n_joints = is_same ? n : x->n_joints;
        if (stays) {
            s->edits[kept++] = *x;
        }
    }
    s->n = kept;
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
    MSC_TRY(msc_grow(&s->edits, &s->capacity, s->n + 1, sizeof(s->edits[0])));
    give_way(s, &e);
    s->edits[s->n++] = e;
    return MSC_OK;
}

// Edits of a whole tensor name their joints, so that one of these can be taken away.
static enum msc_status spell_out(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t tensor) {
    for (size_t i = 0; i < s->n; i++) {
        struct edit *x = &s->edits[i];
        if (x->n_joints > 0 || strcmp(x->tensor, msc_graph_tensor(g, tensor)->name) != 0) {
            continue;
        }
        x->joints = msc_arena_array(&s->arena, (size_t)sites->n_slots, sizeof(x->joints[0]));
        if (!x->joints) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
        }
        for (int32_t k = 0; k < sites->n_slots; k++) {
            const char *joint = msc_graph_joint(g, sites->slots[k].joint)->name;
            bool is_new = x->n_joints == 0 || !names_joint(x, joint);
            if (sites->slots[k].tensor == tensor && is_new) {
                x->joints[x->n_joints++] = joint;
            }
        }
        for (size_t k = 0; k < x->n_joints; k++) {
            x->joints[k] = msc_arena_strdup(&s->arena, x->joints[k]);
            if (!x->joints[k]) {
                return MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site, const char *label,
                                 const struct msc_quant *quant) {
    const struct msc_site *at = &sites->sites[site];
    const char *tensor = msc_graph_tensor(g, at->tensor)->name;
    struct edit e = {.site = at->name, .tensor = tensor, .label = label};
    const char *joint = NULL;
    if (strcmp(at->name, tensor) != 0) {
        joint = msc_graph_joint(g, sites->slots[at->slots[0]].joint)->name;
        e.joints = &joint;
        e.n_joints = 1;
    }
    if (quant) {
        e.quant = *quant;
        return add_edit(s, &e);
    }
    if (e.n_joints > 0) {
        MSC_TRY(spell_out(s, g, sites, at->tensor));
    }
    give_way(s, &e);
    return MSC_OK;
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
    if (e->quant.type != MSC_DTYPE_NONE) {
        return msc_json_add_text(object, "type", msc_dtype_name(e->quant.type));
    }
    MSC_TRY(msc_json_add_number(object, "bits", e->quant.bits));
    MSC_TRY(msc_json_add_number(object, "low", e->quant.low));
    MSC_TRY(msc_json_add_number(object, "high", e->quant.high));
    MSC_TRY(msc_json_add_number(object, "axis", e->quant.axis));
    if (e->quant.group_size > 0) {
        MSC_TRY(msc_json_add_number(object, "group_size", e->quant.group_size));
        MSC_TRY(msc_json_add_number(object, "group_axes", e->quant.group_axes));
    }
    return numbers_to_json(object, &e->quant);
}

static enum msc_status strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                        cJSON *root) {
    char hash[MSC_HASH_TEXT_BYTES];
    MSC_TRY(msc_json_add_text(root, "schema", SCHEMA));
    MSC_TRY(msc_json_add_text(root, "graph", msc_hash_format(hash, msc_graph_hash(g))));
    cJSON *edits = cJSON_CreateArray();
    MSC_TRY(msc_json_add(root, "edits", edits));
    for (size_t i = 0; i < s->n; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(edits, object));
        MSC_TRY(edit_to_json(&s->edits[i], object));
    }
    return MSC_OK;
}

enum msc_status msc_strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                     cJSON **out) {
    cJSON *root = cJSON_CreateObject();
    enum msc_status status =
        root ? strategy_to_json(s, g, root) : MSC_FAIL(MSC_E_NOMEM, "out of memory for a strategy");
    if (status != MSC_OK) {
        cJSON_Delete(root);
        return status;
    }
    *out = root;
    return MSC_OK;
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
    if (cJSON_GetArraySize(list) == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: joints is empty; leave it out for all", where);
    }
    e->joints =
        msc_arena_array(&s->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(e->joints[0]));
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

// Integers of so many bits, with a sign or without.
static enum msc_status check_limits(const struct msc_quant *q, const char *where) {
    int32_t half = (int32_t)1 << (q->bits - 1);
    if (q->low < -half || q->high > (q->low < 0 ? half - 1 : 2 * half - 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %d to %d does not fit %d bits", where, q->low, q->high,
                        q->bits);
    }
    return MSC_OK;
}

static enum msc_status read_integers(struct msc_strategy *s, struct msc_quant *q,
                                     const cJSON *object, const char *where) {
    MSC_TRY(get_int32(&q->bits, object, "bits", 2, 16, where));
    MSC_TRY(get_int32(&q->low, object, "low", -32768, 0, where));
    MSC_TRY(get_int32(&q->high, object, "high", 1, 65535, where));
    MSC_TRY(get_int32(&q->axis, object, "axis", -1, MSC_MAX_DIMS - 1, where));
    MSC_TRY(check_limits(q, where));
    if (cJSON_GetObjectItemCaseSensitive(object, "group_size")) {
        MSC_TRY(get_int32(&q->axis, object, "axis", 0, MSC_MAX_DIMS - 1, where));
        MSC_TRY(get_int32(&q->group_size, object, "group_size", 1, INT32_MAX, where));
        MSC_TRY(get_int32(&q->group_axes, object, "group_axes", 1, MSC_MAX_DIMS - q->axis, where));
    }
    return read_numbers(s, q, object, where);
}

static enum msc_status read_float_type(struct msc_quant *q, const cJSON *object,
                                       const char *where) {
    static const char *const of_integers[] = {"bits",   "low",         "high",       "axis",
                                              "scales", "zero_points", "group_size", "group_axes"};
    const char *name;
    MSC_TRY(msc_json_get_text(&name, object, "type", where));
    enum msc_dtype type = msc_dtype_find(name);
    if (type != MSC_DTYPE_F16 && type != MSC_DTYPE_BF16) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: type \"%s\" is not known; there are float16, bfloat16",
                        where, name);
    }
    for (size_t i = 0; i < sizeof(of_integers) / sizeof(of_integers[0]); i++) {
        if (cJSON_GetObjectItemCaseSensitive(object, of_integers[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s does not go with type %s", where, of_integers[i],
                            name);
        }
    }
    *q = msc_quant_of_float(type);
    return MSC_OK;
}

static enum msc_status read_edit(struct msc_strategy *s, const cJSON *object, const char *where) {
    static const char *const keys[] = {"site",        "tensor",     "joints",    "choice", "type",
                                       "bits",        "low",        "high",      "axis",   "scales",
                                       "zero_points", "group_size", "group_axes"};
    struct edit e = {0};
    MSC_TRY(msc_json_check_keys(object, keys, sizeof(keys) / sizeof(keys[0]), where));
    MSC_TRY(msc_json_get_text(&e.site, object, "site", where));
    MSC_TRY(msc_json_get_text(&e.tensor, object, "tensor", where));
    MSC_TRY(msc_json_get_text(&e.label, object, "choice", where));
    MSC_TRY(read_joints(s, &e, object, where));
    if (cJSON_GetObjectItemCaseSensitive(object, "type")) {
        MSC_TRY(read_float_type(&e.quant, object, where));
    } else {
        MSC_TRY(read_integers(s, &e.quant, object, where));
    }
    return add_edit(s, &e);
}

// Configurations and records are easily taken for it.
static enum msc_status fail_no_strategy(const char *name, const char *why) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: not a strategy file (%s); give the file that a search writes to its "
                    "workspace as strategy_file, or that `mscgym export RECORD --save-strategy` "
                    "makes",
                    name, why);
}

static enum msc_status read_all(struct msc_strategy *s, const cJSON *json, const char *name) {
    static const char *const keys[] = {"schema", "graph", "edits"};
    const char *schema;
    const cJSON *list;
    const cJSON *item;
    struct msc_str where = {0};
    enum msc_status status = MSC_OK;
    int i = 0;
    if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(json, "schema"))) {
        return fail_no_strategy(name, "it has no \"schema\"");
    }
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
    enum msc_status status = msc_json_load(&json, path);
    if (status == MSC_E_FORMAT) {
        char why[160];
        snprintf(why, sizeof(why), "%.159s", msc_status_message());
        return fail_no_strategy(path, why);
    }
    MSC_TRY(status);
    status = msc_strategy_from_json(out, json, path);
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_strategy_save(const struct msc_strategy *s, const struct msc_graph *g,
                                  const char *path) {
    struct msc_str text = {0};
    cJSON *json;
    MSC_TRY(msc_strategy_to_json(s, g, &json));
    msc_json_write_pretty(&text, json);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(path, text.data, text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

// ---- Applying ---------------------------------------------------------------------------------

static enum msc_status check_fit(const struct edit *e, const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (!t->data && e->quant.axis >= 0) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has scales for axis %d of tensor %s, but activations have "
                        "one scale each",
                        e->quant.axis, e->tensor);
    }
    struct msc_quant_split split;
    if (e->quant.axis >= 0 && !msc_quant_split(&split, &e->quant, t->n_dims, t->dims)) {
        return MSC_FAIL(MSC_E_STATE, "the strategy has %d scales for axis %d of tensor %s",
                        e->quant.n, e->quant.axis, e->tensor);
    }
    if (t->dtype != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_STATE, "the strategy quantises tensor %s, which is %s", e->tensor,
                        msc_dtype_name(t->dtype));
    }
    for (size_t i = 0; i < e->n_joints; i++) {
        if (msc_graph_find_joint(g, e->joints[i]) == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_STATE, "the strategy names joint %s, which the model lacks",
                            e->joints[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status apply_edit(const struct edit *e, const struct msc_graph *g,
                                  const struct msc_sites *sites, const struct msc_quant *edits[]) {
    int32_t tensor = msc_graph_find_tensor(g, e->tensor);
    bool found = false;
    if (tensor == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_STATE, "the strategy names tensor %s, which the model lacks",
                        e->tensor);
    }
    MSC_TRY(check_fit(e, g, tensor));
    for (int32_t i = 0; i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == tensor && names_joint(e, msc_graph_joint(g, slot->joint)->name)) {
            edits[i] = &e->quant;
            found = true;
        }
    }
    return found ? MSC_OK
                 : MSC_FAIL(MSC_E_STATE,
                            "the strategy quantises tensor %s, which no joint of the model reads "
                            "as such",
                            e->tensor);
}

enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites, const struct msc_quant *edits[]) {
    for (size_t i = 0; i < s->n; i++) {
        MSC_TRY(apply_edit(&s->edits[i], g, sites, edits));
    }
    return MSC_OK;
}

struct msc_hash msc_strategy_hash(const struct msc_strategy *s) {
    struct msc_hash h = msc_hash_bytes(SCHEMA, sizeof(SCHEMA) - 1);
    for (size_t i = 0; i < s->n; i++) {
        h = msc_hash_add_text(h, s->edits[i].site);
        for (size_t k = 0; k < s->edits[i].n_joints; k++) {
            h = msc_hash_add_text(h, s->edits[i].joints[k]);
        }
        h = msc_hash_combine(h, s->edits[i].quant.hash);
    }
    return h;
}

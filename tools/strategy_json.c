// Reads and writes strategy files; docs/strategy.md describes the fields.
#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/str.h"
#include "tools/strategy_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "mscgym.strategy.1"
// The type of integers whose scale follows from the tensor at run time.
#define DYNAMIC "dynamic"

// A weight with more scales than this has them as base64: as a list, cJSON would need 20 times
// their memory.
#define LIST_LIMIT 4096

enum msc_status msc_strategy__bytes_to_json(cJSON *object, const char *key, const void *bytes,
                                            size_t n) {
    struct msc_str text = {0};
    enum msc_status status = msc_base64_write(&text, bytes, n);
    if (status == MSC_OK) {
        status = msc_json_add_text(object, key, msc_str_text(&text));
    }
    msc_str_finish(&text);
    return status;
}

// Adds float32 numbers, as a list or as base64.
static enum msc_status floats_to_json(cJSON *object, const char *key, const float values[],
                                      int64_t n) {
    if (n > LIST_LIMIT) {
        return msc_strategy__bytes_to_json(object, key, values, (size_t)n * sizeof(values[0]));
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (int64_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber((double)values[i])));
    }
    return MSC_OK;
}

static enum msc_status zeros_to_json(cJSON *object, const struct msc_quant *q) {
    bool are_equal = true;
    for (int32_t i = 1; i < q->n; i++) {
        are_equal = are_equal && q->zero_points[i] == q->zero_points[0];
    }
    if (q->n > LIST_LIMIT && !are_equal) {
        return msc_strategy__bytes_to_json(object, "zero_points", q->zero_points,
                                           (size_t)q->n * sizeof(q->zero_points[0]));
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "zero_points", list));
    int32_t n = q->n > LIST_LIMIT ? 1 : q->n;
    for (int32_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber(q->zero_points[i])));
    }
    return MSC_OK;
}

static enum msc_status origin_to_json(const struct msc_strategy_origin *o, cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "observer", msc_observer_name(o->observer)));
    if (o->observer == MSC_OBSERVER_PERCENTILE) {
        MSC_TRY(msc_json_add_number(object, "percentile", o->percentile));
    }
    if (o->range_scale != 1) {
        MSC_TRY(msc_json_add_number(object, "range_scale", o->range_scale));
    }
    if (o->rounding != MSC_ROUNDING_NEAREST) {
        MSC_TRY(msc_json_add_text(object, "rounding", msc_rounding_name(o->rounding)));
    }
    if (o->correction != MSC_CORRECTION_NONE) {
        MSC_TRY(msc_json_add_text(object, "correct", msc_correction_name(o->correction)));
    }
    return msc_json_add_bool(object, "symmetric", o->is_symmetric);
}

static enum msc_status edit_to_json(const struct msc_strategy_edit *e, cJSON *object) {
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
    if (e->edit.quant.type != MSC_DTYPE_NONE || e->edit.quant.is_dynamic) {
        const char *name = e->edit.quant.is_dynamic ? DYNAMIC : msc_dtype_name(e->edit.quant.type);
        return msc_json_add_text(object, "type", name);
    }
    if (e->edit.quant.blocks) {
        return msc_strategy__blocks_to_json(&e->edit.quant, object);
    }
    if (e->has_origin) {
        MSC_TRY(origin_to_json(&e->origin, object));
    }
    MSC_TRY(msc_json_add_number(object, "bits", e->edit.quant.bits));
    MSC_TRY(msc_json_add_number(object, "low", e->edit.quant.low));
    MSC_TRY(msc_json_add_number(object, "high", e->edit.quant.high));
    MSC_TRY(msc_json_add_number(object, "axis", e->edit.quant.axis));
    if (e->edit.quant.group_size > 0) {
        MSC_TRY(msc_json_add_number(object, "group_size", e->edit.quant.group_size));
        MSC_TRY(msc_json_add_number(object, "group_axes", e->edit.quant.group_axes));
    }
    const struct msc_quant *q = &e->edit.quant;
    MSC_TRY(floats_to_json(object, "scales", q->scales, q->n));
    MSC_TRY(zeros_to_json(object, q));
    if (q->integers) { // one byte for each element
        MSC_TRY(msc_strategy__bytes_to_json(object, "integers", msc_array_data(q->integers),
                                            msc_array_n_bytes(q->integers)));
    }
    if (q->shifts) {
        MSC_TRY(floats_to_json(object, "shifts", msc_array_data(q->shifts),
                               msc_array_n_elements(q->shifts)));
    }
    return MSC_OK;
}

static enum msc_status strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                        cJSON *root) {
    char hash[MSC_HASH_TEXT_BYTES];
    MSC_TRY(msc_json_add_text(root, "schema", SCHEMA));
    MSC_TRY(msc_json_add_text(root, "graph", msc_hash_format(hash, msc_graph_hash(g))));
    MSC_TRY(msc_json_add_text(root, "weights", msc_hash_format(hash, msc_graph_weights_hash(g))));
    if (s->target) {
        MSC_TRY(msc_json_add_text(root, "target", s->target->name));
        MSC_TRY(msc_json_add_text(root, "sites", "all"));
    }
    MSC_TRY(msc_strategy__prunes_to_json(s, root));
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
        root ? strategy_to_json(s, g, root) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
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

// Counts the numbers of a member that is a list of numbers or base64 of 4-byte numbers.
static enum msc_status count_numbers(int64_t *n, const cJSON *object, const char *key,
                                     const char *where) {
    const cJSON *json = msc_json_get(object, key);
    size_t n_bytes;
    if (!cJSON_IsString(json)) {
        MSC_TRY(msc_json_get_array(&json, object, key, where));
        *n = cJSON_GetArraySize(json);
        return MSC_OK;
    }
    if (msc_base64_count(&n_bytes, json->valuestring) != MSC_OK) {
        return msc_status_prefix(MSC_E_FORMAT, "%s: %s", where, key);
    }
    if (n_bytes % 4 != 0 || n_bytes / 4 > INT32_MAX) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s has %zu bytes, expected 4 bytes for each number",
                        where, key, n_bytes);
    }
    *n = (int64_t)(n_bytes / 4);
    return MSC_OK;
}

// Reads the n numbers that count_numbers counted.
static enum msc_status read_floats(float values[], int64_t n, const cJSON *object, const char *key,
                                   const char *where) {
    const cJSON *json = msc_json_get(object, key);
    if (cJSON_IsString(json)) {
        MSC_TRY(msc_base64_read(values, (size_t)n * sizeof(values[0]), json->valuestring));
    }
    const cJSON *item = json->child;
    for (int64_t i = 0; i < n; i++) {
        if (!cJSON_IsString(json)) {
            values[i] = cJSON_IsNumber(item) ? (float)item->valuedouble : NAN;
            item = item->next;
        }
        if (!isfinite(values[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s[%lld] is not a finite number", where, key,
                            (long long)i);
        }
    }
    return MSC_OK;
}

static enum msc_status read_scales(struct msc_strategy *s, struct msc_quant *q, const cJSON *object,
                                   const char *where) {
    float *scales = msc_arena_array(&s->arena, (size_t)q->n, sizeof(scales[0]));
    MSC_TRY(MSC_ALLOCATED(scales));
    MSC_TRY(read_floats(scales, q->n, object, "scales", where));
    for (int32_t i = 0; i < q->n; i++) {
        if (!(scales[i] > 0)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: scales[%d] is not a positive number", where, i);
        }
    }
    q->scales = scales;
    return MSC_OK;
}

// Reads q->n zero points: n_given numbers, or a single number for all scales.
static enum msc_status read_zeros(struct msc_strategy *s, struct msc_quant *q, int64_t n_given,
                                  const cJSON *object, const char *where) {
    const cJSON *json = msc_json_get(object, "zero_points");
    int32_t *zeros = msc_arena_array(&s->arena, (size_t)q->n, sizeof(zeros[0]));
    MSC_TRY(MSC_ALLOCATED(zeros));
    if (cJSON_IsString(json)) {
        MSC_TRY(msc_base64_read(zeros, (size_t)n_given * sizeof(zeros[0]), json->valuestring));
    }
    const cJSON *item = json->child;
    for (int32_t i = 0; i < q->n; i++) {
        bool is_new = i < n_given;
        double zero = !is_new                ? zeros[0]
                      : cJSON_IsString(json) ? zeros[i]
                      : cJSON_IsNumber(item) ? item->valuedouble
                                             : NAN;
        if (!(zero >= q->low && zero <= q->high) || zero != floor(zero)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: zero_points[%d] is not an integer from %d to %d",
                            where, i, q->low, q->high);
        }
        zeros[i] = (int32_t)zero;
        item = item && is_new ? item->next : NULL;
    }
    q->zero_points = zeros;
    return MSC_OK;
}

static enum msc_status read_numbers(struct msc_strategy *s, struct msc_quant *q,
                                    const cJSON *object, const char *where) {
    int64_t n_scales, n_zeros;
    MSC_TRY(count_numbers(&n_scales, object, "scales", where));
    MSC_TRY(count_numbers(&n_zeros, object, "zero_points", where));
    if (n_scales < 1 || (n_zeros != n_scales && n_zeros != 1) || (q->axis < 0 && n_scales != 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %lld scales and %lld zero points do not match axis %d",
                        where, (long long)n_scales, (long long)n_zeros, q->axis);
    }
    q->n = (int32_t)n_scales;
    MSC_TRY(read_scales(s, q, object, where));
    return read_zeros(s, q, n_zeros, object, where);
}

// Reads optional integers of a weight. The caller owns the array.
static enum msc_status read_chosen(struct msc_quant *q, const cJSON *object, const char *where) {
    const char *text;
    struct msc_array *integers = NULL;
    size_t n_bytes;
    if (!msc_json_get(object, "integers")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&text, object, "integers", where));
    if (msc_base64_count(&n_bytes, text) != MSC_OK) {
        return msc_status_prefix(MSC_E_FORMAT, "%s: integers", where);
    }
    int64_t n = (int64_t)n_bytes;
    MSC_TRY(msc_array_create(&integers, q->low < 0 ? MSC_DTYPE_I8 : MSC_DTYPE_U8, 1, &n));
    q->integers = integers;
    if (msc_base64_read(msc_array_data(integers), n_bytes, text) != MSC_OK ||
        msc_quant_check_integers(q, n) != MSC_OK) {
        return msc_status_prefix(MSC_E_FORMAT, "%s: integers", where);
    }
    return MSC_OK;
}

// Reads optional shifts. The caller owns the array.
static enum msc_status read_shifts(struct msc_quant *q, const cJSON *object, const char *where) {
    struct msc_array *shifts = NULL;
    int64_t n;
    if (!msc_json_get(object, "shifts")) {
        return MSC_OK;
    }
    MSC_TRY(count_numbers(&n, object, "shifts", where));
    MSC_TRY(msc_array_create(&shifts, MSC_DTYPE_F32, 1, &n));
    q->shifts = shifts;
    return read_floats(msc_array_data(shifts), n, object, "shifts", where);
}

static enum msc_status read_joints(struct msc_strategy *s, struct msc_strategy_edit *e,
                                   const cJSON *object, const char *where) {
    const cJSON *list;
    const cJSON *item;
    if (!msc_json_get(object, "joints")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, object, "joints", where));
    if (cJSON_GetArraySize(list) == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: joints is empty; omit it to mean all joints", where);
    }
    e->joints =
        msc_arena_array(&s->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(e->joints[0]));
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: joints must be names", where);
        }
        MSC_TRY(MSC_ALLOCATED(e->joints));
        e->joints[e->n_joints++] = item->valuestring;
    }
    return MSC_OK;
}

// Checks that the limits `low` and `high` fit into the number of bits, signed or unsigned.
static enum msc_status check_limits(const struct msc_quant *q, const char *where) {
    int32_t half = (int32_t)1 << (q->bits - 1);
    if (q->low < -half || q->high > (q->low < 0 ? half - 1 : 2 * half - 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: integers from %d to %d do not fit %d bits", where,
                        q->low, q->high, q->bits);
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
    if (msc_json_get(object, "group_size")) {
        MSC_TRY(get_int32(&q->axis, object, "axis", 0, MSC_MAX_DIMS - 1, where));
        MSC_TRY(get_int32(&q->group_size, object, "group_size", 1, INT32_MAX, where));
        MSC_TRY(get_int32(&q->group_axes, object, "group_axes", 1, MSC_MAX_DIMS - q->axis, where));
    }
    MSC_TRY(read_numbers(s, q, object, where));
    MSC_TRY(read_chosen(q, object, where));
    MSC_TRY(read_shifts(q, object, where));
    msc_quant_seal(q);
    return MSC_OK;
}

static enum msc_status read_type(struct msc_quant *q, const cJSON *object, const char *where) {
    static const char *const of_integers[] = {
        "bits",       "low",        "high",     "axis",       "scales",      "zero_points",
        "group_size", "group_axes", "observer", "percentile", "range_scale", "symmetric",
        "rounding",   "integers",   "correct",  "shifts",     "blocks"};
    const char *name;
    MSC_TRY(msc_json_get_text(&name, object, "type", where));
    if (msc_gguf_block_type_named(name)) {
        return msc_strategy__read_blocks(q, object, where);
    }
    enum msc_dtype type = msc_dtype_find(name);
    bool is_dynamic = strcmp(name, DYNAMIC) == 0;
    if (type != MSC_DTYPE_F16 && type != MSC_DTYPE_BF16 && !is_dynamic) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: unknown type \"%s\": expected float16, bfloat16, " DYNAMIC
                        " or a block type of GGUF, such as q4_k",
                        where, name);
    }
    for (size_t i = 0; i < sizeof(of_integers) / sizeof(of_integers[0]); i++) {
        if (msc_json_get(object, of_integers[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s is not allowed with type %s", where,
                            of_integers[i], name);
        }
    }
    *q = is_dynamic ? msc_quant_dynamic() : msc_quant_of_float(type);
    return MSC_OK;
}

static bool has_origin(const cJSON *object) {
    static const char *const keys[] = {"observer",  "percentile", "range_scale",
                                       "symmetric", "rounding",   "correct"};
    bool has = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        has = has || msc_json_get(object, keys[i]);
    }
    return has;
}

// Reads how the scales were found: either all members or none.
static enum msc_status read_origin(struct msc_strategy_edit *e, const cJSON *object,
                                   const char *where) {
    struct msc_strategy_origin *o = &e->origin;
    const char *name;
    *o = (struct msc_strategy_origin){.percentile = 100, .range_scale = 1};
    MSC_TRY(msc_json_get_text(&name, object, "observer", where));
    if (!msc_observer_find(&o->observer, name)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: unknown observer \"%s\": expected minmax, percentile, mse or "
                        "hessian",
                        where, name);
    }
    if (o->observer == MSC_OBSERVER_PERCENTILE) {
        MSC_TRY(msc_json_get_double(&o->percentile, object, "percentile", where));
    }
    if (msc_json_get(object, "range_scale")) {
        MSC_TRY(msc_json_get_double(&o->range_scale, object, "range_scale", where));
    }
    if (msc_json_get(object, "rounding")) {
        MSC_TRY(msc_json_get_text(&name, object, "rounding", where));
        if (!msc_rounding_find(&o->rounding, name)) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: unknown rounding \"%s\": expected nearest, gptq or descent", where,
                            name);
        }
    }
    if (msc_json_get(object, "correct")) {
        MSC_TRY(msc_json_get_text(&name, object, "correct", where));
        if (!msc_correction_find(&o->correction, name)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: unknown correct \"%s\": expected none or affine",
                            where, name);
        }
    }
    if (!(o->percentile > 50 && o->percentile <= 100) ||
        !(o->range_scale >= 0.01 && o->range_scale <= 100)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: percentile is %g and range_scale %g, expected percentile above 50 "
                        "up to 100 and range_scale 0.01 to 100",
                        where, o->percentile, o->range_scale);
    }
    e->has_origin = true;
    return msc_json_get_bool(&o->is_symmetric, object, "symmetric", where);
}

static enum msc_status read_edit(struct msc_strategy *s, const cJSON *object, const char *where) {
    static const char *const keys[] = {
        "site",       "tensor",   "joints",     "choice",      "type",        "bits",
        "low",        "high",     "axis",       "scales",      "zero_points", "group_size",
        "group_axes", "observer", "percentile", "range_scale", "symmetric",   "rounding",
        "integers",   "correct",  "shifts",     "blocks"};
    struct msc_strategy_edit e = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_json_check_keys(object, keys, sizeof(keys) / sizeof(keys[0]), where));
    MSC_TRY(msc_json_get_text(&e.site, object, "site", where));
    MSC_TRY(msc_json_get_text(&e.tensor, object, "tensor", where));
    MSC_TRY(msc_json_get_text(&e.label, object, "choice", where));
    MSC_TRY(read_joints(s, &e, object, where));
    if (msc_json_get(object, "type")) {
        MSC_TRY_OUT(read_type(&e.edit.quant, object, where));
    } else {
        MSC_TRY_OUT(read_integers(s, &e.edit.quant, object, where));
        MSC_TRY_OUT(has_origin(object) ? read_origin(&e, object, where) : MSC_OK);
    }
    status = msc_strategy__add(s, &e);
out:
    msc_array_release((struct msc_array *)e.edit.quant.integers);
    msc_array_release((struct msc_array *)e.edit.quant.shifts);
    return status;
}

// Configurations and records are easily mistaken for a strategy.
static enum msc_status fail_no_strategy(const char *name, const char *why) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: not a strategy file (%s); give the file that a search writes to its "
                    "workspace as strategy_file, or that `mscgym export RECORD --save-strategy` "
                    "makes",
                    name, why);
}

// Without "sites", the sites are the tensors that joints read.
static enum msc_status read_sites(struct msc_strategy *s, const cJSON *json, const char *name) {
    const char *target, *sites;
    if (!msc_json_get(json, "sites")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&sites, json, "sites", name));
    MSC_TRY(msc_json_get_text(&target, json, "target", name));
    s->target = msc_target_find(target);
    return s->target && s->target->requantises && strcmp(sites, "all") == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: unknown target \"%s\" with sites \"%s\"", name, target,
                          sites);
}

// Reads the member "plain" if it is there.
static enum msc_status read_plain(struct msc_strategy *s, const cJSON *json, const char *name) {
    const char *text;
    if (!msc_json_get(json, "plain")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&text, json, "plain", name));
    s->has_plain = true;
    return msc_hash_parse(&s->plain, text)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: plain is \"%s\", which is not a hash", name, text);
}

// Reads the schema and the members about the whole strategy.
static enum msc_status read_head(struct msc_strategy *s, const cJSON *json, const char *name) {
    static const char *const keys[] = {"schema", "graph", "edits",   "weights", "target",
                                       "sites",  "prune", "replace", "plain",   "multiply"};
    const char *schema;
    const char *weights;
    if (!cJSON_IsString(msc_json_get(json, "schema"))) {
        return fail_no_strategy(name, "it has no \"schema\"");
    }
    MSC_TRY(msc_json_get_text(&schema, json, "schema", name));
    if (strcmp(schema, SCHEMA) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: schema is \"%s\", expected \"" SCHEMA "\"", name,
                        schema);
    }
    MSC_TRY(msc_json_check_keys(json, keys, sizeof(keys) / sizeof(keys[0]), name));
    MSC_TRY(read_sites(s, json, name));
    MSC_TRY(read_plain(s, json, name));
    MSC_TRY(msc_json_get_text(&weights, json, "weights", name));
    s->has_weights = true;
    return msc_hash_parse(&s->weights, weights)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: weights is \"%s\", which is not a hash", name,
                          weights);
}

static enum msc_status strategy_read_all(struct msc_strategy *s, const cJSON *json,
                                         const char *name) {
    const cJSON *list;
    const cJSON *item;
    struct msc_str where = {0};
    enum msc_status status = MSC_OK;
    int i = 0;
    s->name = msc_arena_strdup(&s->arena, name);
    MSC_TRY(MSC_ALLOCATED(s->name));
    MSC_TRY(read_head(s, json, name));
    MSC_TRY(msc_strategy__read_prunes(s, json, name));
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
    MSC_TRY(msc_strategy_create(&s, NULL));
    enum msc_status status = strategy_read_all(s, json, name);
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

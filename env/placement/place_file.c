// The table's file: JSON, described in docs/placement.md.
#include "env/placement/place_table.h"

#include "base/file.h"
#include "base/file_hash.h"
#include "base/json.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Writing ----------------------------------------------------------------------------------

static enum msc_status add_numbers(cJSON *list, const double values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, isnan(values[i]) ? cJSON_CreateNull()
                                                     : cJSON_CreateNumber(values[i])));
    }
    return MSC_OK;
}

static enum msc_status add_backends(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "backends", list));
    for (size_t i = 0; i < p->n_backends; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_text(object, "name", p->backends[i].name));
        MSC_TRY(msc_json_add_text(object, "version", p->backends[i].version));
        if (p->backends[i].variant > 0) {
            MSC_TRY(msc_json_add_number(object, "variant", p->backends[i].variant));
        }
    }
    return MSC_OK;
}

static enum msc_status add_variants(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "variants", list));
    for (size_t i = 1; i < p->n_variants; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_text(object, "model", p->variants[i].model));
        MSC_TRY(msc_json_add_text(object, "hash", p->variants[i].hash));
    }
    return MSC_OK;
}

static enum msc_status add_losses(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "losses", list));
    for (size_t i = 0; i < p->n_losses; i++) {
        cJSON *object = cJSON_CreateObject(), *variants = cJSON_CreateArray();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add(object, "variants", variants));
        for (size_t k = 0; k < p->n_groups; k++) {
            MSC_TRY(msc_json_push(variants, cJSON_CreateNumber(p->losses[i].variants[k])));
        }
        MSC_TRY(msc_json_add_number(object, "loss", p->losses[i].loss));
    }
    return p->samples ? msc_json_add_text(json, "samples", p->samples) : MSC_OK;
}

static enum msc_status add_groups(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "groups", list));
    for (size_t i = 0; i < p->n_groups; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_text(object, "name", p->groups[i].name));
        MSC_TRY(msc_json_add_number(object, "joints", (double)p->groups[i].n_joints));
        MSC_TRY(msc_json_add_number(object, "macs", p->groups[i].macs));
    }
    return MSC_OK;
}

static enum msc_status add_runs(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "runs", list));
    for (size_t first = 0; first < p->n_groups; first++) {
        for (size_t last = first; last < p->n_groups; last++) {
            cJSON *object = cJSON_CreateObject(), *us = cJSON_CreateArray();
            MSC_TRY(msc_json_push(list, object));
            MSC_TRY(msc_json_add_number(object, "first", (double)first));
            MSC_TRY(msc_json_add_number(object, "last", (double)last));
            MSC_TRY(msc_json_add(object, "us", us));
            MSC_TRY(add_numbers(us, msc_place_table_us(p, first, last, 0), p->n_backends));
        }
    }
    return MSC_OK;
}

static enum msc_status add_cuts(cJSON *json, const struct msc_place_table *p) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "cuts", list));
    for (size_t group = 1; group < p->n_groups; group++) {
        cJSON *object = cJSON_CreateObject(), *us = cJSON_CreateArray();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_number(object, "group", (double)group));
        MSC_TRY(msc_json_add_number(object, "bytes", p->cut_bytes[group]));
        MSC_TRY(msc_json_add(object, "us", us));
        for (size_t from = 0; from < p->n_backends; from++) {
            cJSON *row = cJSON_CreateArray();
            MSC_TRY(msc_json_push(us, row));
            MSC_TRY(add_numbers(row, msc_place_table_cut(p, group, from, 0), p->n_backends));
        }
    }
    return MSC_OK;
}

static enum msc_status fill_table(cJSON *json, const struct msc_place_table *p) {
    MSC_TRY(msc_json_add_text(json, "schema", MSC_PLACE_SCHEMA));
    MSC_TRY(msc_json_add_number(json, "version", 1));
    MSC_TRY(msc_json_add_text(json, "model", p->variants[0].model));
    MSC_TRY(msc_json_add_text(json, "hash", p->variants[0].hash));
    MSC_TRY(msc_json_add_text(json, "processor", p->processor));
    MSC_TRY(msc_json_add_number(json, "threads", (double)p->n_threads));
    MSC_TRY(msc_json_add_number(json, "rounds", (double)p->n_rounds));
    MSC_TRY(msc_json_add_number(json, "batch", (double)p->batch));
    MSC_TRY(p->n_variants > 1 ? add_variants(json, p) : MSC_OK);
    MSC_TRY(p->n_losses > 0 ? add_losses(json, p) : MSC_OK);
    MSC_TRY(add_backends(json, p));
    MSC_TRY(add_groups(json, p));
    MSC_TRY(add_runs(json, p));
    return add_cuts(json, p);
}

enum msc_status msc_place_table_save(const struct msc_place_table *p, const char *path) {
    cJSON *json = cJSON_CreateObject();
    struct msc_str text = {0};
    enum msc_status status = fill_table(json, p);
    if (status == MSC_OK) {
        msc_json_write_pretty(&text, json);
        status = msc_str_status(&text);
    }
    status = status == MSC_OK ? msc_file_write(path, msc_str_text(&text), text.length) : status;
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

struct msc_hash msc_place_table_hash(const struct msc_place_table *p) {
    const size_t n_us = p->n_groups * p->n_groups * p->n_backends;
    const size_t n_cuts = p->n_groups * p->n_backends * p->n_backends;
    struct msc_hash parts[4 + MSC_PLACE_MOST_VARIANTS] = {
        msc_hash_bytes(p->us, n_us * sizeof p->us[0]),
        msc_hash_bytes(p->cut_us, n_cuts * sizeof p->cut_us[0]),
        msc_hash_bytes(p->variants[0].hash, strlen(p->variants[0].hash)),
        msc_hash_bytes(&p->n_groups, sizeof p->n_groups),
    };
    for (size_t i = 1; i < p->n_variants; i++) {
        const char *hash = p->variants[i].hash;
        parts[3 + i] = msc_hash_bytes(hash, strlen(hash));
    }
    return msc_hash_bytes(parts, (3 + p->n_variants) * sizeof parts[0]);
}

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status read_text(const char **out, const cJSON *object, const char *key,
                                 const char *where, struct msc_arena *arena) {
    const char *text;
    MSC_TRY(msc_json_get_text(&text, object, key, where));
    *out = msc_arena_strdup(arena, text);
    return MSC_ALLOCATED(*out);
}

// The variants other than the network itself.
static enum msc_status read_variants(struct msc_place_table *p, const cJSON *json,
                                     const char *path) {
    char where[320];
    const cJSON *list = msc_json_get(json, "variants"), *item;
    if (cJSON_GetArraySize(list) >= MSC_PLACE_MOST_VARIANTS) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %d variants, expected at most %d", path,
                        cJSON_GetArraySize(list), MSC_PLACE_MOST_VARIANTS - 1);
    }
    cJSON_ArrayForEach(item, list) {
        struct msc_place_variant *v = &p->variants[p->n_variants];
        snprintf(where, sizeof where, "%.250s: variants[%zu]", path, p->n_variants - 1);
        MSC_TRY(read_text(&v->model, item, "model", where, &p->arena));
        MSC_TRY(read_text(&v->hash, item, "hash", where, &p->arena));
        p->n_variants++;
    }
    return MSC_OK;
}

static enum msc_status read_loss(struct msc_place_table *p, const cJSON *object,
                                 const char *where) {
    const cJSON *list = msc_json_get(object, "variants"), *item;
    uint32_t variants[MSC_PLACE_MOST_GROUPS];
    size_t i = 0;
    double loss;
    MSC_TRY(msc_json_get_double(&loss, object, "loss", where));
    if (loss < 0.0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: loss is below 0", where);
    }
    bool fits = (size_t)cJSON_GetArraySize(list) == p->n_groups;
    cJSON_ArrayForEach(item, list) {
        int64_t variant = 0;
        fits = fits && msc_json_read_i64(&variant, item, 0, (int64_t)p->n_variants - 1);
        if (fits) {
            variants[i++] = (uint32_t)variant;
        }
    }
    return fits ? msc_place_table_add_loss(p, variants, loss)
                : MSC_FAIL(MSC_E_FORMAT,
                           "%s: expected the variant of each of the %zu groups, below %zu", where,
                           p->n_groups, p->n_variants);
}

static enum msc_status read_losses(struct msc_place_table *p, const cJSON *json, const char *path) {
    char where[320];
    const cJSON *list = msc_json_get(json, "losses"), *item;
    size_t i = 0;
    MSC_TRY(list ? read_text(&p->samples, json, "samples", path, &p->arena) : MSC_OK);
    cJSON_ArrayForEach(item, list) {
        snprintf(where, sizeof where, "%.250s: losses[%zu]", path, i++);
        MSC_TRY(read_loss(p, item, where));
    }
    return MSC_OK;
}

static enum msc_status read_variant(struct msc_place_backend *b, const struct msc_place_table *p,
                                    const cJSON *object, const char *where) {
    int64_t variant = 0;
    const cJSON *item = msc_json_get(object, "variant");
    if (item && !msc_json_read_i64(&variant, item, 0, (int64_t)p->n_variants - 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: variant is not a whole number below %zu", where,
                        p->n_variants);
    }
    b->variant = (uint32_t)variant;
    return b > p->backends || variant == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: expected variant 0: the network itself comes first",
                          where);
}

static enum msc_status read_backends(struct msc_place_table *p, const cJSON *list,
                                     const char *path) {
    char where[320];
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        struct msc_place_backend *b = &p->backends[i];
        snprintf(where, sizeof where, "%.250s: backends[%zu]", path, i);
        MSC_TRY(read_text(&b->name, item, "name", where, &p->arena));
        MSC_TRY(read_text(&b->version, item, "version", where, &p->arena));
        MSC_TRY(read_variant(b, p, item, where));
        MSC_TRY(msc_place_table_label(p, i));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(p->backends[k].name, b->name) == 0 && p->backends[k].variant == b->variant) {
                return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is named before", where, b->name);
            }
        }
        i++;
    }
    return MSC_OK;
}

static enum msc_status read_groups(struct msc_place_table *p, const cJSON *list, const char *path) {
    char where[320];
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        struct msc_place_group *g = &p->groups[i];
        snprintf(where, sizeof where, "%.250s: groups[%zu]", path, i);
        MSC_TRY(read_text(&g->name, item, "name", where, &p->arena));
        MSC_TRY(msc_json_get_i64(&g->n_joints, item, "joints", where));
        MSC_TRY(msc_json_get_double(&g->macs, item, "macs", where));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(p->groups[k].name, g->name) == 0) {
                return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is named before", where, g->name);
            }
        }
        i++;
    }
    return MSC_OK;
}

// Reads the latencies of a run [n]; null is NaN.
static enum msc_status read_latencies(double out[], size_t n, const cJSON *list,
                                      const char *where) {
    const cJSON *item;
    size_t i = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected a list of %zu numbers, one per backend", where,
                        n);
    }
    cJSON_ArrayForEach(item, list) {
        bool is_null = cJSON_IsNull(item);
        if (!is_null &&
            !(cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0.0)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: number %zu is not a duration in microseconds", where,
                            i);
        }
        out[i++] = is_null ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_runs(struct msc_place_table *p, const cJSON *list, const char *path) {
    char where[320];
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        int64_t first, last, most = (int64_t)p->n_groups - 1;
        snprintf(where, sizeof where, "%.250s: runs[%zu]", path, i++);
        MSC_TRY(msc_json_get_i64(&first, item, "first", where));
        MSC_TRY(msc_json_get_i64(&last, item, "last", where));
        if (first < 0 || last < first || last > most) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: groups %lld to %lld, expected groups within 0 to "
                            "%lld",
                            where, (long long)first, (long long)last, (long long)most);
        }
        MSC_TRY(read_latencies(msc_place_table_us(p, (size_t)first, (size_t)last, 0), p->n_backends,
                               msc_json_get(item, "us"), where));
    }
    return MSC_OK;
}

// Reads the prices of a cut [n_backends, n_backends].
static enum msc_status read_prices(double out[], size_t n, const cJSON *list, const char *where) {
    const cJSON *row, *item;
    size_t i = 0;
    bool fits = cJSON_IsArray(list) && (size_t)cJSON_GetArraySize(list) == n;
    cJSON_ArrayForEach(row, list) {
        fits = fits && cJSON_IsArray(row) && (size_t)cJSON_GetArraySize(row) == n;
        cJSON_ArrayForEach(item, row) {
            fits = fits && cJSON_IsNumber(item) && isfinite(item->valuedouble);
            if (fits) {
                out[i++] = item->valuedouble;
            }
        }
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_FORMAT,
                           "%s: expected %zu rows of %zu numbers, one per backend before the cut "
                           "and one per backend after it",
                           where, n, n);
}

static enum msc_status read_cuts(struct msc_place_table *p, const cJSON *list, const char *path) {
    char where[320];
    const cJSON *item;
    size_t group = 1;
    if ((size_t)cJSON_GetArraySize(list) != p->n_groups - 1) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: %d cuts, expected %zu, one before each group but the first", path,
                        cJSON_GetArraySize(list), p->n_groups - 1);
    }
    cJSON_ArrayForEach(item, list) {
        int64_t named;
        snprintf(where, sizeof where, "%.250s: cuts[%zu]", path, group - 1);
        MSC_TRY(msc_json_get_i64(&named, item, "group", where));
        if (named != (int64_t)group) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: group %lld, expected %zu", where, (long long)named,
                            group);
        }
        MSC_TRY(msc_json_get_double(&p->cut_bytes[group], item, "bytes", where));
        MSC_TRY(read_prices(msc_place_table_cut(p, group, 0, 0), p->n_backends,
                            msc_json_get(item, "us"), where));
        group++;
    }
    return MSC_OK;
}

static enum msc_status read_count(int64_t *out, const cJSON *json, const char *key,
                                  const char *path) {
    MSC_TRY(msc_json_get_i64(out, json, key, path));
    return *out >= 1 && *out <= INT_MAX
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: %s is %lld, expected a whole number of 1 to %d", path,
                          key, (long long)*out, INT_MAX);
}

static enum msc_status read_table(struct msc_place_table **out, const cJSON *json,
                                  const char *path) {
    const cJSON *backends, *groups, *runs, *cuts;
    const char *schema = msc_json_text_of(json, "schema");
    if (!schema || strcmp(schema, MSC_PLACE_SCHEMA) != 0 ||
        msc_json_number_of(json, "version") != 1.0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: is not a table of placement, version 1; mscgym place writes one",
                        path);
    }
    MSC_TRY(msc_json_get_array(&backends, json, "backends", path));
    MSC_TRY(msc_json_get_array(&groups, json, "groups", path));
    MSC_TRY(msc_json_get_array(&runs, json, "runs", path));
    MSC_TRY(msc_json_get_array(&cuts, json, "cuts", path));
    enum msc_status status = msc_place_table_create(out, (size_t)cJSON_GetArraySize(groups),
                                                    (size_t)cJSON_GetArraySize(backends));
    if (status != MSC_OK) {
        return msc_status_prefix(status == MSC_E_INVALID ? MSC_E_FORMAT : status, "%s", path);
    }
    struct msc_place_table *p = *out;
    MSC_TRY(read_text(&p->variants[0].model, json, "model", path, &p->arena));
    MSC_TRY(read_text(&p->variants[0].hash, json, "hash", path, &p->arena));
    MSC_TRY(read_text(&p->processor, json, "processor", path, &p->arena));
    MSC_TRY(read_count(&p->n_threads, json, "threads", path));
    MSC_TRY(read_count(&p->n_rounds, json, "rounds", path));
    MSC_TRY(read_count(&p->batch, json, "batch", path));
    MSC_TRY(read_variants(p, json, path));
    MSC_TRY(read_losses(p, json, path));
    MSC_TRY(read_backends(p, backends, path));
    MSC_TRY(read_groups(p, groups, path));
    MSC_TRY(read_runs(p, runs, path));
    return read_cuts(p, cuts, path);
}

enum msc_status msc_place_table_load(struct msc_place_table **out, const char *path) {
    struct msc_place_table *p = NULL;
    cJSON *json = NULL;
    MSC_TRY(msc_json_load(&json, path));
    enum msc_status status = read_table(&p, json, path);
    cJSON_Delete(json);
    if (status != MSC_OK) {
        msc_place_table_close(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}

enum msc_status msc_place_table_check(const struct msc_place_table *p, size_t variant,
                                      const char *model, const char *path) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash hash;
    MSC_TRY(msc_file_hash(&hash, model));
    return strcmp(msc_hash_format(text, hash), p->variants[variant].hash) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: this table was measured on another network than %s (their hashes "
                          "differ); measure again, without the table",
                          path, model);
}

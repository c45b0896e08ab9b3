#include "env/schedule/first.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

struct points {
    const struct msc_schedule_bench *bench;
    struct msc_baseline *list;
    size_t n, most, n_tasks;
    struct msc_arena *arena;
};

static const struct msc_variants *variants_of(const struct points *p, size_t i) {
    return &msc_schedule_bench_class(p->bench, i)->variants;
}

static int find_variant(const struct msc_variants *v, const char *name) {
    for (int k = 0; name && k < v->n; k++) {
        if (strcmp(v->names[k], name) == 0) {
            return k;
        }
    }
    return -1;
}

// ---- What is kept -----------------------------------------------------------------------------

static enum msc_status read_kept(uint32_t choices[], const struct points *p, const char *path) {
    cJSON *json = NULL;
    MSC_TRY(msc_json_load(&json, path));
    const cJSON *list = msc_json_get(json, "kept");
    bool fits = cJSON_IsArray(list) && (size_t)cJSON_GetArraySize(list) == p->n_tasks;
    for (size_t i = 0; fits && i < p->n_tasks; i++) {
        const cJSON *name = cJSON_GetArrayItem(list, (int)i);
        int k = find_variant(variants_of(p, i), cJSON_IsString(name) ? name->valuestring : NULL);
        choices[i] = (uint32_t)k;
        fits = k >= 0;
    }
    cJSON_Delete(json);
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_FORMAT,
                           "%s: \"kept\" does not name a variant of each of the %zu classes; start "
                           "the search afresh with --restart",
                           path, p->n_tasks);
}

static enum msc_status write_kept(const uint32_t choices[], const struct points *p,
                                  const char *path) {
    struct msc_str text = {0};
    cJSON *json = cJSON_CreateObject(), *list = cJSON_CreateArray();
    enum msc_status status = msc_json_add(json, "kept", list);
    for (size_t i = 0; status == MSC_OK && i < p->n_tasks; i++) {
        status = msc_json_push(list, cJSON_CreateString(variants_of(p, i)->names[choices[i]]));
    }
    if (status == MSC_OK) {
        msc_json_write(&text, json);
        status = msc_str_status(&text);
    }
    status = status == MSC_OK ? msc_file_write(path, msc_str_text(&text), text.length) : status;
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

static enum msc_status find_kept(uint32_t choices[], const struct points *p,
                                 const struct msc_env_host *host) {
    const char *path = host->parameters_path;
    if (path && msc_file_exists(path)) {
        return read_kept(choices, p, path);
    }
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s is missing: it contains the first tries of this record; put it back",
                        path);
    }
    msc_schedule_bench_kept(p->bench, choices);
    return path ? write_kept(choices, p, path) : MSC_OK;
}

// ---- Points -----------------------------------------------------------------------------------

// Adds a point unless there is an equal one.
static enum msc_status add_point(struct points *p, const char *label, const uint32_t choices[]) {
    for (size_t i = 0; i < p->n; i++) {
        if (memcmp(p->list[i].choices, choices, p->n_tasks * sizeof choices[0]) == 0) {
            return MSC_OK;
        }
    }
    if (p->n == p->most) {
        return MSC_OK;
    }
    uint32_t *copy = msc_arena_array(p->arena, p->n_tasks, sizeof *copy);
    MSC_TRY(MSC_ALLOCATED(copy));
    memcpy(copy, choices, p->n_tasks * sizeof *copy);
    p->list[p->n++] = (struct msc_baseline){.label = label, .choices = copy};
    return MSC_OK;
}

// Every class that has a variant of this name takes it; the others are chosen by rule.
static enum msc_status add_name(struct points *p, uint32_t choices[], const char *name) {
    msc_schedule_bench_by_rule(p->bench, choices);
    for (size_t i = 0; i < p->n_tasks; i++) {
        int k = find_variant(variants_of(p, i), name);
        choices[i] = k >= 0 ? (uint32_t)k : choices[i];
    }
    return add_point(p, name, choices);
}

enum msc_status msc_schedule_first(struct msc_space *space, const struct msc_schedule_bench *bench,
                                   const struct msc_env_host *host, struct msc_arena *arena) {
    struct points p = {
        .bench = bench, .most = MSC_MOST_VARIANTS, .n_tasks = space->n_tasks, .arena = arena};
    uint32_t *choices = msc_arena_array(arena, p.n_tasks, sizeof *choices);
    p.list = msc_arena_array(arena, p.most, sizeof *p.list);
    MSC_TRY(MSC_ALLOCATED(choices && p.list));
    msc_schedule_bench_by_rule(bench, choices);
    MSC_TRY(add_point(&p, "by rule", choices));
    MSC_TRY(find_kept(choices, &p, host));
    MSC_TRY(add_point(&p, "kept for similar work", choices));
    for (size_t i = 0; i < p.n_tasks; i++) {
        for (int k = 0; k < variants_of(&p, i)->n; k++) {
            MSC_TRY(add_name(&p, choices, variants_of(&p, i)->names[k]));
        }
    }
    space->n_baselines = p.n;
    space->baselines = p.list;
    return MSC_OK;
}

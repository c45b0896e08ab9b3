#include "records/record_header.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "records/race.h"
#include "records/record_internal.h"

#include <math.h>
#include <string.h>

static enum msc_status header_add_copy(cJSON *object, const char *key, const cJSON *value) {
    return value ? msc_json_add(object, key, cJSON_Duplicate(value, true)) : MSC_OK;
}

static enum msc_status add_objectives(cJSON *header, const struct msc_goal *goal,
                                      const struct msc_space *space) {
    cJSON *array = cJSON_CreateArray();
    MSC_TRY(msc_json_add(header, "objectives", array));
    for (size_t i = 0; i < goal->n_objectives; i++) {
        const struct msc_objective *objective = &goal->objectives[i];
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(array, object));
        MSC_TRY(msc_json_add_text(object, "metric", space->metrics[objective->metric].name));
        MSC_TRY(msc_json_add_bool(object, "maximise", objective->is_maximised));
    }
    return MSC_OK;
}

static enum msc_status add_drop(cJSON *bound, const struct msc_drop *drop) {
    MSC_TRY(msc_json_add_number(bound, "drop", drop->most));
    MSC_TRY(msc_json_add_bool(bound, "relative", drop->is_relative));
    return msc_json_add_number(bound, "float", drop->reference);
}

static enum msc_status add_bounds(cJSON *header, const struct msc_goal *goal,
                                  const struct msc_drops *drops, const struct msc_space *space) {
    cJSON *array = cJSON_CreateArray();
    MSC_TRY(msc_json_add(header, "bounds", array));
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const struct msc_bound *bound = &goal->bounds[i];
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(array, object));
        MSC_TRY(msc_json_add_text(object, "metric", space->metrics[bound->metric].name));
        if (isfinite(bound->min)) {
            MSC_TRY(msc_json_add_number(object, "min", bound->min));
        }
        if (isfinite(bound->max)) {
            MSC_TRY(msc_json_add_number(object, "max", bound->max));
        }
        if (drops && drops->of_bound[i].is_stated) {
            MSC_TRY(add_drop(object, &drops->of_bound[i]));
        }
    }
    return MSC_OK;
}

static enum msc_status header_add_tasks(cJSON *space_object, const struct msc_space *space) {
    cJSON *tasks = cJSON_CreateArray();
    MSC_TRY(msc_json_add(space_object, "tasks", tasks));
    for (size_t t = 0; t < space->n_tasks; t++) {
        cJSON *task = cJSON_CreateObject();
        MSC_TRY(msc_json_push(tasks, task));
        MSC_TRY(msc_json_add_text(task, "name", space->tasks[t].name));
        cJSON *labels = cJSON_CreateArray();
        MSC_TRY(msc_json_add(task, "choices", labels));
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            MSC_TRY(msc_json_push(labels, cJSON_CreateString(space->tasks[t].labels[c])));
        }
    }
    return MSC_OK;
}

static enum msc_status header_add_metrics(cJSON *space_object, const struct msc_space *space) {
    cJSON *metrics = cJSON_CreateArray();
    MSC_TRY(msc_json_add(space_object, "metrics", metrics));
    for (size_t i = 0; i < space->n_metrics; i++) {
        cJSON *metric = cJSON_CreateObject();
        MSC_TRY(msc_json_push(metrics, metric));
        const char *unit = space->metrics[i].unit;
        MSC_TRY(msc_json_add_text(metric, "name", space->metrics[i].name));
        MSC_TRY(msc_json_add_text(metric, "unit", unit ? unit : ""));
        MSC_TRY(msc_json_add_bool(metric, "maximised", space->metrics[i].is_maximised));
        MSC_TRY(msc_json_add_bool(metric, "exact", space->metrics[i].is_exact));
        if (space->metrics[i].is_measured) {
            MSC_TRY(msc_json_add_bool(metric, "measured", true));
        }
    }
    return MSC_OK;
}

static enum msc_status header_add_baselines(cJSON *space_object, const struct msc_space *space) {
    cJSON *baselines = cJSON_CreateArray();
    MSC_TRY(msc_json_add(space_object, "baselines", baselines));
    for (size_t i = 0; i < space->n_baselines; i++) {
        cJSON *baseline = cJSON_CreateObject();
        MSC_TRY(msc_json_push(baselines, baseline));
        MSC_TRY(msc_json_add_text(baseline, "label", space->baselines[i].label));
        cJSON *choices = cJSON_CreateArray();
        MSC_TRY(msc_json_add(baseline, "choices", choices));
        for (size_t t = 0; t < space->n_tasks; t++) {
            MSC_TRY(msc_json_push(choices, cJSON_CreateNumber(space->baselines[i].choices[t])));
        }
    }
    return MSC_OK;
}

static enum msc_status add_space(cJSON *header, const struct msc_space *space) {
    char hash[MSC_HASH_TEXT_BYTES];
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(header, "space", object));
    MSC_TRY(header_add_tasks(object, space));
    MSC_TRY(header_add_metrics(object, space));
    MSC_TRY(header_add_baselines(object, space));
    return msc_json_add_text(object, "hash", msc_hash_format(hash, msc_space_hash(space)));
}

static enum msc_status header_fill(cJSON *header, const struct msc_record_header *from) {
    MSC_TRY(msc_json_add_text(header, "kind", "header"));
    MSC_TRY(msc_json_add_number(header, "schema", MSC_RECORD_SCHEMA));
    MSC_TRY(msc_json_add_text(header, "program", from->program ? from->program : ""));
    MSC_TRY(header_add_copy(header, "config", from->config));
    MSC_TRY(header_add_copy(header, "budget", from->budget));
    MSC_TRY(header_add_copy(header, "env", from->env));
    MSC_TRY(header_add_copy(header, "agent", from->agent));
    MSC_TRY(msc_json_add_text(header, "numerics", from->numerics ? from->numerics : ""));
    MSC_TRY(msc_json_add_u64_text(header, "seed", from->seed));
    MSC_TRY(msc_json_add_number(header, "parallel", from->parallel));
    if (from->race && from->race->n_rungs > 0) {
        MSC_TRY(msc_json_add(header, "race", msc_race_write(from->race)));
    }
    MSC_TRY(add_objectives(header, from->goal, from->space));
    MSC_TRY(add_bounds(header, from->goal, from->drops, from->space));
    MSC_TRY(header_add_copy(header, "hashes", from->hashes));
    MSC_TRY(add_space(header, from->space));
    MSC_TRY(msc_record__add_features(header, from->space));
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, from->more) {
        if (msc_json_get(header, member->string)) {
            return MSC_FAIL(MSC_E_INVALID, "header: \"%s\" is a reserved member", member->string);
        }
        MSC_TRY(header_add_copy(header, member->string, member));
    }
    return MSC_OK;
}

enum msc_status msc_record_header_create(struct cJSON **out, const struct msc_record_header *from) {
    cJSON *header = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(header));
    enum msc_status status = header_fill(header, from);
    if (status != MSC_OK) {
        cJSON_Delete(header);
        return status;
    }
    *out = header;
    return MSC_OK;
}

static enum msc_status read_texts(const char *const **out, uint32_t *n, struct msc_arena *arena,
                                  const cJSON *array, const char *where) {
    size_t count = (size_t)cJSON_GetArraySize(array);
    const char **texts = msc_arena_array(arena, count, sizeof *texts);
    MSC_TRY(MSC_ALLOCATED(texts));
    size_t i = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: label %zu is not a string", where, i);
        }
        texts[i++] = item->valuestring;
    }
    *out = texts;
    *n = (uint32_t)count;
    return MSC_OK;
}

static enum msc_status header_read_tasks(struct msc_space *space, struct msc_arena *arena,
                                         const cJSON *header, const cJSON *object,
                                         const char *where) {
    const cJSON *array = NULL;
    MSC_TRY(msc_json_get_array(&array, object, "tasks", where));
    space->n_tasks = (size_t)cJSON_GetArraySize(array);
    struct msc_task *tasks = msc_arena_array(arena, space->n_tasks, sizeof *tasks);
    MSC_TRY(MSC_ALLOCATED(tasks));
    struct msc_task *task = tasks;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array) {
        const cJSON *labels = NULL;
        MSC_TRY(msc_json_get_text(&task->name, item, "name", where));
        MSC_TRY(msc_json_get_array(&labels, item, "choices", where));
        MSC_TRY(read_texts(&task->labels, &task->n_choices, arena, labels, where));
        if (task->n_choices == 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: task %s has no choices", where, task->name);
        }
        task++;
    }
    space->tasks = tasks;
    return msc_record__read_features(space, tasks, arena, header, where);
}

static enum msc_status header_read_metrics(struct msc_space *space, struct msc_arena *arena,
                                           const cJSON *object, const char *where) {
    const cJSON *array = NULL;
    MSC_TRY(msc_json_get_array(&array, object, "metrics", where));
    space->n_metrics = (size_t)cJSON_GetArraySize(array);
    if (space->n_metrics > MSC_MAX_METRICS) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %zu metrics, expected at most %d", where,
                        space->n_metrics, MSC_MAX_METRICS);
    }
    struct msc_metric *metrics = msc_arena_array(arena, space->n_metrics, sizeof *metrics);
    MSC_TRY(MSC_ALLOCATED(metrics));
    struct msc_metric *metric = metrics;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array) {
        MSC_TRY(msc_json_get_text(&metric->name, item, "name", where));
        MSC_TRY(msc_json_get_text(&metric->unit, item, "unit", where));
        MSC_TRY(msc_json_get_bool(&metric->is_maximised, item, "maximised", where));
        MSC_TRY(msc_json_get_bool(&metric->is_exact, item, "exact", where));
        metric->is_measured = cJSON_IsTrue(msc_json_get(item, "measured"));
        metric++;
    }
    space->metrics = metrics;
    return MSC_OK;
}

static enum msc_status read_point(const uint32_t **out, struct msc_arena *arena,
                                  const struct msc_space *space, const cJSON *array,
                                  const char *where) {
    uint32_t *choices = msc_arena_array(arena, space->n_tasks, sizeof *choices);
    MSC_TRY(MSC_ALLOCATED(choices));
    if ((size_t)cJSON_GetArraySize(array) != space->n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: a baseline has %d choices, expected %zu (one for each task)", where,
                        cJSON_GetArraySize(array), space->n_tasks);
    }
    size_t t = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array) {
        int64_t choice;
        if (!msc_json_read_i64(&choice, item, 0, (int64_t)space->tasks[t].n_choices - 1)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: a baseline's choice of %s is out of range", where,
                            space->tasks[t].name);
        }
        choices[t++] = (uint32_t)choice;
    }
    *out = choices;
    return MSC_OK;
}

static enum msc_status header_read_baselines(struct msc_space *space, struct msc_arena *arena,
                                             const cJSON *object, const char *where) {
    const cJSON *array = NULL;
    MSC_TRY(msc_json_get_array(&array, object, "baselines", where));
    space->n_baselines = (size_t)cJSON_GetArraySize(array);
    struct msc_baseline *baselines = msc_arena_array(arena, space->n_baselines, sizeof *baselines);
    MSC_TRY(MSC_ALLOCATED(baselines));
    struct msc_baseline *baseline = baselines;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array) {
        const cJSON *choices = NULL;
        MSC_TRY(msc_json_get_text(&baseline->label, item, "label", where));
        MSC_TRY(msc_json_get_array(&choices, item, "choices", where));
        MSC_TRY(read_point(&baseline->choices, arena, space, choices, where));
        baseline++;
    }
    space->baselines = baselines;
    return MSC_OK;
}

enum msc_status msc_record_header_space(struct msc_space **out, struct msc_arena *arena,
                                        const struct cJSON *header, const char *where) {
    const cJSON *object = NULL;
    struct msc_space *space = msc_arena_alloc(arena, sizeof *space);
    MSC_TRY(MSC_ALLOCATED(space));
    MSC_TRY(msc_json_get_object(&object, header, "space", where));
    MSC_TRY(header_read_tasks(space, arena, header, object, where));
    MSC_TRY(header_read_metrics(space, arena, object, where));
    MSC_TRY(header_read_baselines(space, arena, object, where));
    *out = space;
    return MSC_OK;
}

static enum msc_status read_metric_index(int *out, const struct msc_space *space,
                                         const cJSON *object, const char *where) {
    const char *name = NULL;
    MSC_TRY(msc_json_get_text(&name, object, "metric", where));
    *out = msc_space_find_metric(space, name);
    return *out >= 0 ? MSC_OK : MSC_FAIL(MSC_E_FORMAT, "%s: unknown metric %s", where, name);
}

static enum msc_status header_read_limit(double *out, const cJSON *object, const char *key,
                                         double absent, const char *where) {
    *out = absent;
    return msc_json_get(object, key) ? msc_json_get_double(out, object, key, where) : MSC_OK;
}

enum msc_status msc_record_header_race(struct msc_race *out, const struct cJSON *header,
                                       const char *where) {
    const cJSON *value = msc_json_get(header, "race");
    *out = (struct msc_race){0};
    if (!value) {
        return MSC_OK;
    }
    return msc_race_read_header(out, value, where) == MSC_OK
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: \"race\" of the header is malformed", where);
}

enum msc_status msc_record_header_goal(struct msc_goal *out, const struct msc_space *space,
                                       const struct cJSON *header, const char *where) {
    struct msc_goal goal = {0};
    const cJSON *objectives = NULL;
    const cJSON *bounds = NULL;
    const cJSON *item = NULL;
    MSC_TRY(msc_json_get_array(&objectives, header, "objectives", where));
    MSC_TRY(msc_json_get_array(&bounds, header, "bounds", where));
    if (cJSON_GetArraySize(objectives) < 1 || cJSON_GetArraySize(objectives) > MSC_MAX_OBJECTIVES ||
        cJSON_GetArraySize(bounds) > MSC_MAX_BOUNDS) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: %d objectives and %d bounds, expected 1 to %d and at "
                        "most %d",
                        where, cJSON_GetArraySize(objectives), cJSON_GetArraySize(bounds),
                        MSC_MAX_OBJECTIVES, MSC_MAX_BOUNDS);
    }
    cJSON_ArrayForEach(item, objectives) {
        struct msc_objective *objective = &goal.objectives[goal.n_objectives++];
        MSC_TRY(read_metric_index(&objective->metric, space, item, where));
        MSC_TRY(msc_json_get_bool(&objective->is_maximised, item, "maximise", where));
    }
    cJSON_ArrayForEach(item, bounds) {
        struct msc_bound *bound = &goal.bounds[goal.n_bounds++];
        MSC_TRY(read_metric_index(&bound->metric, space, item, where));
        MSC_TRY(header_read_limit(&bound->min, item, "min", -INFINITY, where));
        MSC_TRY(header_read_limit(&bound->max, item, "max", INFINITY, where));
    }
    *out = goal;
    return MSC_OK;
}

enum msc_status msc_record_header_drops(struct msc_drops *out, const struct cJSON *header,
                                        const char *where) {
    const cJSON *bounds = NULL;
    const cJSON *item = NULL;
    size_t i = 0;
    *out = (struct msc_drops){0};
    MSC_TRY(msc_json_get_array(&bounds, header, "bounds", where));
    cJSON_ArrayForEach(item, bounds) {
        if (i < MSC_MAX_BOUNDS && msc_json_get(item, "drop")) {
            struct msc_drop *drop = &out->of_bound[i];
            drop->is_stated = true;
            MSC_TRY(msc_json_get_double(&drop->most, item, "drop", where));
            MSC_TRY(msc_json_get_bool(&drop->is_relative, item, "relative", where));
            MSC_TRY(msc_json_get_double(&drop->reference, item, "float", where));
        }
        i++;
    }
    return MSC_OK;
}

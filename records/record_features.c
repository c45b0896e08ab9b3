// The features of a space in a record's header, so that other searches can learn from the record
// how losses depend on them (docs/record.md).
#include "base/json.h"
#include "records/record_internal.h"

#include <math.h>

// A space with more numbers than this is recorded without its features.
#define MOST_NUMBERS 50000

static size_t count_numbers(const struct msc_space *space) {
    size_t n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        n += space->n_features + space->tasks[t].n_choices * space->n_choice_features;
    }
    return n;
}

static enum msc_status add_names(cJSON *object, const char *key, const char *const names[],
                                 size_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(names[i])));
    }
    return MSC_OK;
}

static enum msc_status push_numbers(cJSON *list, const double values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, isnan(values[i]) ? cJSON_CreateNull()
                                                     : cJSON_CreateNumber(values[i])));
    }
    return MSC_OK;
}

static enum msc_status add_task(cJSON *list, const struct msc_space *space, size_t t) {
    const struct msc_task *task = &space->tasks[t];
    cJSON *object = cJSON_CreateObject(), *order = cJSON_CreateArray();
    cJSON *features = cJSON_CreateArray(), *choices = cJSON_CreateArray();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add(object, "dearest_first", order));
    MSC_TRY(msc_json_add(object, "features", features));
    MSC_TRY(msc_json_add(object, "choice_features", choices));
    MSC_TRY(push_numbers(features, task->features, space->n_features));
    for (uint32_t c = 0; c < task->n_choices; c++) {
        cJSON *row = cJSON_CreateArray();
        MSC_TRY(msc_json_push(choices, row));
        MSC_TRY(msc_json_push(order, cJSON_CreateNumber(task->most_expensive_first[c])));
        MSC_TRY(push_numbers(row, task->choice_features + c * space->n_choice_features,
                             space->n_choice_features));
    }
    return MSC_OK;
}

enum msc_status msc_record__add_features(struct cJSON *header, const struct msc_space *space) {
    cJSON *object, *tasks;
    if (space->n_choice_features == 0 || count_numbers(space) > MOST_NUMBERS) {
        return MSC_OK;
    }
    object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(header, "features", object));
    MSC_TRY(add_names(object, "features", space->feature_names, space->n_features));
    MSC_TRY(add_names(object, "choice_features", space->choice_feature_names,
                      space->n_choice_features));
    tasks = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "tasks", tasks));
    for (size_t t = 0; t < space->n_tasks; t++) {
        MSC_TRY(add_task(tasks, space, t));
    }
    return MSC_OK;
}

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status fail_read(const char *where) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: \"features\" of the header does not fit the tasks", where);
}

static enum msc_status read_numbers(double out[], const cJSON *list, size_t n, const char *where) {
    const cJSON *item = NULL;
    size_t i = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n) {
        return fail_read(where);
    }
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) && !cJSON_IsNull(item)) {
            return fail_read(where);
        }
        out[i++] = cJSON_IsNull(item) ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_order(uint32_t out[], const cJSON *list, uint32_t n,
                                  const char *where) {
    const cJSON *item = NULL;
    uint64_t sum = 0;
    uint32_t i = 0;
    if (!cJSON_IsArray(list) || (uint32_t)cJSON_GetArraySize(list) != n) {
        return fail_read(where);
    }
    cJSON_ArrayForEach(item, list) {
        int64_t choice;
        if (!msc_json_read_i64(&choice, item, 0, (int64_t)n - 1)) {
            return fail_read(where);
        }
        for (uint32_t k = 0; k < i; k++) {
            sum += out[k] == (uint32_t)choice;
        }
        out[i++] = (uint32_t)choice;
    }
    return sum == 0 ? MSC_OK : fail_read(where);
}

static enum msc_status read_task(struct msc_task *task, const struct msc_space *space,
                                 struct msc_arena *arena, const cJSON *object, const char *where) {
    size_t n = space->n_choice_features, c = 0;
    uint32_t *order = msc_arena_array(arena, task->n_choices, sizeof *order);
    double *features = msc_arena_array(arena, space->n_features + 1, sizeof *features);
    double *rows = msc_arena_array(arena, task->n_choices * n + 1, sizeof *rows);
    const cJSON *choices = msc_json_get(object, "choice_features"), *row = NULL;
    MSC_TRY(MSC_ALLOCATED(order && features && rows));
    MSC_TRY(read_order(order, msc_json_get(object, "dearest_first"), task->n_choices, where));
    MSC_TRY(read_numbers(features, msc_json_get(object, "features"), space->n_features, where));
    if (!cJSON_IsArray(choices) || (uint32_t)cJSON_GetArraySize(choices) != task->n_choices) {
        return fail_read(where);
    }
    cJSON_ArrayForEach(row, choices) {
        MSC_TRY(read_numbers(rows + c++ * n, row, n, where));
    }
    task->most_expensive_first = order;
    task->features = features;
    task->choice_features = rows;
    return MSC_OK;
}

enum msc_status msc_record__read_features(struct msc_space *space, struct msc_task tasks[],
                                          struct msc_arena *arena, const struct cJSON *header,
                                          const char *where) {
    const cJSON *object = msc_json_get(header, "features"), *list = NULL, *item = NULL;
    size_t t = 0;
    if (!object) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_texts(&space->feature_names, &space->n_features, object, "features",
                               "names of features", where, arena));
    MSC_TRY(msc_json_get_texts(&space->choice_feature_names, &space->n_choice_features, object,
                               "choice_features", "names of features", where, arena));
    MSC_TRY(msc_json_get_array(&list, object, "tasks", where));
    if ((size_t)cJSON_GetArraySize(list) != space->n_tasks) {
        return fail_read(where);
    }
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(read_task(&tasks[t++], space, arena, item, where));
    }
    return MSC_OK;
}

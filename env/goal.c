// Reads the goal of a search, "objectives" and "bounds", from the environment's JSON object.
#include "env/env.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum msc_status goal_find_metric(int *out, const struct msc_space *space, const char *name,
                                        const char *key) {
    *out = msc_space_find_metric(space, name);
    if (*out >= 0) {
        return MSC_OK;
    }
    const char *names[MSC_MAX_METRICS];
    struct msc_str all = {0};
    for (size_t i = 0; i < space->n_metrics; i++) {
        names[i] = space->metrics[i].name;
        msc_str_item(&all, names[i]);
    }
    const char *nearest = msc_suggest(name, names, space->n_metrics);
    enum msc_status status =
        nearest ? MSC_FAIL(MSC_E_INVALID,
                           "env.%s: unknown metric \"%s\", did you mean "
                           "\"%s\"?",
                           key, name, nearest)
                : MSC_FAIL(MSC_E_INVALID, "env.%s: unknown metric \"%s\", expected one of %s", key,
                           name, msc_str_text(&all));
    msc_str_finish(&all);
    return status;
}

static enum msc_status goal_add_objective(struct msc_goal *goal, const struct msc_space *space,
                                          const char *name) {
    if (goal->n_objectives == MSC_MAX_OBJECTIVES) {
        return MSC_FAIL(MSC_E_INVALID, "env.objectives: expected at most %d metrics",
                        MSC_MAX_OBJECTIVES);
    }
    int metric;
    MSC_TRY(goal_find_metric(&metric, space, name, "objectives"));
    for (size_t i = 0; i < goal->n_objectives; i++) {
        if (goal->objectives[i].metric == metric) {
            return MSC_FAIL(MSC_E_INVALID, "env.objectives: \"%s\" is listed twice; remove one",
                            name);
        }
    }
    goal->objectives[goal->n_objectives++] = (struct msc_objective){
        .metric = metric,
        .is_maximised = space->metrics[metric].is_maximised,
    };
    return MSC_OK;
}

static enum msc_status goal_read_objectives(struct msc_goal *goal, const struct msc_space *space,
                                            const cJSON *list) {
    if (!list) {
        return goal_add_objective(goal, space, space->metrics[0].name);
    }
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0) {
        return MSC_FAIL(MSC_E_INVALID, "env.objectives: expected a list of metric names");
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_INVALID, "env.objectives: expected a list of metric names");
        }
        MSC_TRY(goal_add_objective(goal, space, item->valuestring));
    }
    return MSC_OK;
}

static enum msc_status goal_read_limit(double *out, const cJSON *bound, const char *key,
                                       const char *name) {
    const cJSON *limit = msc_json_get(bound, key);
    if (!limit) {
        return MSC_OK;
    }
    if (!cJSON_IsNumber(limit) || !isfinite(limit->valuedouble)) {
        return MSC_FAIL(MSC_E_INVALID, "env.bounds.%s.%s: expected a number", name, key);
    }
    *out = limit->valuedouble;
    return MSC_OK;
}

static enum msc_status goal_read_bound(struct msc_goal *goal, const struct msc_space *space,
                                       const cJSON *item) {
    static const char *const known[] = {"min", "max"};
    const char *name = item->string;
    if (goal->n_bounds == MSC_MAX_BOUNDS) {
        return MSC_FAIL(MSC_E_INVALID, "env.bounds: expected at most %d metrics", MSC_MAX_BOUNDS);
    }
    struct msc_bound bound = {.min = -INFINITY, .max = INFINITY};
    MSC_TRY(goal_find_metric(&bound.metric, space, name, "bounds"));
    if (!cJSON_IsObject(item) || cJSON_GetArraySize(item) == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.bounds.%s: expected {\"max\": number} or {\"min\": number}", name);
    }
    char where[128];
    snprintf(where, sizeof where, "env.bounds.%s", name);
    MSC_TRY(msc_json_check_keys(item, known, 2, where));
    MSC_TRY(goal_read_limit(&bound.min, item, "min", name));
    MSC_TRY(goal_read_limit(&bound.max, item, "max", name));
    goal->bounds[goal->n_bounds++] = bound;
    return MSC_OK;
}

enum msc_status msc_env_read_goal(struct msc_goal *goal, const struct msc_space *space,
                                  const struct cJSON *config) {
    memset(goal, 0, sizeof *goal);
    const cJSON *objectives = msc_json_get(config, "objectives");
    const cJSON *bounds = msc_json_get(config, "bounds");
    MSC_TRY(goal_read_objectives(goal, space, objectives));
    if (bounds && !cJSON_IsObject(bounds)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "env.bounds: expected an object such as {\"size_bytes\": {\"max\": 50000}}");
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, bounds) {
        MSC_TRY(goal_read_bound(goal, space, item));
    }
    return msc_goal_check(goal, space);
}

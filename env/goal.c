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

// ---- Drops --------------------------------------------------------------------------------------

// The metric of a bound such as "accuracy_drop" or "accuracy_drop_ratio"; -1 if the name is not of
// this form.
static int find_dropping(bool *is_relative, const struct msc_space *space, const char *name) {
    static const char *const ends[] = {MSC_DROP_SUFFIX, MSC_DROP_RATIO_SUFFIX};
    size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        char metric[128];
        if (length > end && length - end < sizeof metric &&
            strcmp(name + length - end, ends[i]) == 0) {
            snprintf(metric, sizeof metric, "%.*s", (int)(length - end), name);
            *is_relative = i == 1;
            return msc_space_find_metric(space, metric);
        }
    }
    return -1;
}

static enum msc_status read_most(struct msc_drop *drop, const cJSON *number, const char *where) {
    double value = cJSON_IsNumber(number) ? number->valuedouble : NAN;
    if (!(value >= 0) || !isfinite(value) || (drop->is_relative && value >= 1)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected a number %s", where,
                        drop->is_relative
                            ? "from 0 to 1, such as 0.01 for 1 % of the float model's value"
                            : "of 0 or more, such as 0.01 for one point of accuracy");
    }
    drop->most = value;
    return MSC_OK;
}

// Reads {"drop": number, "relative": bool}.
static enum msc_status read_drop(struct msc_drop *drop, const cJSON *object, const char *where) {
    static const char *const known[] = {"drop", "relative"};
    char key[160];
    *drop = (struct msc_drop){.is_stated = true};
    MSC_TRY(msc_json_check_keys(object, known, 2, where));
    if (msc_json_get(object, "relative")) {
        MSC_TRY(msc_json_of_user(msc_json_get_bool(&drop->is_relative, object, "relative", where)));
    }
    snprintf(key, sizeof key, "%s.drop", where);
    return read_most(drop, msc_json_get(object, "drop"), key);
}

// ---- Bounds -------------------------------------------------------------------------------------

static enum msc_status check_new(const struct msc_goal *goal, const struct msc_space *space,
                                 int metric, const char *name) {
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (goal->bounds[i].metric == metric) {
            return MSC_FAIL(MSC_E_INVALID,
                            "env.bounds.%s: %s already has a bound; keep one of the two", name,
                            space->metrics[metric].name);
        }
    }
    return MSC_OK;
}

static enum msc_status read_limits(struct msc_bound *bound, struct msc_drop *drop,
                                   const cJSON *item, const char *where) {
    static const char *const known[] = {"min", "max"};
    if (!cJSON_IsObject(item) || cJSON_GetArraySize(item) == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: expected {\"max\": number}, {\"min\": number} or {\"drop\": number}",
                        where);
    }
    if (msc_json_get(item, "drop") || msc_json_get(item, "relative")) {
        return read_drop(drop, item, where);
    }
    MSC_TRY(msc_json_check_keys(item, known, 2, where));
    MSC_TRY(goal_read_limit(&bound->min, item, "min", item->string));
    return goal_read_limit(&bound->max, item, "max", item->string);
}

static enum msc_status goal_read_bound(struct msc_goal *goal, struct msc_drops *drops,
                                       const struct msc_space *space, const cJSON *item) {
    const char *name = item->string;
    if (goal->n_bounds == MSC_MAX_BOUNDS) {
        return MSC_FAIL(MSC_E_INVALID, "env.bounds: expected at most %d metrics", MSC_MAX_BOUNDS);
    }
    char where[128];
    struct msc_bound bound = {.min = -INFINITY, .max = INFINITY};
    struct msc_drop drop = {.is_stated = true};
    snprintf(where, sizeof where, "env.bounds.%s", name);
    bound.metric = msc_space_find_metric(space, name);
    int dropping = bound.metric < 0 ? find_dropping(&drop.is_relative, space, name) : -1;
    if (dropping >= 0) {
        bound.metric = dropping;
        MSC_TRY(read_most(&drop, item, where));
    } else {
        drop = (struct msc_drop){.is_stated = false};
        MSC_TRY(goal_find_metric(&bound.metric, space, name, "bounds"));
        MSC_TRY(read_limits(&bound, &drop, item, where));
    }
    MSC_TRY(check_new(goal, space, bound.metric, name));
    drops->of_bound[goal->n_bounds] = drop;
    goal->bounds[goal->n_bounds++] = bound;
    return MSC_OK;
}

enum msc_status msc_env_read_goal(struct msc_goal *goal, const struct msc_space *space,
                                  const struct cJSON *config) {
    struct msc_drops drops;
    MSC_TRY(msc_env_read_drops(&drops, goal, space, config));
    return msc_drops_any(&drops, goal)
               ? MSC_FAIL(MSC_E_INVALID, "env.bounds: a drop needs the float model; use min or max")
               : MSC_OK;
}

enum msc_status msc_env_read_drops(struct msc_drops *drops, struct msc_goal *goal,
                                   const struct msc_space *space, const struct cJSON *config) {
    memset(goal, 0, sizeof *goal);
    *drops = (struct msc_drops){0};
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
        MSC_TRY(goal_read_bound(goal, drops, space, item));
    }
    return msc_goal_check(goal, space);
}

// ---- Limits from the float model ------------------------------------------------------------------

static enum msc_status check_reference(const struct msc_drop *drop, const struct msc_env *env,
                                       const struct msc_metric *metric) {
    bool is_known = isfinite(drop->reference);
    if (is_known && (!drop->is_relative || drop->reference != 0)) {
        return MSC_OK;
    }
    return is_known
               ? MSC_FAIL(MSC_E_INVALID,
                          "env.bounds: %s of the float model is 0, so a relative drop has no "
                          "meaning; state the drop without \"relative\"",
                          metric->name)
               : MSC_FAIL(MSC_E_INVALID,
                          "env.bounds: environment %s does not know %s of the float model, which a "
                          "drop is counted from; use {\"%s\": number}",
                          msc_env_definition(env)->name, metric->name,
                          metric->is_maximised ? "min" : "max");
}

// A drop that leaves nothing of a metric such as the accuracy is a slip, for example 1 for one
// point.
static enum msc_status check_rest(const struct msc_drop *drop, const struct msc_bound *bound,
                                  const struct msc_metric *metric) {
    return metric->is_maximised && drop->reference > 0 && bound->min <= 0
               ? MSC_FAIL(MSC_E_INVALID,
                          "env.bounds: a drop of %s by %g excludes nothing, as the float model has "
                          "%.5g; one point is 0.01",
                          metric->name, drop->most, drop->reference)
               : MSC_OK;
}

enum msc_status msc_env_measure_drops(struct msc_drops *drops, struct msc_goal *goal,
                                      struct msc_env *env) {
    double metrics[MSC_MAX_METRICS];
    const struct msc_space *space = msc_env_space(env);
    if (!msc_drops_any(drops, goal)) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_reference(env, metrics));
    for (size_t i = 0; i < goal->n_bounds; i++) {
        struct msc_drop *drop = &drops->of_bound[i];
        struct msc_bound *bound = &goal->bounds[i];
        const struct msc_metric *metric = &space->metrics[bound->metric];
        if (drop->is_stated) {
            drop->reference = metrics[bound->metric];
            MSC_TRY(check_reference(drop, env, metric));
            msc_drop_set_limit(bound, drop, metric->is_maximised);
            MSC_TRY(check_rest(drop, bound, metric));
        }
    }
    return msc_goal_check(goal, space);
}

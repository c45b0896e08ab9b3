// Reads the JSON form of a space: tasks, metrics, and exact costs as terms.
#include "env/space_json.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOP "top level" // in errors

#define N_KEYS(keys) (sizeof(keys) / sizeof((keys)[0]))

enum msc_status msc_space_json_read_numbers(double out[], size_t n, const cJSON *list,
                                            bool may_fail, const char *where) {
    const cJSON *item;
    size_t i = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected a list of %zu numbers, one for each choice",
                        where, n);
    }
    cJSON_ArrayForEach(item, list) {
        bool is_failed = may_fail && cJSON_IsNull(item);
        if (!is_failed && !(cJSON_IsNumber(item) && isfinite(item->valuedouble))) {
            return MSC_FAIL(MSC_E_FORMAT, "%s[%zu]: expected a finite number%s", where, i,
                            may_fail ? ", or null if it cannot be evaluated" : "");
        }
        out[i++] = is_failed ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

enum msc_status msc_space_json_read_task(const struct msc_space_json *r, uint32_t *out,
                                         const cJSON *item, const char *where) {
    size_t n = r->space->n_tasks;
    int64_t value;
    if (!msc_json_read_i64(&value, item, 0, (int64_t)n - 1)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected the index of a task, 0 to %zu", where, n - 1);
    }
    *out = (uint32_t)value;
    return MSC_OK;
}

enum msc_status msc_space_json_read_alone(const struct msc_space_json *r, double ***out,
                                          const cJSON *object, bool may_fail, const char *where) {
    size_t n_tasks = r->space->n_tasks;
    const cJSON *list = msc_json_get(object, "alone");
    const cJSON *item;
    size_t t = 0;
    *out = NULL;
    if (!list) {
        return MSC_OK;
    }
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.alone: expected %zu lists, one for each task", where,
                        n_tasks);
    }
    *out = msc_arena_array(r->arena, n_tasks, sizeof **out);
    cJSON_ArrayForEach(item, list) {
        char place[96];
        uint32_t n_choices = r->tasks[t].n_choices;
        double *values = msc_arena_array(r->arena, n_choices, sizeof *values);
        MSC_TRY(MSC_ALLOCATED(*out && values));
        snprintf(place, sizeof place, "%.50s.alone[%zu]", where, t);
        MSC_TRY(msc_space_json_read_numbers(values, n_choices, item, may_fail, place));
        (*out)[t++] = values;
    }
    return MSC_OK;
}

// Reads a factor of one task: a number for each of its choices.
static enum msc_status read_factor(const struct msc_space_json *r, struct msc_cost_factor *factor,
                                   const cJSON *object, const char *where) {
    static const char *const keys[] = {"task", "values"};
    char place[96];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    snprintf(place, sizeof place, "%.50s.task", where);
    MSC_TRY(msc_space_json_read_task(r, &factor->task, msc_json_get(object, "task"), place));
    uint32_t n = r->tasks[factor->task].n_choices;
    double *values = msc_arena_array(r->arena, n, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    snprintf(place, sizeof place, "%.50s.values", where);
    factor->by_choice = values;
    return msc_space_json_read_numbers(values, n, msc_json_get(object, "values"), false, place);
}

static enum msc_status read_term(const struct msc_space_json *r, struct msc_cost_term *term,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"scale", "factors"};
    const cJSON *list, *item;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    term->scale = 1.0;
    if (msc_json_get(object, "scale")) {
        MSC_TRY(msc_json_get_double(&term->scale, object, "scale", where));
    }
    MSC_TRY(msc_json_get_array(&list, object, "factors", where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_cost_factor *factors = msc_arena_array(r->arena, n + 1, sizeof *factors);
    MSC_TRY(MSC_ALLOCATED(factors));
    term->factors = factors;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.factors[%u]", where, term->n_factors);
        MSC_TRY(read_factor(r, &factors[term->n_factors++], item, place));
    }
    return MSC_OK;
}

// Reads the terms of a cost: "alone" (terms of one factor), then "terms".
static enum msc_status read_terms(const struct msc_space_json *r, struct msc_cost *cost,
                                  const cJSON *object, const char *where) {
    size_t n_tasks = r->space->n_tasks;
    const cJSON *list = msc_json_get(object, "terms");
    const cJSON *item;
    double **alone = NULL;
    MSC_TRY(msc_space_json_read_alone(r, &alone, object, false, where));
    if (list) {
        MSC_TRY(msc_json_get_array(&list, object, "terms", where));
    }
    size_t n = (size_t)cJSON_GetArraySize(list) + n_tasks;
    struct msc_cost_term *terms = msc_arena_array(r->arena, n, sizeof *terms);
    struct msc_cost_factor *factors = msc_arena_array(r->arena, n_tasks, sizeof *factors);
    MSC_TRY(MSC_ALLOCATED(terms && factors));
    cost->terms = terms;
    for (size_t t = 0; alone && t < n_tasks; t++) {
        factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = alone[t]};
        terms[cost->n_terms++] =
            (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &factors[t]};
    }
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.terms[%zu]", where, i++);
        MSC_TRY(read_term(r, &terms[cost->n_terms++], item, place));
    }
    return MSC_OK;
}

enum msc_status msc_space_json_read_constant(double *out, const cJSON *object, const char *where) {
    *out = 0.0;
    return msc_json_get(object, "constant") ? msc_json_get_double(out, object, "constant", where)
                                            : MSC_OK;
}

static enum msc_status copy_text(const struct msc_space_json *r, const char **out,
                                 const cJSON *object, const char *key, const char *where) {
    const char *text = "";
    if (msc_json_get(object, key) || strcmp(key, "name") == 0) {
        MSC_TRY(msc_json_get_text(&text, object, key, where));
    }
    *out = msc_arena_strdup(r->arena, text);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_space_json_read_head(const struct msc_space_json *r, struct msc_metric *metric,
                                         const cJSON *object, const char *where) {
    MSC_TRY(copy_text(r, &metric->name, object, "name", where));
    MSC_TRY(copy_text(r, &metric->unit, object, "unit", where));
    MSC_TRY(copy_text(r, &metric->help, object, "help", where));
    return msc_json_get(object, "maximised")
               ? msc_json_get_bool(&metric->is_maximised, object, "maximised", where)
               : MSC_OK;
}

static enum msc_status read_cost(struct msc_space_json *r, size_t i, const cJSON *object,
                                 const char *where) {
    static const char *const keys[] = {"name",     "unit",  "help", "maximised",
                                       "constant", "alone", "terms"};
    struct msc_metric *metric = &r->metrics[r->n_measured + i];
    struct msc_cost *cost = &r->costs[i];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(msc_space_json_read_head(r, metric, object, where));
    metric->is_exact = true;
    cost->metric = metric->name;
    MSC_TRY(msc_space_json_read_constant(&cost->constant, object, where));
    return read_terms(r, cost, object, where);
}

static enum msc_status read_features(const struct msc_space_json *r, const cJSON *object,
                                     const double **out, const char *where) {
    size_t n = r->space->n_features;
    const cJSON *list = msc_json_get(object, "features");
    if (n == 0 && !list) {
        return MSC_OK;
    }
    double *features = msc_arena_array(r->arena, n + 1, sizeof *features);
    const cJSON *item;
    size_t i = 0;
    MSC_TRY(MSC_ALLOCATED(features));
    cJSON_ArrayForEach(item, list) {
        if (i < n && cJSON_IsNumber(item)) {
            features[i] = item->valuedouble;
        }
        i += cJSON_IsNumber(item);
    }
    if (!cJSON_IsArray(list) || i != n || (size_t)cJSON_GetArraySize(list) != n) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s.features: expected %zu numbers, one for each of the "
                        "\"features\" at the top",
                        where, n);
    }
    *out = features;
    return MSC_OK;
}

// Reads the order of choices. msc_space_check refuses an order that lists a choice twice.
static enum msc_status read_order(const struct msc_space_json *r, struct msc_task *task,
                                  const cJSON *object, const char *where) {
    const cJSON *list = msc_json_get(object, "dearest_first");
    uint32_t *order = msc_arena_array(r->arena, task->n_choices, sizeof *order);
    const cJSON *item;
    uint32_t i = 0;
    if (!list) {
        return MSC_OK;
    }
    MSC_TRY(MSC_ALLOCATED(order));
    cJSON_ArrayForEach(item, list) {
        int64_t value;
        if (i < task->n_choices &&
            msc_json_read_i64(&value, item, 0, (int64_t)task->n_choices - 1)) {
            order[i++] = (uint32_t)value;
        }
    }
    if (!cJSON_IsArray(list) || i != task->n_choices ||
        (uint32_t)cJSON_GetArraySize(list) != task->n_choices) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s.dearest_first: expected the choices 0 to %u in some order", where,
                        task->n_choices - 1);
    }
    task->most_expensive_first = order;
    return MSC_OK;
}

static enum msc_status read_choice_row(const struct msc_space_json *r, double out[],
                                       const cJSON *row, const char *where) {
    size_t n = r->space->n_choice_features, i = 0;
    const cJSON *item;
    if (!cJSON_IsArray(row) || (size_t)cJSON_GetArraySize(row) != n) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected a list of %zu numbers or null", where, n);
    }
    cJSON_ArrayForEach(item, row) {
        if (!cJSON_IsNull(item) && !cJSON_IsNumber(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s[%zu]: expected a number, or null", where, i);
        }
        out[i++] = cJSON_IsNull(item) ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_choice_features(const struct msc_space_json *r, struct msc_task *task,
                                            const cJSON *object, const char *where) {
    const cJSON *list = msc_json_get(object, "choice_features");
    const cJSON *row;
    size_t n = r->space->n_choice_features, i = 0;
    if (n == 0 && !list) {
        return MSC_OK;
    }
    if (n == 0 || !cJSON_IsArray(list) || (uint32_t)cJSON_GetArraySize(list) != task->n_choices) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s.choice_features: expected a list for each of the %u choices, and names "
                        "in \"choice_features\" of the top level",
                        where, task->n_choices);
    }
    double *features = msc_arena_array(r->arena, task->n_choices * n, sizeof *features);
    MSC_TRY(MSC_ALLOCATED(features));
    cJSON_ArrayForEach(row, list) {
        char place[128];
        snprintf(place, sizeof place, "%.80s.choice_features[%zu]", where, i);
        MSC_TRY(read_choice_row(r, features + i++ * n, row, place));
    }
    task->choice_features = features;
    return MSC_OK;
}

static enum msc_status read_task(const struct msc_space_json *r, struct msc_task *task,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"name", "choices", "dearest_first", "features",
                                       "choice_features"};
    const char *const *labels = NULL;
    size_t n = 0;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(copy_text(r, &task->name, object, "name", where));
    MSC_TRY(msc_json_get_texts(&labels, &n, object, "choices", "labels", where, r->arena));
    if (n == 0 || n > MSC_SPACE_JSON_MAX_CHOICES) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.choices: expected a list of 1 to %d labels", where,
                        MSC_SPACE_JSON_MAX_CHOICES);
    }
    task->labels = labels;
    task->n_choices = (uint32_t)n;
    MSC_TRY(read_order(r, task, object, where));
    MSC_TRY(read_choice_features(r, task, object, where));
    return read_features(r, object, &task->features, where);
}

static enum msc_status read_neighbours(const struct msc_space_json *r, const cJSON *root) {
    const cJSON *list = msc_json_get(root, "neighbours");
    const cJSON *item;
    if (!list) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, root, "neighbours", TOP));
    size_t n = 0;
    uint32_t(*pairs)[2] =
        msc_arena_array(r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(pairs));
    cJSON_ArrayForEach(item, list) {
        char where[96];
        snprintf(where, sizeof where, "neighbours[%zu]", n);
        if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: expected the indices of two tasks", where);
        }
        MSC_TRY(msc_space_json_read_task(r, &pairs[n][0], cJSON_GetArrayItem(item, 0), where));
        MSC_TRY(msc_space_json_read_task(r, &pairs[n][1], cJSON_GetArrayItem(item, 1), where));
        if (pairs[n][0] == pairs[n][1]) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: expected two different tasks", where);
        }
        n++;
    }
    r->space->n_neighbours = msc_space_sort_neighbours(pairs, n);
    r->space->neighbours = (const uint32_t(*)[2])pairs;
    return MSC_OK;
}

enum msc_status msc_space_json_read_tasks(struct msc_space_json *r, const cJSON *root) {
    struct msc_space *space = r->space;
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_texts(&space->feature_names, &space->n_features, root, "features",
                               "names of features", TOP, r->arena));
    MSC_TRY(msc_json_get_texts(&space->choice_feature_names, &space->n_choice_features, root,
                               "choice_features", "names of features", TOP, r->arena));
    MSC_TRY(msc_json_get_array(&list, root, "tasks", TOP));
    size_t n = (size_t)cJSON_GetArraySize(list);
    r->tasks = msc_arena_array(r->arena, n + 1, sizeof *r->tasks);
    MSC_TRY(MSC_ALLOCATED(r->tasks));
    if (n == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "tasks: expected at least one");
    }
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        char where[96];
        snprintf(where, sizeof where, "tasks[%zu]", i);
        MSC_TRY(read_task(r, &r->tasks[i++], item, where));
    }
    space->n_tasks = n;
    space->tasks = r->tasks;
    return read_neighbours(r, root);
}

// The index in the space of metric `i` of the list: a metric named distill_loss becomes the first.
static size_t place_of(const cJSON *list, size_t i) {
    size_t first = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const cJSON *name = msc_json_get(item, "name");
        if (cJSON_IsString(name) && strcmp(name->valuestring, "distill_loss") == 0) {
            return i == first ? 0 : i + (i < first);
        }
        first++;
    }
    return i;
}

// Allocates all metrics before the first is read.
static enum msc_status make_metrics(struct msc_space_json *r, size_t n_metrics, size_t n_costs) {
    struct msc_space *space = r->space;
    r->n_measured = n_metrics;
    space->n_costs = n_costs;
    space->n_metrics = n_metrics + n_costs;
    if (space->n_metrics == 0 || space->n_metrics > MSC_MAX_METRICS) {
        return MSC_FAIL(MSC_E_FORMAT, "there are %zu metrics and costs, expected 1 to %d",
                        space->n_metrics, MSC_MAX_METRICS);
    }
    r->metrics = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->metrics);
    r->costs = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->costs);
    space->metrics = r->metrics;
    space->costs = r->costs;
    return MSC_ALLOCATED(r->metrics && r->costs);
}

enum msc_status msc_space_json_read_metrics(struct msc_space_json *r, const cJSON *root,
                                            enum msc_status (*read)(void *payload, size_t i,
                                                                    const cJSON *object,
                                                                    const char *where),
                                            void *payload) {
    const cJSON *costs = msc_json_get(root, "costs");
    const cJSON *list, *item;
    char where[96];
    size_t i = 0;
    MSC_TRY(msc_json_get_array(&list, root, "metrics", TOP));
    if (costs) {
        MSC_TRY(msc_json_get_array(&costs, root, "costs", TOP));
    }
    MSC_TRY(make_metrics(r, (size_t)cJSON_GetArraySize(list), (size_t)cJSON_GetArraySize(costs)));
    cJSON_ArrayForEach(item, list) {
        snprintf(where, sizeof where, "metrics[%zu]", i);
        MSC_TRY(read(payload, place_of(list, i), item, where));
        i++;
    }
    i = 0;
    cJSON_ArrayForEach(item, costs) {
        snprintf(where, sizeof where, "costs[%zu]", i);
        MSC_TRY(read_cost(r, i++, item, where));
    }
    return MSC_OK;
}

// Checks that a space is valid (msc_space_check), so that other code can rely on its indices and
// numbers.
#include "env/api/space.h"

#include "base/alloc.h"
#include "base/hash_index.h"
#include "base/utf8.h"
#include "env/api/trial.h"

#include <math.h>
#include <string.h>

// Checks that a text is UTF-8, as records require; NULL is allowed.
static enum msc_status check_text(const char *text, const char *what, size_t i) {
    size_t length = text ? strlen(text) : 0;
    return length == 0 || msc_utf8_length(text, length) == length
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s %zu, \"%s\", is not UTF-8", what, i, text);
}

// n_found [n_choices] is zeroed scratch.
static enum msc_status check_choice_order(const struct msc_task *task, uint32_t n_found[]) {
    for (uint32_t i = 0; i < task->n_choices; i++) {
        if (task->most_expensive_first[i] < task->n_choices) {
            n_found[task->most_expensive_first[i]]++;
        }
    }
    for (uint32_t c = 0; c < task->n_choices; c++) {
        if (n_found[c] != 1) {
            return MSC_FAIL(MSC_E_INVALID,
                            "task %s: the order of choices lists choice %u %u times, expected once",
                            task->name, c, n_found[c]);
        }
    }
    return MSC_OK;
}

static enum msc_status check_task(const struct msc_space *space, size_t t) {
    const struct msc_task *task = &space->tasks[t];
    if (!task->name || !task->name[0]) {
        return MSC_FAIL(MSC_E_INVALID, "task %zu has no name", t);
    }
    if (task->n_choices == 0 || !task->labels || !task->most_expensive_first) {
        return MSC_FAIL(MSC_E_INVALID, "task %s has no choices", task->name);
    }
    MSC_TRY(check_text(task->name, "the name of task", t));
    for (uint32_t c = 0; c < task->n_choices; c++) {
        if (!task->labels[c]) {
            return MSC_FAIL(MSC_E_INVALID, "task %s: choice %u has no label", task->name, c);
        }
        if (check_text(task->labels[c], "label", c) != MSC_OK) {
            return msc_status_prefix(MSC_E_INVALID, "task %s", task->name);
        }
    }
    for (size_t f = 0; f < space->n_features; f++) {
        if (!task->features || !isfinite(task->features[f])) {
            return MSC_FAIL(MSC_E_INVALID, "task %s: feature %s is not a finite number", task->name,
                            space->feature_names[f]);
        }
    }
    for (size_t i = 0; i < task->n_choices * space->n_choice_features; i++) {
        if (!task->choice_features || isinf(task->choice_features[i])) {
            return MSC_FAIL(MSC_E_INVALID, "task %s: %s of choice %s is not a finite number",
                            task->name, space->choice_feature_names[i % space->n_choice_features],
                            task->labels[i / space->n_choice_features]);
        }
    }
    uint32_t *n_found = msc_alloc_zero(task->n_choices, sizeof *n_found);
    MSC_TRY(MSC_ALLOCATED(n_found));
    enum msc_status status = check_choice_order(task, n_found);
    msc_free(n_found);
    return status;
}

static enum msc_status check_names(const struct msc_space *space, struct msc_hash hashes[],
                                   struct msc_hash_index *index) {
    MSC_TRY(msc_hash_index_reserve(index, space->n_tasks));
    for (size_t t = 0; t < space->n_tasks; t++) {
        const char *name = space->tasks[t].name;
        hashes[t] = msc_hash_bytes(name, strlen(name));
        int32_t before = msc_hash_index_find(index, hashes[t], hashes, sizeof hashes[0]);
        if (before >= 0) {
            return MSC_FAIL(MSC_E_INVALID, "tasks %d and %zu are both named %s", (int)before, t,
                            name);
        }
        msc_hash_index_add(index, t, hashes, sizeof hashes[0]);
    }
    return MSC_OK;
}

static enum msc_status check_tasks(const struct msc_space *space) {
    struct msc_hash_index index = {0};
    for (size_t t = 0; t < space->n_tasks; t++) {
        MSC_TRY(check_task(space, t));
    }
    struct msc_hash *hashes = msc_alloc_zero(space->n_tasks, sizeof *hashes);
    MSC_TRY(MSC_ALLOCATED(hashes));
    enum msc_status status = check_names(space, hashes, &index);
    msc_hash_index_finish(&index);
    msc_free(hashes);
    return status;
}

static enum msc_status check_metric(const struct msc_space *space, size_t i) {
    const struct msc_metric *metric = &space->metrics[i];
    if (!metric->name || !metric->name[0]) {
        return MSC_FAIL(MSC_E_INVALID, "metric %zu has no name", i);
    }
    MSC_TRY(check_text(metric->name, "the name of metric", i));
    MSC_TRY(check_text(metric->unit, "the unit of metric", i));
    MSC_TRY(check_text(metric->help, "the help of metric", i));
    for (size_t j = 0; j < i; j++) {
        if (strcmp(space->metrics[j].name, metric->name) == 0) {
            return MSC_FAIL(MSC_E_INVALID, "metrics %zu and %zu are both named %s", j, i,
                            metric->name);
        }
    }
    if (metric->is_exact != (msc_space_find_cost(space, metric->name) != NULL)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "metric %s: expected is_exact to be set if and only if a cost "
                        "has its name",
                        metric->name);
    }
    return MSC_OK;
}

static enum msc_status check_factor(const struct msc_space *space, const struct msc_cost *cost,
                                    size_t term, const struct msc_cost_factor *factor) {
    if (factor->task >= space->n_tasks) {
        return MSC_FAIL(MSC_E_INVALID, "cost %s, term %zu: task %u of %zu does not exist",
                        cost->metric, term, factor->task, space->n_tasks);
    }
    for (uint32_t c = 0; c < space->tasks[factor->task].n_choices; c++) {
        if (!factor->by_choice || !isfinite(factor->by_choice[c])) {
            return MSC_FAIL(MSC_E_INVALID,
                            "cost %s, term %zu: the factor of %s at choice %u is not finite",
                            cost->metric, term, space->tasks[factor->task].name, c);
        }
    }
    return MSC_OK;
}

static enum msc_status check_cost(const struct msc_space *space, size_t i) {
    const struct msc_cost *cost = &space->costs[i];
    if (!cost->metric || msc_space_find_metric(space, cost->metric) < 0) {
        return MSC_FAIL(MSC_E_INVALID, "cost %zu: there is no metric %s", i,
                        cost->metric ? cost->metric : "(unnamed)");
    }
    for (size_t j = 0; j < i; j++) {
        if (strcmp(space->costs[j].metric, cost->metric) == 0) {
            return MSC_FAIL(MSC_E_INVALID, "costs %zu and %zu are both named %s", j, i,
                            cost->metric);
        }
    }
    if (!isfinite(cost->constant)) {
        return MSC_FAIL(MSC_E_INVALID, "cost %s: its constant is not finite", cost->metric);
    }
    if (cost->n_terms > 0 && !cost->terms) {
        return MSC_FAIL(MSC_E_INVALID, "cost %s: it has %zu terms but no list of them",
                        cost->metric, cost->n_terms);
    }
    for (size_t t = 0; t < cost->n_terms; t++) {
        const struct msc_cost_term *term = &cost->terms[t];
        if (term->n_factors > 0 && !term->factors) {
            return MSC_FAIL(MSC_E_INVALID,
                            "cost %s, term %zu: it has %u factors but no list of them",
                            cost->metric, t, term->n_factors);
        }
        if (!isfinite(term->scale)) {
            return MSC_FAIL(MSC_E_INVALID, "cost %s, term %zu: its scale is not finite",
                            cost->metric, t);
        }
        for (uint32_t j = 0; j < term->n_factors; j++) {
            MSC_TRY(check_factor(space, cost, t, &term->factors[j]));
        }
    }
    return MSC_OK;
}

static enum msc_status check_baseline(const struct msc_space *space, size_t i) {
    const struct msc_baseline *baseline = &space->baselines[i];
    if (!baseline->label) {
        return MSC_FAIL(MSC_E_INVALID, "baseline %zu has no label", i);
    }
    MSC_TRY(check_text(baseline->label, "the label of baseline", i));
    if (!baseline->choices) {
        return MSC_FAIL(MSC_E_INVALID, "baseline %s has no choices", baseline->label);
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        if (baseline->choices[t] >= space->tasks[t].n_choices) {
            return MSC_FAIL(MSC_E_INVALID, "baseline %s: task %s has no choice %u, only %u choices",
                            baseline->label, space->tasks[t].name, baseline->choices[t],
                            space->tasks[t].n_choices);
        }
    }
    return MSC_OK;
}

static enum msc_status check_neighbours(const struct msc_space *space, size_t i) {
    const uint32_t *pair = space->neighbours[i], *before = i > 0 ? space->neighbours[i - 1] : NULL;
    if (pair[0] >= pair[1] || pair[1] >= space->n_tasks) {
        return MSC_FAIL(MSC_E_INVALID,
                        "pair %zu of neighbours is tasks %u and %u, expected two of the %zu tasks, "
                        "the lower index first",
                        i, pair[0], pair[1], space->n_tasks);
    }
    if (before && (pair[0] < before[0] || (pair[0] == before[0] && pair[1] <= before[1]))) {
        return MSC_FAIL(MSC_E_INVALID,
                        "pair %zu of neighbours (tasks %u and %u): expected pairs in ascending "
                        "order, each once",
                        i, pair[0], pair[1]);
    }
    return MSC_OK;
}

static enum msc_status check_lists(const struct msc_space *space) {
    const struct {
        const char *what;
        size_t n;
        const void *list;
    } lists[] = {
        {"tasks", space->n_tasks, space->tasks},
        {"features", space->n_features, space->feature_names},
        {"features of choices", space->n_choice_features, space->choice_feature_names},
        {"metrics", space->n_metrics, space->metrics},
        {"costs", space->n_costs, space->costs},
        {"baselines", space->n_baselines, space->baselines},
        {"pairs of neighbours", space->n_neighbours, space->neighbours},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (lists[i].n > 0 && !lists[i].list) {
            return MSC_FAIL(MSC_E_INVALID, "the space has %zu %s but no list of them", lists[i].n,
                            lists[i].what);
        }
    }
    return MSC_OK;
}

enum msc_status msc_space_check(const struct msc_space *space) {
    if (!space) {
        return MSC_FAIL(MSC_E_INVALID, "the space is NULL");
    }
    if (space->n_tasks == 0 || space->n_tasks > UINT32_MAX) {
        return MSC_FAIL(MSC_E_INVALID, "the space has %zu tasks, expected at least 1",
                        space->n_tasks);
    }
    if (space->n_metrics == 0 || space->n_metrics > MSC_MAX_METRICS) {
        return MSC_FAIL(MSC_E_INVALID, "the space has %zu metrics, expected 1 to %d",
                        space->n_metrics, MSC_MAX_METRICS);
    }
    MSC_TRY(check_lists(space));
    for (size_t f = 0; f < space->n_features; f++) {
        if (!space->feature_names[f]) {
            return MSC_FAIL(MSC_E_INVALID, "feature %zu has no name", f);
        }
        MSC_TRY(check_text(space->feature_names[f], "the name of feature", f));
    }
    for (size_t f = 0; f < space->n_choice_features; f++) {
        if (!space->choice_feature_names[f]) {
            return MSC_FAIL(MSC_E_INVALID, "choice feature %zu has no name", f);
        }
        MSC_TRY(check_text(space->choice_feature_names[f], "the name of choice feature", f));
    }
    MSC_TRY(check_tasks(space));
    for (size_t i = 0; i < space->n_metrics; i++) {
        MSC_TRY(check_metric(space, i));
    }
    for (size_t i = 0; i < space->n_costs; i++) {
        MSC_TRY(check_cost(space, i));
    }
    for (size_t i = 0; i < space->n_baselines; i++) {
        MSC_TRY(check_baseline(space, i));
    }
    for (size_t i = 0; i < space->n_neighbours; i++) {
        MSC_TRY(check_neighbours(space, i));
    }
    return MSC_OK;
}

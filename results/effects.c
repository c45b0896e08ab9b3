#include "results/effects.h"

#include "base/heap.h"
#include "base/json.h"
#include "results/additive.h"
#include "results/analysis.h"

#include <math.h>

// At most this many single choices, pairs and tasks are listed.
#define MOST_ALONE 200
#define MOST_PAIRS 30
#define MOST_IMPORTANT 200
// A model is fitted to at least LEAST_TRIALS trials. A choice is listed if at least LEAST_USES of
// them have it.
#define LEAST_TRIALS 30
#define LEAST_USES 3

struct effect {
    size_t task;
    uint32_t choice;
    double difference;
};

static bool does_more(const void *context, const void *x, const void *y) {
    const struct effect *a = x, *b = y;
    double left = fabs(a->difference), right = fabs(b->difference);
    (void)context;
    return left != right        ? left > right
           : a->task != b->task ? a->task < b->task
                                : a->choice < b->choice;
}

// Lists effects of choices other than the plan's, greatest first. Returns their number.
static size_t list_effects(struct effect out[], const struct msc_additive *fit,
                           const struct msc_space *space, const uint32_t plan[]) {
    struct effect spare;
    size_t n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            size_t k = fit->offsets[t] + c;
            if (c != plan[t] && fit->counts[k] >= LEAST_USES) {
                double from = fit->effects[fit->offsets[t] + plan[t]];
                out[n++] = (struct effect){t, c, fit->effects[k] - from};
            }
        }
    }
    const struct msc_heap heap = {
        .elements = out, .element_bytes = sizeof *out, .spare = &spare, .is_before = does_more};
    msc_heap_sort(&heap, n);
    return n;
}

static enum msc_status add_effect(cJSON *alone, const struct effect *e,
                                  const struct msc_space *space) {
    const struct msc_task *task = &space->tasks[e->task];
    cJSON *row = cJSON_CreateObject();
    MSC_TRY(msc_json_push(alone, row));
    MSC_TRY(msc_json_add_text(row, "task", task->name));
    MSC_TRY(msc_json_add_text(row, "choice", task->labels[e->choice]));
    return msc_json_add_number(row, "difference", e->difference);
}

static enum msc_status add_fit(cJSON *effects, struct msc_additive *fit,
                               const struct msc_space *space, const uint32_t plan[],
                               size_t n_choices) {
    struct effect *list = msc_arena_array(&fit->arena, n_choices + 1, sizeof *list);
    cJSON *alone = cJSON_CreateArray(), *fitted = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(effects, "alone");
    enum msc_status status = msc_json_add(effects, "alone", alone);
    if (status != MSC_OK) {
        cJSON_Delete(fitted);
        return status;
    }
    MSC_TRY(msc_json_add(effects, "fitted", fitted));
    MSC_TRY(msc_json_add_number(fitted, "trials", (double)fit->n_trials));
    MSC_TRY(msc_json_add_number(fitted, "explained", fit->explained));
    MSC_TRY(MSC_ALLOCATED(list));
    size_t n = list_effects(list, fit, space, plan);
    for (size_t i = 0; i < n && i < MOST_ALONE; i++) {
        MSC_TRY(add_effect(alone, &list[i], space));
    }
    return MSC_OK;
}

// ---- Importance -------------------------------------------------------------------------------

struct importance {
    size_t task;
    double variance;
};

static bool is_more_important(const void *context, const void *x, const void *y) {
    const struct importance *a = x, *b = y;
    (void)context;
    return a->variance != b->variance ? a->variance > b->variance : a->task < b->task;
}

// The variance of a task's effect if each of its choices that was tried is equally likely.
static double variance_of(const struct msc_additive *fit, size_t task, size_t n_choices) {
    const double *effects = fit->effects + fit->offsets[task];
    const size_t *counts = fit->counts + fit->offsets[task];
    double mean = 0.0, sum = 0.0, n = 0.0;
    for (size_t c = 0; c < n_choices; c++) {
        n += counts[c] > 0;
        mean += counts[c] > 0 ? effects[c] : 0.0;
    }
    mean = n > 0.0 ? mean / n : 0.0;
    for (size_t c = 0; c < n_choices; c++) {
        sum += counts[c] > 0 ? (effects[c] - mean) * (effects[c] - mean) : 0.0;
    }
    return n > 0.0 ? sum / n : 0.0;
}

static enum msc_status list_importance(cJSON *tasks, struct msc_additive *fit,
                                       const struct msc_space *space) {
    struct importance *list = msc_arena_array(&fit->arena, space->n_tasks + 1, sizeof *list), spare;
    double whole = 0.0;
    MSC_TRY(MSC_ALLOCATED(list));
    for (size_t t = 0; t < space->n_tasks; t++) {
        list[t] = (struct importance){t, variance_of(fit, t, space->tasks[t].n_choices)};
        whole += list[t].variance;
    }
    const struct msc_heap heap = {.elements = list,
                                  .element_bytes = sizeof *list,
                                  .spare = &spare,
                                  .is_before = is_more_important};
    msc_heap_sort(&heap, space->n_tasks);
    for (size_t i = 0; i < space->n_tasks && i < MOST_IMPORTANT && whole > 0.0; i++) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(tasks, row));
        MSC_TRY(msc_json_add_text(row, "task", space->tasks[list[i].task].name));
        MSC_TRY(msc_json_add_number(row, "share", list[i].variance / whole));
    }
    return MSC_OK;
}

static enum msc_status add_importance(cJSON *effects, struct msc_additive *fit,
                                      const struct msc_space *space) {
    cJSON *importance = cJSON_CreateObject(), *tasks = cJSON_CreateArray();
    enum msc_status status = msc_json_add(effects, "importance", importance);
    if (status != MSC_OK) {
        cJSON_Delete(tasks);
        return status;
    }
    MSC_TRY(msc_json_add(importance, "tasks", tasks));
    MSC_TRY(msc_json_add_number(importance, "trials", (double)fit->n_trials));
    MSC_TRY(msc_json_add_number(importance, "explained", fit->explained));
    return list_importance(tasks, fit, space);
}

// Fits a model to the trials, and adds what it says. `plan`: the choices that the effects are
// relative to; NULL: the effects were measured.
static enum msc_status fit_effects(cJSON *effects, const struct msc_record *record,
                                   const uint32_t plan[], size_t n_choices) {
    const struct msc_space *space = msc_record_space(record);
    struct msc_additive fit = {0};
    MSC_TRY(msc_additive_fit(&fit, record));
    enum msc_status status = MSC_OK;
    if (fit.n_trials >= LEAST_TRIALS && fit.explained > 0.0) {
        status = add_importance(effects, &fit, space);
        if (status == MSC_OK && plan) {
            status = add_fit(effects, &fit, space, plan, n_choices);
        }
    }
    msc_additive_finish(&fit);
    return status;
}

static void shorten(cJSON *list, int most) {
    while (cJSON_GetArraySize(list) > most) {
        cJSON_DeleteItemFromArray(list, most);
    }
}

enum msc_status msc_effects_describe(struct cJSON **out, const struct msc_record *record,
                                     const uint32_t plan[]) {
    struct msc_analysis analysis = {0};
    cJSON *effects = NULL;
    MSC_TRY(msc_analysis_make(&analysis, record));
    size_t n_choices = analysis.n_choices + msc_record_space(record)->n_tasks;
    bool is_measured = 2 * analysis.n_alone >= analysis.n_choices;
    enum msc_status status = msc_analysis_describe(&effects, &analysis, MOST_PAIRS);
    msc_analysis_finish(&analysis);
    MSC_TRY(status);
    shorten(msc_json_get(effects, "alone"), MOST_ALONE);
    status = fit_effects(effects, record, is_measured ? NULL : plan, n_choices);
    if (status != MSC_OK) {
        cJSON_Delete(effects);
        return status;
    }
    *out = effects;
    return MSC_OK;
}

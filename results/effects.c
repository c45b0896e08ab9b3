#include "results/effects.h"

#include "base/heap.h"
#include "base/json.h"
#include "results/additive.h"
#include "results/analysis.h"

#include <math.h>

// At most this many single choices and pairs are listed.
#define MOST_ALONE 200
#define MOST_PAIRS 30
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

static enum msc_status fit_effects(cJSON *effects, const struct msc_record *record,
                                   const uint32_t plan[], size_t n_choices) {
    struct msc_additive fit = {0};
    MSC_TRY(msc_additive_fit(&fit, record));
    enum msc_status status = MSC_OK;
    if (fit.n_trials >= LEAST_TRIALS && fit.explained > 0.0) {
        status = add_fit(effects, &fit, msc_record_space(record), plan, n_choices);
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
    if (!is_measured && plan) {
        status = fit_effects(effects, record, plan, n_choices);
    }
    if (status != MSC_OK) {
        cJSON_Delete(effects);
        return status;
    }
    *out = effects;
    return MSC_OK;
}

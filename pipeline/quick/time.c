// Rejects plans that float tensors or dynamic activations slow down, and plans slower than the
// float model if there is a quicker one. Each end of a float section needs a conversion, so a
// single float tensor may cost more time than integer arithmetic saves. Times are measured in the
// runtime if it is available; otherwise they are predicted.
#include "pipeline/delivery.h"
#include "pipeline/quick/quick_internal.h"
#include "pipeline/session_runtime.h"
#include "tools/latency.h"

#include <math.h>

// MOST_SLOWER: the greatest accepted slowdown by float tensors. TIME_MARGIN: the least ratio of
// times that measurements can show.
#define MOST_SLOWER 1.10
#define TIME_MARGIN 1.01
// The greatest standard error of a measured ratio that is still of use.
#define MOST_ERROR 0.05

bool msc_quick__is_quick_enough(double ratio, double all_bytes) {
    bool is_slower = ratio > MOST_SLOWER * all_bytes;
    bool is_slower_than_float = ratio > TIME_MARGIN && all_bytes <= TIME_MARGIN;
    return !is_slower && !is_slower_than_float;
}

// ---- The runtime ------------------------------------------------------------------------------

// True if all tensors are bytes whose scales are known.
static bool is_all_bytes(const struct msc_quick_plan *plan) {
    return plan->n_float == 0 && !plan->is_dynamic;
}

// Picks the plans to measure: the plans from the best one to the first one of bytes everywhere,
// then plans that are added to be quicker. *n_ranked is the number of the former.
static size_t pick_plans(size_t picked[], size_t *n_ranked, const struct msc_quick *q) {
    size_t n = 0;
    for (size_t i = 0; i < q->n && (n == 0 || !is_all_bytes(&q->plans[picked[n - 1]])); i++) {
        picked[n++] = i;
    }
    *n_ranked = n;
    for (size_t i = 0; i < q->n; i++) {
        if (q->plans[i].is_quicker) {
            picked[n++] = i;
        }
    }
    return n;
}

// Adds the plan that is shown next to the best one, so that it is not measured by itself later.
static size_t add_plain(size_t picked[], size_t n, const struct msc_quick *q) {
    bool is_picked = false;
    const struct msc_quick_plan *plain = msc_quick__find_plain(q);
    for (size_t i = 0; i < n; i++) {
        is_picked = is_picked || &q->plans[picked[i]] == plain;
    }
    if (plain && !is_picked) {
        picked[n++] = (size_t)(plain - q->plans);
    }
    return n;
}

// Measures the times of plans [n] and of the float model; `found` gets them.
static enum msc_status measure_times(struct msc_quick *q, const size_t picked[], size_t n,
                                     struct msc_delivery *d) {
    struct msc_delivery_plan plans[MSC_QUICK_MOST_PLANS + 1] = {{0}};
    struct msc_delivery_plan *order[MSC_QUICK_MOST_PLANS + 1];
    q->of_float = q->of_float ? q->of_float : cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(q->of_float);
    for (size_t i = 0; status == MSC_OK && i <= n; i++) {
        bool is_float = i == n;
        plans[i].name = is_float ? "the float model" : "a plan";
        plans[i].id = (int64_t)i;
        plans[i].choices = is_float ? NULL : q->plans[picked[i]].choices;
        plans[i].found = is_float ? q->of_float : q->plans[picked[i]].found;
        order[i] = &plans[i];
        status = msc_quick__check_stop(q);
        status = status == MSC_OK ? msc_delivery_export(d, &plans[i]) : status;
    }
    return status == MSC_OK ? msc_delivery_latency(d, order, n + 1) : status;
}

static const cJSON *measured_ratio(const struct msc_quick_plan *plan) {
    const cJSON *ratio = msc_json_get(msc_json_get(plan->found, "runtime"), "latency_ratio");
    return cJSON_IsNumber(ratio) ? ratio : NULL;
}

// The standard error of the median of n values, if they are normally distributed, is 1.25 standard
// deviations, or 0.93 interquartile ranges, divided by the root of n.
static bool is_noisy(double values[], size_t n) {
    struct msc_quartiles q = msc_quartiles_of(values, n);
    return 0.93 * (q.upper - q.lower) > MOST_ERROR * q.median * sqrt((double)n);
}

// Sets *out if the ratio that was measured of a plan may be wrong by more than it has to tell.
static enum msc_status check_noise(bool *out, const struct msc_quick *q,
                                   const struct msc_quick_plan *plan) {
    const cJSON *a = msc_json_get(msc_json_get(plan->found, "runtime"), "us_by_round");
    const cJSON *b = msc_json_get(msc_json_get(q->of_float, "runtime"), "us_by_round");
    size_t n = (size_t)cJSON_GetArraySize(a), i = 0;
    if (n < 2 || n != (size_t)cJSON_GetArraySize(b)) {
        return MSC_OK;
    }
    double *values = msc_alloc_zero(n, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next) {
        values[i++] = a->valuedouble / b->valuedouble;
    }
    *out = *out || is_noisy(values, n);
    msc_free(values);
    return MSC_OK;
}

// Fills the times of plans [n], relative to the float model: measured ones or, if some are missing
// or a busy machine made them useless, predicted ones.
static enum msc_status take_ratios(double ratios[], const struct msc_quick *q,
                                   const size_t picked[], size_t n) {
    bool is_useless = false;
    for (size_t i = 0; i < n; i++) {
        is_useless = is_useless || !measured_ratio(&q->plans[picked[i]]);
        MSC_TRY(check_noise(&is_useless, q, &q->plans[picked[i]]));
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_quick_plan *plan = &q->plans[picked[i]];
        ratios[i] = is_useless ? plan->ratio : measured_ratio(plan)->valuedouble;
    }
    return MSC_OK;
}

enum msc_status msc_quick__open_delivery(struct msc_quick *q) {
    return q->delivery ? MSC_OK : msc_session_open_delivery(&q->delivery, &q->session, &q->news);
}

void msc_quick__close_delivery(struct msc_quick *q) {
    msc_delivery_close(q->delivery);
    q->delivery = NULL;
}

static enum msc_status ask_runtime(struct msc_quick *q, const size_t picked[], size_t n) {
    const char *missing = NULL;
    if (!msc_session_has_runtime(&q->session)) {
        return MSC_OK;
    }
    MSC_TRY(msc_quick__open_delivery(q));
    enum msc_status status = msc_delivery_start(q->delivery, &missing);
    if (status == MSC_OK && !missing) {
        status = measure_times(q, picked, n, q->delivery);
    }
    if (status != MSC_OK) {
        msc_quick__close_delivery(q); // a runtime that has failed is started again
    }
    return msc_session_settle_measuring(&q->session, status);
}

// ---- The choice -------------------------------------------------------------------------------

// A quicker plan replaces the best one if that is slower than the float model, or if the quicker
// plan also has the lower loss.
static bool is_better(const struct msc_quick_plan *quicker, double ratio,
                      const struct msc_quick_plan *best, double ratio_of_best) {
    bool is_wanted = ratio_of_best > TIME_MARGIN || quicker->loss <= best->loss;
    return is_wanted && ratio * TIME_MARGIN < ratio_of_best;
}

// The time that float tensors may exceed only a little: the least of the plans that leave no tensor
// float to lower the loss.
static double reference_of(const struct msc_quick *q, const size_t picked[], const double ratios[],
                           size_t n_ranked) {
    double least = ratios[n_ranked - 1];
    for (size_t i = 0; i < n_ranked; i++) {
        bool is_reference = msc_quick__n_left(&q->plans[picked[i]]) == 0;
        least = is_reference && ratios[i] < least ? ratios[i] : least;
    }
    return least;
}

enum msc_status msc_quick__pass_slow(struct msc_quick *q) {
    size_t picked[MSC_QUICK_MOST_PLANS];
    double ratios[MSC_QUICK_MOST_PLANS];
    bool is_asked_for = q->options->n_float >= 0;
    size_t n_ranked, n = pick_plans(picked, &n_ranked, q), best = 0;
    if (is_asked_for || n < 2) {
        return MSC_OK;
    }
    MSC_TRY(ask_runtime(q, picked, add_plain(picked, n, q)));
    MSC_TRY(take_ratios(ratios, q, picked, n));
    double reference = reference_of(q, picked, ratios, n_ranked);
    while (best + 1 < n_ranked && !msc_quick__is_quick_enough(ratios[best], reference)) {
        best++;
    }
    for (size_t i = n_ranked; i < n; i++) {
        const struct msc_quick_plan *plans = q->plans;
        if (is_better(&plans[picked[i]], ratios[i], &plans[picked[best]], ratios[best])) {
            best = i;
        }
    }
    msc_quick__put_first(q, picked[best]);
    return MSC_OK;
}

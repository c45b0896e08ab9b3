// Improves the weights of the best plan once, by the stage `distill` (env/quantize/distill.h).
#include "pipeline/quick/quick_internal.h"

#include "env/quantize/distill.h"
#include "pipeline/session_runtime.h"
#include "pipeline/stage_distill.h"

#include <string.h>

static void quick_tell_weight(void *payload, size_t done, size_t n) {
    msc_quick__tell(payload, MSC_QUICK_IMPROVE, done, n);
}

// The loss on the same samples as a plan's loss: the held-back samples or, if there are none, the
// calibration samples.
static double loss_of(const struct msc_quick *q, const struct msc_quantize_distilled *d) {
    const cJSON *loss = msc_json_get(d->validation, "distill_loss");
    int metric = msc_space_find_metric(msc_quick__space(q), "distill_loss");
    return cJSON_IsNumber(loss) ? loss->valuedouble : d->metrics[metric];
}

static enum msc_status take_distilled(struct msc_quick *q, struct msc_quantize_distilled *d) {
    struct msc_quick_plan *plan = NULL;
    MSC_TRY(msc_quick__begin_plan(&plan, q, &q->plans[0]));
    q->n++;
    plan->loss = loss_of(q, d);
    plan->n_improved = d->n_improved;
    plan->strategy = d->strategy;
    d->strategy = NULL;
    memcpy(plan->metrics, d->metrics, sizeof plan->metrics);
    plan->found = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(plan->found));
    if (d->validation) {
        MSC_TRY(msc_json_add(plan->found, "validation", d->validation));
        d->validation = NULL;
    }
    msc_quick__put_first(q, q->n - 1); // the new plan has the lowest loss
    return MSC_OK;
}

enum msc_status msc_quick__improve_weights(struct msc_quick *q) {
    struct msc_quantize_distill_options o;
    struct msc_quantize_distilled d = {.strategy = NULL};
    msc_stage_distill_options(&o, q->session.entry);
    o.ridges[0] = q->effort->improved_ridge;
    o.n_ridges = 1;
    o.fits_ranges = true; // at 8 bits the range of the values suits every method
    o.only_outputs = true;
    o.most_rows = q->effort->improved_rows;
    o.most_columns = q->effort->improved_columns;
    o.most_of_column = q->effort->improved_of_column;
    o.progress = quick_tell_weight;
    o.payload = q;
    enum msc_status status = msc_quantize_distill(&d, q->session.env, q->plans[0].choices, &o);
    if (status == MSC_OK && d.strategy && loss_of(q, &d) < q->plans[0].loss) {
        status = take_distilled(q, &d);
    }
    msc_quantize_distilled_finish(&d);
    return msc_session_settle_measuring(&q->session, status);
}

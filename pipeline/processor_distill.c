// The stage `distill`: the plan that is delivered, with better weights.
#include "pipeline/processor_internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "env/quantize/distill.h"
#include "pipeline/delivery.h"
#include "records/record_query.h"
#include "search/distilled.h"
#include "search/report.h"

#include <math.h>
#include <stdio.h>

struct stage {
    struct msc_processor *p;
    const struct msc_record *record;
    const struct msc_trial *trial; // whose plan it is
    double began_s;
};

static cJSON *stage_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const cJSON *options_of(const struct stage *s) {
    return msc_processor__entry(s->p)->distill;
}

static void tell_weight(void *payload, size_t done, size_t n) {
    struct stage *s = payload;
    char text[64];
    double now = msc_clock_seconds();
    snprintf(text, sizeof text, "better weights, %zu of %zu done", done, n);
    // Later weights have less of the network behind them.
    double per_weight = done > 0 ? (now - s->began_s) / (double)done : NAN;
    s->p->measured_s = now + per_weight * (double)(n - done);
    msc_processor__tell_measuring(s->p, text);
}

void msc_processor__fill_distill(struct msc_quantize_distill_options *o,
                                 const struct msc_processor *p) {
    const cJSON *options = msc_processor__entry(p)->distill, *ridge = NULL;
    *o = (struct msc_quantize_distill_options){.held_back =
                                                   stage_get(options, "held_back")->valuedouble};
    cJSON_ArrayForEach(ridge, stage_get(options, "ridge")) {
        o->ridges[o->n_ridges++] = ridge->valuedouble;
    }
}

// ---- What is kept -----------------------------------------------------------------------------

static enum msc_status stage_add_weights(cJSON *object, const struct msc_quantize_distilled *d) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "weights", list));
    for (size_t i = 0; i < d->n_weights; i++) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "site", d->weights[i].site));
        if (d->weights[i].ridge > 0) {
            MSC_TRY(msc_json_add_number(row, "ridge", d->weights[i].ridge));
        }
    }
    return MSC_OK;
}

static enum msc_status stage_add_metrics(cJSON *object, const struct stage *s,
                                         const struct msc_quantize_distilled *d) {
    const struct msc_space *space = msc_env_space(s->p->env);
    cJSON *metrics = cJSON_CreateObject(), *examined = cJSON_CreateObject();
    enum msc_status status = msc_json_add(object, "metrics", metrics);
    if (status != MSC_OK) {
        cJSON_Delete(examined);
        return status;
    }
    MSC_TRY(msc_json_add(object, "examined", examined));
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (isfinite(d->metrics[i])) {
            MSC_TRY(msc_json_add_number(metrics, space->metrics[i].name, d->metrics[i]));
        }
    }
    return d->validation
               ? msc_json_add(examined, "validation", cJSON_Duplicate(d->validation, true))
               : MSC_OK;
}

// Why the trial's own plan is delivered after all, or NULL.
static const char *find_objection(const struct stage *s, const struct msc_quantize_distilled *d) {
    char reason[MSC_REASON_BYTES] = "";
    struct msc_outcome outcome = {
        .state = MSC_TRIAL_COMPLETE, .metrics = (double *)d->metrics, .reason = reason};
    msc_goal_judge(&s->p->goal, msc_env_space(s->p->env), &outcome);
    return !(d->loss_after < d->loss_before)     ? "no weight could be improved"
           : outcome.state != MSC_TRIAL_COMPLETE ? "it breaks a bound of the search"
                                                 : NULL;
}

static enum msc_status describe_distilled(cJSON *object, const struct stage *s,
                                          const struct msc_quantize_distilled *d) {
    const char *objection = find_objection(s, d);
    cJSON *plan = NULL;
    MSC_TRY(msc_json_add_text(object, "numerics", msc_processor_numerics(s->p)));
    MSC_TRY(msc_json_add(object, "options", cJSON_Duplicate(options_of(s), true)));
    MSC_TRY(msc_json_add_number(object, "held_back", (double)d->n_held_back));
    MSC_TRY(msc_json_add_number(object, "loss_before", d->loss_before));
    MSC_TRY(msc_json_add_number(object, "loss_after", d->loss_after));
    MSC_TRY(msc_json_add_text(object, "by", d->by));
    MSC_TRY(msc_json_add_number(object, "improved", (double)d->n_improved));
    MSC_TRY(stage_add_weights(object, d));
    MSC_TRY(stage_add_metrics(object, s, d));
    if (objection) {
        return msc_json_add_text(object, "objection", objection);
    }
    MSC_TRY(msc_strategy_to_json(d->strategy, s->p->model->graph, &plan));
    return msc_json_add(object, "plan", plan);
}

// ---- In its runtime ---------------------------------------------------------------------------

static enum msc_status measure_delivered(struct msc_delivery_plan *plan, struct stage *s) {
    struct msc_delivery *d = NULL;
    cJSON *runtime = cJSON_CreateObject(); // the report has what it is
    bool is_there = false;
    enum msc_status status = runtime ? MSC_OK : msc_processor__no_memory();
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_processor__open_delivery(&d, s->p));
    MSC_TRY_OUT(msc_processor__start_runtime(&is_there, runtime, s->p, d));
    if (is_there) {
        MSC_TRY_OUT(msc_delivery_export(d, plan));
        status = msc_delivery_outputs(d, plan);
        msc_processor__tell_refused(s->p, plan);
    }
out:
    msc_delivery_close(d);
    cJSON_Delete(runtime);
    return status;
}

// File and loss of the model, where it is to be asked; how long it takes is known from the winner.
static enum msc_status add_delivered(cJSON *examined, struct stage *s,
                                     const struct msc_quantize_distilled *distilled) {
    struct msc_delivery_plan plan = {
        .id = s->trial->id, .name = "the distilled plan", .strategy = distilled->strategy};
    const cJSON *item = NULL;
    if (!msc_processor__has_runtime(s->p)) {
        return MSC_OK;
    }
    enum msc_status status = msc_processor__settle_measuring(s->p, measure_delivered(&plan, s));
    cJSON_ArrayForEach(item, plan.found) {
        status = status == MSC_OK
                     ? msc_json_add(examined, item->string, cJSON_Duplicate(item, true))
                     : status;
    }
    cJSON_Delete(plan.found);
    return status;
}

// ---- The stage --------------------------------------------------------------------------------

static enum msc_status run_stage(cJSON **out, struct stage *s) {
    struct msc_quantize_distill_options o;
    struct msc_quantize_distilled d;
    msc_processor__fill_distill(&o, s->p);
    o.progress = tell_weight;
    o.payload = s;
    s->began_s = msc_clock_seconds();
    MSC_TRY(msc_quantize_distill(&d, s->p->env, s->trial->proposal.choices, &o));
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? describe_distilled(object, s, &d) : msc_processor__no_memory();
    if (status == MSC_OK && msc_distilled_plan(object)) {
        status = add_delivered(stage_get(object, "examined"), s, &d);
    }
    msc_quantize_distilled_finish(&d);
    if (status == MSC_OK) {
        status = msc_distilled_save(s->record, object, s->trial->id);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

// What an earlier launch has made with the same options.
static enum msc_status stage_recall(cJSON **out, const struct stage *s) {
    MSC_TRY(msc_distilled_load(out, s->record, s->trial->id, s->p->log));
    if (*out && !cJSON_Compare(stage_get(*out, "options"), options_of(s), true)) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return MSC_OK;
}

static void tell_distilled(const struct stage *s, const cJSON *distilled) {
    struct msc_str text = {0};
    msc_report_distilled_text(&text, distilled);
    msc_log(s->p->news, MSC_LOG_INFO, "%s: %s", msc_processor__entry(s->p)->name,
            msc_str_text(&text));
    msc_str_finish(&text);
}

enum msc_status msc_processor__distill(cJSON **plan, struct msc_processor *p, cJSON *report,
                                       const struct msc_record *record,
                                       const struct msc_trial *trial) {
    struct stage s = {.p = p, .record = record, .trial = trial};
    cJSON *distilled = NULL;
    *plan = NULL;
    enum msc_status status = stage_recall(&distilled, &s);
    if (status == MSC_OK && !distilled) {
        status = msc_processor__settle_measuring(p, run_stage(&distilled, &s));
    }
    if (status == MSC_OK && distilled) {
        tell_distilled(&s, distilled);
        status = msc_report_add_distilled(report, distilled);
    }
    if (status == MSC_OK && msc_distilled_plan(distilled)) {
        *plan = cJSON_Duplicate(msc_distilled_plan(distilled), true);
        status = *plan ? MSC_OK : msc_processor__no_memory();
    }
    cJSON_Delete(distilled);
    return status;
}

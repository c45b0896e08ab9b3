#include "pipeline/stage_distill.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "checks/held_out.h"
#include "env/quantize/distill.h"
#include "pipeline/delivery.h"
#include "pipeline/session_runtime.h"
#include "records/record_query.h"
#include "records/distilled.h"
#include "results/report.h"
#include "tools/strategy.h"

#include <math.h>
#include <stdio.h>

struct stage {
    const struct msc_session *session;
    struct msc_news *news;
    const struct msc_record *record;
    const struct msc_trial *trial; // the plan to improve
    double began_s;
};

static const cJSON *options_of(const struct stage *s) {
    return s->session->entry->distill;
}

static void tell_weight(void *payload, size_t done, size_t n) {
    struct stage *s = payload;
    char text[64];
    double now = msc_clock_seconds();
    snprintf(text, sizeof text, "better weights, %zu of %zu done", done, n);
    // Later weights take less time, since less of the network comes after them.
    double per_weight = done > 0 ? (now - s->began_s) / (double)done : NAN;
    s->news->measured_s = now + per_weight * (double)(n - done);
    msc_news_measuring(s->news, text);
}

void msc_stage_distill_options(struct msc_quantize_distill_options *o,
                               const struct msc_config_entry *e) {
    const cJSON *options = e->distill, *ridge = NULL;
    *o = (struct msc_quantize_distill_options){.held_back =
                                                   msc_json_get(options, "held_back")->valuedouble};
    cJSON_ArrayForEach(ridge, msc_json_get(options, "ridge")) {
        o->ridges[o->n_ridges++] = ridge->valuedouble;
    }
}

// ---- The stored result ------------------------------------------------------------------------

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
    const struct msc_space *space = msc_env_space(s->session->env);
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

// Why the trial's own plan is delivered instead of the improved one. NULL: the improved plan is.
static const char *find_objection(const struct stage *s, const struct msc_quantize_distilled *d) {
    char reason[MSC_REASON_BYTES] = "";
    struct msc_outcome outcome = {
        .state = MSC_TRIAL_COMPLETE, .metrics = (double *)d->metrics, .reason = reason};
    const struct msc_session *session = s->session;
    struct msc_held_out_drop drop;
    msc_goal_judge(&session->goal, msc_env_space(session->env), &outcome);
    return !(d->loss_after < d->loss_before)     ? "no weight could be improved"
           : outcome.state != MSC_TRIAL_COMPLETE ? "it breaks a bound of the search"
           : msc_held_out_breaks(&drop, msc_env_space(session->env), &session->goal,
                                 &session->drops, d->validation)
               ? "it breaks a bound of the search on the validation samples"
               : NULL;
}

static enum msc_status describe_distilled(cJSON *object, const struct stage *s,
                                          const struct msc_quantize_distilled *d) {
    const char *objection = find_objection(s, d);
    cJSON *plan = NULL;
    MSC_TRY(msc_json_add_text(object, "numerics", msc_setup_numerics(s->session->setup)));
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
    MSC_TRY(msc_strategy_to_json(d->strategy, s->session->setup->model->graph, &plan));
    return msc_json_add(object, "plan", plan);
}

// ---- In the runtime ---------------------------------------------------------------------------

static enum msc_status measure_delivered(struct msc_delivery_plan *plan, struct stage *s) {
    struct msc_delivery *d = NULL;
    cJSON *runtime = cJSON_CreateObject(); // unused: the report already describes the runtime
    bool is_there = false;
    enum msc_status status = MSC_ALLOCATED(runtime);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_session_open_delivery(&d, s->session, s->news));
    MSC_TRY_OUT(msc_session_start_runtime(&is_there, runtime, s->session, d));
    if (is_there) {
        MSC_TRY_OUT(msc_delivery_export(d, plan));
        status = msc_delivery_outputs(d, plan);
        msc_session_tell_refused(s->session, plan);
    }
out:
    msc_delivery_close(d);
    cJSON_Delete(runtime);
    return status;
}

// Adds file size and loss in the runtime, if there is one. The latency is the same as the winner's.
static enum msc_status add_delivered(cJSON *examined, struct stage *s,
                                     const struct msc_quantize_distilled *distilled) {
    struct msc_delivery_plan plan = {
        .id = s->trial->id, .name = "the distilled plan", .strategy = distilled->strategy};
    const cJSON *item = NULL;
    if (!msc_session_has_runtime(s->session)) {
        return MSC_OK;
    }
    enum msc_status status = msc_session_settle_measuring(s->session, measure_delivered(&plan, s));
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
    msc_stage_distill_options(&o, s->session->entry);
    o.progress = tell_weight;
    o.payload = s;
    s->began_s = msc_clock_seconds();
    MSC_TRY(msc_quantize_distill(&d, s->session->env, s->trial->proposal.choices, &o));
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? describe_distilled(object, s, &d) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK && msc_distilled_plan(object)) {
        status = add_delivered(msc_json_get(object, "examined"), s, &d);
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

// The result of an earlier launch with the same options, if any.
static enum msc_status stage_recall(cJSON **out, const struct stage *s) {
    MSC_TRY(msc_distilled_load(out, s->record, s->trial->id, s->session->setup->log));
    if (*out && !cJSON_Compare(msc_json_get(*out, "options"), options_of(s), true)) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return MSC_OK;
}

static void tell_distilled(const struct stage *s, const cJSON *distilled) {
    struct msc_str text = {0};
    msc_report_distilled_text(&text, distilled);
    msc_log(s->session->setup->news, MSC_LOG_INFO, "%s: %s", s->session->entry->name,
            msc_str_text(&text));
    msc_str_finish(&text);
}

enum msc_status msc_stage_distill(cJSON **plan, const struct msc_session *session,
                                  struct msc_news *news, cJSON *report,
                                  const struct msc_record *record, const struct msc_trial *trial) {
    struct stage s = {.session = session, .news = news, .record = record, .trial = trial};
    cJSON *distilled = NULL;
    *plan = NULL;
    enum msc_status status = stage_recall(&distilled, &s);
    if (status == MSC_OK && !distilled) {
        status = msc_session_settle_measuring(session, run_stage(&distilled, &s));
    }
    if (status == MSC_OK && distilled) {
        tell_distilled(&s, distilled);
        status = msc_report_add_distilled(report, distilled);
    }
    if (status == MSC_OK && msc_distilled_plan(distilled)) {
        *plan = cJSON_Duplicate(msc_distilled_plan(distilled), true);
        status = MSC_ALLOCATED(*plan);
    }
    cJSON_Delete(distilled);
    return status;
}

#include "pipeline/quick/quick.h"

#include "base/file.h"
#include "base/json.h"
#include "checks/held_out.h"
#include "graph/notes.h"
#include "graph/onnx/onnx.h"
#include "pipeline/delivery.h"
#include "model/equalize.h"
#include "model/export.h"
#include "model/output.h"
#include "pipeline/quick/quick_internal.h"
#include "pipeline/session_runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum msc_status open_setup(struct msc_quick *q) {
    struct msc_config *config = NULL;
    struct msc_processor_options o = q->options->host;
    MSC_TRY(msc_quick__make_config(&config, q->options, q->effort));
    o.is_dry_run = true; // together with `restart`: ignores any existing record
    o.restart = true;
    o.preparing = msc_quick__tell_preparing;
    o.preparing_payload = q;
    MSC_TRY(msc_setup_create(&q->setup, config, &o));
    q->setup->config->dataset.is_dynamic = msc_quick__tries_dynamic(q->options, q->effort);
    return MSC_OK;
}

static enum msc_status claim_output(const struct msc_quick *q) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_output_read_model(&files, q->options->model));
    MSC_TRY_OUT(msc_file_set_read(&files, "the inputs", q->options->inputs));
    if (!msc_labels_are_next(q->options->labels)) {
        MSC_TRY_OUT(msc_file_set_read(&files, "the labels", q->options->labels));
    }
    MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_MODEL, "--output", q->options->output));
    MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_STRATEGY, "--save-strategy",
                                 q->options->save_strategy));
out:
    msc_file_set_finish(&files);
    return status;
}

// ---- The file, and its measurement in the runtime ---------------------------------------------

static enum msc_status write_model(const struct msc_quick *q) {
    const struct msc_quick_plan *best = &q->plans[0];
    const struct msc_graph *graph = q->setup->model->graph;
    const char *path = q->options->save_strategy;
    struct msc_strategy *made = NULL;
    if (!best->strategy) {
        MSC_TRY(msc_export_strategy(&made, q->session.env, best->choices));
    }
    const struct msc_strategy *strategy = best->strategy ? best->strategy : made;
    enum msc_status status = msc_export_model(graph, strategy, q->options->output, NULL, -1);
    if (status == MSC_OK && path) {
        status = msc_strategy_save(strategy, graph, path);
    }
    msc_strategy_destroy(made);
    return status;
}

// Fails if the runtime refuses the first plan, unless it also refuses the last plan, the float
// model.
static enum msc_status check_loads(const struct msc_quick *q,
                                   const struct msc_delivery_plan plans[], size_t n) {
    if (!plans[0].is_refused || plans[n - 1].failure) {
        return MSC_OK;
    }
    (void)msc_onnx_remove(q->options->output);
    if (q->options->save_strategy) {
        (void)remove(q->options->save_strategy);
    }
    return MSC_FAIL(
        MSC_E_UNSUPPORTED,
        "quantize: %s is removed because its runtime refuses it: %s; leave more tensors "
        "float (--float), or name another --target",
        q->options->output, plans[0].failure);
}

// True if the plans and the float model, the last one, were already measured together.
static bool is_timed(const struct msc_delivery_plan plans[], size_t n) {
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        all = all && msc_json_get(msc_json_get(plans[i].found, "runtime"), "latency_us");
    }
    return all;
}

static enum msc_status measure_delivered(struct msc_quick *q, cJSON *runtime,
                                         struct msc_delivery_plan plans[], size_t n) {
    struct msc_delivery_plan *order[3];
    bool is_there = false;
    MSC_TRY(msc_quick__open_delivery(q));
    struct msc_delivery *d = q->delivery;
    enum msc_status status = msc_session_start_runtime(&is_there, runtime, &q->session, d);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        order[i] = &plans[i];
        status = is_there ? msc_quick__check_stop(q) : MSC_OK;
        status = status == MSC_OK ? msc_delivery_export(d, &plans[i]) : status;
        status = status == MSC_OK && is_there ? msc_delivery_outputs(d, &plans[i]) : status;
        msc_session_tell_refused(&q->session, &plans[i]);
    }
    if (status == MSC_OK && is_there && !is_timed(plans, n)) {
        status = msc_delivery_latency(d, order, n);
    }
    status = msc_session_settle_measuring(&q->session, status);
    return status == MSC_OK && is_there ? check_loads(q, plans, n) : status;
}

// Delivers the best plan, and measures it together with the plain plan and the float model.
static enum msc_status deliver(struct msc_quick *q, cJSON *report) {
    struct msc_quick_plan *plain = msc_quick__find_plain(q);
    cJSON *reference = msc_json_get(report, "reference");
    cJSON *runtime = cJSON_CreateObject();
    cJSON *of_float = q->of_float ? q->of_float : cJSON_CreateObject();
    q->of_float = NULL;
    MSC_TRY(msc_json_add(report, "runtime", runtime));
    MSC_TRY(msc_json_add(reference, "examined", of_float));
    struct msc_delivery_plan plans[3] = {
        {.name = "the best plan",
         .choices = q->plans[0].strategy ? NULL : q->plans[0].choices,
         .strategy = q->plans[0].strategy,
         .path = q->options->output,
         .found = q->plans[0].found},
        {.name = "the float model", .found = of_float},
    };
    if (plain) {
        plans[2] = plans[1];
        plans[1] = (struct msc_delivery_plan){
            .name = "plain 8 bits", .choices = plain->choices, .found = plain->found};
    }
    return measure_delivered(q, runtime, plans, plain ? 3 : 2);
}

// ---- Metrics of the plans that are shown ------------------------------------------------------

// With labels, measures all metrics of the plan on the held-back samples. Without labels, only the
// loss can be measured, and it is known already.
static enum msc_status examine_plan(struct msc_quick *q, struct msc_quick_plan *plan) {
    cJSON *found = NULL;
    MSC_TRY(msc_env_reevaluate(q->session.env, plan->choices, MSC_REEVALUATE_VALIDATION, &found));
    cJSON_Delete(plan->found);
    plan->found = found;
    return msc_quick__check_stop(q);
}

static enum msc_status examine_plans(struct msc_quick *q) {
    struct msc_quick_plan *plain = msc_quick__find_plain(q);
    if (!q->options->labels) {
        return MSC_OK;
    }
    if (!q->plans[0].strategy) {
        MSC_TRY(examine_plan(q, &q->plans[0]));
    }
    return plain ? examine_plan(q, plain) : MSC_OK;
}

// Moves the best plan that keeps the bound on the accuracy to the front of the list. Plans are
// measured in their order until one keeps it.
static enum msc_status keep_accuracy(struct msc_quick *q) {
    const struct msc_session *s = &q->session;
    double least = INFINITY, error = NAN, n_samples = NAN;
    if (!q->options->has_accuracy_drop) {
        return MSC_OK;
    }
    for (size_t i = 0; i < q->n; i++) {
        struct msc_quick_plan *plan = &q->plans[i];
        struct msc_held_out_drop drop;
        if (!plan->strategy) {
            MSC_TRY(examine_plan(q, plan));
        }
        const cJSON *validation = msc_json_get(plan->found, "validation");
        n_samples = msc_json_number_of(validation, "samples");
        if (isnan(n_samples)) {
            return MSC_FAIL(MSC_E_INVALID, "quantize: --accuracy-drop: there are too few samples "
                                           "to hold any back; give more to --inputs");
        }
        if (!msc_held_out_breaks(&drop, msc_quick__space(q), &s->goal, &s->drops, validation)) {
            msc_quick__put_first(q, i);
            return MSC_OK;
        }
        error = drop.value < least
                    ? msc_json_number_of(validation, "accuracy" MSC_DROP_ERROR_SUFFIX)
                    : error;
        least = fmin(least, drop.value);
    }
    char with[48] = ""; // a single sample has no standard error
    if (!isnan(error)) {
        snprintf(with, sizeof with, " (standard error %.2g)", error);
    }
    return MSC_FAIL(MSC_E_STATE,
                    "quantize: no plan keeps the drop of accuracy at most %g: the least reached is "
                    "%.4g%s on %.0f held-back samples, so nothing was written; leave more tensors "
                    "float (--float N), or use mscgym search",
                    q->options->accuracy_drop, least, with, n_samples);
}

// ---- The report -------------------------------------------------------------------------------

static enum msc_status add_metrics(cJSON *row, const struct msc_space *space,
                                   const double metrics[]) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(row, "metrics", object));
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!isnan(metrics[i])) {
            MSC_TRY(msc_json_add_number(object, space->metrics[i].name, metrics[i]));
        }
    }
    return MSC_OK;
}

static enum msc_status add_reference(cJSON *report, const struct msc_quick *q) {
    double metrics[MSC_MAX_METRICS];
    cJSON *reference = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "reference", reference));
    MSC_TRY(msc_env_reference(q->session.env, metrics));
    return add_metrics(reference, msc_env_space(q->session.env), metrics);
}

static const char *label_of(const struct msc_quick *q, size_t choice) {
    return msc_env_space(q->session.env)->baselines[choice].label;
}

static enum msc_status report_plans(cJSON *report, struct msc_quick *q) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(report, "plans", list));
    for (size_t i = 0; i < q->n; i++) {
        struct msc_quick_plan *plan = &q->plans[i];
        cJSON *row = cJSON_CreateObject();
        cJSON *found = plan->found;
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "weights", label_of(q, plan->weights)));
        MSC_TRY(msc_json_add_text(row, "activations", label_of(q, plan->activations)));
        MSC_TRY(msc_json_add_number(row, "float", (double)plan->n_float));
        MSC_TRY(msc_json_add_number(row, "improved", (double)plan->n_improved));
        MSC_TRY(msc_json_add_bool(row, "plain", msc_quick__is_plain(q, plan)));
        MSC_TRY(isnan(plan->ratio) ? MSC_OK
                                   : msc_json_add_number(row, "predicted_ratio", plan->ratio));
        MSC_TRY(add_metrics(row, msc_env_space(q->session.env), plan->metrics));
        plan->found = NULL;
        MSC_TRY(found ? msc_json_add(row, "examined", found) : MSC_OK);
    }
    return MSC_OK;
}

static enum msc_status make_report(cJSON *report, struct msc_quick *q) {
    const struct msc_model *m = q->setup->model;
    MSC_TRY(msc_json_add_text(report, "effort", q->effort->name));
    MSC_TRY(msc_json_add_text(report, "target", q->session.entry->target));
    MSC_TRY(msc_json_add_number(report, "samples", (double)msc_dataset_n_samples(m->dataset)));
    MSC_TRY(msc_json_add_number(
        report, "held_back", m->validation ? (double)msc_dataset_n_samples(m->validation) : 0.0));
    if (q->session.sameness) {
        MSC_TRY(
            msc_json_add(report, "sameness", cJSON_Duplicate(q->session.sameness->child, true)));
    }
    if (q->options->has_accuracy_drop) {
        MSC_TRY(msc_json_add_number(report, "accuracy_drop", q->options->accuracy_drop));
    }
    if (q->n_rescaled > 0) {
        MSC_TRY(msc_json_add_number(report, "rescaled", (double)q->n_rescaled));
    }
    MSC_TRY(msc_json_add_text(report, "model", q->options->output));
    size_t n_metadata = msc_graph_notes(m->graph)->n_metadata;
    MSC_TRY(n_metadata > 0 ? msc_json_add_number(report, "metadata", (double)n_metadata) : MSC_OK);
    MSC_TRY(add_reference(report, q));
    if (msc_session_has_runtime(&q->session)) {
        MSC_TRY(deliver(q, report));
    }
    return report_plans(report, q);
}

// ---- Quantising -------------------------------------------------------------------------------

// Compares the backend with the reference kernels on one sample, or on a batch of the size that the
// user gave.
static enum msc_status check_backend(const struct msc_quick *q) {
    const struct msc_config *c = q->setup->config;
    struct msc_config_dataset first = c->dataset;
    first.options.batch = q->options->batch > 0 ? first.options.batch : 1;
    return msc_model_check(q->setup->model, &first, c->atol, c->rtol);
}

// Rescales the channels between linear layers, as in transformers. Channels of convolutions gain
// nothing at 8 bits. An importance file belongs to the channels as they are.
static enum msc_status equalize(struct msc_quick *q) {
    const struct msc_equalize_bits bits = {
        .weights = 8, .activations = 8, .of_linear = true, .least_gain = 0.25};
    return q->effort->improves && !q->options->imatrix
               ? msc_model_equalize(&q->setup->found, &q->n_rescaled, q->setup->model, &bits)
               : MSC_OK;
}

static enum msc_status run_quick(cJSON *report, struct msc_quick *q) {
    MSC_TRY(msc_quick__find_effort(&q->effort, q->options->effort));
    q->dynamic = MSC_QUICK_NO_CHOICE;
    MSC_TRY(open_setup(q));
    MSC_TRY(claim_output(q));
    MSC_TRY(msc_setup_load(q->setup, MSC_SETUP_LOOK));
    MSC_TRY(msc_quick__check_names(q));
    MSC_TRY(msc_quick__choose_loss(q));
    msc_quick__tell(q, MSC_QUICK_PREPARE, 0, 0);
    MSC_TRY(equalize(q));
    MSC_TRY(msc_session_open(&q->session, q->setup, q->setup->first, MSC_SETUP_LOOK));
    MSC_TRY(msc_export_check(q->setup->model->graph, q->options->output, q->session.entry->target));
    if (msc_quick__tries_dynamic(q->options, q->effort)) {
        // baselines are the choices in their order
        q->dynamic =
            (size_t)cJSON_GetArraySize(msc_json_get(q->setup->config->entries[0].env, "choices")) -
            1;
    }
    q->news = (struct msc_news){.session = &q->session, .measured_s = NAN};
    MSC_TRY(msc_session_look_at_samples(&q->session));
    MSC_TRY(msc_quick__check_stop(q));
    MSC_TRY(check_backend(q));
    MSC_TRY(msc_quick__find_plans(q));
    MSC_TRY(keep_accuracy(q));
    MSC_TRY(examine_plans(q));
    MSC_TRY(write_model(q));
    return make_report(report, q);
}

enum msc_status msc_quick_quantize(struct cJSON **out, const struct msc_quick_options *options) {
    struct msc_quick q = {.options = options};
    cJSON *report = cJSON_CreateObject();
    enum msc_status status =
        report ? run_quick(report, &q) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; i < q.n; i++) {
        cJSON_Delete(q.plans[i].found);
        msc_strategy_destroy(q.plans[i].strategy);
    }
    msc_quick__close_delivery(&q);
    cJSON_Delete(q.of_float);
    msc_quantize_predictor_destroy(q.predictor);
    msc_session_close(&q.session);
    msc_setup_destroy(q.setup);
    msc_arena_finish(&q.arena);
    if (status != MSC_OK) {
        cJSON_Delete(report);
        return status;
    }
    *out = report;
    return MSC_OK;
}

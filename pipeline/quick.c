#include "pipeline/quick.h"

#include "base/file.h"
#include "base/json.h"
#include "pipeline/delivery.h"
#include "pipeline/output.h"
#include "pipeline/processor_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// What is tried: for weights and for activations each of these. Of a choice that decides how weights
// are rounded, activations take what an observer of theirs finds, by the least squared error.
static const char choices[] = "[{\"bits\": 8, \"rounding\": \"descent\"},"
                              " {\"bits\": 8, \"observer\": \"minmax\"},"
                              " {\"bits\": 8, \"observer\": \"percentile\"}]";

#define HELD_BACK 0.2

struct plan {
    const char *weights, *activations; // labels
    struct msc_trial trial;
    double loss;  // on the samples held back
    cJSON *found; // owned: {"validation"}, then what the runtime makes of it
};

struct quick {
    struct msc_arena arena;
    const struct msc_quick_options *options;
    struct msc_processor *p;
    struct plan *plans; // [n]
    size_t n;
};

static enum msc_status no_quick_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the plans of 8 bits");
}

// ---- The configuration ------------------------------------------------------------------------

static enum msc_status add_env(cJSON *entry, const struct msc_quick_options *o) {
    cJSON *env = cJSON_CreateObject();
    MSC_TRY(msc_json_add(entry, "env", env));
    MSC_TRY(msc_json_add(env, "choices", cJSON_Parse(choices)));
    return o->sites ? msc_json_add_text(env, "sites", o->sites) : MSC_OK;
}

static enum msc_status fill_config(cJSON *config, const struct msc_quick_options *o) {
    cJSON *dataset = cJSON_CreateObject();
    MSC_TRY(msc_json_add(config, "dataset", dataset));
    MSC_TRY(msc_json_add_text(dataset, "inputs", o->inputs));
    MSC_TRY(o->labels ? msc_json_add_text(dataset, "labels", o->labels) : MSC_OK);
    MSC_TRY(msc_json_add_number(dataset, "validation", HELD_BACK));
    MSC_TRY(msc_json_add_text(config, "model", o->model));
    MSC_TRY(msc_json_add_text(config, "verbose", "warning"));
    cJSON *section = cJSON_CreateObject();
    MSC_TRY(msc_json_add(config, "quantize", section));
    MSC_TRY(o->target ? msc_json_add_text(section, "target", o->target) : MSC_OK);
    cJSON *gym = cJSON_CreateArray();
    MSC_TRY(msc_json_add(section, "gym", gym));
    cJSON *entry = cJSON_CreateObject();
    MSC_TRY(msc_json_push(gym, entry));
    return add_env(entry, o);
}

static enum msc_status open_processor(struct quick *q) {
    cJSON *json = cJSON_CreateObject();
    struct msc_config *config = NULL;
    struct msc_processor_options o = q->options->host;
    enum msc_status status = json ? fill_config(json, q->options) : no_quick_memory();
    if (status != MSC_OK) {
        cJSON_Delete(json);
        return status;
    }
    MSC_TRY(msc_config_create(&config, json, "quantize", ".", MSC_CONFIG_CODE_ALLOWED));
    o.is_dry_run = true; // with `restart`: whatever record there is has no part in it
    o.restart = true;
    return msc_processor__create(&q->p, config, &o);
}

static enum msc_status claim_output(const struct quick *q) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_output_read_model(&files, q->options->model));
    MSC_TRY_OUT(msc_file_set_read(&files, "the inputs", q->options->inputs));
    MSC_TRY_OUT(msc_file_set_read(&files, "the labels", q->options->labels));
    MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_MODEL, "--output", q->options->output));
out:
    msc_file_set_finish(&files);
    return status;
}

// ---- The plans --------------------------------------------------------------------------------

static bool is_weight(const struct msc_space *space, size_t task) {
    for (size_t f = 0; f < space->n_features; f++) {
        if (strcmp(space->feature_names[f], "is_weight") == 0) {
            return space->tasks[task].features[f] > 0;
        }
    }
    return false;
}

static bool is_known(const struct quick *q, const struct msc_space *space, const uint32_t point[]) {
    for (size_t i = 0; i < q->n; i++) {
        if (memcmp(q->plans[i].trial.proposal.choices, point, space->n_tasks * sizeof point[0]) ==
            0) {
            return true;
        }
    }
    return false;
}

// Choice `w` for weights and `a` for activations, unless that is a plan already.
static enum msc_status add_plan(struct quick *q, const struct msc_space *space, size_t w,
                                size_t a) {
    const struct msc_baseline *of[] = {&space->baselines[a], &space->baselines[w]};
    struct plan *plan = &q->plans[q->n];
    *plan = (struct plan){.weights = of[1]->label, .activations = of[0]->label, .loss = INFINITY};
    MSC_TRY(msc_trial_init(&plan->trial, &q->arena, space));
    for (size_t t = 0; t < space->n_tasks; t++) {
        plan->trial.proposal.choices[t] = of[is_weight(space, t)]->choices[t];
    }
    q->n += !is_known(q, space, plan->trial.proposal.choices);
    return MSC_OK;
}

static enum msc_status make_plans(struct quick *q) {
    const struct msc_space *space = msc_env_space(q->p->env);
    size_t n = space->n_baselines;
    q->plans = msc_arena_array(&q->arena, n * n, sizeof q->plans[0]);
    if (!q->plans) {
        return no_quick_memory();
    }
    for (size_t w = 0; w < n; w++) {
        for (size_t a = 0; a < n; a++) {
            MSC_TRY(add_plan(q, space, w, a));
        }
    }
    return MSC_OK;
}

static enum msc_status check_stop(const struct quick *q) {
    return msc_cancel_soon(q->options->host.cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped") : MSC_OK;
}

static enum msc_status evaluate_plans(struct quick *q) {
    struct msc_trial **trials = msc_arena_array(&q->arena, q->n, sizeof(struct msc_trial *));
    if (!trials) {
        return no_quick_memory();
    }
    for (size_t i = 0; i < q->n; i++) {
        trials[i] = &q->plans[i].trial;
        trials[i]->id = (int64_t)i;
    }
    const struct msc_evaluation e = {.trials = trials, .n = q->n};
    msc_processor__tell_measuring(q->p, "plans of 8 bits");
    MSC_TRY(msc_env_evaluate(q->p->env, &q->p->goal, &e));
    return check_stop(q);
}

static enum msc_status hold_against(struct quick *q, struct plan *plan) {
    if (plan->trial.outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_reevaluate(q->p->env, plan->trial.proposal.choices, MSC_REEVALUATE_VALIDATION,
                               &plan->found));
    const cJSON *validation = cJSON_GetObjectItemCaseSensitive(plan->found, "validation");
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(validation, "distill_loss");
    plan->loss = cJSON_IsNumber(loss) ? loss->valuedouble : plan->trial.outcome.objectives[0];
    return check_stop(q);
}

// The best first; of equal ones the first.
static void sort_plans(struct quick *q) {
    for (size_t i = 1; i < q->n; i++) {
        struct plan plan = q->plans[i];
        size_t k = i;
        for (; k > 0 && plan.loss < q->plans[k - 1].loss; k--) {
            q->plans[k] = q->plans[k - 1];
        }
        q->plans[k] = plan;
    }
}

static enum msc_status rank_plans(struct quick *q) {
    msc_processor__tell_measuring(q->p, "plans of 8 bits on samples held back");
    for (size_t i = 0; i < q->n; i++) {
        MSC_TRY(hold_against(q, &q->plans[i]));
    }
    sort_plans(q);
    return q->plans[0].loss < INFINITY
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE, "no plan of 8 bits could be evaluated: %s",
                          q->plans[0].trial.outcome.reason);
}

// ---- The file, and what the runtime makes of it -----------------------------------------------

static enum msc_status write_model(const struct quick *q) {
    struct msc_strategy *strategy = NULL;
    MSC_TRY(msc_export_strategy(&strategy, q->p->env, q->plans[0].trial.proposal.choices));
    enum msc_status status =
        msc_export_model(q->p->model->graph, strategy, q->options->output, NULL, -1);
    msc_strategy_destroy(strategy);
    return status;
}

static struct plan *find_plain(const struct quick *q) {
    for (size_t i = 1; i < q->n; i++) {
        struct plan *plan = &q->plans[i];
        if (strcmp(plan->weights, MSC_QUICK_PLAIN) == 0 &&
            strcmp(plan->activations, MSC_QUICK_PLAIN) == 0 && plan->loss < INFINITY) {
            return plan;
        }
    }
    return NULL;
}

static enum msc_status measure_delivered(struct quick *q, cJSON *runtime,
                                         struct msc_delivery_plan plans[], size_t n) {
    struct msc_delivery_plan *order[3];
    struct msc_delivery *d = NULL;
    bool is_there = false;
    MSC_TRY(msc_processor__open_delivery(&d, q->p));
    enum msc_status status = msc_processor__start_runtime(&is_there, runtime, q->p, d);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        order[i] = &plans[i];
        status = is_there ? check_stop(q) : MSC_OK;
        status = status == MSC_OK ? msc_delivery_export(d, &plans[i]) : status;
        status = status == MSC_OK && is_there ? msc_delivery_outputs(d, &plans[i]) : status;
        msc_processor__tell_refused(q->p, &plans[i]);
    }
    if (status == MSC_OK && is_there) {
        status = msc_delivery_latency(d, order, n);
    }
    msc_delivery_close(d);
    return msc_processor__settle_measuring(q->p, status);
}

// The best plan, the plain one and the float model.
static enum msc_status deliver(struct quick *q, cJSON *report) {
    struct plan *plain = find_plain(q);
    cJSON *reference = cJSON_GetObjectItemCaseSensitive(report, "reference");
    cJSON *runtime = cJSON_CreateObject(), *of_float = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "runtime", runtime));
    MSC_TRY(msc_json_add(reference, "examined", of_float));
    struct msc_delivery_plan plans[3] = {
        {.name = "the best plan",
         .choices = q->plans[0].trial.proposal.choices,
         .found = q->plans[0].found},
        {.name = "the float model", .found = of_float},
    };
    if (plain) {
        plans[2] = plans[1];
        plans[1] = (struct msc_delivery_plan){.name = "plain 8 bits",
                                              .choices = plain->trial.proposal.choices,
                                              .found = plain->found};
    }
    return measure_delivered(q, runtime, plans, plain ? 3 : 2);
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

static enum msc_status add_reference(cJSON *report, const struct quick *q) {
    double metrics[MSC_MAX_METRICS];
    cJSON *reference = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "reference", reference));
    MSC_TRY(msc_env_reference(q->p->env, metrics));
    return add_metrics(reference, msc_env_space(q->p->env), metrics);
}

static enum msc_status report_plans(cJSON *report, struct quick *q) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(report, "plans", list));
    for (size_t i = 0; i < q->n; i++) {
        struct plan *plan = &q->plans[i];
        cJSON *row = cJSON_CreateObject();
        cJSON *found = plan->found;
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "weights", plan->weights));
        MSC_TRY(msc_json_add_text(row, "activations", plan->activations));
        MSC_TRY(add_metrics(row, msc_env_space(q->p->env), plan->trial.outcome.metrics));
        plan->found = NULL;
        MSC_TRY(found ? msc_json_add(row, "examined", found) : MSC_OK);
    }
    return MSC_OK;
}

static enum msc_status make_report(cJSON *report, struct quick *q) {
    const struct msc_model *m = q->p->model;
    MSC_TRY(msc_json_add_text(report, "target", msc_processor__entry(q->p)->target));
    MSC_TRY(msc_json_add_number(report, "samples", (double)msc_dataset_n_samples(m->dataset)));
    MSC_TRY(msc_json_add_number(report, "held_back", (double)msc_dataset_n_samples(m->validation)));
    MSC_TRY(msc_json_add_text(report, "model", q->options->output));
    MSC_TRY(add_reference(report, q));
    if (msc_processor__has_runtime(q->p)) {
        MSC_TRY(deliver(q, report));
    }
    return report_plans(report, q);
}

// ---- All of it --------------------------------------------------------------------------------

static enum msc_status run_quick(cJSON *report, struct quick *q) {
    MSC_TRY(open_processor(q));
    MSC_TRY(claim_output(q));
    MSC_TRY(msc_processor_prepare(q->p));
    MSC_TRY(check_stop(q));
    const struct msc_config *c = q->p->config;
    MSC_TRY(msc_model_check(q->p->model, &c->dataset, c->atol, c->rtol));
    MSC_TRY(make_plans(q));
    MSC_TRY(evaluate_plans(q));
    MSC_TRY(rank_plans(q));
    MSC_TRY(write_model(q));
    return make_report(report, q);
}

enum msc_status msc_quick_quantize(struct cJSON **out, const struct msc_quick_options *options) {
    struct quick q = {.options = options};
    cJSON *report = cJSON_CreateObject();
    enum msc_status status = report ? run_quick(report, &q) : no_quick_memory();
    for (size_t i = 0; i < q.n; i++) {
        cJSON_Delete(q.plans[i].found);
    }
    msc_processor_close(q.p);
    msc_arena_finish(&q.arena);
    if (status != MSC_OK) {
        cJSON_Delete(report);
        return status;
    }
    *out = report;
    return MSC_OK;
}

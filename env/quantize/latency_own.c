// Profiles plans with mscgym's cpu kernels, for targets whose runtime is not installed.
#include "env/quantize/latency_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "tools/latency.h"

#include <math.h>

// One evaluator runs all plans in turn. A kernel is identified by its step in the plan, or for a
// quantisation by its value.
struct own {
    const struct msc_plan *plan;
    struct msc_dataset *sample;
    struct msc_backend *backend;
    struct msc_evaluator *evaluator;
    size_t n_kernels;                 // steps, then values
    double *least[MSC_LATENCY_PLANS]; // [n_kernels], least time over all runs; 0: does not run
    double whole[MSC_LATENCY_PLANS];  // least time of a whole run
    double *now;                      // [n_kernels], times of the current run
};

static void own_ran(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                    uint64_t ns) {
    struct own *o = payload;
    o->now[step == MSC_NO_ID ? plan->n_steps + value : step] += (double)ns / 1000.0;
}

// ---- Opening ----------------------------------------------------------------------------------

enum msc_status msc_latency__sample(struct msc_array_list *list, const struct msc_env_host *host) {
    const struct msc_graph *g = host->graph;
    for (size_t i = 0; i < msc_dataset_n_inputs(host->dataset); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
        struct msc_array *one;
        MSC_TRY(msc_dataset_first_sample(&one, host->dataset, 0, i));
        enum msc_status status = msc_array_list_add(list, msc_tensor_label(t), one);
        msc_array_release(one);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status own_make_sample(struct own *o, const struct msc_env_host *host,
                                       struct msc_arena *arena) {
    struct msc_array_list list = {0};
    size_t n = msc_dataset_n_inputs(host->dataset);
    struct msc_input_spec *specs = msc_arena_array(arena, n + 1, sizeof(specs[0]));
    enum msc_status status = MSC_ALLOCATED(specs);
    MSC_TRY(status);
    MSC_TRY_OUT(msc_latency__sample(&list, host));
    for (size_t i = 0; i < n; i++) {
        specs[i] = (struct msc_input_spec){.name = list.names[i],
                                           .dtype = msc_array_dtype(list.arrays[i]),
                                           .n_dims = msc_array_n_dims(list.arrays[i])};
        for (int k = 0; k < specs[i].n_dims; k++) {
            specs[i].dims[k] = msc_array_dim(list.arrays[i], k);
        }
    }
    status = msc_dataset_create_whole(&o->sample, specs,
                                      (const struct msc_array *const *)list.arrays, n);
out:
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status own_open(struct own *o, int n_plans, const struct msc_latency_job *job,
                                const struct msc_target *target, const struct msc_step_timer *timer,
                                struct msc_arena *arena) {
    const struct msc_graph *g = job->host->graph;
    struct msc_backend_options backend_options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    size_t n_outputs = (size_t)msc_graph_n_outputs(g);
    int32_t *wanted = msc_arena_array(arena, n_outputs + 1, sizeof(wanted[0]));
    MSC_TRY(MSC_ALLOCATED(wanted));
    for (size_t i = 0; i < n_outputs; i++) {
        wanted[i] = msc_graph_output(g, (int32_t)i);
    }
    backend_options.kernel_threads = MSC_LATENCY_THREADS;
    MSC_TRY(own_make_sample(o, job->host, arena));
    MSC_TRY(msc_backend_open(&o->backend, "cpu", &backend_options));
    options.backend = o->backend;
    options.memory_bytes = job->host->memory_bytes;
    options.cancel = job->host->cancel;
    options.target = target;
    options.timer = timer;
    MSC_TRY(msc_evaluator_create(&o->evaluator, g, o->sample, wanted, n_outputs, &options));
    o->plan = msc_evaluator_plan(o->evaluator, 0);
    o->n_kernels = (size_t)o->plan->n_steps + (size_t)o->plan->n_values;
    o->now = msc_arena_array(arena, o->n_kernels + 1, sizeof(double));
    for (int p = 0; p < n_plans; p++) {
        o->least[p] = msc_arena_array(arena, o->n_kernels + 1, sizeof(double));
        MSC_TRY(MSC_ALLOCATED(o->least[p] && o->now));
    }
    return MSC_OK;
}

// ---- Measuring --------------------------------------------------------------------------------

static enum msc_status own_take_batch(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    (void)payload, (void)trial, (void)batch, (void)values;
    return MSC_OK;
}

// Runs a plan once. *us is the time of the run; `now` is filled.
static enum msc_status own_run(struct own *o, const struct msc_edit *const edits[], double *us) {
    const struct msc_sink sink = {.batch = own_take_batch};
    struct msc_eval_trial trial = {.edits = edits};
    for (size_t k = 0; k < o->n_kernels; k++) {
        o->now[k] = 0;
    }
    uint64_t begin_ns = msc_clock_ns();
    MSC_TRY(msc_evaluator_run(o->evaluator, &trial, 1, &sink, MSC_EVAL_FRESH));
    *us = (double)(msc_clock_ns() - begin_ns) / 1000.0;
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

static void keep_least(double *least, double us) {
    *least = *least == 0 || us < *least ? us : *least;
}

static enum msc_status own_round(struct own *o, const struct msc_latency_plans *p, int plan,
                                 int64_t n_runs) {
    for (int64_t i = 0; i < n_runs; i++) {
        double us = 0;
        MSC_TRY(own_run(o, p->edits[plan], &us));
        keep_least(&o->whole[plan], us);
        for (size_t k = 0; k < o->n_kernels; k++) {
            keep_least(&o->least[plan][k], o->now[k]);
        }
    }
    return MSC_OK;
}

static enum msc_status own_measure(struct own *o, const struct msc_latency_plans *p,
                                   const struct msc_cancel *cancel) {
    int64_t n_runs[MSC_LATENCY_PLANS];
    for (int plan = 0; plan < p->n; plan++) {
        double us = 0;
        MSC_TRY(own_run(o, p->edits[plan], &us)); // warm-up, in which weights are packed
        MSC_TRY(own_run(o, p->edits[plan], &us));
        double n = MSC_LATENCY_TURN_US / us;
        n_runs[plan] = n < 1 ? 1 : n > MSC_LATENCY_MAX_RUNS ? MSC_LATENCY_MAX_RUNS : (int64_t)n;
    }
    for (int round = 0; round < MSC_LATENCY_ROUNDS; round++) {
        for (int plan = 0; plan < p->n; plan++) {
            MSC_TRY(own_round(o, p, plan, n_runs[plan]));
            msc_cancel_beat(cancel);
        }
    }
    return MSC_OK;
}

// ---- Profiles ---------------------------------------------------------------------------------

// Names a kernel: by the joints of its step or, for a change of layout or a quantised value, by its
// tensor. Names are copied, because they are used after the plan is destroyed.
static enum msc_status name_kernel(struct msc_profile_kernel *out, const struct msc_plan *plan,
                                   size_t kernel, struct msc_arena *arena) {
    bool is_step = kernel < (size_t)plan->n_steps;
    const struct msc_step *step = is_step ? &plan->steps[kernel] : NULL;
    int32_t n_joints = is_step ? step->n_joints : 0;
    const char **names = msc_arena_array(arena, (size_t)n_joints + 1, sizeof(names[0]));
    bool has_room = true;
    MSC_TRY(MSC_ALLOCATED(names));
    for (int32_t i = 0; i < n_joints; i++) {
        names[i] = msc_arena_strdup(arena, step->joints[i].joint->name);
        has_room = has_room && names[i];
    }
    if (n_joints == 0) {
        int32_t value = is_step ? step->outputs[0] : (int32_t)kernel - plan->n_steps;
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->values[value].tensor);
        names[0] = msc_arena_strdup(arena, t->name);
        has_room = names[0] != NULL;
        n_joints = 1;
    }
    out->names = names;
    out->n_names = (size_t)n_joints;
    out->kind = is_step ? MSC_PROFILE_COMPUTE : MSC_PROFILE_QUANTIZE;
    return MSC_ALLOCATED(has_room);
}

static enum msc_status own_list(struct msc_profile *out, struct own *o, int plan,
                                struct msc_arena *arena) {
    out->us = o->whole[plan];
    out->n_kernels = 0;
    out->kernels = msc_arena_array(arena, o->n_kernels + 1, sizeof(out->kernels[0]));
    MSC_TRY(MSC_ALLOCATED(out->kernels));
    for (size_t k = 0; k < o->n_kernels; k++) {
        if (o->least[plan][k] > 0) {
            struct msc_profile_kernel *kernel = &out->kernels[out->n_kernels++];
            kernel->us = o->least[plan][k];
            MSC_TRY(name_kernel(kernel, o->plan, k, arena));
        }
    }
    return MSC_OK;
}

enum msc_status msc_latency__profile_own(struct msc_profile profiles[],
                                         struct msc_latency_source *source,
                                         const struct msc_latency_plans *p,
                                         const struct msc_latency_job *job,
                                         struct msc_arena *arena) {
    struct own o = {.plan = NULL};
    const struct msc_step_timer timer = {.ran = own_ran, .payload = &o};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(own_open(&o, p->n, job, p->net->sites->scheme.target, &timer, arena));
    MSC_TRY_OUT(own_measure(&o, p, job->host->cancel));
    for (int plan = 0; plan < p->n; plan++) {
        MSC_TRY_OUT(own_list(&profiles[plan], &o, plan, arena));
    }
    source->runtime = "mscgym's cpu kernels";
    source->version = msc_arena_strdup(arena, o.backend->def->numerics(o.backend));
    source->processor = ""; // the version names the instruction set
    status = MSC_ALLOCATED(source->version);
out:
    msc_evaluator_destroy(o.evaluator);
    msc_backend_close(o.backend);
    msc_dataset_destroy(o.sample);
    return status;
}

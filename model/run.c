// Runs a network once, or many times to measure its latency. Networks run in the evaluator of a
// search, so that the results have the same bits as in a search.
#include "model/model_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "graph/passes/bind.h"
#include "graph/wide.h"
#include "kernels/engine/evaluator.h"
#include "tools/bias_edits.h"
#include "tools/strategy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MAX_INPUTS 64
#define RUN_MEMORY_BYTES ((uint64_t)1 << 40) // no limit: tensors are freed once they are not needed

// Keeps the outputs of the first run for the caller; later runs are only measured.
static void model_begin_run(void *payload, size_t trial) {
    struct msc_model_runner *r = payload;
    (void)trial;
    for (size_t i = 0; !r->is_done && i < r->n_outputs; i++) {
        msc_array_release(r->outputs[i]);
        r->outputs[i] = NULL;
    }
}

static enum msc_status model_take_batch(void *payload, size_t trial, size_t batch,
                                        const struct msc_view values[]) {
    struct msc_model_runner *r = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; !r->is_done && i < r->n_outputs; i++) {
        MSC_TRY(msc_array_create_from(&r->outputs[i], values[i].dtype, values[i].n_dims,
                                      values[i].dims, values[i].data));
    }
    r->is_done = true;
    return MSC_OK;
}

// True for inputs that a dataset of samples refuses: with NaN, or without elements.
static bool is_unusual(const struct msc_array *a) {
    bool is_float = msc_dtype_is_float(msc_array_dtype(a));
    for (int64_t i = 0; is_float && i < msc_array_n_elements(a); i++) {
        if (isnan(msc_array_get_double(a, i))) {
            return true;
        }
    }
    return msc_array_n_elements(a) == 0;
}

static bool is_run_whole(const struct msc_model *m, const struct msc_model_run *run) {
    bool is_found = m->n_inputs == 0;
    for (size_t i = 0; i < m->n_inputs; i++) {
        is_found = is_found || is_unusual(run->inputs[i]);
    }
    return is_found;
}

// Checks the inputs against the model and converts them to its types. *out, one batch, is owned by
// the caller.
static enum msc_status model_check_inputs(struct msc_dataset **out, const struct msc_model *m,
                                          const struct msc_model_run *run) {
    struct msc_array *arrays[MAX_INPUTS] = {NULL};
    struct msc_input_spec specs[MAX_INPUTS];
    enum msc_status status = MSC_OK;
    int64_t batch = 1;
    if (m->n_inputs > MAX_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: the model has %zu inputs, more than %d", m->path,
                        m->n_inputs, MAX_INPUTS);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        specs[i] = m->specs[i];
        specs[i].state = run->is_sequence ? m->specs[i].state : NULL;
        specs[i].place = run->places ? run->places[i] : NULL;
    }
    if (!run->is_sequence && is_run_whole(m, run)) {
        return msc_dataset_create_whole(out, specs, run->inputs, m->n_inputs);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_array *in = run->inputs[i];
        if (!in) {
            continue; // a state that starts with zeros
        }
        if (msc_array_n_dims(in) == 0 &&
            !run->is_sequence) { // a dataset stores a scalar as a list of length 1
            MSC_TRY_OUT(msc_array_create_from(&arrays[i], msc_array_dtype(in), 1,
                                              (const int64_t[]){1}, msc_array_data(in)));
        } else {
            arrays[i] = msc_array_retain(in);
            const struct msc_input_spec *spec = &m->specs[i];
            int64_t n = spec->is_batched && msc_array_n_dims(in) == spec->n_dims
                            ? msc_array_dim(in, spec->axis)
                            : 1;
            batch = n > batch ? n : batch;
        }
    }
    batch = run->is_sequence ? 0 : batch;
    MSC_TRY_OUT(msc_dataset_create(out, specs, arrays, m->n_inputs, NULL, batch));
    if (msc_dataset_n_batches(*out) != 1) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "%s: the inputs hold %" PRId64 " samples, but this model runs one at a "
                          "time",
                          m->path, msc_dataset_n_samples(*out));
        msc_dataset_destroy(*out);
        *out = NULL;
    }
out:
    for (size_t i = 0; i < m->n_inputs; i++) {
        msc_array_release(arrays[i]);
    }
    return status;
}

enum msc_status msc_model__find_wanted(const struct msc_model *m, struct msc_model_run *run) {
    bool is_named = run->n_tensors > 0;
    run->n_outputs = is_named ? run->n_tensors : (size_t)msc_graph_n_outputs(m->graph);
    run->outputs = msc_alloc_zero(run->n_outputs + 1, sizeof run->outputs[0]);
    run->wanted = msc_alloc_zero(run->n_outputs + 1, sizeof run->wanted[0]);
    MSC_TRY(MSC_ALLOCATED(run->outputs && run->wanted));
    for (size_t i = 0; i < run->n_outputs; i++) {
        run->wanted[i] = is_named ? msc_graph_find_tensor(m->graph, run->tensors[i])
                                  : msc_graph_output(m->graph, (int32_t)i);
        if (run->wanted[i] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_NOT_FOUND,
                            "%s: there is no tensor \"%s\"; `mscgym graph` lists them", m->path,
                            run->tensors[i]);
        }
    }
    return MSC_OK;
}

static int compare_times(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

// The model without the channels that the strategy removes, and the wanted tensors in it.
static enum msc_status runner_prune(struct msc_model_runner *r, const struct msc_model *m,
                                    const struct msc_model_run *run) {
    MSC_TRY(msc_strategy_prune(&r->pruned, run->strategy, m->graph));
    r->wanted = msc_alloc_zero(run->n_outputs + 1, sizeof r->wanted[0]);
    MSC_TRY(MSC_ALLOCATED(r->wanted));
    for (size_t i = 0; i < run->n_outputs; i++) {
        const char *name = msc_graph_tensor(m->graph, run->wanted[i])->name;
        r->wanted[i] = msc_graph_find_tensor(r->pruned, name);
        if (r->wanted[i] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_NOT_FOUND, "%s: the strategy removes tensor %s with its channels",
                            m->path, name);
        }
    }
    return MSC_OK;
}

static enum msc_status runner_apply(struct msc_model_runner *r, const struct msc_graph *graph,
                                    const struct msc_strategy *strategy) {
    const struct msc_sites *sites = msc_evaluator_sites(r->ev);
    MSC_TRY(r->pruned ? msc_strategy_apply_to_any(strategy, graph, sites, r->edits)
                      : msc_strategy_apply(strategy, graph, sites, r->edits));
    MSC_TRY(msc_bias_edits_create(&r->bias_edits, graph, sites));
    return msc_bias_edits_fill(r->bias_edits, r->edits);
}

static enum msc_status runner_open_within(struct msc_model_runner *r, const struct msc_model *m,
                                          const struct msc_dataset *data,
                                          const struct msc_model_run *run, uint64_t memory_bytes) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    *r = (struct msc_model_runner){.outputs = run->outputs, .n_outputs = run->n_outputs};
    enum msc_status status = MSC_OK;
    o.target = run->strategy ? msc_strategy_scheme(run->strategy).target : NULL;
    o.backend = m->backend;
    o.memory_bytes = memory_bytes;
    o.host_bytes = m->memory_bytes;
    o.cancel = m->cancel;
    o.log = m->log;
    o.timer = run->timer;
    if (run->strategy && msc_strategy_prunes(run->strategy)) {
        MSC_TRY_OUT(runner_prune(r, m, run));
    }
    const struct msc_graph *graph = r->pruned ? r->pruned : m->graph;
    const int32_t *wanted = r->pruned ? r->wanted : run->wanted;
    MSC_TRY_OUT(msc_evaluator_create(&r->ev, graph, data, wanted, run->n_outputs, &o));
    const struct msc_sites *sites = msc_evaluator_sites(r->ev);
    r->edits = msc_alloc_zero((size_t)sites->n_slots + 1, sizeof *r->edits);
    MSC_TRY_OUT(MSC_ALLOCATED(r->edits));
    if (run->strategy) {
        MSC_TRY_OUT(runner_apply(r, graph, run->strategy));
    }
    return MSC_OK;
out:
    msc_model__runner_close(r);
    return status;
}

enum msc_status msc_model__runner_open(struct msc_model_runner *r, const struct msc_model *m,
                                       const struct msc_dataset *data,
                                       const struct msc_model_run *run) {
    bool is_less = m->memory_bytes > 0 && m->memory_bytes < RUN_MEMORY_BYTES;
    return runner_open_within(r, m, data, run, is_less ? m->memory_bytes : RUN_MEMORY_BYTES);
}

enum msc_status msc_model__feed(const struct msc_model *m, const struct msc_strategy *strategy,
                                const struct msc_dataset *data, const int32_t wanted[], size_t n,
                                const struct msc_sink *sink) {
    // The runner does not write to `wanted`.
    const struct msc_model_run run = {
        .strategy = strategy, .wanted = (int32_t *)wanted, .n_outputs = n};
    struct msc_model_runner r = {0};
    MSC_TRY(runner_open_within(&r, m, data, &run, m->memory_bytes));
    struct msc_eval_trial trial = {.edits = r.edits};
    enum msc_status status = msc_evaluator_run(r.ev, &trial, 1, sink, MSC_EVAL_FRESH);
    if (status == MSC_OK && trial.status != MSC_OK) {
        status = msc_status_restore(trial.status, trial.message);
    }
    msc_model__runner_close(&r);
    return status;
}

enum msc_status msc_model__bind_first(struct msc_graph **out, const struct msc_model *m,
                                      const struct msc_dataset *data) {
    size_t n = msc_dataset_n_inputs(data);
    struct msc_array **arrays = msc_alloc_zero(n + 1, sizeof *arrays);
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(arrays));
    for (size_t i = 0; i < n; i++) {
        if (msc_dataset_is_sequence(data)) {
            MSC_TRY_OUT(msc_dataset_chunk(&arrays[i], data, 0, i, 0));
        } else {
            arrays[i] = msc_array_retain(msc_dataset_batch(data, 0, i));
        }
    }
    status = msc_graph_bind_known(out, NULL, m->graph, (const struct msc_array *const *)arrays, n);
out:
    for (size_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
    return status;
}

enum msc_status msc_model__runner_run(struct msc_model_runner *r, double *microseconds) {
    const struct msc_sink sink = {
        .begin = model_begin_run, .batch = model_take_batch, .payload = r};
    struct msc_eval_trial trial = {.edits = r->edits};
    double begin_s = msc_clock_seconds();
    MSC_TRY(msc_evaluator_run(r->ev, &trial, 1, &sink, MSC_EVAL_FRESH));
    *microseconds = (msc_clock_seconds() - begin_s) * 1e6;
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

void msc_model__runner_close(struct msc_model_runner *r) {
    msc_bias_edits_destroy(r->bias_edits);
    msc_evaluator_destroy(r->ev);
    msc_graph_destroy(r->pruned);
    msc_free(r->wanted);
    msc_free(r->edits);
    *r = (struct msc_model_runner){0};
}

// Runs once for the outputs, and then `repeat` times to measure. The first run also packs the
// weights.
static enum msc_status model_evaluate(struct msc_model_runner *r, struct msc_model_run *run) {
    double unmeasured;
    MSC_TRY(msc_model__runner_run(r, &unmeasured));
    for (int64_t i = 0; i < run->repeat; i++) {
        MSC_TRY(msc_model__runner_run(r, &run->microseconds[i]));
    }
    if (run->repeat > 0) {
        qsort(run->microseconds, (size_t)run->repeat, sizeof run->microseconds[0], compare_times);
    }
    return MSC_OK;
}

// Converts outputs to the model's own types.
static enum msc_status narrow_outputs(const struct msc_model *m, struct msc_model_run *run) {
    for (size_t i = 0; i < run->n_outputs; i++) {
        MSC_TRY(msc_model__narrow(&run->outputs[i], m->graph, run->wanted[i]));
    }
    return MSC_OK;
}

enum msc_status msc_model__narrow(struct msc_array **array, const struct msc_graph *g,
                                  int32_t tensor) {
    enum msc_dtype own = msc_graph_tensor(msc_graph_own(g), tensor)->dtype;
    struct msc_array *narrow;
    if (!msc_graph_is_widened(g, tensor)) {
        return MSC_OK;
    }
    MSC_TRY(msc_array_convert(&narrow, *array, own));
    msc_array_release(*array);
    *array = narrow;
    return MSC_OK;
}

enum msc_status msc_model_run(struct msc_model *m, struct msc_model_run *run) {
    struct msc_dataset *data = NULL;
    struct msc_model_runner runner = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(model_check_inputs(&data, m, run));
    if (!m->dataset) { // otherwise the dataset's samples have decided the branches
        MSC_TRY_OUT(msc_model__take_branches(m, data, NULL));
    }
    MSC_TRY_OUT(msc_model__find_wanted(m, run));
    msc_model__settle_memory(m);
    run->microseconds = msc_alloc_zero((size_t)run->repeat + 1, sizeof run->microseconds[0]);
    if (!run->microseconds) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        goto out;
    }
    MSC_TRY_OUT(msc_model__runner_open(&runner, m, data, run));
    MSC_TRY_OUT(model_evaluate(&runner, run));
    status = run->keeps_types ? narrow_outputs(m, run) : MSC_OK;
out:
    msc_model__runner_close(&runner);
    msc_dataset_destroy(data);
    if (status != MSC_OK) {
        msc_model_run_finish(run);
    }
    return status;
}

void msc_model_run_finish(struct msc_model_run *run) {
    for (size_t i = 0; run->outputs && i < run->n_outputs; i++) {
        msc_array_release(run->outputs[i]);
    }
    msc_free(run->outputs);
    msc_free(run->wanted);
    msc_free(run->microseconds);
    run->outputs = NULL;
    run->wanted = NULL;
    run->microseconds = NULL;
}

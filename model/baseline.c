// The `baseline` stage: compares the backend's outputs with those of the reference kernels.
#include "model/allclose.h"
#include "model/grids.h"
#include "model/model.h"

#include "graph/discontinuity.h"
#include "graph/graph.h"
#include "graph/passes/bind.h"
#include "graph/reference/reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_INPUTS 64

// Takes the inputs of the first batch.
static enum msc_status take_inputs(struct msc_array *inputs[], const struct msc_dataset *first,
                                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_dataset_chunk(&inputs[i], first, 0, i, 0));
    }
    return MSC_OK;
}

struct check {
    struct msc_model *m;
    const struct msc_array *const *inputs; // inputs of the first batch
    struct msc_closeness limits;
    double worst;            // greatest difference found
    struct msc_graph *bound; // the network with the shapes of these inputs
    struct msc_discontinuity *discontinuity;
    struct msc_grids *grids;
    struct msc_grids_run from_grids; // counts of the comparison from grid to grid
    double by_steps;                 // greatest change of floats computed from codes that differ
};

static enum msc_status check_init(struct check *c) {
    MSC_TRY(msc_graph_bind_known(&c->bound, NULL, c->m->graph, c->inputs, c->m->n_inputs));
    MSC_TRY(msc_discontinuity_create(&c->discontinuity, c->m->graph, c->bound));
    return msc_grids_create(&c->grids, c->discontinuity);
}

static void check_finish(struct check *c) {
    msc_grids_destroy(c->grids);
    msc_discontinuity_destroy(c->discontinuity);
    msc_graph_destroy(c->bound);
}

// Compares one tensor as the backend (`found`) and the reference kernels (`truth`) compute it.
static enum msc_status baseline_compare(struct check *c, const char *name,
                                        const struct msc_array *found,
                                        const struct msc_array *truth, double moved) {
    int64_t place;
    struct msc_closeness limits = c->limits;
    limits.moved = moved;
    if (msc_array_n_elements(found) != msc_array_n_elements(truth)) {
        return MSC_FAIL(MSC_E_STATE,
                        "baseline: output %s has %" PRId64 " elements on the backend but %" PRId64
                        " with the reference kernels",
                        name, msc_array_n_elements(found), msc_array_n_elements(truth));
    }
    if (msc_outputs_allclose(&place, &c->worst, found, truth, &limits)) {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_STATE,
                    "baseline: output %s[%" PRId64 "] is %.9g on %s but %.9g with the reference "
                    "kernels, further apart than atol %g and rtol %g allow; set larger ones in "
                    "baseline.check_config if the network needs them, else report it, and try "
                    "another --device",
                    name, place, msc_array_get_double(found, place), msc_model_numerics(c->m),
                    msc_array_get_double(truth, place), limits.atol, limits.rtol);
}

// True if another order of summation may change which elements the tensor has, or how many.
static bool has_discontinuity(const struct msc_discontinuity *discontinuity, int32_t tensor) {
    return msc_discontinuity_above(discontinuity, tensor) != MSC_NO_ID ||
           msc_tensor_n_elements(msc_graph_tensor(discontinuity->g, tensor)) < 0;
}

// Runs the reference kernels. `from_grids`, if not NULL, supplies the integers of tensors on grids.
static enum msc_status run_reference(struct msc_array *out[], const struct check *c,
                                     const int32_t tensors[], size_t n,
                                     struct msc_grids_run *from_grids) {
    const struct msc_reference_limits limits = {.cancel = c->m->cancel,
                                                .memory_bytes = c->m->memory_bytes};
    struct msc_array_meter meter = {.limit_bytes = limits.memory_bytes};
    struct msc_array_meter *before = msc_array_measure(&meter);
    enum msc_status status;
    if (from_grids) {
        from_grids->reference = &limits;
        status = msc_grids_run(out, c->grids, from_grids);
    } else {
        status = msc_reference_run_graph(out, c->bound, c->inputs, tensors, n, &limits);
    }
    msc_array_measure(before);
    return status;
}

// A pseudo-random direction that depends only on the element's index (Fibonacci hashing).
static bool moves_up(int64_t i) {
    return ((uint64_t)i * 0x9e3779b97f4a7c15u) >> 63 != 0;
}

// Copies the inputs, with floats moved up or down by a unit in the last place. Inputs of other
// types are shared.
static enum msc_status move_inputs(struct msc_array *moved[], const struct check *c) {
    for (size_t i = 0; i < c->m->n_inputs; i++) {
        const struct msc_array *x = c->inputs[i];
        if (msc_array_dtype(x) != MSC_DTYPE_F32) {
            moved[i] = msc_array_retain(x);
            continue;
        }
        MSC_TRY(msc_array_create_from(&moved[i], MSC_DTYPE_F32, msc_array_n_dims(x),
                                      msc_array_dims(x), msc_array_data(x)));
        float *values = msc_array_data(moved[i]);
        for (int64_t k = 0; k < msc_array_n_elements(x); k++) {
            float to = moves_up(k) ? INFINITY : -INFINITY;
            values[k] = isfinite(values[k]) ? nextafterf(values[k], to) : values[k];
        }
    }
    return MSC_OK;
}

// How much rounding of the inputs moves the outputs of a run: moved [n_outputs].
static enum msc_status measure_moved(double moved[], const struct check *c,
                                     const struct msc_model_run *run) {
    struct msc_array *inputs[MAX_INPUTS] = {NULL};
    struct msc_model_run again = {.tensors = run->tensors, .n_tensors = run->n_tensors};
    enum msc_status status = MSC_OK;
    again.inputs = (const struct msc_array *const *)inputs;
    MSC_TRY_OUT(move_inputs(inputs, c));
    MSC_TRY_OUT(msc_model_run(c->m, &again));
    for (size_t i = 0; i < run->n_outputs; i++) {
        bool is_alike =
            msc_array_n_elements(run->outputs[i]) == msc_array_n_elements(again.outputs[i]);
        moved[i] = is_alike ? msc_outputs_distance(run->outputs[i], again.outputs[i]) : 0;
    }
out:
    msc_model_run_finish(&again);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        msc_array_release(inputs[i]);
    }
    return status;
}

static bool is_same_array(const struct msc_array *a, const struct msc_array *b) {
    size_t n = msc_array_n_bytes(a);
    return n == msc_array_n_bytes(b) && memcmp(msc_array_data(a), msc_array_data(b), n) == 0;
}

// True if the outputs are integers and any of them differs. Outputs of a network that quantises are
// then compared by steps of their grids.
static bool is_other_integers(const struct msc_array *found, const struct msc_array *truth) {
    return !msc_dtype_is_float(msc_array_dtype(truth)) && !is_same_array(found, truth);
}

// Compares output i of a run with the truth. If it is not close, compares it again with the
// tolerance that rounding of the inputs allows. *moved [n_outputs], which gives this tolerance, is
// NULL until it is first needed.
static enum msc_status compare_output(struct check *c, double **moved,
                                      const struct msc_model_run *run, size_t i, int32_t tensor,
                                      const struct msc_array *truth) {
    const char *name = msc_tensor_label(msc_graph_tensor(c->bound, tensor));
    double worst = c->worst;
    enum msc_status status = baseline_compare(c, name, run->outputs[i], truth, 0);
    bool is_compared_before = run->n_tensors == 0 && has_discontinuity(c->discontinuity, tensor);
    c->worst = status == MSC_OK ? c->worst : worst;
    if (status != MSC_E_STATE || is_compared_before || msc_grids_above(c->grids, tensor)) {
        return status;
    }
    if (!*moved) {
        *moved = msc_alloc_zero(run->n_outputs + 1, sizeof **moved);
        MSC_TRY(MSC_ALLOCATED(*moved));
        MSC_TRY(measure_moved(*moved, c, run));
    }
    return baseline_compare(c, name, run->outputs[i], truth, (*moved)[i]);
}

// Tensors of `bound` that come after a grid and differ, with the values found.
struct differing {
    size_t n;
    int32_t *tensors;               // [n]
    const struct msc_array **found; // [n], borrowed
};

// Checks that computing more outputs does not change the value of an output.
static enum msc_status check_same(const struct check *c, const char *name,
                                  const struct msc_array *before, const struct msc_array *found) {
    return is_same_array(before, found)
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "baseline: output %s on %s changes if the tensors before it are also "
                          "computed; please report it, and try another --device",
                          name, msc_model_numerics(c->m));
}

// Compares the differing tensors again, from grid to grid (model/grids.h).
static enum msc_status compare_from_grids(struct check *c, const struct differing *d) {
    size_t n = d->n;
    struct msc_model_run run = {.inputs = c->inputs, .n_tensors = n + c->grids->n};
    const char **names = msc_alloc_zero(run.n_tensors + 1, sizeof *names);
    struct msc_array **truth = msc_alloc_zero(n + 1, sizeof *truth);
    enum msc_status status = MSC_OK;
    run.tensors = names;
    MSC_TRY_OUT(MSC_ALLOCATED(names && truth));
    for (size_t i = 0; i < run.n_tensors; i++) {
        int32_t tensor = i < n ? d->tensors[i] : c->grids->tensors[i - n];
        names[i] = msc_tensor_label(msc_graph_tensor(c->bound, tensor));
    }
    MSC_TRY_OUT(msc_model_run(c->m, &run));
    c->from_grids = (struct msc_grids_run){
        .inputs = c->inputs,
        .found = (const struct msc_array *const *)run.outputs + n,
        .numerics = msc_model_numerics(c->m),
        .limits = c->limits,
        .wanted = d->tensors,
        .n_wanted = n,
    };
    MSC_TRY_OUT(run_reference(truth, c, d->tensors, n, &c->from_grids));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY_OUT(check_same(c, names[i], d->found[i], run.outputs[i]));
        if (c->grids->places[d->tensors[i]] == MSC_NO_ID) {
            MSC_TRY_OUT(baseline_compare(c, names[i], run.outputs[i], truth[i], 0));
        }
    }
out:
    msc_model_run_finish(&run);
    for (size_t i = 0; truth && i < n; i++) {
        msc_array_release(truth[i]);
    }
    msc_free(truth);
    msc_free(names);
    return status;
}

// Compares tensors of `bound`, which the backend calls `names`. If `names` is NULL, the tensors are
// the outputs. If an output after a discontinuity differs, collects the tensors before the
// discontinuity, which are compared instead.
static enum msc_status baseline_compare_all(struct check *c, const int32_t tensors[],
                                            const char *const names[], size_t n) {
    struct msc_model_run run = {.inputs = c->inputs, .tensors = names, .n_tensors = names ? n : 0};
    struct msc_array **truth = msc_alloc_zero(n + 1, sizeof *truth);
    struct differing differing = {
        .tensors = msc_alloc_zero(n + 1, sizeof differing.tensors[0]),
        .found = msc_alloc_zero(n + 1, sizeof differing.found[0]),
    };
    double *moved = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(truth && differing.tensors && differing.found));
    MSC_TRY_OUT(run_reference(truth, c, tensors, n, NULL));
    MSC_TRY_OUT(msc_model_run(c->m, &run));
    for (size_t i = 0; i < n; i++) {
        status = compare_output(c, &moved, &run, i, tensors[i], truth[i]);
        if (status == MSC_E_STATE && !names && has_discontinuity(c->discontinuity, tensors[i])) {
            msc_discontinuity_collect(c->discontinuity, tensors[i]);
            status = c->discontinuity->n_found > 0 ? MSC_OK : status;
        }
        if (msc_grids_above(c->grids, tensors[i]) &&
            (status == MSC_E_STATE || is_other_integers(run.outputs[i], truth[i]))) {
            differing.tensors[differing.n] = tensors[i];
            differing.found[differing.n++] = run.outputs[i];
            c->by_steps = fmax(c->by_steps, msc_outputs_distance(run.outputs[i], truth[i]));
            status = MSC_OK;
        }
        MSC_TRY_OUT(status);
    }
    if (differing.n > 0) {
        status = compare_from_grids(c, &differing);
    }
out:
    msc_model_run_finish(&run);
    for (size_t i = 0; truth && i < n; i++) {
        msc_array_release(truth[i]);
    }
    msc_free(truth);
    msc_free(differing.tensors);
    msc_free(differing.found);
    msc_free(moved);
    return status;
}

static enum msc_status baseline_compare_outputs(struct check *c) {
    size_t n = (size_t)msc_graph_n_outputs(c->bound);
    int32_t *outputs = msc_alloc_zero(n + 1, sizeof *outputs);
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (size_t i = 0; i < n; i++) {
        outputs[i] = msc_graph_output(c->bound, (int32_t)i);
    }
    enum msc_status status = baseline_compare_all(c, outputs, NULL, n);
    msc_free(outputs);
    return status;
}

static enum msc_status compare_before(struct check *c) {
    size_t n = c->discontinuity->n_found;
    const char **names = msc_alloc_zero(n + 1, sizeof *names);
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < n; i++) {
        names[i] = msc_discontinuity_name(c->discontinuity, c->discontinuity->found[i]);
    }
    c->worst = 0;
    enum msc_status status = baseline_compare_all(c, c->discontinuity->found, names, n);
    msc_free(names);
    return status;
}

// Loads the samples of the first batch.
static enum msc_status load_first(struct msc_dataset **out, const struct msc_model *m,
                                  const struct msc_config_dataset *from) {
    struct msc_dataset_options o = from->options;
    o.batch = m->has_state ? 1 : o.batch; // only the first chunk of a sequence
    o.samples = o.samples > 0 && o.samples < o.batch ? o.samples : o.batch;
    o.labels = NULL;
    return msc_dataset_load(out, &o, m->specs, m->n_inputs);
}

static void say_agreement(const struct check *c, const char *what) {
    const struct msc_grids_run *grids = &c->from_grids;
    char ranges[80] = "";
    if (grids->n_elements == 0) {
        msc_log(c->m->log, MSC_LOG_INFO,
                "baseline: %s agree with the reference kernels within %.2g", what, c->worst);
        return;
    }
    if (grids->n_ranges > 0) {
        snprintf(ranges, sizeof ranges, ", and %" PRId64 " dynamic scales differ by a rounding",
                 grids->n_ranges);
    }
    msc_log(c->m->log, MSC_LOG_INFO,
            "baseline: %s agree with the reference kernels within %.2g between quantised tensors: "
            "%" PRId64 " of %" PRId64
            " elements that the network quantises differ by a step%s, which moves "
            "%s by up to %.2g",
            what, c->worst, grids->n_steps, grids->n_elements, ranges, what, c->by_steps);
}

enum msc_status msc_model_check(struct msc_model *m, const struct msc_config_dataset *from,
                                double atol, double rtol) {
    struct msc_dataset *first = NULL;
    struct msc_array *inputs[MAX_INPUTS] = {NULL};
    struct check c = {
        .m = m, .inputs = (const struct msc_array *const *)inputs, .limits = {atol, rtol, 0}};
    enum msc_status status = MSC_OK;
    if (m->n_inputs > MAX_INPUTS) {
        return MSC_OK;
    }
    MSC_TRY_OUT(load_first(&first, m, from));
    MSC_TRY_OUT(take_inputs(inputs, first, m->n_inputs));
    MSC_TRY_OUT(check_init(&c));
    MSC_TRY_OUT(baseline_compare_outputs(&c));
    bool is_discontinuous = c.discontinuity->n_found > 0;
    if (is_discontinuous) {
        MSC_TRY_OUT(compare_before(&c));
    }
    say_agreement(&c, is_discontinuous ? "the tensors before discontinuous outputs" : "outputs");
out:
    check_finish(&c);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        msc_array_release(inputs[i]);
    }
    msc_dataset_destroy(first);
    return status;
}

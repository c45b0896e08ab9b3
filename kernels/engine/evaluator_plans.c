// The plans of an evaluator: one per signature of its batches.
#include "kernels/engine/evaluator_internal.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/str.h"
#include "graph/passes/bind.h"
#include "kernels/engine/planner.h"
#include "kernels/engine/sequence.h"

#include <string.h>

// Finds the wanted tensors in the bound graph. Binding keeps the names of joints and tensors but
// not their ids, so tensors are found by name. An output of the graph may have become a constant,
// so it is found by its index among the outputs.
static enum msc_status find_wanted(const struct msc_graph *g, const struct msc_graph *bound,
                                   int32_t wanted, int32_t *out) {
    const char *name = msc_graph_tensor(g, wanted)->name;
    *out = msc_graph_find_tensor(bound, name);
    for (int32_t i = 0; *out == MSC_NO_ID && i < msc_graph_n_outputs(g); i++) {
        *out = msc_graph_output(g, i) == wanted ? msc_graph_output(bound, i) : MSC_NO_ID;
    }
    return *out != MSC_NO_ID
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_UNSUPPORTED,
                     "tensor %s is constant for these inputs: choose a tensor that depends on them",
                     name);
}

static enum msc_status take_sample(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch) {
    for (size_t i = 0; i < msc_dataset_n_inputs(dataset); i++) {
        MSC_TRY(msc_dataset_first_sample(&arrays[i], dataset, batch, i));
    }
    return MSC_OK;
}

typedef enum msc_status (*take_fn)(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch);

static enum msc_status bind_arrays(struct msc_evaluator *ev, size_t batch, take_fn take,
                                   bool is_parameter[], struct msc_graph **out) {
    size_t n = msc_dataset_n_inputs(ev->dataset);
    struct msc_array **arrays = msc_alloc_zero(n + 1, sizeof(arrays[0]));
    MSC_TRY(MSC_ALLOCATED(arrays));
    enum msc_status status = take(arrays, ev->dataset, batch);
    if (status == MSC_OK) {
        status = msc_graph_bind_known(out, is_parameter, ev->graph,
                                      (const struct msc_array *const *)arrays, n);
    }
    for (size_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
    return status;
}

static enum msc_status create_plan(struct msc_evaluator *ev, size_t batch, const int32_t wanted[],
                                   size_t n_wanted, bool is_parameter[], struct msc_plan **out) {
    int32_t *bound_wanted = msc_alloc_zero(n_wanted + 1, sizeof(bound_wanted[0]));
    struct msc_plan_origin origin = {.graph = ev->graph, .sites = &ev->sites};
    struct msc_unrolled unrolled = {0};
    struct msc_graph *bound = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(bound_wanted));
    MSC_TRY_OUT(bind_arrays(ev, batch, msc_sequence_first, is_parameter, &bound));
    for (size_t i = 0; i < n_wanted; i++) {
        MSC_TRY_OUT(find_wanted(ev->graph, bound, wanted[i], &bound_wanted[i]));
    }
    if (msc_dataset_is_sequence(ev->dataset)) {
        MSC_TRY_OUT(msc_sequence_unroll(&unrolled, ev->graph, bound, ev->dataset, batch,
                                        is_parameter, bound_wanted, n_wanted));
        origin.joints = unrolled.joints;
        origin.parts = unrolled.chunks;
        memcpy(bound_wanted, unrolled.gathered, n_wanted * sizeof(bound_wanted[0]));
        msc_graph_destroy(bound);
        bound = unrolled.graph;
        unrolled.graph = NULL;
    }
    status =
        msc_plan_create_bound(out, bound, ev->options.backend, bound_wanted, n_wanted, &origin);
    bound = NULL;
out:
    msc_graph_destroy(bound);
    msc_unrolled_finish(&unrolled);
    msc_free(bound_wanted);
    return status;
}

static enum msc_status create_outline(struct msc_evaluator *ev) {
    const struct msc_plan_origin origin = {.graph = ev->graph, .sites = &ev->sites};
    struct msc_graph *bound;
    ev->outline_samples = 1;
    enum msc_status status = bind_arrays(ev, 0, take_sample, NULL, &bound);
    if (status != MSC_OK && status != MSC_E_NOMEM && !msc_dataset_is_sequence(ev->dataset)) {
        ev->outline_samples = (double)msc_dataset_batch_samples(ev->dataset, 0);
        status = bind_arrays(ev, 0, msc_sequence_first, NULL, &bound);
    }
    return status == MSC_OK ? msc_plan_create_outline(&ev->outline, bound, &origin) : status;
}

enum msc_status msc_evaluator_outline(struct msc_outline *out, struct msc_evaluator *ev) {
    MSC_TRY(ev->outline ? MSC_OK : create_outline(ev));
    *out = (struct msc_outline){ev->outline, ev->outline_samples};
    return MSC_OK;
}

// At most MAX_PLANS plans are made, because plans take memory and time. The memory is checked after
// every MANY_PLANS plans.
enum { MAX_PLANS = 4096, MANY_PLANS = 64 };

static enum msc_status refuse_plans(const struct msc_evaluator *ev, size_t batch,
                                    const bool is_parameter[], const char *what) {
    struct msc_str names = {0};
    for (size_t i = 0; i < msc_dataset_n_inputs(ev->dataset); i++) {
        if (is_parameter[i]) {
            int32_t input = msc_graph_input(ev->graph, (int32_t)i);
            msc_str_item(&names, msc_graph_tensor(ev->graph, input)->name);
        }
    }
    bool has_names = msc_str_text(&names)[0] != '\0';
    enum msc_status status = MSC_FAIL(
        MSC_E_UNSUPPORTED,
        "%d different plans for the first %zu of %zu batches are %s: samples differ in the shapes "
        "of inputs%s%s%s; use fewer samples, or samples in which these are equal",
        ev->n_plans, batch, msc_dataset_n_batches(ev->dataset), what,
        has_names ? ", or in the values of " : "", msc_str_text(&names),
        has_names ? ", which give parameters of joints" : "");
    msc_str_finish(&names);
    return status;
}

// Checks whether one more plan is allowed and whether memory is left for it. Logs progress if there
// are many plans.
static enum msc_status check_plans(const struct msc_evaluator *ev, size_t batch,
                                   const bool is_parameter[]) {
    if (ev->n_plans == MAX_PLANS) {
        return refuse_plans(ev, batch, is_parameter, "more than can be kept");
    }
    if (ev->n_plans < MANY_PLANS || ev->n_plans % MANY_PLANS != 0) {
        return MSC_OK;
    }
    msc_log(ev->options.log, MSC_LOG_INFO, "%d different plans for %zu of %zu batches so far",
            ev->n_plans, batch, msc_dataset_n_batches(ev->dataset));
    bool is_host = ev->options.backend->def->memory_is_host;
    if (is_host && msc_machine_resident_bytes() > ev->options.memory_bytes) {
        return refuse_plans(ev, batch, is_parameter, "more than there is memory for");
    }
    return MSC_OK;
}

// Makes the plan of a batch whose signature is new. Sets is_parameter [n_inputs]: which inputs give
// parameters of the plan's joints.
static enum msc_status add_plan(struct msc_evaluator *ev, size_t batch, const int32_t wanted[],
                                size_t n_wanted, bool is_parameter[]) {
    size_t n = (size_t)ev->n_plans + 1;
    MSC_TRY(check_plans(ev, batch, is_parameter));
    MSC_TRY(msc_grow(&ev->plans, &ev->plans_capacity, n, sizeof(ev->plans[0])));
    ev->plans[ev->n_plans++] = NULL;
    memset(is_parameter, 0, msc_dataset_n_inputs(ev->dataset) * sizeof(bool));
    MSC_TRY(create_plan(ev, batch, wanted, n_wanted, is_parameter, &ev->plans[n - 1]));
    return msc_signatures_add(&ev->signatures, batch, (int32_t)n - 1, is_parameter);
}

static enum msc_status assign_plans(struct msc_evaluator *ev, const int32_t wanted[],
                                    size_t n_wanted, bool is_parameter[]) {
    size_t n_batches = msc_dataset_n_batches(ev->dataset);
    for (size_t b = 0; b < n_batches; b++) {
        int32_t p = msc_signatures_find(&ev->signatures, b);
        if (p == MSC_NO_ID) {
            p = ev->n_plans;
            MSC_TRY(add_plan(ev, b, wanted, n_wanted, is_parameter));
        }
        ev->plan_of_batch[b] = p;
    }
    return MSC_OK;
}

enum msc_status msc_evaluator__create_plans(struct msc_evaluator *ev, const int32_t wanted[],
                                            size_t n_wanted) {
    size_t n_batches = msc_dataset_n_batches(ev->dataset);
    bool *is_parameter = msc_alloc_zero(msc_dataset_n_inputs(ev->dataset) + 1, sizeof(bool));
    ev->plan_of_batch = msc_alloc_zero(n_batches, sizeof(ev->plan_of_batch[0]));
    ev->signatures.dataset = ev->dataset;
    enum msc_status status = is_parameter && ev->plan_of_batch
                                 ? assign_plans(ev, wanted, n_wanted, is_parameter)
                                 : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_free(is_parameter);
    return status;
}

void msc_evaluator__destroy_plans(struct msc_evaluator *ev) {
    for (int i = 0; i < ev->n_plans; i++) {
        msc_plan_destroy(ev->plans[i]);
    }
    msc_plan_destroy(ev->outline);
    msc_signatures_finish(&ev->signatures);
    msc_free(ev->plans);
    msc_free(ev->plan_of_batch);
}

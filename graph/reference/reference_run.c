#include "graph/reference/reference.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

#include <string.h>

// Kernel functions by their names in ops.def; input and constant have no kernel.
#define msc_reference__none NULL
static const msc_reference_fn kernels[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = msc_reference__##kernel,
#include "graph/ops.def"
#undef MSC_OP
};
#undef msc_reference__none

msc_reference_fn msc_reference_find(enum msc_op op) {
    return kernels[op];
}

// State of one run of a graph.
struct run {
    const struct msc_graph *g;
    const struct msc_reference_run *asked;
    // [n_tensors] one reference each; NULL before the tensor exists and after its last use
    struct msc_array **arrays;
    int32_t *uses;           // [n_tensors] remaining reads, plus 1 if the tensor is wanted
    bool *is_needed;         // [n_joints]
    bool *is_given;          // [n_tensors]
    struct msc_view *views;  // [most operands and outputs of a joint]
    struct msc_array **read; // [same length as `views`] operands of the joint, one reference each
};

static enum msc_status run_init(struct run *r, const struct msc_reference_run *asked) {
    const struct msc_graph *g = asked->graph;
    *r = (struct run){.g = g, .asked = asked};
    size_t n_views = 1;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        size_t n = (size_t)j->n_operands + (size_t)j->n_outputs;
        n_views = n > n_views ? n : n_views;
    }
    size_t n_tensors = (size_t)msc_graph_n_tensors(g) + 1;
    r->arrays = msc_alloc_zero(n_tensors, sizeof(*r->arrays));
    r->uses = msc_alloc_zero(n_tensors, sizeof(*r->uses));
    r->is_needed = msc_alloc_zero((size_t)msc_graph_n_joints(g) + 1, sizeof(*r->is_needed));
    r->is_given = msc_alloc_zero(n_tensors, sizeof(*r->is_given));
    r->views = msc_alloc_zero(n_views, sizeof(*r->views));
    r->read = msc_alloc_zero(n_views, sizeof(*r->read));
    MSC_TRY(
        MSC_ALLOCATED(r->arrays && r->uses && r->is_needed && r->is_given && r->views && r->read));
    return MSC_OK;
}

static void run_finish(struct run *r) {
    for (int32_t i = 0; r->arrays && i < msc_graph_n_tensors(r->g); i++) {
        msc_array_release(r->arrays[i]);
    }
    msc_free(r->arrays);
    msc_free(r->uses);
    msc_free(r->is_needed);
    msc_free(r->is_given);
    msc_free(r->views);
    msc_free(r->read);
}

static void reference_run_need(struct run *r, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(r->g, tensor);
    r->uses[tensor]++;
    if (t->producer != MSC_NO_ID && !r->is_given[tensor]) {
        r->is_needed[t->producer] = true;
    }
}

// Marks all joints that the wanted tensors depend on, and counts the reads of each tensor.
static void find_needed(struct run *r) {
    for (size_t i = 0; i < r->asked->n_given; i++) {
        r->is_given[r->asked->given[i]] = true;
    }
    for (size_t i = 0; i < r->asked->n_wanted; i++) {
        reference_run_need(r, r->asked->wanted[i]);
    }
    for (int32_t i = msc_graph_n_joints(r->g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(r->g, i);
        for (int32_t k = 0; r->is_needed[i] && k < j->n_operands; k++) {
            if (j->operands[k] != MSC_NO_ID) {
                reference_run_need(r, j->operands[k]);
            }
        }
    }
}

static void drop_use(struct run *r, int32_t tensor) {
    if (--r->uses[tensor] == 0) {
        msc_array_release(r->arrays[tensor]);
        r->arrays[tensor] = NULL;
    }
}

static enum msc_status check_input(const struct msc_tensor *t, const struct msc_array *array) {
    bool fits = array && msc_array_dtype(array) == t->dtype && msc_array_n_dims(array) == t->n_dims;
    for (int i = 0; fits && i < t->n_dims; i++) {
        fits = t->dims[i] < 0 || msc_array_dims(array)[i] == t->dims[i];
    }
    if (!fits) {
        char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES] = "nothing";
        if (array) {
            msc_dims_format(found, msc_array_n_dims(array), msc_array_dims(array));
        }
        return MSC_FAIL(MSC_E_INVALID, "input %s: expected %s %s, found %s %s", t->name,
                        msc_dtype_name(t->dtype), msc_dims_format(expected, t->n_dims, t->dims),
                        array ? msc_dtype_name(msc_array_dtype(array)) : "", found);
    }
    return MSC_OK;
}

// Replaces *out by a new array for an output of the joint.
static enum msc_status create_output(struct msc_array **out, const struct msc_joint *j,
                                     enum msc_dtype dtype, int n_dims, const int64_t dims[]) {
    msc_array_release(*out);
    *out = NULL;
    enum msc_status status = msc_array_create(out, dtype, n_dims, dims);
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, "joint %s", j->name);
}

// State of a call whose outputs are allocated during the run.
struct late_outputs {
    struct run *r;
    const struct msc_joint *joint; // joint in the run's graph
    const struct msc_graph *graph; // graph with the types of the outputs
    struct msc_view *views;
};

static enum msc_status make_output(void *payload, int output, int n_dims, const int64_t dims[]) {
    struct late_outputs *late = payload;
    struct msc_array **array = &late->r->arrays[late->joint->outputs[output]];
    const struct msc_tensor *t =
        msc_graph_tensor(late->graph, msc_graph_output(late->graph, output));
    MSC_TRY(create_output(array, late->joint, t->dtype, n_dims, dims));
    late->views[output] = msc_view_of_array(*array);
    return MSC_OK;
}

// Runs joint `j` of graph `g`. In the run's own graph, the joint is `of`; `j` is either the same
// joint or a copy in another graph. Allocates the outputs whose lengths are known.
static enum msc_status call_kernel(struct run *r, const struct msc_joint *of,
                                   const struct msc_graph *g, const struct msc_joint *j) {
    msc_reference_fn kernel = msc_reference_find(j->op);
    if (!kernel) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s has no kernel", j->name,
                        msc_op_info(j->op)->name);
    }
    struct msc_view *outputs = r->views + of->n_operands;
    struct late_outputs late = {r, of, g, outputs};
    bool is_late = false;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, j->outputs[i]);
        if (msc_tensor_n_elements(t) < 0 && !msc_op_has_trait(j->op, MSC_TRAIT_LATE)) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "joint %s: the length of output %d does not follow from the operands",
                            of->name, (int)i);
        }
        if (msc_tensor_n_elements(t) < 0) {
            is_late = true;
            continue;
        }
        MSC_TRY(create_output(&r->arrays[of->outputs[i]], of, t->dtype, t->n_dims, t->dims));
        outputs[i] = msc_view_of_array(r->arrays[of->outputs[i]]);
    }
    struct msc_reference_call call = {
        .graph = g,
        .joint = j,
        .n_operands = of->n_operands,
        .operands = r->views,
        .n_outputs = of->n_outputs,
        .outputs = outputs,
        .allocate = is_late ? make_output : NULL,
        .payload = &late,
        .limits = r->asked->limits,
    };
    return kernel(&call);
}

// Infers the joint's shapes again from the contents of its operands, then runs it. An operand that
// inference turns into an attribute is passed as absent.
static enum msc_status run_isolated(struct run *r, const struct msc_joint *j) {
    struct msc_graph *g = NULL;
    enum msc_status status =
        msc_graph_isolate(&g, r->g, j->id, (const struct msc_array *const *)r->read);
    if (status == MSC_OK) {
        // The joint is found by its output, because its name may differ.
        const struct msc_joint *alone =
            msc_graph_joint(g, msc_graph_producer(g, msc_graph_output(g, 0)));
        for (int32_t i = 0; i < j->n_operands && i < alone->n_operands; i++) {
            if (alone->operands[i] == MSC_NO_ID) {
                r->views[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
            }
        }
        status = call_kernel(r, j, g, alone);
    }
    msc_graph_destroy(g);
    return status;
}

static enum msc_status read_operand(struct run *r, const struct msc_joint *j, int32_t i) {
    int32_t tensor = j->operands[i];
    r->views[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
    if (tensor == MSC_NO_ID) {
        return MSC_OK;
    }
    if (!r->arrays[tensor]) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: tensor %s has no elements: the model was loaded without weights",
                        j->name, msc_graph_tensor(r->g, tensor)->name);
    }
    if (r->asked->read) {
        MSC_TRY(r->asked->read(r->asked->payload, &r->read[i], j, i, r->arrays[tensor]));
    } else {
        r->read[i] = msc_array_retain(r->arrays[tensor]);
    }
    r->views[i] = msc_view_of_array(r->read[i]);
    return MSC_OK;
}

// Lets the caller compute the joint. *is_done is false if the reference kernel must do it.
static enum msc_status run_by_caller(bool *is_done, struct run *r, const struct msc_joint *j) {
    *is_done = false;
    if (!r->asked->compute) {
        return MSC_OK;
    }
    struct msc_array *out = NULL;
    MSC_TRY(
        r->asked->compute(r->asked->payload, &out, j, (const struct msc_array *const *)r->read));
    if (out) {
        msc_array_release(r->arrays[j->outputs[0]]);
        r->arrays[j->outputs[0]] = out;
        *is_done = true;
    }
    return MSC_OK;
}

static enum msc_status run_joint(struct run *r, const struct msc_joint *j) {
    enum msc_status status = MSC_OK;
    bool is_done = false;
    bool is_bound = true; // false: some lengths are unknown, so operands may not fit each other
    for (int32_t i = 0; status == MSC_OK && i < j->n_operands; i++) {
        int32_t tensor = j->operands[i];
        is_bound = is_bound && (tensor == MSC_NO_ID ||
                                msc_tensor_n_elements(msc_graph_tensor(r->g, tensor)) >= 0);
        status = read_operand(r, j, i);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        is_bound = is_bound && msc_tensor_n_elements(msc_graph_tensor(r->g, j->outputs[i])) >= 0;
    }
    if (status == MSC_OK) {
        status = run_by_caller(&is_done, r, j);
    }
    if (status == MSC_OK && !is_done) {
        status = is_bound ? call_kernel(r, j, r->g, j) : run_isolated(r, j);
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        msc_array_release(r->read[i]);
        r->read[i] = NULL;
    }
    return status;
}

// Runs a joint, or looks up the tensor of an input or constant. Then releases tensors without
// remaining reads.
static enum msc_status reference_run_step(struct run *r, const struct msc_joint *j) {
    if (j->op == MSC_OP_CONSTANT) {
        r->arrays[j->outputs[0]] = msc_array_retain(r->arrays[j->operands[0]]);
    } else if (j->op != MSC_OP_INPUT) {
        MSC_TRY(run_joint(r, j));
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            drop_use(r, j->operands[i]);
        }
    }
    for (int32_t i = 0; j->op != MSC_OP_INPUT && i < j->n_outputs; i++) {
        r->uses[j->outputs[i]]++;
        drop_use(r, j->outputs[i]);
    }
    return MSC_OK;
}

// Stores the given tensors before the run.
static enum msc_status take_given(struct run *r) {
    for (int32_t i = 0; i < msc_graph_n_tensors(r->g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(r->g, i);
        if (t->data && r->uses[i] > 0) {
            r->arrays[i] = msc_array_retain(t->data);
        }
    }
    for (size_t i = 0; i < r->asked->n_given; i++) {
        int32_t tensor = r->asked->given[i];
        if (r->uses[tensor] > 0 && !r->arrays[tensor]) {
            MSC_TRY(check_input(msc_graph_tensor(r->g, tensor), r->asked->arrays[i]));
            r->arrays[tensor] = msc_array_retain(r->asked->arrays[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status check_cancel(const struct msc_reference_run *run) {
    return run->limits && msc_cancel_now(run->limits->cancel)
               ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request")
               : MSC_OK;
}

enum msc_status msc_reference_run_part(struct msc_array *out[],
                                       const struct msc_reference_run *run) {
    struct run r = {0};
    enum msc_status status;
    memset(out, 0, run->n_wanted * sizeof(*out));
    MSC_TRY_OUT(run_init(&r, run));
    find_needed(&r);
    MSC_TRY_OUT(take_given(&r));
    MSC_TRY_OUT(check_cancel(run));
    for (int32_t i = 0; i < msc_graph_n_joints(run->graph); i++) {
        if (r.is_needed[i]) {
            MSC_TRY_OUT(check_cancel(run));
            MSC_TRY_OUT(reference_run_step(&r, msc_graph_joint(run->graph, i)));
        }
    }
    for (size_t i = 0; i < run->n_wanted; i++) {
        out[i] = msc_array_retain(r.arrays[run->wanted[i]]);
    }
    status = MSC_OK;
out:
    run_finish(&r);
    return status;
}

enum msc_status msc_reference_run_graph(struct msc_array *out[], const struct msc_graph *g,
                                        const struct msc_array *const inputs[],
                                        const int32_t wanted[], size_t n,
                                        const struct msc_reference_limits *limits) {
    struct msc_reference_run run = {.graph = g,
                                    .n_given = (size_t)msc_graph_n_inputs(g),
                                    .arrays = inputs,
                                    .n_wanted = n,
                                    .wanted = wanted,
                                    .limits = limits};
    int32_t *given = msc_alloc_zero(run.n_given + 1, sizeof(given[0]));
    if (!given) {
        memset(out, 0, n * sizeof(*out));
        return MSC_FAIL(MSC_E_NOMEM, "graph %s: out of memory", msc_graph_name(g));
    }
    for (size_t i = 0; i < run.n_given; i++) {
        given[i] = msc_graph_input(g, (int32_t)i);
    }
    run.given = given;
    enum msc_status status = msc_reference_run_part(out, &run);
    msc_free(given);
    return status;
}

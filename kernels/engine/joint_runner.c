#include "kernels/engine/joint_runner.h"

#include "base/alloc.h"
#include "graph/cost.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/planner.h"

#include <string.h>

// Planning and the code for new lengths take about as long as this many multiply-accumulates by the
// reference kernel; packing a weight takes as long as that many per element.
#define FEWEST_MACS 4e6
#define FEWEST_MACS_PER_WEIGHT 16

void msc_joint_runner_finish(struct msc_joint_runner *runner) {
    msc_backend_close(runner->backend);
    *runner = (struct msc_joint_runner){0};
}

static enum msc_status runner_open(struct msc_joint_runner *runner) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    return runner->backend ? MSC_OK : msc_backend_open(&runner->backend, "cpu", &o);
}

// The memory of a plan's values while it runs.
struct memory {
    struct msc_array **owned; // [n_values]; NULL: borrowed from an operand or another value
    void **data;              // [n_values]
};

static void memory_finish(struct memory *m, int32_t n_values) {
    for (int32_t i = 0; m->owned && i < n_values; i++) {
        msc_array_release(m->owned[i]);
    }
    msc_free(m->owned);
    msc_free(m->data);
}

static enum msc_status allocate_value(struct memory *m, const struct msc_value *v, int32_t id) {
    int64_t n_bytes = (int64_t)v->n_bytes;
    MSC_TRY(msc_array_create(&m->owned[id], MSC_DTYPE_U8, 1, &n_bytes));
    m->data[id] = msc_array_data(m->owned[id]);
    return MSC_OK;
}

// Points the values of the graph's inputs to the operands that they hold.
static void place_inputs(struct memory *m, const struct msc_plan *plan,
                         const struct msc_joint *joint, const struct msc_array *const operands[]) {
    for (int32_t i = 0; i < plan->n_values; i++) {
        const struct msc_value *v = &plan->values[i];
        for (int32_t k = 0; v->input != MSC_NO_ID && k < joint->n_operands; k++) {
            if (joint->operands[k] == msc_graph_input(plan->graph, v->input)) {
                m->data[i] = (void *)msc_array_data(operands[k]); // only read
            }
        }
    }
}

static enum msc_status run_step(struct msc_joint_runner *runner, struct memory *m,
                                const struct msc_plan *plan, const struct msc_step *step,
                                const struct msc_reference_limits *limits) {
    struct msc_backend *b = runner->backend;
    const struct msc_edit *const none[MSC_STEP_MAX_WEIGHTS] = {NULL};
    struct msc_view inputs[MSC_STEP_MAX_INPUTS], output;
    void *weights = NULL;
    size_t n_bytes = 0;
    for (int32_t i = 0; i < step->n_inputs; i++) {
        inputs[i] = msc_plan_view(plan, step->inputs[i], m->data[step->inputs[i]]);
    }
    output = msc_plan_view(plan, step->outputs[0], m->data[step->outputs[0]]);
    if (step->n_joints > 0) {
        MSC_TRY(b->def->weights(b, step, none, &weights, &n_bytes));
        runner->packed_bytes = n_bytes > runner->packed_bytes ? n_bytes : runner->packed_bytes;
    }
    struct msc_call call = {
        .inputs = inputs, .outputs = &output, .weights = weights, .limits = limits};
    enum msc_status status = b->def->run(b, step, &call, 1, 0);
    if (step->n_joints > 0) {
        b->def->release_weights(b, step, weights);
    }
    return status;
}

static enum msc_status run_steps(struct msc_joint_runner *runner, struct memory *m,
                                 const struct msc_plan *plan,
                                 const struct msc_reference_limits *limits) {
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *step = &plan->steps[i];
        int32_t made = step->outputs[0];
        if (step->kind == MSC_STEP_ALIAS) {
            m->data[made] = m->data[step->inputs[0]];
        } else {
            MSC_TRY(allocate_value(m, &plan->values[made], made));
            MSC_TRY(run_step(runner, m, plan, step, limits));
        }
    }
    return MSC_OK;
}

static enum msc_status run_plan(struct msc_joint_runner *runner, struct msc_array **out,
                                const struct msc_plan *plan, const struct msc_joint *joint,
                                const struct msc_array *const operands[],
                                const struct msc_reference_limits *limits) {
    size_t n_values = (size_t)plan->n_values + 1;
    struct memory m = {msc_alloc_zero(n_values, sizeof(m.owned[0])),
                       msc_alloc_zero(n_values, sizeof(m.data[0]))};
    enum msc_status status = MSC_ALLOCATED(m.owned && m.data);
    if (status == MSC_OK) {
        place_inputs(&m, plan, joint, operands);
        status = run_steps(runner, &m, plan, limits);
    }
    if (status == MSC_OK) {
        const struct msc_value *v = &plan->values[plan->live_out[0]];
        status =
            msc_array_create_from(out, v->dtype, v->n_dims, v->dims, m.data[plan->live_out[0]]);
    }
    memory_finish(&m, plan->n_values);
    return status;
}

// Takes ownership of `g`, whose only joint with a kernel is `joint`.
static enum msc_status runner_plan(struct msc_joint_runner *runner, struct msc_array **out,
                                   struct msc_graph *g, const struct msc_joint *joint,
                                   const struct msc_array *const operands[],
                                   const struct msc_reference_limits *limits) {
    struct msc_plan *plan = NULL;
    int32_t wanted = joint->outputs[0];
    enum msc_status status = runner_open(runner);
    if (status != MSC_OK) {
        msc_graph_destroy(g);
        return status;
    }
    MSC_TRY(msc_plan_create(&plan, g, runner->backend, &wanted, 1));
    if (plan->live_out[0] != MSC_NO_ID) {
        status = run_plan(runner, out, plan, joint, operands, limits);
    }
    msc_plan_destroy(plan);
    return status;
}

static bool is_heavy(const struct msc_graph *g, const struct msc_joint *j) {
    double macs = msc_joint_macs(g, j), n_elements = 0;
    for (int32_t i = 0; i < j->n_operands; i++) {
        int32_t weight =
            j->operands[i] == MSC_NO_ID ? MSC_NO_ID : msc_graph_weight_of(g, j->operands[i]);
        if (weight != MSC_NO_ID) {
            n_elements += (double)msc_tensor_n_elements(msc_graph_tensor(g, weight));
        }
    }
    return macs >= FEWEST_MACS && macs >= FEWEST_MACS_PER_WEIGHT * n_elements;
}

enum msc_status msc_joint_runner_run(struct msc_joint_runner *runner, struct msc_array **out,
                                     const struct msc_graph *graph, int32_t joint,
                                     const struct msc_array *const operands[],
                                     const struct msc_reference_limits *limits) {
    struct msc_product products[2];
    struct msc_graph *g;
    const struct msc_joint *j = msc_graph_joint(graph, joint);
    *out = NULL;
    if (j->n_outputs != 1 || msc_joint_products(products, graph, j) == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_graph_isolate(&g, graph, joint, operands));
    const struct msc_joint *alone =
        msc_graph_joint(g, msc_graph_producer(g, msc_graph_output(g, 0)));
    if (!is_heavy(g, alone)) {
        msc_graph_destroy(g);
        return MSC_OK;
    }
    return runner_plan(runner, out, g, alone, operands, limits);
}

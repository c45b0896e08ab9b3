// The fallback: runs one joint in NCHW with its reference kernel. Edited weights are fake-quantised
// first.
#include "base/alloc.h"
#include "graph/reference/reference.h"
#include "kernels/cpu/cpu.h"

#include <string.h>

struct kernel {
    const struct msc_graph *graph;
    const struct msc_joint *joint;
    msc_reference_fn fn;
    int32_t n_operands;
    const struct msc_operand *operands;
    struct msc_view *constants; // [n_operands] weights and constants
    int32_t n_edited;           // number of operands that weight edits replace
    int32_t edited[MSC_STEP_MAX_WEIGHTS];
    int32_t n_outputs;
};

static void cpu_reference_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_free(k->constants);
        msc_free(k);
    }
}

static enum msc_status cpu_reference_prepare(void **out, struct msc_cpu_backend *b,
                                             const struct msc_plan *plan,
                                             const struct msc_step *step) {
    (void)b;
    const struct msc_step_joint *j = &step->joints[0];
    msc_reference_fn fn = msc_reference_find(j->joint->op);
    if (!fn || j->n_operands > MSC_STEP_MAX_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no kernel for %s with %d operands",
                        j->joint->name, msc_op_info(j->joint->op)->name, (int)j->n_operands);
    }
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    struct msc_view *constants = msc_alloc_zero((size_t)j->n_operands + 1, sizeof(*constants));
    if (!k || !constants) {
        msc_free(k);
        msc_free(constants);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", j->joint->name);
    }
    *k = (struct kernel){.graph = plan->graph,
                         .joint = j->joint,
                         .fn = fn,
                         .n_operands = j->n_operands,
                         .operands = j->operands,
                         .constants = constants,
                         .n_edited = step->n_weight_slots,
                         .n_outputs = step->n_outputs};
    for (int32_t i = 0; i < step->n_weight_slots; i++) {
        k->edited[i] = step->weight_operands[i];
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i].kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *t = msc_graph_tensor(plan->graph, j->operands[i].index);
            constants[i] = msc_view_of_array(t->data);
        }
    }
    *out = k;
    return MSC_OK;
}

struct variant {
    struct msc_array *arrays[MSC_STEP_MAX_WEIGHTS]; // edited weights; NULL: not edited
};

static void cpu_reference_release_weights(void *memory) {
    struct variant *v = memory;
    for (int i = 0; v && i < MSC_STEP_MAX_WEIGHTS; i++) {
        msc_array_release(v->arrays[i]);
    }
    msc_free(v);
}

static bool has_edits(const struct kernel *k, const struct msc_edit *const edits[]) {
    for (int32_t i = 0; i < k->n_edited; i++) {
        if (edits[i]) {
            return true;
        }
    }
    return false;
}

static enum msc_status cpu_reference_weights(void *kernel, struct msc_cpu_backend *b,
                                             const struct msc_edit *const edits[], void **out,
                                             size_t *n_bytes) {
    (void)b;
    const struct kernel *k = kernel;
    enum msc_status status = MSC_OK;
    if (!has_edits(k, edits)) {
        return MSC_OK;
    }
    struct variant *v = msc_alloc_zero(1, sizeof(*v));
    MSC_TRY(MSC_ALLOCATED(v));
    for (int32_t i = 0; status == MSC_OK && i < k->n_edited; i++) {
        int32_t tensor = k->operands[k->edited[i]].index;
        if (edits[i]) {
            status =
                msc_edit_apply(&v->arrays[i], msc_graph_tensor(k->graph, tensor)->data, edits[i]);
        }
        *n_bytes += status == MSC_OK && edits[i] ? msc_array_n_bytes(v->arrays[i]) : 0;
    }
    if (status != MSC_OK) {
        cpu_reference_release_weights(v);
        return status;
    }
    *out = v;
    return MSC_OK;
}

// Runs a joint that has subgraphs. Tensors inside the subgraphs may have any dims, so their memory
// is limited by call->limits.
static enum msc_status run_bodies(msc_reference_fn fn, const struct msc_reference_call *call) {
    struct msc_array_meter meter = {.limit_bytes = call->limits ? call->limits->memory_bytes : 0};
    struct msc_array_meter *before = msc_array_measure(&meter);
    enum msc_status status = fn(call);
    msc_array_measure(before);
    return status;
}

static enum msc_status cpu_reference_run(void *kernel, struct msc_cpu_backend *b,
                                         const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    struct msc_view operands[MSC_STEP_MAX_INPUTS];
    (void)b;
    (void)thread;
    for (int32_t i = 0; i < k->n_operands; i++) {
        switch (k->operands[i].kind) {
        case MSC_OPERAND_INPUT:
            operands[i] = call->inputs[k->operands[i].index];
            break;
        case MSC_OPERAND_WEIGHT:
            operands[i] = k->constants[i];
            break;
        default:
            operands[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
            break;
        }
    }
    const struct variant *v = call->weights;
    for (int32_t i = 0; v && i < k->n_edited; i++) {
        if (v->arrays[i]) {
            operands[k->edited[i]] = msc_view_of_array(v->arrays[i]);
        }
    }
    struct msc_reference_call reference = {.graph = k->graph,
                                           .joint = k->joint,
                                           .n_operands = k->n_operands,
                                           .operands = operands,
                                           .n_outputs = k->n_outputs,
                                           .outputs = call->outputs,
                                           .limits = call->limits};
    return k->joint->n_graphs > 0 ? run_bodies(k->fn, &reference) : k->fn(&reference);
}

const struct msc_cpu_family msc_cpu_reference = {
    .prepare = cpu_reference_prepare,
    .release = cpu_reference_release,
    .run = cpu_reference_run,
    .weights = cpu_reference_weights,
    .release_weights = cpu_reference_release_weights,
};

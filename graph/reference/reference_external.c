// Runs the plug-in that computes an external joint (graph/operators.h), or the joint's body.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "graph/graph_internal.h"
#include "graph/operators_internal.h"

#include <string.h>

static void set_tensor(struct msc_operator_tensor *to, const struct msc_view *v) {
    *to = (struct msc_operator_tensor){.dtype = v->dtype, .n_dims = v->n_dims, .data = v->data};
    memcpy(to->dims, v->dims, (size_t)v->n_dims * sizeof to->dims[0]);
}

static enum msc_status allocate(const struct msc_operator_call *plugin, int output,
                                const int64_t dims[]) {
    const struct msc_reference_call *call = plugin->host;
    if (output < 0 || output >= plugin->n_outputs) {
        return MSC_FAIL(MSC_E_INVALID, "the plug-in allocates output %d of %d", output,
                        plugin->n_outputs);
    }
    struct msc_operator_tensor *t = &plugin->outputs[output];
    for (int i = 0; i < t->n_dims; i++) {
        if (dims[i] < 0 || (t->dims[i] >= 0 && t->dims[i] != dims[i])) {
            return MSC_FAIL(MSC_E_INVALID, "output %d: length %d is %lld, expected %lld", output, i,
                            (long long)dims[i], (long long)t->dims[i]);
        }
    }
    MSC_TRY(msc_reference__allocate(call, output, t->n_dims, dims));
    set_tensor(t, &call->outputs[output]);
    return MSC_OK;
}

// An output whose lengths are not all known yet has no elements; its rank and type are the graph's.
static void describe_output(struct msc_operator_tensor *to, const struct msc_reference_call *call,
                            int output) {
    const struct msc_tensor *t = msc_graph_tensor(call->graph, call->joint->outputs[output]);
    if (call->allocate == NULL || msc_tensor_n_elements(t) >= 0) {
        set_tensor(to, &call->outputs[output]);
        return;
    }
    *to = (struct msc_operator_tensor){.dtype = t->dtype, .n_dims = t->n_dims};
    memcpy(to->dims, t->dims, (size_t)t->n_dims * sizeof to->dims[0]);
}

static enum msc_status check_outputs(const struct msc_operator_call *plugin) {
    for (int i = 0; i < plugin->n_outputs; i++) {
        if (plugin->outputs[i].data == NULL && msc_operator_n_elements(&plugin->outputs[i]) != 0) {
            return MSC_FAIL(MSC_E_INVALID, "the plug-in did not allocate output %d", i);
        }
    }
    return MSC_OK;
}

enum msc_status msc_reference__external(const struct msc_reference_call *call) {
    const struct msc_operators_entry *entry =
        msc_operators__find_joint(call->graph->operators, call->joint);
    if (entry == NULL) {
        return call->joint->n_graphs > 0 ? msc_reference__held(call)
                                         : msc_operators__fail_absent(call->joint);
    }
    struct msc_arena arena = {0};
    size_t n_inputs = (size_t)call->n_operands, n_outputs = (size_t)call->n_outputs;
    struct msc_operator_tensor *inputs = msc_arena_array(&arena, n_inputs + 1, sizeof inputs[0]);
    struct msc_operator_tensor *outputs = msc_arena_array(&arena, n_outputs, sizeof outputs[0]);
    enum msc_status status = MSC_ALLOCATED(inputs && outputs);
    if (status == MSC_OK) {
        for (size_t i = 0; i < n_inputs; i++) {
            if (call->operands[i].dtype != MSC_DTYPE_NONE) {
                set_tensor(&inputs[i], &call->operands[i]);
            }
        }
        for (size_t i = 0; i < n_outputs; i++) {
            describe_output(&outputs[i], call, (int)i);
        }
        struct msc_operator_call plugin = {.n_inputs = call->n_operands,
                                           .inputs = inputs,
                                           .n_outputs = call->n_outputs,
                                           .outputs = outputs,
                                           .allocate = allocate,
                                           .host = (void *)call};
        status = msc_operators__call(entry, false, &plugin, call->joint);
        status = status == MSC_OK ? check_outputs(&plugin) : status;
    }
    msc_arena_finish(&arena);
    return status;
}

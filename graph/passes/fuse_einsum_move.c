// Permutes and reshapes the operands of an einsum. Constants are permuted in advance.
#include "base/str.h"
#include "graph/op_attrs.h"
#include "graph/passes/constant_internal.h"
#include "graph/passes/fuse_einsum_internal.h"

bool msc_einsum__same_length(const struct msc_graph *g, const struct msc_einsum_factor *a,
                             const struct msc_einsum_factor *b, int axis) {
    const struct msc_tensor *x = &g->tensors[a->tensor]->tensor;
    const struct msc_tensor *y = &g->tensors[b->tensor]->tensor;
    int i = a->at[axis], k = b->at[axis];
    return x->dims[i] == y->dims[k] && x->prims[i] == y->prims[k];
}

bool msc_einsum__is_in_order(const int64_t order[], int n) {
    for (int i = 0; i < n; i++) {
        if (order[i] != i) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_einsum__move(int32_t *tensor, struct msc_graph *g, enum msc_op op,
                                 const char *near, const char *what, const int64_t list[], int n) {
    struct msc_str text = {0}, name = {0};
    int32_t joint;
    msc_attr_write_ints(&text, list, (size_t)n);
    msc_str_printf(&name, "%s/%s", near, what);
    struct msc_attr attr = {op == MSC_OP_RESHAPE ? "shape" : "axes", msc_str_text(&text)};
    struct msc_joint_spec spec = {.op = op,
                                  .name = msc_str_text(&name),
                                  .n_inputs = 1,
                                  .inputs = tensor,
                                  .n_attrs = 1,
                                  .attrs = &attr};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_str_status(&name));
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &spec));
    *tensor = g->joints[joint]->outputs[0];
out:
    msc_str_finish(&text);
    msc_str_finish(&name);
    return status;
}

static bool is_output(const struct msc_graph *g, int32_t tensor) {
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i] == tensor) {
            return true;
        }
    }
    return false;
}

static bool reads(const struct msc_graph_joint *j, int32_t tensor) {
    for (int32_t i = 0; !j->is_dead && i < j->joint.n_operands; i++) {
        if (j->operands[i] == tensor) {
            return true;
        }
    }
    return false;
}

// True if this joint is the tensor's only consumer.
static bool is_read_by(const struct msc_graph *g, int32_t tensor, int32_t reader) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        if (i != reader && reads(g->joints[i], tensor)) {
            return false;
        }
    }
    return !is_output(g, tensor);
}

static const char *free_name(struct msc_graph *g, const char *base) {
    const char *name = base;
    for (int n = 1; name != NULL && msc_graph__live_tensor(g, name) != MSC_NO_ID; n++) {
        name = msc_arena_printf(&g->arena, "%s_%d", base, n);
    }
    return name;
}

enum msc_status msc_einsum__replace_weight(int32_t *out, struct msc_graph *g, int32_t tensor,
                                           int32_t reader, const char *layout,
                                           const struct msc_array *data) {
    int32_t constant = g->tensors[tensor]->tensor.producer;
    int32_t weight = msc_graph_weight_of(g, tensor);
    const char *base = g->tensors[weight]->tensor.name;
    if (is_read_by(g, weight, constant) && is_read_by(g, tensor, reader)) {
        MSC_TRY(msc_graph_remove_joint(g, constant));
        g->tensors[weight]->is_dead = true;
    }
    const char *name = free_name(g, base);
    return name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                        : msc_graph_add_weight(out, g, name, NULL, layout, data);
}

enum msc_status msc_einsum__permute_elements(struct msc_array **out, struct msc_graph *g,
                                             int32_t tensor, const char *near, const char *what,
                                             const int64_t order[], int n) {
    bool is_done;
    MSC_TRY(msc_einsum__move(&tensor, g, MSC_OP_PERMUTE_DIMS, near, what, order, n));
    int32_t joint = g->tensors[tensor]->tensor.producer;
    MSC_TRY(msc_constant_evaluate(out, &is_done, g, joint));
    if (!is_done) {
        return MSC_FAIL(MSC_E_STATE, "joint '%s': cannot permute its constant operand", near);
    }
    return msc_graph_remove_joint(g, joint);
}

enum msc_status msc_einsum__permute(int32_t *tensor, struct msc_graph *g, int32_t einsum,
                                    const char *what, const int64_t order[], int n) {
    const char *near = g->joints[einsum]->joint.name;
    int32_t weight = msc_graph_weight_of(g, *tensor), joint;
    struct msc_weight_spec held = {.role = "const"};
    struct msc_joint_spec spec = {.op = MSC_OP_CONSTANT, .n_weights = 1, .weights = &held};
    if (weight == MSC_NO_ID || g->tensors[weight]->tensor.data == NULL) {
        return msc_einsum__move(tensor, g, MSC_OP_PERMUTE_DIMS, near, what, order, n);
    }
    struct msc_array *data;
    spec.name = msc_arena_printf(&g->arena, "%s/%s", near, what);
    MSC_TRY(MSC_ALLOCATED(spec.name));
    MSC_TRY(msc_einsum__permute_elements(&data, g, *tensor, near, what, order, n));
    enum msc_status status = msc_einsum__replace_weight(&held.tensor, g, *tensor, einsum, "", data);
    msc_array_release(data);
    MSC_TRY(status);
    MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
    *tensor = g->joints[joint]->outputs[0];
    return MSC_OK;
}

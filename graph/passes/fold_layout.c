// Derives layouts from consumers. For example, if the input of a convolution is NCHW, the layouts
// of the tensors upstream follow.
#include "graph/passes/fold_internal.h"

#include "graph/graph_internal.h"
#include "graph/infer.h"

#include <string.h>

static enum msc_status fold_layout_set_layout(struct msc_graph *g, int32_t tensor,
                                              const char *layout) {
    struct msc_tensor *t = &g->tensors[tensor]->tensor;
    if (t->layout[0] != '\0' || strlen(layout) != (size_t)t->n_dims || layout[0] == '\0') {
        return MSC_OK;
    }
    t->layout = msc_arena_strdup(&g->arena, layout);
    return MSC_ALLOCATED(t->layout);
}

// The layout that an attribute gives for the joint's input; "" if there is none.
static const char *from_attribute(const struct msc_joint *j) {
    static const char *const keys[] = {"data_layout", "layout"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = msc_joint_attr(j, keys[i]);
        if (value != NULL) {
            return value;
        }
    }
    return "";
}

static bool keeps_axes(enum msc_op op) {
    return msc_op_is_elementwise(op) || msc_op_has_trait(op, MSC_TRAIT_AXES);
}

static enum msc_status permute_back(struct msc_graph *g, const struct msc_joint *j,
                                    const char *layout) {
    int64_t axes[MSC_MAX_DIMS];
    char before[MSC_MAX_DIMS + 4] = "";
    int n = msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS);
    if (n < 0 || n > MSC_MAX_DIMS || strlen(layout) != (size_t)n) {
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        before[axes[i] < 0 ? axes[i] + n : axes[i]] = layout[i];
    }
    return fold_layout_set_layout(g, j->operands[0], before);
}

static enum msc_status look_back(struct msc_graph *g, const struct msc_joint *j) {
    const char *layout = g->tensors[j->outputs[0]]->tensor.layout;
    const char *named = from_attribute(j);
    if (j->n_operands == 0 || j->op == MSC_OP_CONSTANT) {
        return MSC_OK;
    }
    if (named[0] != '\0') {
        return fold_layout_set_layout(g, j->operands[0], named);
    }
    if (j->op == MSC_OP_PERMUTE_DIMS) {
        return permute_back(g, j, layout);
    }
    if (!keeps_axes(j->op) && !msc_op_has_trait(j->op, MSC_TRAIT_AXES_BACK)) {
        return MSC_OK;
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        int32_t tensor = j->operands[i];
        // Skip constants: the layout of a weight is the layout of its role.
        if (tensor != MSC_NO_ID && msc_graph_weight_of(g, tensor) == MSC_NO_ID) {
            MSC_TRY(fold_layout_set_layout(g, tensor, layout));
        }
    }
    return MSC_OK;
}

static enum msc_status look_forward(struct msc_graph *g, const struct msc_joint *j) {
    const struct msc_tensor *out = &g->tensors[j->outputs[0]]->tensor;
    if (out->layout[0] != '\0' || j->n_operands == 0) {
        return MSC_OK;
    }
    if (j->op == MSC_OP_PERMUTE_DIMS) {
        int64_t axes[MSC_MAX_DIMS];
        char layout[MSC_MAX_DIMS + 4] = "";
        const struct msc_tensor *in = &g->tensors[j->operands[0]]->tensor;
        if (msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS) == in->n_dims) {
            for (int i = 0; i < in->n_dims; i++) {
                axes[i] += axes[i] < 0 ? in->n_dims : 0;
            }
            msc_infer_permute_layout(layout, in->layout, axes, in->n_dims);
        }
        return fold_layout_set_layout(g, j->outputs[0], layout);
    }
    for (int32_t i = 0; keeps_axes(j->op) && i < j->n_operands; i++) {
        if (j->operands[i] == MSC_NO_ID) {
            continue;
        }
        const struct msc_tensor *in = &g->tensors[j->operands[i]]->tensor;
        for (int32_t k = 0; in->producer != MSC_NO_ID && k < j->n_outputs; k++) {
            MSC_TRY(fold_layout_set_layout(g, j->outputs[k], in->layout));
        }
    }
    return MSC_OK;
}

enum msc_status msc_fold_layouts(struct msc_graph *g) {
    for (int32_t i = g->n_joints - 1; i >= 0; i--) {
        MSC_TRY(look_back(g, &g->joints[i]->joint));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(look_forward(g, &g->joints[i]->joint));
    }
    return MSC_OK;
}

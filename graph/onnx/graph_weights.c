#include "graph/onnx/graph_weights.h"

#include "base/alloc.h"
#include "graph/onnx/new_weights.h"

#include <string.h>

// Roles of weights that training changes.
static const char *const roles[] = {"weight", "recurrence", "bias", "gamma", "beta", "mean", "var"};
enum { MOST = sizeof roles / sizeof roles[0] };

// The weight's alias if a replacement weight is named so, else the weight's name.
static const char *name_of(const struct msc_tensor *t, const struct msc_array_list *weights) {
    bool has_alias = t->alias[0] != '\0' && msc_array_list_find(weights, t->alias) != NULL;
    return has_alias ? t->alias : t->name;
}

static enum msc_status check_names(const struct msc_graph *g, const struct msc_array_list *weights,
                                   struct msc_arena *arena) {
    size_t n = 0, n_tensors = (size_t)msc_graph_n_tensors(g);
    const char **known = msc_arena_array(arena, n_tensors + 1, sizeof(known[0]));
    MSC_TRY(MSC_ALLOCATED(known));
    for (size_t i = 0; i < n_tensors; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, (int32_t)i);
        if (t->producer == MSC_NO_ID) {
            known[n++] = name_of(t, weights);
        }
    }
    return msc_new_weights__check_names(weights, known, n);
}

static bool is_product(enum msc_op op) {
    return op == MSC_OP_LINEAR || op == MSC_OP_MATMUL;
}

// True if the joint belongs to the same layer as `maker`, which produces its input: a normalisation
// after a convolution or product, or an addition after a product. `is_behind`: `maker` is not the
// first joint of its layer.
static bool follows(const struct msc_joint *j, const struct msc_joint *maker, bool is_behind) {
    bool is_layer = msc_op_is_conv(maker->op) || msc_op_is_conv_transpose(maker->op) ||
                    is_product(maker->op) || maker->op == MSC_OP_LINEAR_BIAS ||
                    (maker->op == MSC_OP_ADD && is_behind);
    return (j->op == MSC_OP_ADD && is_product(maker->op)) ||
           (j->op == MSC_OP_BATCH_NORM && is_layer);
}

// The joint's float weight whose role is roles[n], or MSC_NO_ID. The operands of a product, and of
// an addition after a product (`is_sum`), have no roles: returns operand n if it is constant.
static int32_t weight_at(const struct msc_graph *g, const struct msc_joint *j, int n, bool is_sum) {
    int32_t id = msc_joint_weight(j, roles[n]);
    if ((is_sum || j->op == MSC_OP_MATMUL) && n < j->n_inputs) {
        id = msc_graph_weight_of(g, j->inputs[n]);
    }
    return id != MSC_NO_ID && msc_dtype_is_float(msc_graph_tensor(g, id)->dtype) ? id : MSC_NO_ID;
}

static enum msc_status check_layers(const struct msc_graph *g, const struct msc_array_list *weights,
                                    struct msc_arena *arena) {
    size_t n = 0, n_joints = (size_t)msc_graph_n_joints(g);
    struct msc_layer_weight *list = msc_arena_array(arena, n_joints * MOST + 1, sizeof(list[0]));
    int32_t *layers = msc_arena_array(arena, n_joints + 1, sizeof(layers[0]));
    MSC_TRY(MSC_ALLOCATED(list && layers));
    for (int32_t i = 0; i < (int32_t)n_joints; i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        layers[i] = i;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            int32_t maker = msc_graph_producer(g, j->inputs[k]);
            if (maker != MSC_NO_ID &&
                follows(j, msc_graph_joint(g, maker), layers[maker] != maker)) {
                layers[i] = layers[maker];
            }
        }
        for (int k = 0; k < MOST; k++) {
            int32_t id = weight_at(g, j, k, j->op == MSC_OP_ADD && layers[i] != i);
            if (id != MSC_NO_ID) {
                const char *name = name_of(msc_graph_tensor(g, id), weights);
                list[n++] = (struct msc_layer_weight){name, layers[i]};
            }
        }
    }
    return msc_new_weights__check_layers(weights, list, n, n_joints);
}

enum msc_status msc_graph__set_weights(struct msc_graph *g, const struct msc_array_list *weights) {
    struct msc_arena arena = {0};
    enum msc_status status = check_names(g, weights, &arena);
    if (status == MSC_OK) {
        status = check_layers(g, weights, &arena);
    }
    msc_arena_finish(&arena);
    for (size_t i = 0; status == MSC_OK && i < weights->n; i++) {
        int32_t id = msc_graph_find_tensor(g, weights->names[i]);
        if (id == MSC_NO_ID || msc_graph_tensor(g, id)->producer != MSC_NO_ID) {
            continue; // such as PyTorch's num_batches_tracked, which no graph contains
        }
        const struct msc_tensor *t = msc_graph_tensor(g, id);
        struct msc_array *data;
        MSC_TRY(msc_new_weights__fit(&data, weights->names[i], weights->arrays[i], t->dtype,
                                     t->n_dims, t->dims));
        status = msc_graph_set_weight_data(g, id, data);
        msc_array_release(data);
    }
    return status;
}

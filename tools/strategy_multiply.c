// The multiplications of a strategy: constants that activations are multiplied by before
// convolutions and linear layers read them.
#include "base/str.h"
#include "graph/wide.h"
#include "tools/strategy_internal.h"

#include <math.h>
#include <string.h>

enum msc_status msc_strategy_multiply(struct msc_strategy *s, const char *tensor,
                                      const struct msc_array *factors) {
    const char *name = msc_arena_strdup(&s->arena, tensor);
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_grow(&s->multiplied, &s->multiplied_capacity, s->n_multiplied + 1,
                     sizeof(s->multiplied[0])));
    MSC_TRY(msc_strategy__keep_array(s, factors));
    s->multiplied[s->n_multiplied++] = (struct msc_strategy_weight){name, factors};
    return MSC_OK;
}

bool msc_strategy__is_multiplied(const struct msc_joint *j, int32_t tensor) {
    bool is_linear = j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS;
    return (msc_op_is_conv(j->op) || is_linear) && j->operands[0] == tensor;
}

// Adds a joint that multiplies the tensor; its name is that of the tensor's joint with a suffix.
static enum msc_status add_product(int32_t *out, struct msc_graph *g, int32_t tensor,
                                   const struct msc_array *factors, const char *name) {
    const struct msc_joint *from = msc_graph_joint(g, msc_graph_tensor(g, tensor)->producer);
    struct msc_str of_weight = {0}, of_constant = {0};
    struct msc_weight_spec weight = {.role = "const"};
    int32_t joint, inputs[2] = {tensor};
    msc_str_printf(&of_weight, "%s.factors", name);
    msc_str_printf(&of_constant, "%s.constant", name);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_str_status(&of_weight));
    MSC_TRY_OUT(msc_str_status(&of_constant));
    MSC_TRY_OUT(
        msc_graph_add_weight(&weight.tensor, g, msc_str_text(&of_weight), NULL, NULL, factors));
    const struct msc_joint_spec constant = {.op = MSC_OP_CONSTANT,
                                            .name = msc_str_text(&of_constant),
                                            .n_weights = 1,
                                            .weights = &weight};
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &constant));
    inputs[1] = msc_joint_output(msc_graph_joint(g, joint), 0);
    const struct msc_joint_spec product = {
        .op = MSC_OP_MULTIPLY, .name = name, .scope = from->scope, .n_inputs = 2, .inputs = inputs};
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &product));
    *out = msc_joint_output(msc_graph_joint(g, joint), 0);
out:
    msc_str_finish(&of_weight);
    msc_str_finish(&of_constant);
    return status;
}

// Is each factor finite, and has the product the activation's shape, whatever its open lengths are?
static bool fits(const struct msc_tensor *t, const struct msc_array *factors) {
    const int64_t *dims = msc_array_dims(factors);
    const float *x = msc_array_data(factors);
    int n_dims = msc_array_n_dims(factors), n_before = t->n_dims - n_dims;
    bool is_good = n_before >= 0;
    for (int i = 0; is_good && i < n_dims; i++) {
        is_good = dims[i] == 1 || dims[i] == t->dims[n_before + i];
    }
    for (int64_t i = 0; is_good && i < msc_array_n_elements(factors); i++) {
        is_good = isfinite(x[i]);
    }
    return is_good;
}

static bool is_listed_before(const struct msc_strategy *s, size_t i) {
    bool is_listed = false;
    for (size_t k = 0; k < i; k++) {
        is_listed = is_listed || strcmp(s->multiplied[k].tensor, s->multiplied[i].tensor) == 0;
    }
    return is_listed;
}

// `to` is a copy of `g`, with more joints.
static enum msc_status multiply_tensor(struct msc_graph *to, const struct msc_graph *g,
                                       const struct msc_strategy_weight *m) {
    int32_t tensor = msc_graph_find_tensor(g, m->tensor), product;
    if (tensor == MSC_NO_ID || msc_graph_tensor(g, tensor)->data ||
        msc_graph_tensor(g, tensor)->dtype != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy multiplies activation %s, which the model does not have",
                        m->tensor);
    }
    if (!fits(msc_graph_tensor(g, tensor), m->elements)) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy multiplies activation %s by factors that do not fit its "
                        "shape, or are not finite",
                        m->tensor);
    }
    struct msc_str name = {0};
    msc_str_printf(&name, "%s_equalized", msc_graph_tensor(g, tensor)->name);
    for (char *c = name.data; c && *c; c++) {
        *c = *c == ':' ? '_' : *c; // the name of a joint
    }
    enum msc_status status = msc_str_status(&name);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(add_product(&product, to, tensor, m->elements, msc_str_text(&name)));
    const int32_t *joints;
    int32_t n = msc_graph_consumers(g, tensor, &joints);
    for (int32_t i = 0; i < n; i++) {
        if (msc_strategy__is_multiplied(msc_graph_joint(g, joints[i]), tensor)) {
            MSC_TRY_OUT(msc_graph_replace_operand(to, joints[i], 0, product));
        }
    }
out:
    msc_str_finish(&name);
    return status;
}

enum msc_status msc_strategy__multiply_graph(struct msc_graph **out, const struct msc_strategy *s,
                                             const struct msc_graph *g) {
    struct msc_graph *made;
    if (s->n_multiplied == 0) {
        *out = msc_graph_retain(g);
        return MSC_OK;
    }
    if (msc_graph_own(g) != g) {
        return MSC_FAIL(MSC_E_STATE, "the strategy multiplies activations of a float32 model, but "
                                     "this model has 16-bit floats");
    }
    MSC_TRY(msc_graph_clone(&made, g));
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < s->n_multiplied; i++) {
        status = is_listed_before(s, i)
                     ? MSC_FAIL(MSC_E_STATE, "the strategy multiplies activation %s twice",
                                s->multiplied[i].tensor)
                     : multiply_tensor(made, g, &s->multiplied[i]);
    }
    status = status == MSC_OK ? msc_graph_finalize(made) : status;
    if (status != MSC_OK) {
        msc_graph_destroy(made);
        return status == MSC_E_INVALID ? MSC_FAIL(MSC_E_STATE, "%s", msc_status_message()) : status;
    }
    *out = made;
    return MSC_OK;
}

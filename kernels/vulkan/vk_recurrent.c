// RNN, GRU and LSTM in float32.
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

enum { N_ACTIVATIONS = 6, N_ROLES = 8 }; // three activations per direction; eight operands
enum { IS_BATCH_FIRST = 1, IS_BACKWARDS = 2, IS_LINEAR = 4, COUPLES = 8 }; // flags of the shader

// Numbered as in shaders/recurrent.comp.
static const struct {
    const char *name;
    int n; // number of parameters (alpha, beta)
    float alpha, beta;
} activations[] = {
    {"Relu", 0, 0, 0},          {"Tanh", 0, 0, 0},
    {"Sigmoid", 0, 0, 0},       {"Affine", 2, 1, 0},
    {"LeakyRelu", 1, 0.01f, 0}, {"ThresholdedRelu", 1, 1, 0},
    {"ScaledTanh", 2, 1, 1},    {"HardSigmoid", 2, 0.2f, 0.5f},
    {"Elu", 1, 1, 0},           {"Softsign", 0, 0, 0},
    {"Softplus", 0, 0, 0},
};

static int find_activation(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (strlen(activations[i].name) == length &&
            strncmp(activations[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

// Reads rows {number, alpha, beta} of activations, three per direction. The attributes alpha and
// beta list values only for activations that have such parameters, in order.
static bool read_activations(float rows[N_ACTIVATIONS][3], const struct msc_vk_joint_desc *d,
                             int n_directions) {
    enum msc_op op = d->joint->op;
    const char *names = msc_joint_attr(d->joint, "activations");
    const char *usual = op == MSC_OP_RNN   ? "Tanh,Tanh"
                        : op == MSC_OP_GRU ? "Sigmoid,Tanh,Sigmoid,Tanh"
                                           : "Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh";
    float alphas[N_ACTIVATIONS], betas[N_ACTIVATIONS];
    int n = op == MSC_OP_LSTM ? 3 : op == MSC_OP_GRU ? 2 : 1, alpha = 0, beta = 0;
    int n_alphas = msc_joint_attr_floats(d->joint, "activation_alpha", alphas, N_ACTIVATIONS);
    int n_betas = msc_joint_attr_floats(d->joint, "activation_beta", betas, N_ACTIVATIONS);
    names = names && names[0] != '\0' ? names : usual;
    for (int i = 0; i < n * n_directions; i++) {
        size_t length = strcspn(names, ",");
        int a = find_activation(names, length);
        if (a < 0) {
            return false;
        }
        float *row = rows[i / n * 3 + i % n];
        row[0] = (float)a;
        row[1] = activations[a].n > 0 && alpha < n_alphas ? alphas[alpha++] : activations[a].alpha;
        row[2] = activations[a].n > 1 && beta < n_betas ? betas[beta++] : activations[a].beta;
        names += length + (names[length] == ',');
    }
    return true;
}

static bool is_set(const struct msc_vk_joint_desc *d, const char *key) {
    bool value;
    return msc_joint_attr_bool(d->joint, key, &value) && value;
}

static uint32_t read_flags(const struct msc_vk_joint_desc *d) {
    const char *direction = msc_joint_attr(d->joint, "direction");
    int64_t first = 0;
    msc_vk_joint_i64(&first, d, "layout");
    return (first != 0 ? IS_BATCH_FIRST : 0u) |
           (direction && strcmp(direction, "reverse") == 0 ? IS_BACKWARDS : 0u) |
           (is_set(d, "linear_before_reset") ? IS_LINEAR : 0u) |
           (is_set(d, "input_forget") ? COUPLES : 0u);
}

// Checks that all operands except the lengths are float32. Sets a bit of *has for each optional
// operand that is present.
static bool read_operands(uint32_t *has, const struct msc_vk_joint_desc *d) {
    *has = 0;
    for (int i = 0; i < d->n_x && i < N_ROLES; i++) {
        enum msc_dtype dtype = d->x[i].dtype;
        if (dtype == MSC_DTYPE_NONE) {
            continue;
        }
        if (dtype != (i == 4 ? MSC_DTYPE_I32 : MSC_DTYPE_F32)) {
            return false;
        }
        *has |= i > 2 ? 1u << i : 0;
    }
    for (int i = 0; i < d->n_y; i++) {
        if (d->y[i].dtype != MSC_DTYPE_F32) {
            return false;
        }
    }
    return d->n_x >= 3;
}

static enum msc_status vk_recurrent_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                         const struct msc_vk_joint_desc *d) {
    static const enum msc_vk_shader shaders[] = {MSC_VK_RECURRENT_1, MSC_VK_RECURRENT_2,
                                                 MSC_VK_RECURRENT_3};
    const struct msc_view *x = &d->x[0], *w = &d->x[1], *r = &d->x[2];
    float rows[N_ACTIVATIONS][3] = {{0}}, clip = 0;
    uint32_t has, flags = read_flags(d);
    if (!read_operands(&has, d) || d->n_y < 1 || !read_activations(rows, d, (int)w->dims[0]) ||
        3 * (uint64_t)r->dims[2] * sizeof(float) >
            b->vk->properties.limits.maxComputeSharedMemorySize ||
        msc_view_n_elements(&d->y[0]) == 0) {
        return msc_vk_joint_refuse(d);
    }
    msc_joint_attr_float(d->joint, "clip", &clip);
    bool is_batch_first = (flags & IS_BATCH_FIRST) != 0;
    int64_t times = x->dims[is_batch_first ? 1 : 0], batches = x->dims[is_batch_first ? 0 : 1];
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)(batches * w->dims[0]), N_ROLES);
    MSC_TRY(msc_vk_joint_numbers(s, b, rows, sizeof(rows)));
    const int64_t push[4] = {times, batches, x->dims[2], w->dims[0]};
    for (int i = 0; i < 4; i++) {
        s->push[i] = (uint32_t)push[i];
    }
    memcpy(&s->push[4], &clip, sizeof(clip));
    s->n_push = 5;
    s->is_by_groups = true;
    // With L invocations per workgroup, each invocation computes every L-th hidden unit and takes
    // one loop iteration per product of each gate. Two more loops load and store the states of its
    // units.
    uint64_t units = msc_vk_groups((uint64_t)r->dims[2], b->vk->tuning.lanes);
    uint64_t gates = (uint64_t)(w->dims[1] / r->dims[2]);
    uint64_t products = gates * (uint64_t)(x->dims[2] + r->dims[2] + 2);
    s->turns = (uint64_t)times * (4 + units * (products + 3)) + 2 * (units + 2);
    uint32_t kind = d->joint->op == MSC_OP_RNN ? 0 : d->joint->op == MSC_OP_GRU ? 1 : 2;
    const uint32_t constants[] = {
        b->vk->tuning.lanes, !b->vk->divides_exactly, kind, (uint32_t)r->dims[2], has, flags};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_RECURRENT_1, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_RECURRENT_2, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_RECURRENT_3, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, shaders[d->n_y - 1], constants);
}

const struct msc_vk_family msc_vk_recurrent = {
    .name = "recurrent layer", .init = vk_recurrent_init, MSC_VK_JOINT_FUNCTIONS};

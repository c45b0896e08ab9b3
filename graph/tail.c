#include "graph/tail.h"

#include <math.h>

bool msc_graph__is_between(const struct msc_graph *g, int32_t tensor) {
    const int32_t *readers;
    return tensor != MSC_NO_ID && msc_graph_weight_of(g, tensor) == MSC_NO_ID &&
           msc_dtype_is_float(msc_graph_tensor(g, tensor)->dtype) &&
           msc_graph_consumers(g, tensor, &readers) == 1 && !msc_graph_is_output(g, tensor);
}

// Reads the finite scalar constant in a tensor; false if it is none.
static bool read_number(double *out, const struct msc_graph *g, int32_t tensor) {
    int32_t weight = tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_weight_of(g, tensor);
    const struct msc_tensor *t = weight == MSC_NO_ID ? NULL : msc_graph_tensor(g, weight);
    if (t == NULL || t->data == NULL || t->dtype != MSC_DTYPE_F32 ||
        msc_array_n_elements(t->data) != 1) {
        return false;
    }
    *out = (double)*(const float *)msc_array_data(t->data);
    return isfinite(*out);
}

bool msc_graph__read_affine(struct msc_affine *out, const struct msc_graph *g,
                            const struct msc_joint *j) {
    bool is_sum = j->op == MSC_OP_ADD || j->op == MSC_OP_SUBTRACT;
    bool is_turned = j->op == MSC_OP_SUBTRACT || j->op == MSC_OP_DIVIDE;
    double number = 0;
    if ((!is_sum && j->op != MSC_OP_MULTIPLY && j->op != MSC_OP_DIVIDE) || j->n_operands != 2) {
        return false;
    }
    int constant = read_number(&number, g, j->operands[1]) ? 1 : 0;
    if (constant == 0 && (is_turned || !read_number(&number, g, j->operands[0]))) {
        return false;
    }
    int32_t x = j->operands[1 - constant];
    if (x == MSC_NO_ID || msc_graph_weight_of(g, x) != MSC_NO_ID ||
        msc_graph_tensor(g, j->operands[constant])->n_dims > msc_graph_tensor(g, x)->n_dims) {
        return false;
    }
    *out = (struct msc_affine){.activation = x, .factor = 1};
    if (is_sum) {
        out->shift = is_turned ? -number : number;
    } else {
        out->factor = is_turned ? 1 / number : number;
    }
    return isfinite(out->factor);
}

int32_t msc_graph__passed_on(const struct msc_graph *g, const struct msc_joint *j) {
    struct msc_affine a;
    return msc_graph__read_affine(&a, g, j) ? a.activation
           : j->n_operands > 0              ? j->operands[0]
                                            : MSC_NO_ID;
}

// Reads the bounds of a joint that saturates; false if a bound is computed at run time.
static bool read_limits(double *low, double *high, const struct msc_graph *g,
                        const struct msc_joint *j) {
    float value;
    *low = j->op == MSC_OP_RELU ? 0 : -INFINITY;
    *high = INFINITY;
    if (j->op == MSC_OP_MAXIMUM || j->op == MSC_OP_MINIMUM) {
        return read_number(j->op == MSC_OP_MAXIMUM ? low : high, g, j->operands[1]);
    }
    for (int32_t k = 1; k < j->n_operands; k++) {
        if (j->operands[k] != MSC_NO_ID) {
            return false;
        }
    }
    if (j->op == MSC_OP_CLIP && msc_joint_attr_float(j, "min", &value)) {
        *low = (double)value;
    }
    if (j->op == MSC_OP_CLIP && msc_joint_attr_float(j, "max", &value)) {
        *high = (double)value;
    }
    return true;
}

// Appends a joint to the tail.
static void add_joint(struct msc_tail *tail, const struct msc_graph *g, const struct msc_joint *j) {
    struct msc_affine a;
    double low, high;
    if (msc_graph__read_affine(&a, g, j)) {
        tail->factor *= a.factor;
        tail->shift = tail->shift * a.factor + a.shift;
        tail->low = tail->low * a.factor + a.shift;
        tail->high = tail->high * a.factor + a.shift;
    } else {
        tail->has_known_limits = tail->has_known_limits && read_limits(&low, &high, g, j);
        tail->low = tail->has_known_limits ? fmin(fmax(tail->low, low), high) : tail->low;
        tail->high = tail->has_known_limits ? fmin(fmax(tail->high, low), high) : tail->high;
    }
}

static bool is_tail(enum msc_target_role role) {
    return role == MSC_TARGET_SATURATES || role == MSC_TARGET_AFFINE;
}

int32_t msc_graph__end_of_tail(const struct msc_graph *g, const struct msc_target *target,
                               int32_t tensor) {
    for (int n = 0; n < MSC_TAIL_MOST_JOINTS && msc_graph__is_between(g, tensor); n++) {
        const int32_t *readers;
        (void)msc_graph_consumers(g, tensor, &readers);
        const struct msc_joint *j = msc_graph_joint(g, readers[0]);
        if (!is_tail(msc_target_role(target, g, j)) || msc_graph__passed_on(g, j) != tensor) {
            return tensor;
        }
        tensor = j->outputs[0];
    }
    return tensor;
}

bool msc_graph__find_tail(struct msc_tail *out, const struct msc_graph *g,
                          const struct msc_target *target, int32_t tensor) {
    const struct msc_joint *joints[MSC_TAIL_MOST_JOINTS], *j;
    int n = 0;
    for (;;) {
        int32_t producer = msc_graph_producer(g, tensor);
        if (producer == MSC_NO_ID) {
            return false;
        }
        j = msc_graph_joint(g, producer);
        enum msc_target_role role = msc_target_role(target, g, j);
        if (!is_tail(role)) {
            break;
        }
        tensor = msc_graph__passed_on(g, j);
        if (n == MSC_TAIL_MOST_JOINTS || !msc_graph__is_between(g, tensor)) {
            return false;
        }
        joints[n++] = j;
    }
    if (n == 0 || !msc_target_is_integer(msc_target_role(target, g, j))) {
        return false;
    }
    *out = (struct msc_tail){
        .maker = j, .factor = 1, .low = -INFINITY, .high = INFINITY, .has_known_limits = true};
    while (n-- > 0) {
        add_joint(out, g, joints[n]);
    }
    return true;
}

#include "graph/tail.h"

#include <math.h>

// Reads the bounds of a joint that clips; false if a bound is computed at run time.
static bool read_limits(double *low, double *high, const struct msc_graph *g,
                        const struct msc_joint *j) {
    float value;
    *low = j->op == MSC_OP_RELU ? 0 : -INFINITY;
    *high = INFINITY;
    if (j->op == MSC_OP_MAXIMUM || j->op == MSC_OP_MINIMUM) {
        return msc_graph__read_number(j->op == MSC_OP_MAXIMUM ? low : high, g, j->operands[1]);
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

// Adds a joint at the end of the tail.
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

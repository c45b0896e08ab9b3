// Fuses softmax(q * k' * scale + mask) * v, with the softmax over the last axis, into a joint
// msc.attention. Its body has the matrix products, the softmax and the joints in between. As in
// MSC, transpositions of the operands and of the result are part of the body.
#include "graph/passes/fuse_internal.h"

#include "base/str.h"

#include <math.h>

#define MASKED(scores)                                                                             \
    "matmul(p:nn.softmax(" scores "), v)", "matmul(p:nn.softmax(add(" scores ", mask)), v)",       \
        "matmul(p:nn.softmax(where(mask, " scores ", $low)), v)",                                  \
        "matmul(p:nn.softmax(where(mask, $low, " scores ")), v)"

static const char *const scaled[] = {MASKED("c:multiply(s:matmul(q, k), $scale)"),
                                     MASKED("c:divide(s:matmul(q, k), $scale)")};
static const char *const plain[] = {MASKED("s:matmul(q, k)")};

struct attention {
    struct msc_fuse *fuse;
    struct msc_match match;
    int32_t query, key, value; // operands of the fused joint
    double scale;              // number that the product of q and k is multiplied by
};

static const struct msc_tensor *get_tensor(const struct attention *a, int32_t id) {
    return &a->fuse->graph->tensors[id]->tensor;
}

// The tensor's only consumer; MSC_NO_ID if the tensor has several consumers or is an output.
static int32_t only_reader(const struct attention *a, int32_t tensor) {
    const struct msc_graph *g = a->fuse->graph;
    const struct msc_graph_tensor *t = g->tensors[tensor];
    bool is_only = t->n_consumers == 1 && !g->joints[t->consumers[0]]->is_dead &&
                   !msc_graph_is_output(g, tensor);
    return is_only ? t->consumers[0] : MSC_NO_ID;
}

static bool is_constant(const struct attention *a, int32_t tensor) {
    int32_t weight;
    return get_tensor(a, tensor)->producer == MSC_NO_ID ||
           msc_match_constant(&weight, a->fuse->graph, tensor) != NULL;
}

// For a transposition, returns the position of the operand that it permutes. For a product or
// quotient with a constant, if `scale` is not NULL, returns the position of the other operand, and
// multiplies *scale by the constant factor. Returns -1 for other joints.
static int fuse_attention_find_operand(double *scale, const struct attention *a,
                                       const struct msc_joint *j) {
    double number;
    if (j->op == MSC_OP_PERMUTE_DIMS) {
        return 0;
    }
    for (int i = 0; scale != NULL && i < 2; i++) {
        bool fits = j->op == MSC_OP_MULTIPLY || (j->op == MSC_OP_DIVIDE && i == 0);
        if (fits && msc_match_number(&number, a->fuse->graph, j->operands[1 - i])) {
            *scale = j->op == MSC_OP_MULTIPLY ? *scale * number : *scale / number;
            return i;
        }
    }
    return -1;
}

// Adds the transpositions and scalings directly upstream of `tensor` to the match. Returns the
// tensor that the first joint of this chain reads; `tensor` itself if the chain is empty.
static int32_t look_behind(struct attention *a, int32_t tensor, double *scale) {
    struct msc_match *m = &a->match;
    while (only_reader(a, tensor) != MSC_NO_ID && m->n_joints < MSC_MATCH_MOST) {
        int32_t producer = get_tensor(a, tensor)->producer;
        if (producer == MSC_NO_ID || producer >= m->n_old) {
            break;
        }
        const struct msc_graph_joint *j = a->fuse->graph->joints[producer];
        int operand = j->is_dead ? -1 : fuse_attention_find_operand(scale, a, &j->joint);
        if (operand < 0) {
            break;
        }
        m->joints[m->n_joints++] = producer;
        tensor = j->joint.operands[operand];
    }
    return tensor;
}

// If a transposition is the only consumer of the result, adds it as the first joint of the match.
static void look_ahead(struct attention *a) {
    struct msc_match *m = &a->match;
    const struct msc_graph *g = a->fuse->graph;
    int32_t reader = only_reader(a, g->joints[m->joints[0]]->outputs[0]);
    if (reader != MSC_NO_ID && g->joints[reader]->joint.op == MSC_OP_PERMUTE_DIMS &&
        m->n_joints < MSC_MATCH_MOST) {
        m->joints[m->n_joints++] = m->joints[0];
        m->joints[0] = reader;
    }
}

static bool is_last_axis(const struct attention *a, const struct msc_joint *softmax) {
    int64_t axis;
    int n_dims = get_tensor(a, softmax->outputs[0])->n_dims;
    return msc_joint_attr_i64(softmax, "axis", &axis) && (axis == -1 || axis == n_dims - 1);
}

static bool fuse_attention_find(struct attention *a, int32_t joint) {
    struct msc_match *m = &a->match;
    a->scale = 1;
    if (msc_fuse__find(m, a->fuse, scaled, sizeof(scaled) / sizeof(scaled[0]), joint)) {
        if (fuse_attention_find_operand(&a->scale, a, msc_match_joint(m, "c")) < 0) {
            return false;
        }
    } else if (!msc_fuse__find(m, a->fuse, plain, sizeof(plain) / sizeof(plain[0]), joint)) {
        return false;
    }
    int32_t q = msc_match_tensor(m, "q"), k = msc_match_tensor(m, "k");
    const struct msc_joint *softmax = msc_match_joint(m, "p");
    if (q == k || !is_last_axis(a, softmax) ||
        !msc_dtype_is_float(get_tensor(a, softmax->outputs[0])->dtype)) {
        return false;
    }
    a->query = look_behind(a, q, &a->scale);
    a->key = look_behind(a, k, &a->scale);
    a->value = look_behind(a, msc_match_tensor(m, "v"), NULL);
    return isfinite(a->scale) && !is_constant(a, a->query) && !is_constant(a, a->key) &&
           !is_constant(a, a->value);
}

static enum msc_status fuse_attention_replace(bool *done, const struct attention *a) {
    const struct msc_match *m = &a->match;
    const struct msc_fuse_input inputs[] = {
        {"query", a->query}, {"key", a->key}, {"value", a->value}};
    struct msc_str scale = {0};
    msc_str_float(&scale, (float)a->scale);
    struct msc_attr attrs[] = {
        {"k", get_tensor(a, msc_match_tensor(m, "k"))->name},
        {"probabilities", get_tensor(a, msc_match_tensor(m, "p"))->name},
        {"q", get_tensor(a, msc_match_tensor(m, "q"))->name},
        {"scale", msc_str_text(&scale)},
        {"v", get_tensor(a, msc_match_tensor(m, "v"))->name},
    };
    struct msc_joint_spec spec = {.op = MSC_OP_ATTENTION, .n_attrs = 5, .attrs = attrs};
    enum msc_status status = msc_str_status(&scale);
    if (status == MSC_OK) {
        status = msc_fuse__hold(done, a->fuse, m, inputs, 3, &spec);
    }
    msc_str_finish(&scale);
    return status;
}

enum msc_status msc_fuse_attention(bool *done, struct msc_fuse *f, int32_t joint) {
    struct attention a = {.fuse = f};
    if (f->graph->joints[joint]->joint.op != MSC_OP_MATMUL || !fuse_attention_find(&a, joint)) {
        return MSC_OK;
    }
    look_ahead(&a);
    return fuse_attention_replace(done, &a);
}

#include "graph/reshape.h"

#include "graph/graph_internal.h"
#include "graph/op_attrs.h"

#include <string.h>

// ---- Symbols ----------------------------------------------------------------------------------

// Splits a product of an expression (*rest) and a number above 1; false for any other expression.
static bool split_product(int64_t *number, int32_t *rest, const struct msc_graph *g, int32_t prim) {
    const struct msc_prim *p = msc_graph_prim(g, prim);
    if (strcmp(p->optype, "Mul") != 0 || p->n_parents != 2) {
        return false;
    }
    const struct msc_prim *by = msc_graph_prim(g, p->parents[1]);
    *rest = p->parents[0];
    return strcmp(by->optype, "Int") == 0 && by->n_attrs == 1 &&
           msc_attr_read_int(number, by->attrs[0].value) && *number > 1;
}

int64_t msc_reshape_period(const struct msc_graph *g, const struct msc_tensor *t, int axis) {
    int64_t number;
    int32_t rest;
    if (t->dims[axis] >= 0) {
        return t->dims[axis];
    }
    bool is_product =
        t->prims[axis] != MSC_NO_ID && split_product(&number, &rest, g, t->prims[axis]);
    return is_product ? number : 0;
}

// ---- Blocks -----------------------------------------------------------------------------------

// The factors of a shape's lengths, without factors of 1. A length that is a symbol times a number
// gives two parts.
struct parts {
    int n;
    struct msc_reshape_part part[MSC_RESHAPE_PARTS];
    struct {
        int64_t number; // -1: symbolic
        int32_t prim;
    } length[MSC_RESHAPE_PARTS];
};

static void add_part(struct parts *p, int axis, int64_t number, int32_t prim) {
    p->part[p->n] = (struct msc_reshape_part){axis, number < 0};
    p->length[p->n].number = number;
    p->length[p->n++].prim = prim;
}

static struct parts list_parts(const struct msc_graph *g, const struct msc_tensor *t) {
    struct parts p = {.n = 0};
    for (int i = 0; i < t->n_dims; i++) {
        int64_t number;
        int32_t rest;
        if (t->dims[i] >= 0 || t->prims[i] == MSC_NO_ID ||
            !split_product(&number, &rest, g, t->prims[i])) {
            number = t->dims[i];
            rest = t->prims[i];
        } else {
            add_part(&p, i, -1, rest);
        }
        if (number != 1) {
            add_part(&p, i, number, number < 0 ? rest : MSC_NO_ID);
        }
    }
    return p;
}

static bool is_same(const struct parts *a, int i, const struct parts *b, int k) {
    return a->length[i].number == b->length[k].number && a->length[i].prim == b->length[k].prim &&
           (a->length[i].number >= 0 || a->length[i].prim != MSC_NO_ID);
}

// Finds the fewest parts i, i + step, ... of x and o, o + step, ... of y whose products are equal.
// False if a symbolic part or the last part is reached before that.
static bool match(int *n_in, int *n_out, const struct parts *x, int i, int in_left,
                  const struct parts *y, int o, int out_left, int step) {
    int64_t in = 1, out = 1;
    *n_in = *n_out = 0;
    if (in_left > 0 && out_left > 0 && is_same(x, i, y, o)) {
        *n_in = *n_out = 1;
        return true;
    }
    do {
        bool takes_in = in <= out;
        int *n = takes_in ? n_in : n_out, left = takes_in ? in_left : out_left;
        if (*n == left) {
            return false;
        }
        int64_t length =
            takes_in ? x->length[i + *n * step].number : y->length[o + *n * step].number;
        int64_t *product = takes_in ? &in : &out;
        if (length < 1 || __builtin_mul_overflow(*product, length, product)) {
            return false;
        }
        ++*n;
    } while (in != out);
    return true;
}

static void set_block(struct msc_reshape_block *b, const struct parts *x, int in, int n_in,
                      const struct parts *y, int out, int n_out) {
    b->n_in = n_in;
    b->n_out = n_out;
    memcpy(b->in, x->part + in, (size_t)n_in * sizeof(b->in[0]));
    memcpy(b->out, y->part + out, (size_t)n_out * sizeof(b->out[0]));
}

// Matches blocks from the left until that fails, then from the right; the parts in between are one
// block.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1],
                       const struct msc_graph *g, const struct msc_tensor *x,
                       const struct msc_tensor *y) {
    const struct parts in = list_parts(g, x), out = list_parts(g, y);
    int n = 0, n_in, n_out, i = 0, o = 0, in_end = in.n, out_end = out.n;
    while (match(&n_in, &n_out, &in, i, in_end - i, &out, o, out_end - o, 1)) {
        set_block(&blocks[n++], &in, i, n_in, &out, o, n_out);
        i += n_in;
        o += n_out;
    }
    while (match(&n_in, &n_out, &in, in_end - 1, in_end - i, &out, out_end - 1, out_end - o, -1)) {
        in_end -= n_in;
        out_end -= n_out;
        set_block(&blocks[n++], &in, in_end, n_in, &out, out_end, n_out);
    }
    if (i < in_end || o < out_end) {
        set_block(&blocks[n++], &in, i, in_end - i, &out, o, out_end - o);
    }
    return n;
}

// ---- Shapes -----------------------------------------------------------------------------------

// The axis of x with the same position as axis i of y, counted from the front for a reshape and
// from the end for a broadcast. -1 if x has no such axis.
static int axis_beside(const struct msc_joint *j, const struct msc_tensor *x,
                       const struct msc_tensor *y, int i) {
    int axis = j->op == MSC_OP_RESHAPE ? i : i - (y->n_dims - x->n_dims);
    return axis >= 0 && axis < x->n_dims ? axis : -1;
}

// Writes a symbolic length to a shape. If the input has the same length at that position, writes
// the code that copies it (0 for a reshape, 1 for a broadcast), else -1 (inferred). False if this
// would be a second -1.
static bool write_symbol(int64_t *out, bool *has_rest, const struct msc_joint *j,
                         const struct msc_tensor *x, const struct msc_tensor *y, int i) {
    int axis = axis_beside(j, x, y, i);
    bool is_beside = axis >= 0 && x->dims[axis] < 0 && x->prims[axis] == y->prims[i];
    bool keeps_zero = false;
    (void)msc_joint_attr_bool(j, "allowzero", &keeps_zero);
    if (is_beside && !(keeps_zero && j->op == MSC_OP_RESHAPE)) {
        *out = j->op == MSC_OP_RESHAPE ? 0 : 1;
        return true;
    }
    bool is_first = j->op == MSC_OP_RESHAPE && !*has_rest;
    *has_rest = true;
    *out = -1;
    return is_first;
}

int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]) {
    const struct msc_tensor *x = msc_graph_tensor(g, j->operands[0]);
    const struct msc_tensor *y = msc_graph_tensor(g, j->outputs[0]);
    int64_t old[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j, "shape", old, MSC_MAX_DIMS);
    bool has_attr = n >= 0 && n <= y->n_dims, has_rest = false;
    int first = has_attr ? y->n_dims - n : 0; // broadcast_to accepts a shape with fewer axes
    if (has_attr && first > 0 && j->op == MSC_OP_RESHAPE) {
        return -1;
    }
    for (int i = first; i < y->n_dims; i++) {
        int64_t *number = &out[i - first];
        if (has_attr && (dims[i] < 0 || old[i - first] == -1 || dims[i] == y->dims[i])) {
            *number = old[i - first];
        } else if (dims[i] >= 0) {
            *number = dims[i];
        } else if (!write_symbol(number, &has_rest, j, x, y, i)) {
            return -1;
        }
    }
    return y->n_dims - first;
}

// Known lengths replace the elements of the shape operand. A symbolic element is kept, because the
// operand computes it. An element that is a symbol times a number becomes -1, which the reshape
// infers.
int msc_reshape_elements(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t dims[]) {
    const struct msc_tensor *y = msc_graph_tensor(g, j->outputs[0]);
    bool is_reshape = j->op == MSC_OP_RESHAPE;
    if (j->n_operands < 2 || j->operands[1] == MSC_NO_ID) {
        return -1;
    }
    const struct msc_graph_tensor *shape = g->tensors[j->operands[1]];
    int n = shape->n_values, first = y->n_dims - n, n_left = 0;
    if (shape->tensor.dtype != MSC_DTYPE_I64 || n < 0 || first < 0 || (is_reshape && first != 0)) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        struct msc_dim was = shape->values[i];
        bool is_left = was.prim == MSC_NO_ID && was.value < 0;
        bool is_product = y->dims[first + i] < 0 && msc_reshape_period(g, y, first + i) > 0;
        out[i] = is_left ? 0 : is_product ? -1 : dims[first + i] < 0 ? 0 : dims[first + i];
        n_left += is_left || is_product;
    }
    return n_left > (is_reshape ? 1 : 0) ? -1 : n;
}

bool msc_reshape_is_writable(const struct msc_graph *g, const struct msc_joint *j) {
    const int64_t *dims = msc_graph_tensor(g, j->outputs[0])->dims;
    int64_t shape[MSC_MAX_DIMS];
    return msc_reshape_shape(shape, g, j, dims) >= 0 ||
           msc_reshape_elements(shape, g, j, dims) >= 0;
}

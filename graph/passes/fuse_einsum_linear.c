// Converts an Einsum of a constant w and another factor x to a linear layer. Axes that only x has
// are rows, axes that only w has are outputs, and all other axes are summed. The weight is not
// permuted if its output axes all come before or all after the summed axes.
#include "graph/passes/fuse_einsum_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

#include <string.h>

struct axes {
    int n;
    int64_t dims[MSC_MAX_DIMS]; // positions in the shape of one factor
    int axes[MSC_MAX_DIMS];     // numbers of the axes in the equation
};

struct linear {
    const struct msc_einsum_factor *x, *w;
    struct axes rows;    // axes that only x has, in the order of x
    struct axes outputs; // axes that only w has, in the order of w
    struct axes depth;   // summed axes, in the order of w; `dims` are positions in w
};

static void put_axis(struct axes *a, int dim, int axis) {
    a->dims[a->n] = dim;
    a->axes[a->n++] = axis;
}

static bool read_linear(struct linear *l, const struct msc_graph *g, const struct msc_einsum *e) {
    const struct msc_tensor *x = &g->tensors[l->x->tensor]->tensor;
    const struct msc_tensor *w = &g->tensors[l->w->tensor]->tensor;
    int32_t weight = msc_graph_weight_of(g, l->w->tensor);
    bool fits = weight != MSC_NO_ID && g->tensors[weight]->tensor.data != NULL &&
                msc_graph_weight_of(g, l->x->tensor) == MSC_NO_ID && x->dtype == w->dtype &&
                msc_dtype_is_float(x->dtype) && msc_dtype_bytes(x->dtype) <= sizeof(float);
    for (int i = 0; fits && i < x->n_dims; i++) {
        for (int axis = 0; axis < e->n_axes; axis++) {
            if (l->x->at[axis] == i && axis < e->n_output_axes) {
                fits = l->w->at[axis] < 0;
                put_axis(&l->rows, i, axis);
            }
        }
    }
    for (int i = 0; fits && i < w->n_dims; i++) {
        for (int axis = 0; axis < e->n_axes; axis++) {
            if (l->w->at[axis] != i) {
                continue;
            }
            bool is_summed = axis >= e->n_output_axes;
            fits = fits && is_summed == (l->x->at[axis] >= 0) &&
                   (!is_summed || msc_einsum__same_length(g, l->x, l->w, axis));
            put_axis(is_summed ? &l->depth : &l->outputs, i, axis);
        }
    }
    return fits && l->outputs.n > 0 && l->depth.n > 0 && l->rows.n + l->depth.n == x->n_dims;
}

static int64_t length_of(const struct msc_graph *g, const struct linear *l, const struct axes *a) {
    int64_t length = 1;
    for (int i = 0; i < a->n; i++) {
        length *= g->tensors[l->w->tensor]->tensor.dims[a->dims[i]];
    }
    return length;
}

// Makes the weight a matrix: [O,I] if its output axes come first, else [I,O]. Permutes it if
// necessary.
static enum msc_status make_weight(int32_t *out, struct msc_graph *g, const struct linear *l,
                                   int32_t einsum) {
    int64_t order[MSC_MAX_DIMS], dims[2];
    int n_outputs = l->outputs.n, n_depth = l->depth.n;
    int32_t weight = msc_graph_weight_of(g, l->w->tensor);
    bool is_oi = l->outputs.dims[0] == 0 && l->outputs.dims[n_outputs - 1] == n_outputs - 1;
    const struct axes *first = is_oi ? &l->outputs : &l->depth;
    const struct axes *last = is_oi ? &l->depth : &l->outputs;
    memcpy(order, first->dims, (size_t)first->n * sizeof(order[0]));
    memcpy(order + first->n, last->dims, (size_t)last->n * sizeof(order[0]));
    dims[0] = length_of(g, l, first);
    dims[1] = length_of(g, l, last);
    const char *layout = is_oi ? "OI" : "IO";
    struct msc_tensor *t = &g->tensors[weight]->tensor;
    bool is_moved = !msc_einsum__is_in_order(order, n_outputs + n_depth);
    if (!is_moved && t->n_dims == 2 && (t->layout[0] == '\0' || strcmp(t->layout, layout) == 0)) {
        t->layout = layout;
        *out = weight;
        return MSC_OK;
    }
    struct msc_array *moved = is_moved ? NULL : msc_array_retain(t->data), *matrix = NULL;
    enum msc_status status = MSC_OK;
    if (is_moved) {
        MSC_TRY_OUT(msc_einsum__permute_elements(&moved, g, l->w->tensor,
                                                 g->joints[einsum]->joint.name, "weight", order,
                                                 n_outputs + n_depth));
    }
    MSC_TRY_OUT(
        msc_array_create_from(&matrix, msc_array_dtype(moved), 2, dims, msc_array_data(moved)));
    status = msc_einsum__replace_weight(out, g, l->w->tensor, einsum, layout, matrix);
out:
    msc_array_release(moved);
    msc_array_release(matrix);
    return status;
}

// Permutes x so that its rows come first and the summed axes become one axis after them.
static enum msc_status bring_rows(int32_t *x, struct msc_graph *g, const struct linear *l,
                                  const char *near) {
    int64_t order[MSC_MAX_DIMS], shape[MSC_MAX_DIMS] = {0};
    memcpy(order, l->rows.dims, (size_t)l->rows.n * sizeof(order[0]));
    for (int i = 0; i < l->depth.n; i++) {
        order[l->rows.n + i] = l->x->at[l->depth.axes[i]];
    }
    int n = l->rows.n + l->depth.n;
    *x = l->x->tensor;
    if (!msc_einsum__is_in_order(order, n)) {
        MSC_TRY(msc_einsum__move(x, g, MSC_OP_PERMUTE_DIMS, near, "a", order, n));
    }
    shape[l->rows.n] = length_of(g, l, &l->depth);
    return l->depth.n == 1
               ? MSC_OK
               : msc_einsum__move(x, g, MSC_OP_RESHAPE, near, "rows", shape, l->rows.n + 1);
}

// Replaces the Einsum by the linear layer, followed by a reshape and a permutation if these are
// needed to restore the axes of the result.
static enum msc_status fuse_einsum_linear_finish(struct msc_fuse *f, const struct msc_match *m,
                                                 int32_t einsum, const struct linear *l,
                                                 const struct msc_joint_spec *product,
                                                 const int64_t order[]) {
    struct msc_graph *g = f->graph;
    int64_t shape[MSC_MAX_DIMS] = {0};
    int n = l->rows.n + l->outputs.n;
    bool is_split = l->outputs.n > 1, is_turned = !msc_einsum__is_in_order(order, n);
    struct msc_joint_spec last = *product;
    struct msc_str text = {0};
    struct msc_attr attr;
    int32_t joint, tensor;
    enum msc_status status = MSC_OK;
    for (int i = 0; i < l->outputs.n; i++) {
        shape[l->rows.n + i] = g->tensors[l->w->tensor]->tensor.dims[l->outputs.dims[i]];
    }
    if (is_split || is_turned) {
        const char *near = g->joints[einsum]->joint.name;
        last.name = msc_arena_printf(&g->arena, "%s/product", near);
        MSC_TRY_OUT(last.name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                      : msc_graph_add_joint(&joint, g, &last));
        tensor = g->joints[joint]->outputs[0];
        if (is_split && is_turned) {
            MSC_TRY_OUT(msc_einsum__move(&tensor, g, MSC_OP_RESHAPE, near, "parts", shape, n));
        }
        msc_attr_write_ints(&text, is_turned ? order : shape, (size_t)n);
        MSC_TRY_OUT(msc_str_status(&text));
        attr = (struct msc_attr){is_turned ? "axes" : "shape", msc_str_text(&text)};
        last = (struct msc_joint_spec){.op = is_turned ? MSC_OP_PERMUTE_DIMS : MSC_OP_RESHAPE,
                                       .n_inputs = 1,
                                       .inputs = &tensor,
                                       .n_attrs = 1,
                                       .attrs = &attr};
    }
    status = msc_fuse__replace(f, m, einsum, &last);
out:
    msc_str_finish(&text);
    return status;
}

// Finds, for each axis of the Einsum's output, its position in the result of the linear layer,
// whose axes are the rows and the outputs.
static void order_result(int64_t order[], const struct linear *l) {
    for (int i = 0; i < l->rows.n; i++) {
        order[l->rows.axes[i]] = i;
    }
    for (int i = 0; i < l->outputs.n; i++) {
        order[l->outputs.axes[i]] = l->rows.n + i;
    }
}

enum msc_status msc_fuse__einsum_linear(bool *done, struct msc_fuse *f, const struct msc_match *m,
                                        int32_t einsum, const struct msc_einsum *e,
                                        const struct msc_einsum_factor *a,
                                        const struct msc_einsum_factor *b) {
    struct msc_graph *g = f->graph;
    struct linear l = {.x = a, .w = b};
    struct msc_weight_spec weight = {.role = "weight"};
    int64_t order[MSC_EINSUM_AXES];
    int32_t x;
    if (msc_graph_weight_of(g, a->tensor) != MSC_NO_ID) {
        l = (struct linear){.x = b, .w = a};
    }
    if (!read_linear(&l, g, e)) {
        return MSC_OK;
    }
    *done = true;
    order_result(order, &l);
    MSC_TRY(make_weight(&weight.tensor, g, &l, einsum));
    MSC_TRY(bring_rows(&x, g, &l, g->joints[einsum]->joint.name));
    const struct msc_joint_spec product = {
        .op = MSC_OP_LINEAR, .n_inputs = 1, .inputs = &x, .n_weights = 1, .weights = &weight};
    return fuse_einsum_linear_finish(f, m, einsum, &l, &product, order);
}

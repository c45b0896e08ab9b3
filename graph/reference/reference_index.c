// Gather, scatter and one-hot: operators that select or place elements by indices.
#include "graph/reference/reference_internal.h"

#include "base/platform.h"

#include <string.h>

static enum msc_status check_index(int64_t *out, const struct msc_reference_call *call,
                                   int64_t index, int64_t length, int axis) {
    int64_t at = index < 0 ? index + length : index;
    if (at < 0 || at >= length) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: index %lld is out of range for axis %d of length %lld",
                        call->joint->name, (long long)index, axis, (long long)length);
    }
    *out = at;
    return MSC_OK;
}

static void copy_elements(const struct msc_view *to, int64_t at, const struct msc_view *from,
                          int64_t first, int64_t n) {
    size_t bytes = msc_dtype_bytes(to->dtype);
    if (n > 0) {
        memcpy((char *)to->data + (size_t)at * bytes,
               (const char *)from->data + (size_t)first * bytes, (size_t)n * bytes);
    }
}

// A walk over the elements of `indices`, row by row. Each element of `indices` selects an element
// of `x`. The offset of the selected element in `x` is called its place. The selected element has
// the same coordinates as the element of `indices`, except along `axis`, where the coordinate is
// the index.
struct places {
    const struct msc_reference_call *call;
    const struct msc_view *indices;
    int axis;
    int64_t length, step;             // length and stride of x along `axis`
    struct msc_walk walk;             // over `indices`, and over x with stride 0 along `axis`
    int64_t row[MSC_REFERENCE_CHUNK]; // places of elements of the current row
};

static void places_init(struct places *p, const struct msc_reference_call *call,
                        const struct msc_view *x, const struct msc_view *indices, int axis) {
    int64_t strides[MSC_MAX_DIMS];
    *p = (struct places){.call = call, .indices = indices, .axis = axis, .length = x->dims[axis]};
    msc_reference__walk_init(&p->walk, indices->n_dims, indices->dims);
    msc_reference__strides(strides, indices->n_dims, indices->dims);
    msc_reference__walk_add(&p->walk, strides);
    msc_reference__strides(strides, x->n_dims, x->dims);
    p->step = strides[axis];
    strides[axis] = 0;
    msc_reference__walk_add(&p->walk, strides);
}

// Computes row[0] to row[n - 1] from n indices. False if an index is out of range.
MSC_SIMD static bool find_row(struct places *p, const int64_t indices[], int64_t first, int64_t n) {
    int64_t length = p->length, step = p->step, stride = p->walk.steps[1], n_wrong = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = indices[k] < 0 ? indices[k] + length : indices[k];
        n_wrong += (at < 0) | (at >= length);
        p->row[k] = first + k * stride + at * step;
    }
    return n_wrong == 0;
}

// Finds the places for n elements of the current row, starting at element i.
static enum msc_status places_find(struct places *p, int64_t i, int64_t n) {
    const struct msc_walk *w = &p->walk;
    union msc_reference_chunk buffer;
    const int64_t *indices = msc_reference__load_chunk(
        &buffer, p->indices, w->offsets[0] + i * w->steps[0], w->steps[0], n, MSC_REFERENCE_INT);
    if (find_row(p, indices, w->offsets[1] + i * w->steps[1], n)) {
        return MSC_OK;
    }
    enum msc_status status = MSC_OK;
    for (int64_t k = 0; status == MSC_OK && k < n; k++) {
        int64_t at;
        status = check_index(&at, p->call, indices[k], p->length, p->axis);
    }
    return status;
}

MSC_INLINE void gather_row(char *to, const char *from, const int64_t places[], int64_t n,
                           size_t bytes) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)i * bytes, from + (size_t)places[i] * bytes, bytes);
    }
}

static void gather_places(const struct msc_view *out, int64_t first, const struct msc_view *x,
                          const int64_t places[], int64_t n) {
    size_t bytes = msc_dtype_bytes(x->dtype);
    char *to = (char *)out->data + (size_t)first * bytes;
    if (bytes == 4) { // most tensors have 4-byte elements
        gather_row(to, x->data, places, n, 4);
    } else {
        gather_row(to, x->data, places, n, bytes);
    }
}

enum msc_status msc_reference__gather_elements(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    struct places p;
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    places_init(&p, call, x, &call->operands[1], axis);
    struct msc_walk *w = &p.walk;
    for (bool more = msc_reference__walk_first(w); more; more = msc_reference__walk_next(w)) {
        for (int64_t i = 0; i < w->length; i += MSC_REFERENCE_CHUNK) {
            int64_t n = w->length - i < MSC_REFERENCE_CHUNK ? w->length - i : MSC_REFERENCE_CHUNK;
            MSC_TRY(places_find(&p, i, n));
            gather_places(&call->outputs[0], w->offsets[0] + i, x, p.row, n);
        }
    }
    return MSC_OK;
}

// How an update combines with the existing element.
enum reduction { REPLACE, ADD, MULTIPLY, GREATEST, LEAST };

static enum msc_status read_reduction(enum reduction *out, const struct msc_reference_call *call) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = msc_reference__get_text(call, "reduction");
    for (int i = 0; i < 5; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum reduction)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: reduction '%s' is not supported",
                    call->joint->name, name);
}

static double reduce_double(enum reduction r, double a, double b) {
    return r == ADD        ? a + b
           : r == MULTIPLY ? a * b
           : r == GREATEST ? (b > a || b != b ? b : a)
                           : (b < a || b != b ? b : a);
}

static int64_t reduce_int(enum reduction r, int64_t a, int64_t b) {
    return r == ADD        ? (int64_t)((uint64_t)a + (uint64_t)b)
           : r == MULTIPLY ? (int64_t)((uint64_t)a * (uint64_t)b)
           : r == GREATEST ? (b > a ? b : a)
                           : (b < a ? b : a);
}

static void place_elements(const struct msc_view *out, int64_t at, const struct msc_view *updates,
                           int64_t first, int64_t n, enum reduction r) {
    if (r == REPLACE) {
        copy_elements(out, at, updates, first, n);
        return;
    }
    bool is_real = msc_dtype_is_float(out->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (is_real) {
            double a = msc_reference__get_double_at(out, at + i);
            double b = msc_reference__get_double_at(updates, first + i);
            msc_reference__set_double_at(out, at + i, reduce_double(r, a, b));
        } else {
            int64_t a = msc_reference__get_i64_at(out, at + i);
            int64_t b = msc_reference__get_i64_at(updates, first + i);
            msc_reference__set_i64_at(out, at + i, reduce_int(r, a, b));
        }
    }
}

enum msc_status msc_reference__scatter_elements(const struct msc_reference_call *call) {
    const struct msc_view *indices = &call->operands[1], *out = &call->outputs[0];
    enum reduction reduction = REPLACE;
    struct places p;
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", out->n_dims));
    MSC_TRY(read_reduction(&reduction, call));
    MSC_TRY(msc_reference__copy(call));
    places_init(&p, call, out, indices, axis);
    struct msc_walk *w = &p.walk;
    for (bool more = msc_reference__walk_first(w); more; more = msc_reference__walk_next(w)) {
        for (int64_t i = 0; i < w->length; i += MSC_REFERENCE_CHUNK) {
            int64_t n = w->length - i < MSC_REFERENCE_CHUNK ? w->length - i : MSC_REFERENCE_CHUNK;
            MSC_TRY(places_find(&p, i, n));
            for (int64_t k = 0; k < n; k++) {
                place_elements(out, p.row[k], &call->operands[2], w->offsets[0] + i + k, 1,
                               reduction);
            }
        }
    }
    return MSC_OK;
}

// Index tuples: the last axis of `indices` holds coordinates for the axes of `x` from `first` on.
struct tuples {
    int64_t n, depth;  // number of tuples, and of coordinates per tuple
    int64_t block;     // elements that one tuple selects
    int64_t per_batch; // tuples per batch
    int64_t batch;     // elements of x in a batch
    int first;
};

static struct tuples read_tuples(const struct msc_view *x, const struct msc_view *indices,
                                 int n_batch_dims) {
    struct tuples t = {.first = n_batch_dims};
    t.depth = indices->dims[indices->n_dims - 1];
    t.n = msc_dims_product(indices->n_dims - 1, indices->dims);
    int behind = n_batch_dims + (int)t.depth;
    t.block = msc_dims_product(x->n_dims - behind, x->dims + behind);
    int64_t n_batches = msc_dims_product(n_batch_dims, x->dims);
    t.per_batch = n_batches > 0 ? t.n / n_batches : 0;
    t.batch = msc_dims_product(x->n_dims - n_batch_dims, x->dims + n_batch_dims);
    return t;
}

static enum msc_status tuple_place(int64_t *out, const struct msc_reference_call *call,
                                   const struct tuples *t, const struct msc_view *x,
                                   const struct msc_view *indices, int64_t tuple) {
    int64_t strides[MSC_MAX_DIMS], at = 0;
    msc_reference__strides(strides, x->n_dims, x->dims);
    *out = tuple / t->per_batch * t->batch;
    for (int k = 0; k < t->depth; k++) {
        int axis = t->first + k;
        MSC_TRY(check_index(&at, call, msc_reference__get_i64_at(indices, tuple * t->depth + k),
                            x->dims[axis], axis));
        *out += at * strides[axis];
    }
    return MSC_OK;
}

enum msc_status msc_reference__gather_nd(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *indices = &call->operands[1];
    int64_t n_batch_dims;
    MSC_TRY(msc_reference__get_i64(&n_batch_dims, call, "batch_dims"));
    struct tuples t = read_tuples(x, indices, (int)n_batch_dims);
    for (int64_t i = 0; i < t.n; i++) {
        int64_t place;
        MSC_TRY(tuple_place(&place, call, &t, x, indices, i));
        copy_elements(&call->outputs[0], i * t.block, x, place, t.block);
    }
    return MSC_OK;
}

enum msc_status msc_reference__scatter_nd(const struct msc_reference_call *call) {
    const struct msc_view *indices = &call->operands[1], *out = &call->outputs[0];
    enum reduction reduction = REPLACE;
    MSC_TRY(read_reduction(&reduction, call));
    MSC_TRY(msc_reference__copy(call));
    struct tuples t = read_tuples(out, indices, 0);
    for (int64_t i = 0; i < t.n; i++) {
        int64_t place;
        MSC_TRY(tuple_place(&place, call, &t, out, indices, i));
        place_elements(out, place, &call->operands[2], i * t.block, t.block, reduction);
    }
    return MSC_OK;
}

// Writes the updates of each sample of the batch along `axis`. They begin at the sample's index (0
// by default). Positions wrap around if the mode is circular.
enum msc_status msc_reference__tensor_scatter(const struct msc_reference_call *call) {
    const struct msc_view *updates = &call->operands[1], *out = &call->outputs[0];
    bool is_circular = strcmp(msc_reference__get_text(call, "mode"), "circular") == 0;
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", out->n_dims));
    MSC_TRY(msc_reference__copy(call));
    int64_t inner = msc_dims_product(out->n_dims - axis - 1, out->dims + axis + 1);
    int64_t per_sample = msc_dims_product(axis - 1, out->dims + 1);
    int64_t length = out->dims[axis], n_new = updates->dims[axis];
    for (int64_t i = 0; n_new > 0 && i < out->dims[0] * per_sample; i++) {
        int64_t first = msc_reference__has(call, 2)
                            ? msc_reference__get_i64_at(&call->operands[2], i / per_sample)
                            : 0;
        first = is_circular ? (first % length + length) % length : first;
        if (first < 0 || (!is_circular && first > length - n_new)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: %lld updates from index %lld on do not fit a length of %lld",
                            call->joint->name, (long long)n_new, (long long)first,
                            (long long)length);
        }
        for (int64_t k = 0; k < n_new; k++) {
            copy_elements(out, (i * length + (first + k) % length) * inner, updates,
                          (i * n_new + k) * inner, inner);
        }
    }
    return MSC_OK;
}

// Operand 2 is [off value, on value]. An index out of range gives only off values.
enum msc_status msc_reference__one_hot(const struct msc_reference_call *call) {
    const struct msc_view *indices = &call->operands[0], *out = &call->outputs[0];
    const struct msc_view *values = &call->operands[2];
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", out->n_dims));
    int64_t depth = out->dims[axis];
    int64_t inner = msc_dims_product(out->n_dims - axis - 1, out->dims + axis + 1);
    int64_t n = msc_view_n_elements(out), n_indices = msc_view_n_elements(indices);
    // Writes one off value, then copies all elements written so far until the output is full.
    for (int64_t have = 0; have<n; have += have> 0 ? have : 1) {
        const struct msc_view *from = have > 0 ? out : values;
        copy_elements(out, have, from, 0, have == 0 ? 1 : n - have < have ? n - have : have);
    }
    for (int64_t i = 0; i < n_indices && n > 0; i++) {
        int64_t index = msc_reference__get_i64_at(indices, i);
        index = index < 0 ? index + depth : index;
        if (index >= 0 && index < depth) {
            copy_elements(out, (i / inner * depth + index) * inner + i % inner, values, 1, 1);
        }
    }
    return MSC_OK;
}

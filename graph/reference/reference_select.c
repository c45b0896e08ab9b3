// Operators whose output lengths depend on data. They find the lengths first, then allocate the
// outputs.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum msc_status msc_reference__nonzero(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = msc_view_n_elements(x), count = 0, strides[MSC_MAX_DIMS];
    for (int64_t i = 0; i < n; i++) {
        count += msc_reference__get_double_at(x, i) != 0;
    }
    MSC_TRY(msc_reference__allocate(call, 0, 2, (const int64_t[]){x->n_dims, count}));
    msc_reference__strides(strides, x->n_dims, x->dims);
    for (int64_t i = 0, at = 0; i < n; i++) {
        if (msc_reference__get_double_at(x, i) == 0) {
            continue;
        }
        for (int d = 0; d < x->n_dims; d++) {
            msc_reference__set_i64_at(&call->outputs[0], d * count + at,
                                      i / strides[d] % x->dims[d]);
        }
        at++;
    }
    return MSC_OK;
}

// The operand as slices along an axis. Without an axis, each element is a slice.
struct slices {
    int axis; // -1: no axis
    int64_t n, outer, inner;
    size_t bytes; // size of `inner` elements
};

static enum msc_status read_slices(struct slices *s, const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    *s = (struct slices){.axis = -1, .n = msc_view_n_elements(x), .outer = 1, .inner = 1};
    if (msc_reference__get_text(call, "axis")[0] != '\0') {
        MSC_TRY(msc_reference__get_axis(&s->axis, call, "axis", x->n_dims));
        s->n = x->dims[s->axis];
        s->outer = msc_dims_product(s->axis, x->dims);
        s->inner = msc_dims_product(x->n_dims - s->axis - 1, x->dims + s->axis + 1);
    }
    s->bytes = (size_t)s->inner * msc_dtype_bytes(x->dtype);
    return MSC_OK;
}

static enum msc_status allocate_slices(const struct msc_reference_call *call,
                                       const struct slices *s, int64_t n) {
    const struct msc_view *x = &call->operands[0];
    int64_t dims[MSC_MAX_DIMS] = {0};
    memcpy(dims, x->dims, sizeof(dims));
    dims[s->axis < 0 ? 0 : s->axis] = n;
    return msc_reference__allocate(call, 0, s->axis < 0 ? 1 : x->n_dims, dims);
}

// Copies slice `from` of the operand to slice `to` of the output, which has `n` slices.
static void copy_slice(const struct msc_reference_call *call, const struct slices *s, int64_t to,
                       int64_t n, int64_t from) {
    for (int64_t o = 0; o < s->outer && s->bytes > 0; o++) {
        memcpy((char *)call->outputs[0].data + (size_t)(o * n + to) * s->bytes,
               (const char *)call->operands[0].data + (size_t)(o * s->n + from) * s->bytes,
               s->bytes);
    }
}

enum msc_status msc_reference__compress(const struct msc_reference_call *call) {
    const struct msc_view *condition = &call->operands[1];
    struct slices s;
    MSC_TRY(read_slices(&s, call));
    int64_t n = msc_view_n_elements(condition), count = 0;
    n = n < s.n ? n : s.n;
    for (int64_t i = 0; i < n; i++) {
        count += msc_reference__get_i64_at(condition, i) != 0;
    }
    MSC_TRY(allocate_slices(call, &s, count));
    for (int64_t i = 0, at = 0; i < n; i++) {
        if (msc_reference__get_i64_at(condition, i) != 0) {
            copy_slice(call, &s, at++, count, i);
        }
    }
    return MSC_OK;
}

// ---- Unique -----------------------------------------------------------------------------------

struct unique {
    const struct msc_view *x;
    struct slices s;
    int64_t *order;   // slices in sorted order; equal slices by index
    int64_t *groups;  // [n] the group of equal slices that a slice belongs to
    int64_t *firsts;  // [n_groups] the first slice of each group
    int64_t *counts;  // [n_groups] number of slices in each group
    int64_t *scratch; // [n]
    int64_t n_groups;
};

static int compare_slices(const struct unique *u, int64_t a, int64_t b) {
    bool is_real = msc_dtype_is_float(u->x->dtype);
    for (int64_t o = 0; o < u->s.outer; o++) {
        for (int64_t i = 0; i < u->s.inner; i++) {
            int64_t at = (o * u->s.n + a) * u->s.inner + i;
            int64_t other = (o * u->s.n + b) * u->s.inner + i;
            int order;
            if (is_real) {
                double x = msc_reference__get_double_at(u->x, at);
                double y = msc_reference__get_double_at(u->x, other);
                order = (x > y) - (x < y);
            } else {
                int64_t x = msc_reference__get_i64_at(u->x, at);
                int64_t y = msc_reference__get_i64_at(u->x, other);
                order = (x > y) - (x < y);
            }
            if (order != 0) {
                return order;
            }
        }
    }
    return 0;
}

// Merge sort: it is stable and, unlike in qsort, the comparison can use `u`.
static void sort_slices(struct unique *u, int64_t first, int64_t end) {
    if (end - first < 2) {
        return;
    }
    int64_t middle = first + (end - first) / 2, a = first, b = middle;
    sort_slices(u, first, middle);
    sort_slices(u, middle, end);
    for (int64_t i = first; i < end; i++) {
        bool takes_a = a < middle && (b == end || compare_slices(u, u->order[a], u->order[b]) <= 0);
        u->scratch[i] = takes_a ? u->order[a++] : u->order[b++];
    }
    memcpy(u->order + first, u->scratch + first, (size_t)(end - first) * sizeof(int64_t));
}

static void number_groups(struct unique *u) {
    for (int64_t i = 0; i < u->s.n; i++) {
        int64_t slice = u->order[i];
        bool is_new = i == 0 || compare_slices(u, u->order[i - 1], slice) != 0;
        u->n_groups += is_new;
        u->groups[slice] = u->n_groups - 1;
        if (is_new) {
            u->firsts[u->n_groups - 1] = slice;
            u->counts[u->n_groups - 1] = 0;
        }
        u->counts[u->n_groups - 1]++;
    }
}

// Orders groups by the position of their first slice instead of by content.
static void order_by_appearance(struct unique *u, int64_t *places) {
    int64_t n = 0;
    for (int64_t i = 0; i < u->s.n; i++) {
        if (u->firsts[u->groups[i]] == i) {
            places[u->groups[i]] = n++;
        }
    }
    for (int64_t i = 0; i < u->s.n; i++) {
        u->groups[i] = places[u->groups[i]];
    }
    for (int64_t g = 0; g < u->n_groups; g++) {
        u->scratch[places[g]] = u->firsts[g];
        u->order[places[g]] = u->counts[g];
    }
    memcpy(u->firsts, u->scratch, (size_t)u->n_groups * sizeof(int64_t));
    memcpy(u->counts, u->order, (size_t)u->n_groups * sizeof(int64_t));
}

static enum msc_status write_unique(const struct msc_reference_call *call, const struct unique *u) {
    MSC_TRY(allocate_slices(call, &u->s, u->n_groups));
    for (int64_t g = 0; g < u->n_groups; g++) {
        copy_slice(call, &u->s, g, u->n_groups, u->firsts[g]);
    }
    const int64_t *lists[] = {NULL, u->firsts, u->groups, u->counts};
    for (int i = 1; i < call->n_outputs; i++) {
        int64_t n = i == 2 ? u->s.n : u->n_groups;
        MSC_TRY(msc_reference__allocate(call, i, 1, &n));
        for (int64_t k = 0; k < n; k++) {
            msc_reference__set_i64_at(&call->outputs[i], k, lists[i][k]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_reference__unique(const struct msc_reference_call *call) {
    struct unique u = {.x = &call->operands[0]};
    bool is_sorted;
    MSC_TRY(read_slices(&u.s, call));
    MSC_TRY(msc_reference__get_bool(&is_sorted, call, "sorted"));
    size_t n = (size_t)u.s.n + 1;
    int64_t *memory = msc_alloc_zero(6 * n, sizeof(int64_t));
    MSC_TRY(MSC_ALLOCATED(memory));
    u.order = memory;
    u.groups = memory + n;
    u.firsts = memory + 2 * n;
    u.counts = memory + 3 * n;
    u.scratch = memory + 4 * n;
    for (int64_t i = 0; i < u.s.n; i++) {
        u.order[i] = i;
    }
    sort_slices(&u, 0, u.s.n);
    number_groups(&u);
    if (!is_sorted) {
        order_by_appearance(&u, memory + 5 * n);
    }
    enum msc_status status = write_unique(call, &u);
    msc_free(memory);
    return status;
}

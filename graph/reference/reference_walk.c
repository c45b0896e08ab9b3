#include "graph/reference/reference_internal.h"

#include <assert.h>
#include <string.h>

void msc_reference__walk_init(struct msc_walk *w, int n_dims, const int64_t dims[]) {
    assert(n_dims <= MSC_WALK_DIMS);
    memset(w, 0, sizeof(*w));
    w->n_dims = n_dims;
    for (int i = 0; i < n_dims; i++) {
        w->dims[i] = dims[i];
    }
}

void msc_reference__walk_add(struct msc_walk *w, const int64_t strides[]) {
    assert(w->n_views < MSC_WALK_VIEWS);
    for (int i = 0; i < w->n_dims; i++) {
        w->strides[w->n_views][i] = strides[i];
    }
    w->n_views++;
}

// True if axis `inner`, which follows `outer`, can be merged with it in all views.
static bool continues(const struct msc_walk *w, int outer, int inner) {
    for (int v = 0; v < w->n_views; v++) {
        if (w->strides[v][outer] != w->strides[v][inner] * w->dims[inner]) {
            return false;
        }
    }
    return true;
}

static void merge_axes(struct msc_walk *w) {
    int kept = 0;
    for (int i = 0; i < w->n_dims; i++) {
        if (w->dims[i] == 1) {
            continue;
        }
        int to = kept;
        int64_t length = w->dims[i];
        if (kept > 0 && continues(w, kept - 1, i)) {
            to = kept - 1;
            length *= w->dims[to];
        }
        w->dims[to] = length;
        for (int v = 0; v < w->n_views; v++) {
            w->strides[v][to] = w->strides[v][i];
        }
        kept = to + 1;
    }
    w->n_dims = kept;
}

bool msc_reference__walk_first(struct msc_walk *w) {
    for (int i = 0; i < w->n_dims; i++) {
        if (w->dims[i] == 0) {
            return false;
        }
    }
    merge_axes(w);
    w->length = 1;
    if (w->n_dims > 0) {
        w->n_dims--;
        w->length = w->dims[w->n_dims];
        for (int v = 0; v < w->n_views; v++) {
            w->steps[v] = w->strides[v][w->n_dims];
        }
    } else {
        for (int v = 0; v < w->n_views; v++) {
            w->steps[v] = 1;
        }
    }
    return true;
}

bool msc_reference__walk_next(struct msc_walk *w) {
    for (int i = w->n_dims - 1; i >= 0; i--) {
        w->index[i]++;
        for (int v = 0; v < w->n_views; v++) {
            w->offsets[v] += w->strides[v][i];
        }
        if (w->index[i] < w->dims[i]) {
            return true;
        }
        for (int v = 0; v < w->n_views; v++) {
            w->offsets[v] -= w->strides[v][i] * w->dims[i];
        }
        w->index[i] = 0;
    }
    return false;
}

void msc_reference__strides(int64_t strides[], int n_dims, const int64_t dims[]) {
    int64_t stride = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

void msc_reference__broadcast_strides(int64_t strides[], const struct msc_view *v, int n_dims,
                                      const int64_t dims[]) {
    int64_t own[MSC_MAX_DIMS];
    msc_reference__strides(own, v->n_dims, v->dims);
    for (int i = 0; i < n_dims; i++) {
        int from = i - (n_dims - v->n_dims);
        assert(from < 0 || v->dims[from] == 1 || v->dims[from] == dims[i]);
        strides[i] = from < 0 || v->dims[from] == 1 ? 0 : own[from];
    }
}

void msc_reference__copy_row(void *to, int64_t to_step, const void *from, int64_t from_step,
                             int64_t n, size_t bytes) {
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)n * bytes);
        return;
    }
    if (to_step == 1 && from_step == 0 && n > 0) {
        // One element n times: copy the elements written so far, twice as many each time.
        size_t have = bytes, need = (size_t)n * bytes;
        memcpy(to, from, bytes);
        while (have < need) {
            size_t more = have < need - have ? have : need - have;
            memcpy((char *)to + have, to, more);
            have += more;
        }
        return;
    }
    if (bytes == 4) { // most tensors have 4-byte elements
        uint32_t *out = to;
        const uint32_t *in = from;
        for (int64_t i = 0; i < n; i++) {
            out[i * to_step] = in[i * from_step];
        }
        return;
    }
    int64_t width = (int64_t)bytes;
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)to + i * to_step * width, (const char *)from + i * from_step * width, bytes);
    }
}

void msc_reference__copy_walk(struct msc_walk *w, const struct msc_view *out, int64_t out_first,
                              const struct msc_view *in, int64_t in_first) {
    assert(w->n_views == 2 && out->dtype == in->dtype);
    size_t bytes = msc_dtype_bytes(out->dtype);
    int64_t width = (int64_t)bytes;
    for (bool more = msc_reference__walk_first(w); more; more = msc_reference__walk_next(w)) {
        msc_reference__copy_row((char *)out->data + (out_first + w->offsets[0]) * width,
                                w->steps[0],
                                (const char *)in->data + (in_first + w->offsets[1]) * width,
                                w->steps[1], w->length, bytes);
    }
}

struct msc_reference_lines msc_reference__lines(const struct msc_view *x, int axis) {
    int64_t outer = msc_dims_product(axis, x->dims);
    int64_t inner = msc_dims_product(x->n_dims - axis - 1, x->dims + axis + 1);
    return (struct msc_reference_lines){outer * inner, outer, x->dims[axis], inner};
}

int64_t msc_reference__line_first(const struct msc_reference_lines *l, int64_t line) {
    return line / l->inner * l->length * l->inner + line % l->inner;
}

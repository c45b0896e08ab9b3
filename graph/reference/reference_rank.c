// The largest and smallest elements along an axis: TopK, ArgMax, ArgMin.
//
// Elements of all types are converted to integer keys. The element that comes first in the
// requested order gets the lowest key. Among equal keys the first element wins.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/float_bits.h"
#include "base/heap.h"
#include "base/platform.h"

#include <string.h>

// How elements are converted to keys.
struct order {
    int64_t flip; // -1 if the largest element comes first, else 0
    int64_t nan;  // the key of a NaN
};

// ---- Keys -------------------------------------------------------------------------------------

// The bits of a float, read as an integer, have the float's order, but for negative floats the
// order is reversed. Adding 0 changes -0 to +0.
MSC_SIMD static void keys_of_floats(int64_t keys[], const float x[], int64_t n,
                                    const struct order *order) {
    int64_t flip = order->flip, nan = order->nan;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits = (int32_t)msc_float_bits(x[i] + 0.0f);
        int64_t key = (int64_t)(bits < 0 ? bits ^ INT32_MAX : bits) ^ flip;
        keys[i] = x[i] != x[i] ? nan : key;
    }
}

static void keys_of_doubles(int64_t keys[], const double x[], int64_t n,
                            const struct order *order) {
    for (int64_t i = 0; i < n; i++) {
        double value = x[i] + 0.0;
        int64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        int64_t key = (bits < 0 ? bits ^ INT64_MAX : bits) ^ order->flip;
        keys[i] = x[i] != x[i] ? order->nan : key;
    }
}

MSC_SIMD static void keys_of_wholes(int64_t keys[], const int64_t x[], int64_t n, int64_t flip) {
    for (int64_t i = 0; i < n; i++) {
        keys[i] = x[i] ^ flip;
    }
}

// Reads the keys of n elements that are `stride` apart; n is at most MSC_REFERENCE_CHUNK.
static void read_keys(int64_t keys[], const struct msc_view *x, int64_t offset, int64_t stride,
                      int64_t n, const struct order *order) {
    enum msc_reference_kind kind = msc_reference__kind(x->dtype);
    union msc_reference_chunk buffer;
    const void *numbers = msc_reference__load_chunk(&buffer, x, offset, stride, n, kind);
    switch (kind) {
    case MSC_REFERENCE_F32:
        keys_of_floats(keys, numbers, n, order);
        break;
    case MSC_REFERENCE_DOUBLE:
        keys_of_doubles(keys, numbers, n, order);
        break;
    case MSC_REFERENCE_INT:
        keys_of_wholes(keys, numbers, n, order->flip);
        break;
    }
}

static int64_t chunk_of(int64_t n_left) {
    return n_left < MSC_REFERENCE_CHUNK ? n_left : MSC_REFERENCE_CHUNK;
}

// ---- TopK -------------------------------------------------------------------------------------

struct ranked {
    int64_t key, index;
};

static bool is_ranked_before(const void *context, const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    (void)context;
    // Compares without branches, because the order of unsorted elements cannot be predicted.
    return (a->key < b->key) | ((a->key == b->key) & (a->index < b->index));
}

// Finds the best k > 0 elements of a line, in order.
static void rank_line(struct ranked best[], int64_t k, const struct msc_view *x, int64_t first,
                      const struct msc_reference_lines *lines, const struct order *order) {
    struct ranked spare;
    const struct msc_heap heap = {.elements = best,
                                  .element_bytes = sizeof(best[0]),
                                  .spare = &spare,
                                  .is_before = is_ranked_before};
    int64_t keys[MSC_REFERENCE_CHUNK];
    for (int64_t i = 0; i < lines->length; i += MSC_REFERENCE_CHUNK) {
        int64_t n = chunk_of(lines->length - i), at = 0;
        read_keys(keys, x, first + i * lines->inner, lines->inner, n, order);
        for (; at < n && i + at < k; at++) {
            best[i + at] = (struct ranked){keys[at], i + at};
            if (i + at == k - 1) {
                msc_heap_make(&heap, (size_t)k);
            }
        }
        for (; at < n; at++) {
            if (keys[at] < best[0].key) {
                msc_heap_replace(&heap, (size_t)k, &(struct ranked){keys[at], i + at});
            }
        }
    }
    msc_heap_sort_made(&heap, (size_t)k);
}

// Stores the selected elements, and their indices if requested.
static void store_ranked(const struct msc_reference_call *call, int64_t to, int64_t from,
                         const struct ranked best[], int64_t k, int64_t inner) {
    size_t bytes = msc_dtype_bytes(call->operands[0].dtype);
    const char *in = call->operands[0].data;
    char *out = call->outputs[0].data;
    for (int64_t i = 0; i < k; i++) {
        memcpy(out + (size_t)(to + i * inner) * bytes,
               in + (size_t)(from + best[i].index * inner) * bytes, bytes);
        if (call->n_outputs > 1) {
            msc_reference__set_i64_at(&call->outputs[1], to + i * inner, best[i].index);
        }
    }
}

enum msc_status msc_reference__topk(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int axis;
    bool is_largest;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    MSC_TRY(msc_reference__get_bool(&is_largest, call, "largest"));
    // NaN counts as the largest.
    struct order order = {.flip = is_largest ? -1 : 0, .nan = is_largest ? INT64_MIN : INT64_MAX};
    struct msc_reference_lines lines = msc_reference__lines(x, axis);
    int64_t k = call->outputs[0].dims[axis], inner = lines.inner;
    struct ranked *best = msc_alloc_zero((size_t)k + 1, sizeof(best[0]));
    MSC_TRY(MSC_ALLOCATED(best));
    for (int64_t l = 0; k > 0 && l < lines.n; l++) {
        int64_t from = msc_reference__line_first(&lines, l);
        int64_t to = l / inner * k * inner + l % inner;
        rank_line(best, k, x, from, &lines, &order);
        store_ranked(call, to, from, best, k, inner);
    }
    msc_free(best);
    return MSC_OK;
}

// ---- ArgMax, ArgMin ---------------------------------------------------------------------------

struct search {
    const struct msc_view *x;
    struct msc_reference_lines lines;
    struct order order;
    bool is_last; // selects the last of equal elements
};

// Changes the key of a NaN so that it wins. Called with the keys of the first elements of n lines,
// because a NaN wins only if it is the first element of its line.
static void prefer_nan(int64_t keys[], int64_t n, const struct search *s) {
    bool is_real = msc_dtype_is_float(s->x->dtype);
    for (int64_t i = 0; is_real && i < n; i++) {
        keys[i] = keys[i] == s->order.nan ? INT64_MIN : keys[i];
    }
}

MSC_SIMD static int64_t least_of(const int64_t keys[], int64_t n) {
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < n; i++) {
        least = keys[i] < least ? keys[i] : least;
    }
    return least;
}

// The first position of `key`, which must be among `keys`.
MSC_SIMD static int64_t first_place(const int64_t keys[], int64_t n, int64_t key) {
    int64_t place = n;
    for (int64_t i = 0; i < n; i++) {
        int64_t here = keys[i] == key ? i : n;
        place = here < place ? here : place;
    }
    return place;
}

static int64_t last_place(const int64_t keys[], int64_t n, int64_t key) {
    while (n > 0 && keys[n - 1] != key) {
        n--;
    }
    return n - 1;
}

// Searches one line at a time.
static void find_in_lines(const struct search *s, const struct msc_view *out) {
    int64_t keys[MSC_REFERENCE_CHUNK], length = s->lines.length, inner = s->lines.inner;
    for (int64_t l = 0; l < s->lines.n; l++) {
        int64_t first = msc_reference__line_first(&s->lines, l), best = INT64_MAX, place = 0;
        for (int64_t i = 0; i < length; i += MSC_REFERENCE_CHUNK) {
            int64_t n = chunk_of(length - i);
            read_keys(keys, s->x, first + i * inner, inner, n, &s->order);
            prefer_nan(keys, i == 0, s);
            int64_t least = least_of(keys, n);
            if (s->is_last && least <= best) {
                place = i + last_place(keys, n, least);
            } else if (least < best) {
                place = i + first_place(keys, n, least);
            }
            best = least < best ? least : best;
        }
        msc_reference__set_i64_at(out, l, place);
    }
}

// Updates the best key and its position for n lines.
MSC_SIMD static void keep_better(int64_t *restrict best, int64_t *restrict places,
                                 const int64_t *restrict keys, int64_t n, int64_t place,
                                 bool is_last) {
    for (int64_t i = 0; i < n; i++) {
        bool is_better = (keys[i] < best[i]) | ((keys[i] == best[i]) & is_last);
        best[i] = is_better ? keys[i] : best[i];
        places[i] = is_better ? place : places[i];
    }
}

// Searches n lines together. Line 0 begins at element `first`, and lines begin `step` apart.
static void find_in_plane(int64_t places[], const struct search *s, int64_t first, int64_t step,
                          int64_t n) {
    int64_t keys[MSC_REFERENCE_CHUNK], best[MSC_REFERENCE_CHUNK];
    read_keys(best, s->x, first, step, n, &s->order);
    prefer_nan(best, n, s);
    memset(places, 0, (size_t)n * sizeof(places[0]));
    for (int64_t i = 1; i < s->lines.length; i++) {
        read_keys(keys, s->x, first + i * s->lines.inner, step, n, &s->order);
        keep_better(best, places, keys, n, i, s->is_last);
    }
}

// Searches many lines together. The lines are interleaved, or one follows the other.
static void find_in_planes(const struct search *s, const struct msc_view *out) {
    int64_t places[MSC_REFERENCE_CHUNK], length = s->lines.length;
    bool are_rows = s->lines.inner == 1;
    int64_t n_planes = are_rows ? 1 : s->lines.outer;
    int64_t n_lines = are_rows ? s->lines.outer : s->lines.inner, step = are_rows ? length : 1;
    for (int64_t plane = 0; plane < n_planes; plane++) {
        for (int64_t i = 0; i < n_lines; i += MSC_REFERENCE_CHUNK) {
            int64_t n = chunk_of(n_lines - i);
            find_in_plane(places, s, plane * length * n_lines + i * step, step, n);
            msc_reference__store_chunk(out, plane * n_lines + i, places, n, MSC_REFERENCE_INT);
        }
    }
}

// True if it is faster to vectorise across neighbouring lines than along a line.
static bool goes_across(const struct msc_reference_lines *l) {
    enum { SHORT = 32, NARROW = 8 };
    return l->inner == 1 ? l->length > 0 && l->length < SHORT : l->length > 0 && l->inner >= NARROW;
}

enum msc_status msc_reference__argmax(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    bool is_greatest = call->joint->op == MSC_OP_ARGMAX;
    struct search s = {.x = x, .order = {.flip = is_greatest ? -1 : 0, .nan = INT64_MAX}};
    int axis;
    MSC_TRY(msc_reference__check_u64(call));
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    MSC_TRY(msc_reference__get_bool(&s.is_last, call, "select_last_index"));
    s.lines = msc_reference__lines(x, axis);
    if (goes_across(&s.lines)) {
        find_in_planes(&s, out);
    } else {
        find_in_lines(&s, out);
    }
    return MSC_OK;
}

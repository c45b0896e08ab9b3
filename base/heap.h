// A heap in the caller's array: sorting, and keeping the best of many. Nothing allocates, which
// qsort may. An order must tell any two elements apart, so that results depend on nothing else.
//
//     static bool is_before(const void *context, const void *a, const void *b) …
//     const struct msc_heap heap = {.elements = order, .element_bytes = sizeof order[0],
//                                   .is_before = is_before, .context = values};
//     msc_heap_sort(&heap, n);
//
// The functions are inline, so that an order which the compiler sees costs no call.
#ifndef MSC_BASE_HEAP_H
#define MSC_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSC_HEAP_ELEMENT_BYTES 32 // at most

struct msc_heap {
    void *elements; // the heap's first is the one that all others come before
    size_t element_bytes;
    bool (*is_before)(const void *context, const void *a, const void *b);
    const void *context; // may be NULL
};

static inline char *msc_heap__at(const struct msc_heap *heap, size_t i) {
    return (char *)heap->elements + i * heap->element_bytes;
}

static inline void msc_heap__swap(const struct msc_heap *heap, size_t i, size_t k) {
    char held[MSC_HEAP_ELEMENT_BYTES];
    memcpy(held, msc_heap__at(heap, i), heap->element_bytes);
    memcpy(msc_heap__at(heap, i), msc_heap__at(heap, k), heap->element_bytes);
    memcpy(msc_heap__at(heap, k), held, heap->element_bytes);
}

static inline bool msc_heap__is_before(const struct msc_heap *heap, size_t i, size_t k) {
    return heap->is_before(heap->context, msc_heap__at(heap, i), msc_heap__at(heap, k));
}

// Moves the element at `place` down until no child comes after it.
static inline void msc_heap__sift_down(const struct msc_heap *heap, size_t n, size_t place) {
    for (size_t child = 2 * place + 1; child < n; child = 2 * place + 1) {
        child += child + 1 < n && msc_heap__is_before(heap, child, child + 1);
        if (!msc_heap__is_before(heap, place, child)) {
            return;
        }
        msc_heap__swap(heap, place, child);
        place = child;
    }
}

static inline void msc_heap__make(const struct msc_heap *heap, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        msc_heap__sift_down(heap, n, i);
    }
}

// Sorts the first n elements.
static inline void msc_heap_sort(const struct msc_heap *heap, size_t n) {
    msc_heap__make(heap, n);
    for (size_t end = n; end-- > 1;) {
        msc_heap__swap(heap, 0, end);
        msc_heap__sift_down(heap, end, 0);
    }
}

// Keeps the first `max` > 0 in order of all elements offered: *n are kept, in no order that is
// promised.
static inline void msc_heap_offer(const struct msc_heap *heap, size_t *n, size_t max,
                                  const void *element) {
    if (*n < max) {
        memcpy(msc_heap__at(heap, (*n)++), element, heap->element_bytes);
        if (*n == max) {
            msc_heap__make(heap, max);
        }
    } else if (heap->is_before(heap->context, element, heap->elements)) {
        memcpy(heap->elements, element, heap->element_bytes);
        msc_heap__sift_down(heap, max, 0);
    }
}

#ifdef __cplusplus
}
#endif

#endif

// A heap in the caller's array, for sorting and for keeping the best elements. Unlike qsort it
// never allocates. The order must be strict (no two elements equal), so that results are
// deterministic.
//
//     static bool is_before(const void *context, const void *a, const void *b) …
//     size_t spare;
//     const struct msc_heap heap = {.elements = order, .element_bytes = sizeof order[0],
//                                   .spare = &spare, .is_before = is_before, .context = values};
//     msc_heap_sort(&heap, n);
//
// The functions are inline, so that the compiler can inline a known order.
#ifndef MSC_BASE_HEAP_H
#define MSC_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct msc_heap {
    void *elements; // the array; the first element of a heap is first in the order
    size_t element_bytes;
    void *spare; // room for one element
    bool (*is_before)(const void *context, const void *a, const void *b);
    const void *context; // may be NULL
};

static inline char *msc_heap__at(const struct msc_heap *heap, size_t i) {
    return (char *)heap->elements + i * heap->element_bytes;
}

static inline void msc_heap__copy(const struct msc_heap *heap, void *to, const void *from) {
    memcpy(to, from, heap->element_bytes);
}

static inline bool msc_heap__is_before(const struct msc_heap *heap, size_t i, size_t k) {
    return heap->is_before(heap->context, msc_heap__at(heap, i), msc_heap__at(heap, k));
}

// Places the spare element in a heap of n elements: starts at the free position `hole` and moves
// down as far as the order requires.
static inline void msc_heap__sift_down(const struct msc_heap *heap, size_t n, size_t hole) {
    for (size_t child = 2 * hole + 1; child < n; child = 2 * hole + 1) {
        // Computed without branches, because the processor cannot predict which child is smaller.
        size_t is_pair = child + 1 < n;
        child += is_pair & (size_t)msc_heap__is_before(heap, child, child + is_pair);
        if (!heap->is_before(heap->context, heap->spare, msc_heap__at(heap, child))) {
            break;
        }
        msc_heap__copy(heap, msc_heap__at(heap, hole), msc_heap__at(heap, child));
        hole = child;
    }
    msc_heap__copy(heap, msc_heap__at(heap, hole), heap->spare);
}

// Turns the first n elements into a heap.
static inline void msc_heap_make(const struct msc_heap *heap, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        msc_heap__copy(heap, heap->spare, msc_heap__at(heap, i));
        msc_heap__sift_down(heap, n, i);
    }
}

// Replaces the first element of a heap of n > 0.
static inline void msc_heap_replace(const struct msc_heap *heap, size_t n, const void *element) {
    msc_heap__copy(heap, heap->spare, element);
    msc_heap__sift_down(heap, n, 0);
}

// Sorts a heap of n elements.
static inline void msc_heap_sort_made(const struct msc_heap *heap, size_t n) {
    for (size_t end = n; end-- > 1;) {
        msc_heap__copy(heap, heap->spare, msc_heap__at(heap, end));
        msc_heap__copy(heap, msc_heap__at(heap, end), heap->elements);
        msc_heap__sift_down(heap, end, 0);
    }
}

// Sorts n elements.
static inline void msc_heap_sort(const struct msc_heap *heap, size_t n) {
    msc_heap_make(heap, n);
    msc_heap_sort_made(heap, n);
}

// Adds an element and keeps only the first `max` > 0 in the order. *n is the number kept. The array
// becomes a heap once *n reaches `max`.
static inline void msc_heap_offer(const struct msc_heap *heap, size_t *n, size_t max,
                                  const void *element) {
    if (*n < max) {
        msc_heap__copy(heap, msc_heap__at(heap, (*n)++), element);
        if (*n == max) {
            msc_heap_make(heap, max);
        }
    } else if (heap->is_before(heap->context, element, heap->elements)) {
        msc_heap_replace(heap, max, element);
    }
}

#endif

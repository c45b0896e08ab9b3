// Non-dominated sorting after X. Zhang et al., "An Efficient Approach to Nondominated Sorting for
// Evolutionary Multiobjective Optimization", IEEE TEVC 19(2), 2015: outcomes are taken in
// lexicographic order, so that a later one never dominates an earlier one, and each goes to the
// first front of which no member dominates it.
#include "base/alloc.h"
#include "env/api/trial.h"

#include <stdint.h>

struct sorting {
    const struct msc_outcome *const *outcomes;
    size_t n_objectives;
    size_t *order;    // feasible outcomes in lexicographic order
    size_t *previous; // by outcome: the member of its front added before it, or SIZE_MAX
    size_t *last;     // by front: the member added last
};

static bool comes_before(const struct sorting *s, size_t a, size_t b) {
    for (size_t i = 0; i < s->n_objectives; i++) {
        double x = s->outcomes[a]->objectives[i];
        double y = s->outcomes[b]->objectives[i];
        if (x != y) {
            return x < y;
        }
    }
    return a < b;
}

static void sift_down(const struct sorting *s, size_t root, size_t n) {
    size_t *heap = s->order;
    while (2 * root + 1 < n) {
        size_t child = 2 * root + 1;
        if (child + 1 < n && comes_before(s, heap[child], heap[child + 1])) {
            child++;
        }
        if (!comes_before(s, heap[root], heap[child])) {
            return;
        }
        size_t swapped = heap[root];
        heap[root] = heap[child];
        heap[child] = swapped;
        root = child;
    }
}

// Heap sort: agents may not allocate while they are asked, and qsort may.
static void sort_order(const struct sorting *s, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(s, i, n);
    }
    for (size_t end = n; end-- > 1;) {
        size_t swapped = s->order[0];
        s->order[0] = s->order[end];
        s->order[end] = swapped;
        sift_down(s, 0, end);
    }
}

static bool front_dominates(const struct sorting *s, size_t front, size_t candidate) {
    for (size_t member = s->last[front]; member != SIZE_MAX; member = s->previous[member]) {
        if (msc_outcome_dominates(s->outcomes[member], s->outcomes[candidate], s->n_objectives)) {
            return true;
        }
        // With two objectives the second falls along a front: its last member decides.
        if (s->n_objectives <= 2) {
            return false;
        }
    }
    return false;
}

void msc_pareto_rank_with(size_t ranks[], size_t scratch[],
                          const struct msc_outcome *const outcomes[], size_t n,
                          size_t n_objectives) {
    struct sorting s = {
        .outcomes = outcomes,
        .n_objectives = n_objectives,
        .order = scratch,
        .previous = scratch + n,
        .last = scratch + 2 * n,
    };
    size_t n_feasible = 0;
    for (size_t i = 0; i < n; i++) {
        ranks[i] = SIZE_MAX;
        if (outcomes[i]->state == MSC_TRIAL_COMPLETE) {
            s.order[n_feasible++] = i;
        }
    }
    sort_order(&s, n_feasible);
    size_t n_fronts = 0;
    for (size_t i = 0; i < n_feasible; i++) {
        size_t candidate = s.order[i];
        // A front with a dominating member has only such fronts before it.
        size_t low = 0;
        size_t high = n_fronts;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (front_dominates(&s, middle, candidate)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low == n_fronts) {
            s.last[n_fronts++] = SIZE_MAX;
        }
        ranks[candidate] = low;
        s.previous[candidate] = s.last[low];
        s.last[low] = candidate;
    }
}

enum msc_status msc_pareto_rank(size_t ranks[], const struct msc_outcome *const outcomes[],
                                size_t n, size_t n_objectives) {
    size_t *scratch = msc_alloc_zero(3 * n + 1, sizeof *scratch);
    if (!scratch) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory ranking %zu outcomes", n);
    }
    msc_pareto_rank_with(ranks, scratch, outcomes, n, n_objectives);
    msc_free(scratch);
    return MSC_OK;
}

// Non-dominated sorting after X. Zhang et al., "An Efficient Approach to Nondominated Sorting for
// Evolutionary Multiobjective Optimization", IEEE TEVC 19(2), 2015. Outcomes are processed in
// lexicographic order, so a later one never dominates an earlier one. Each outcome is added to the
// first front that has no member dominating that outcome.
#include "base/alloc.h"
#include "base/heap.h"
#include "env/api/trial.h"

#include <stdint.h>

struct sorting {
    const struct msc_outcome *const *outcomes;
    size_t n_objectives;
    size_t *order;    // feasible outcomes in lexicographic order
    size_t *previous; // by outcome: the previous member of its front, or SIZE_MAX
    size_t *last;     // by front: the member added last
};

static bool is_lexicographically_before(const void *context, const void *left, const void *right) {
    const struct sorting *s = context;
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    for (size_t i = 0; i < s->n_objectives; i++) {
        double x = s->outcomes[a]->objectives[i];
        double y = s->outcomes[b]->objectives[i];
        if (x != y) {
            return x < y;
        }
    }
    return a < b;
}

// qsort is not used because it may allocate: agents must not allocate during an ask.
static void sort_order(const struct sorting *s, size_t n) {
    size_t spare;
    const struct msc_heap heap = {.elements = s->order,
                                  .element_bytes = sizeof *s->order,
                                  .spare = &spare,
                                  .is_before = is_lexicographically_before,
                                  .context = s};
    msc_heap_sort(&heap, n);
}

static bool front_dominates(const struct sorting *s, size_t front, size_t candidate) {
    for (size_t member = s->last[front]; member != SIZE_MAX; member = s->previous[member]) {
        if (msc_outcome_dominates(s->outcomes[member], s->outcomes[candidate], s->n_objectives)) {
            return true;
        }
        // With two objectives, the second objective decreases along a front, so it is enough to
        // compare with the front's last member.
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
    size_t n_fronts = 0;
    for (size_t i = 0; i < n; i++) {
        ranks[i] = SIZE_MAX;
        if (outcomes[i]->state == MSC_TRIAL_COMPLETE) {
            s.order[n_feasible++] = i;
        }
    }
    sort_order(&s, n_feasible);
    for (size_t i = 0; i < n_feasible; i++) {
        size_t candidate = s.order[i];
        // If a front dominates the candidate, all fronts before it dominate the candidate as well,
        // so the search bisects.
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
    MSC_TRY(MSC_ALLOCATED(scratch));
    msc_pareto_rank_with(ranks, scratch, outcomes, n, n_objectives);
    msc_free(scratch);
    return MSC_OK;
}

// Chooses one good outcome and lists the feasible outcomes that it does not cover. Most outcomes
// are thus excluded without sorting.
static size_t list_front_candidates(const struct sorting *s, size_t n) {
    size_t n_candidates = 0;
    size_t good = SIZE_MAX; // index of the good outcome
    for (size_t i = 0; i < n; i++) {
        if (s->outcomes[i]->state == MSC_TRIAL_COMPLETE &&
            (good == SIZE_MAX ||
             msc_outcome_dominates(s->outcomes[i], s->outcomes[good], s->n_objectives))) {
            good = i;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (s->outcomes[i]->state == MSC_TRIAL_COMPLETE &&
            (i == good ||
             !msc_outcome_covers(s->outcomes[good], s->outcomes[i], s->n_objectives))) {
            s->order[n_candidates++] = i;
        }
    }
    return n_candidates;
}

size_t msc_pareto_front(size_t front[], const struct msc_outcome *const outcomes[], size_t n,
                        size_t n_objectives) {
    const struct sorting s = {.outcomes = outcomes, .n_objectives = n_objectives, .order = front};
    size_t n_candidates = list_front_candidates(&s, n);
    size_t n_kept = 0;
    sort_order(&s, n_candidates);
    for (size_t i = 0; i < n_candidates; i++) {
        bool is_covered = false;
        // With two objectives, it is enough to compare with the last outcome kept.
        size_t first = n_objectives <= 2 && n_kept > 0 ? n_kept - 1 : 0;
        for (size_t k = first; k < n_kept && !is_covered; k++) {
            is_covered = msc_outcome_covers(outcomes[front[k]], outcomes[front[i]], n_objectives);
        }
        if (!is_covered) {
            front[n_kept++] = front[i];
        }
    }
    return n_kept;
}

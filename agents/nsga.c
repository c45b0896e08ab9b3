#include "agents/nsga.h"

#include <math.h>

struct front {
    const struct msc_outcome *const *outcomes;
    size_t *members;
    size_t n;
};

// Insertion sort: fronts are small, and members of equal value keep their order.
static void sort_by_objective(struct front *front, size_t objective) {
    for (size_t i = 1; i < front->n; i++) {
        size_t member = front->members[i];
        double value = front->outcomes[member]->objectives[objective];
        size_t j = i;
        while (j > 0 && front->outcomes[front->members[j - 1]]->objectives[objective] > value) {
            front->members[j] = front->members[j - 1];
            j--;
        }
        front->members[j] = member;
    }
}

static void add_crowding(struct front *front, size_t objective, double crowding[]) {
    sort_by_objective(front, objective);
    const struct msc_outcome *const *outcomes = front->outcomes;
    size_t first = front->members[0];
    size_t last = front->members[front->n - 1];
    double range = outcomes[last]->objectives[objective] - outcomes[first]->objectives[objective];
    crowding[first] = INFINITY;
    crowding[last] = INFINITY;
    for (size_t i = 1; i + 1 < front->n && range > 0.0; i++) {
        double gap = outcomes[front->members[i + 1]]->objectives[objective] -
                     outcomes[front->members[i - 1]]->objectives[objective];
        crowding[front->members[i]] += gap / range;
    }
}

// Gives each infeasible outcome a rank of its own. These ranks follow the fronts, in the order of
// violation and then of index.
static void rank_infeasible(size_t ranks[], const struct msc_outcome *const outcomes[], size_t n,
                            size_t n_fronts) {
    for (size_t i = 0; i < n; i++) {
        if (outcomes[i]->state != MSC_TRIAL_INFEASIBLE) {
            continue;
        }
        size_t n_better = 0;
        for (size_t j = 0; j < n; j++) {
            if (outcomes[j]->state == MSC_TRIAL_INFEASIBLE) {
                double difference = outcomes[j]->violation - outcomes[i]->violation;
                n_better += difference < 0.0 || (difference == 0.0 && j < i);
            }
        }
        ranks[i] = n_fronts + n_better;
    }
}

void msc_nsga_rank(size_t ranks[], double crowding[], size_t scratch[],
                   const struct msc_outcome *const outcomes[], size_t n, size_t n_objectives) {
    msc_pareto_rank_with(ranks, scratch, outcomes, n, n_objectives);
    size_t n_fronts = 0;
    for (size_t i = 0; i < n; i++) {
        crowding[i] = 0.0;
        if (ranks[i] != SIZE_MAX && ranks[i] >= n_fronts) {
            n_fronts = ranks[i] + 1;
        }
    }
    for (size_t rank = 0; rank < n_fronts; rank++) {
        struct front front = {.outcomes = outcomes, .members = scratch + 3 * n};
        for (size_t i = 0; i < n; i++) {
            if (ranks[i] == rank) {
                front.members[front.n++] = i;
            }
        }
        for (size_t k = 0; k < n_objectives; k++) {
            add_crowding(&front, k, crowding);
        }
    }
    rank_infeasible(ranks, outcomes, n, n_fronts);
}

bool msc_nsga_before(const size_t ranks[], const double crowding[], size_t a, size_t b) {
    if (ranks[a] != ranks[b]) {
        return ranks[a] < ranks[b];
    }
    if (crowding[a] != crowding[b]) {
        return crowding[a] > crowding[b];
    }
    return a < b;
}

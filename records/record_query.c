#include "records/record_query.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What ranking needs of a trial, without copying a whole outcome.
struct rank_key {
    int class; // 0 feasible, 1 infeasible, 2 can never win
    double value;
    int64_t id;
};

static struct rank_key key_of(const struct msc_record *record,
                              const struct msc_record_trial *trial) {
    const struct msc_objective *objective = &msc_record_goal(record)->objectives[0];
    double value = trial->metrics[objective->metric];
    if (trial->is_left_out) {
        return (struct rank_key){2, 0.0, trial->id};
    }
    switch (trial->state) {
    case MSC_TRIAL_COMPLETE:
        return (struct rank_key){0, objective->is_maximised ? -value : value, trial->id};
    case MSC_TRIAL_INFEASIBLE:
        return (struct rank_key){1, trial->violation, trial->id};
    default:
        return (struct rank_key){2, 0.0, trial->id};
    }
}

// The order of msc_outcome_compare.
static int compare_keys(const void *left, const void *right) {
    const struct rank_key *a = left;
    const struct rank_key *b = right;
    if (a->class != b->class) {
        return a->class - b->class;
    }
    if (a->value != b->value) {
        return a->value < b->value ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

const struct msc_record_trial *msc_record_best(const struct msc_record *record) {
    const struct msc_record_trial *best = NULL;
    struct rank_key best_key = {2, 0.0, 0};
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        struct rank_key key = key_of(record, trial);
        if (key.class < 2 && (!best || compare_keys(&key, &best_key) < 0)) {
            best = trial;
            best_key = key;
        }
    }
    return best;
}

// Keeps the best `max` in a heap with the worst of them on top.
static void sift_down(struct rank_key heap[], size_t n, size_t at) {
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
            worst = compare_keys(&heap[child], &heap[worst]) > 0 ? child : worst;
        }
        if (worst == at) {
            return;
        }
        struct rank_key swapped = heap[at];
        heap[at] = heap[worst];
        heap[worst] = swapped;
        at = worst;
    }
}

static void keep_best(struct rank_key heap[], size_t *n, size_t max, struct rank_key key) {
    if (*n < max) {
        heap[(*n)++] = key;
        for (size_t i = *n / 2; *n == max && i-- > 0;) {
            sift_down(heap, *n, i);
        }
    } else if (compare_keys(&key, &heap[0]) < 0) {
        heap[0] = key;
        sift_down(heap, *n, 0);
    }
}

enum msc_status msc_record_top(int64_t ids[], size_t *n, size_t max,
                               const struct msc_record *record) {
    *n = 0;
    if (max == 0) {
        return MSC_OK;
    }
    struct rank_key *heap = msc_alloc_zero(max, sizeof *heap);
    if (!heap) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the best %zu trials", max);
    }
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        struct rank_key key = key_of(record, trial);
        if (trial->repeat_of < 0 && key.class < 2) {
            keep_best(heap, n, max, key);
        }
    }
    qsort(heap, *n, sizeof *heap, compare_keys);
    for (size_t i = 0; i < *n; i++) {
        ids[i] = heap[i].id;
    }
    msc_free(heap);
    return MSC_OK;
}

struct front_point {
    double objectives[MSC_MAX_OBJECTIVES]; // smaller is better
    int64_t id;
};

static int compare_points(const void *left, const void *right) {
    const struct front_point *a = left;
    const struct front_point *b = right;
    for (size_t i = 0; i < MSC_MAX_OBJECTIVES; i++) {
        if (a->objectives[i] != b->objectives[i]) {
            return a->objectives[i] < b->objectives[i] ? -1 : 1;
        }
    }
    return (a->id > b->id) - (a->id < b->id);
}

static bool covers(const struct front_point *a, const struct front_point *b) {
    for (size_t i = 0; i < MSC_MAX_OBJECTIVES; i++) {
        if (a->objectives[i] > b->objectives[i]) {
            return false;
        }
    }
    return true;
}

static size_t gather_points(struct front_point points[], const struct msc_record *record) {
    const struct msc_goal *goal = msc_record_goal(record);
    size_t n = 0;
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        if (trial->state != MSC_TRIAL_COMPLETE || trial->repeat_of >= 0 || trial->is_left_out) {
            continue;
        }
        struct front_point point = {.id = trial->id};
        for (size_t k = 0; k < goal->n_objectives; k++) {
            double value = trial->metrics[goal->objectives[k].metric];
            point.objectives[k] = goal->objectives[k].is_maximised ? -value : value;
        }
        points[n++] = point;
    }
    return n;
}

// In lexicographic order nothing is dominated by a later point, so one pass against the points
// kept so far is enough. With two objectives the last one kept decides.
static size_t keep_front(struct front_point points[], size_t n, size_t n_objectives) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_covered = false;
        size_t first = n_objectives <= 2 && n_kept > 0 ? n_kept - 1 : 0;
        for (size_t k = first; k < n_kept && !is_covered; k++) {
            is_covered = covers(&points[k], &points[i]);
        }
        if (!is_covered) {
            points[n_kept++] = points[i];
        }
    }
    return n_kept;
}

enum msc_status msc_record_front(int64_t **ids, size_t *n, const struct msc_record *record) {
    enum msc_status status = MSC_OK;
    size_t n_trials = msc_record_n_trials(record);
    struct front_point *points = NULL;
    *ids = NULL;
    *n = 0;
    if (n_trials == 0) {
        return MSC_OK;
    }
    points = msc_alloc_zero(n_trials, sizeof *points);
    if (!points) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the front of %zu trials", n_trials);
    }
    size_t n_points = gather_points(points, record);
    qsort(points, n_points, sizeof *points, compare_points);
    size_t n_kept = keep_front(points, n_points, msc_record_goal(record)->n_objectives);
    if (n_kept > 0) {
        *ids = msc_alloc(n_kept * sizeof **ids);
        if (!*ids) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory for a front of %zu trials", n_kept);
            goto out;
        }
    }
    for (size_t i = 0; i < n_kept; i++) {
        (*ids)[i] = points[i].id;
    }
    *n = n_kept;
out:
    msc_free(points);
    return status;
}

const struct msc_record_trial *msc_record_baseline(const struct msc_record *record, size_t index) {
    if (index >= msc_record_space(record)->n_baselines || index >= msc_record_n_trials(record)) {
        return NULL;
    }
    const struct msc_record_trial *found = msc_record_trial(record, index);
    for (size_t i = msc_record_n_trials(record);
         found->state == MSC_TRIAL_FAILED && i-- > index + 1;) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        if (trial->retry_of == (int64_t)index) {
            return trial;
        }
    }
    return found;
}

void msc_record_count(struct msc_record_counts *out, const struct msc_record *record) {
    size_t n_evaluated = 0;
    double reuse_sum = 0.0;
    *out = (struct msc_record_counts){.n_trials = msc_record_n_trials(record)};
    for (size_t i = 0; i < out->n_trials; i++) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        out->n_by_state[trial->state]++;
        out->n_baselines += trial->baseline >= 0;
        out->n_repeats += trial->repeat_of >= 0;
        out->n_retries += trial->retry_of >= 0;
        out->n_budgeted += trial->baseline < 0 && trial->retry_of < 0;
        out->elapsed_s = fmax(out->elapsed_s, trial->elapsed_s);
        if (trial->repeat_of < 0 && trial->time_us > 0) {
            n_evaluated++;
            reuse_sum += trial->reuse_ratio;
        }
    }
    out->reuse_ratio = n_evaluated > 0 ? reuse_sum / (double)n_evaluated : 0.0;
}

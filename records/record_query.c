#include "records/record_query.h"

#include "base/alloc.h"
#include "base/heap.h"

#include <math.h>

static bool may_win(const struct msc_record_line *line) {
    enum msc_trial_state state = line->trial.outcome.state;
    return !line->is_left_out && msc_trial_state_is_result(state);
}

const struct msc_record_line *msc_record_best(const struct msc_record *record) {
    const struct msc_record_line *best = NULL;
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        const struct msc_record_line *line = msc_record_trial(record, i);
        if (may_win(line) && (!best || msc_trial_compare(&line->trial, &best->trial) < 0)) {
            best = line;
        }
    }
    return best;
}

static bool is_better(const void *context, const void *a, const void *b) {
    const struct msc_record *record = context;
    const struct msc_record_line *left = msc_record_trial(record, (size_t) * (const int64_t *)a);
    const struct msc_record_line *right = msc_record_trial(record, (size_t) * (const int64_t *)b);
    return msc_trial_compare(&left->trial, &right->trial) < 0;
}

void msc_record_top(int64_t ids[], size_t *n, size_t max, const struct msc_record *record) {
    int64_t spare;
    const struct msc_heap heap = {.elements = ids,
                                  .element_bytes = sizeof *ids,
                                  .spare = &spare,
                                  .is_before = is_better,
                                  .context = record};
    *n = 0;
    for (size_t i = 0; max > 0 && i < msc_record_n_trials(record); i++) {
        const struct msc_record_line *line = msc_record_trial(record, i);
        if (may_win(line) && line->repeat_of < 0) {
            msc_heap_offer(&heap, n, max, &line->trial.id);
        }
    }
    msc_heap_sort(&heap, *n);
}

// The outcomes that may stand on a front, and whose they are.
static size_t gather_outcomes(const struct msc_outcome *outcomes[], int64_t ids[],
                              const struct msc_record *record) {
    size_t n = 0;
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        const struct msc_record_line *line = msc_record_trial(record, i);
        if (line->repeat_of < 0 && !line->is_left_out) {
            outcomes[n] = &line->trial.outcome;
            ids[n++] = line->trial.id;
        }
    }
    return n;
}

enum msc_status msc_record_front(int64_t **ids, size_t *n, const struct msc_record *record) {
    enum msc_status status = MSC_OK;
    size_t n_trials = msc_record_n_trials(record);
    const struct msc_outcome **outcomes = msc_alloc_zero(n_trials + 1, sizeof *outcomes);
    int64_t *candidates = msc_alloc_zero(n_trials + 1, sizeof *candidates);
    size_t *front = msc_alloc_zero(n_trials + 1, sizeof *front);
    *ids = NULL;
    *n = 0;
    if (!outcomes || !candidates || !front) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for the front of %zu trials", n_trials);
        goto out;
    }
    size_t n_candidates = gather_outcomes(outcomes, candidates, record);
    size_t n_kept =
        msc_pareto_front(front, outcomes, n_candidates, msc_record_goal(record)->n_objectives);
    if (n_kept > 0) {
        *ids = msc_alloc(n_kept * sizeof **ids);
        if (!*ids) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory for a front of %zu trials", n_kept);
            goto out;
        }
    }
    for (size_t i = 0; i < n_kept; i++) {
        (*ids)[i] = candidates[front[i]];
    }
    *n = n_kept;
out:
    msc_free(outcomes);
    msc_free(candidates);
    msc_free(front);
    return status;
}

const struct msc_record_line *msc_record_baseline(const struct msc_record *record, size_t index) {
    if (index >= msc_record_space(record)->n_baselines || index >= msc_record_n_trials(record)) {
        return NULL;
    }
    const struct msc_record_line *found = msc_record_trial(record, index);
    for (size_t i = msc_record_n_trials(record);
         found->trial.outcome.state == MSC_TRIAL_FAILED && i-- > index + 1;) {
        const struct msc_record_line *line = msc_record_trial(record, i);
        if (line->retry_of == (int64_t)index) {
            return line;
        }
    }
    return found;
}

void msc_record_count(struct msc_record_counts *out, const struct msc_record *record) {
    size_t n_evaluated = 0;
    double reuse_sum = 0.0;
    *out = (struct msc_record_counts){.n_trials = msc_record_n_trials(record)};
    for (size_t i = 0; i < out->n_trials; i++) {
        const struct msc_record_line *line = msc_record_trial(record, i);
        const struct msc_outcome *outcome = &line->trial.outcome;
        out->n_by_state[outcome->state]++;
        out->n_baselines += line->baseline >= 0;
        out->n_repeats += line->repeat_of >= 0;
        out->n_retries += line->retry_of >= 0;
        out->n_told += line->warm == MSC_RECORD_WARM_TOLD;
        out->n_budgeted += msc_record_is_budgeted(line);
        out->elapsed_s = fmax(out->elapsed_s, line->elapsed_s);
        if (msc_record_is_evaluated(line) && outcome->time_us > 0) {
            n_evaluated++;
            reuse_sum += outcome->reuse_ratio;
        }
    }
    out->reuse_ratio = n_evaluated > 0 ? reuse_sum / (double)n_evaluated : 0.0;
}

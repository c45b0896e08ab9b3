#include "records/record_internal.h"
#include "records/record_query.h"

#include "base/alloc.h"
#include "base/heap.h"
#include "records/record_front.h"

#include <math.h>

static bool may_win(const struct msc_record_line *line) {
    enum msc_trial_state state = line->trial.outcome.state;
    return !line->is_left_out && msc_trial_state_is_result(state);
}

bool msc_record_best(struct msc_record_line *out, const struct msc_record *record) {
    struct msc_record_line line;
    bool is_there = false;
    for (size_t i = 0; i < msc_record__n_held(record); i++) {
        msc_record__held(&line, record, i);
        if (may_win(&line) && (!is_there || msc_trial_compare(&line.trial, &out->trial) < 0)) {
            *out = line;
            is_there = true;
        }
    }
    return is_there;
}

static bool is_better(const void *context, const void *a, const void *b) {
    const struct msc_record *record = context;
    const struct msc_record_line left = msc_record_trial(record, (size_t) * (const int64_t *)a);
    const struct msc_record_line right = msc_record_trial(record, (size_t) * (const int64_t *)b);
    return msc_trial_compare(&left.trial, &right.trial) < 0;
}

void msc_record_top(int64_t ids[], size_t *n, size_t max, const struct msc_record *record) {
    int64_t spare;
    const struct msc_heap heap = {.elements = ids,
                                  .element_bytes = sizeof *ids,
                                  .spare = &spare,
                                  .is_before = is_better,
                                  .context = record};
    struct msc_record_line line;
    *n = 0;
    for (size_t i = 0; max > 0 && i < msc_record__n_held(record); i++) {
        msc_record__held(&line, record, i);
        if (may_win(&line) && line.repeat_of < 0) {
            msc_heap_offer(&heap, n, max, &line.trial.id);
        }
    }
    msc_heap_sort(&heap, *n);
}

enum msc_status msc_record_front(int64_t **ids, size_t *n, const struct msc_record *record) {
    struct msc_record_front front = {.n_objectives = msc_record_goal(record)->n_objectives};
    enum msc_status status = MSC_OK;
    struct msc_record_line line;
    for (size_t i = 0; i < msc_record__n_held(record) && status == MSC_OK; i++) {
        msc_record__held(&line, record, i);
        status = msc_record_front_offer(&front, &line);
    }
    if (status == MSC_OK) {
        status = msc_record_front_settle(&front);
    }
    *n = status == MSC_OK ? front.n : 0;
    *ids = *n > 0 ? front.ids : NULL;
    if (*n > 0) {
        front.ids = NULL; // ownership passes to the caller
    }
    msc_record_front_finish(&front);
    return status;
}

bool msc_record_baseline(struct msc_record_line *out, const struct msc_record *record,
                         size_t index) {
    if (index >= msc_record_space(record)->n_baselines || index >= msc_record_n_trials(record)) {
        return false;
    }
    struct msc_record_line line;
    *out = msc_record_trial(record, index);
    for (size_t i = msc_record__n_held(record);
         out->trial.outcome.state == MSC_TRIAL_FAILED && i-- > index + 1;) {
        msc_record__held(&line, record, i);
        if (line.retry_of == (int64_t)index) {
            *out = line;
            return true;
        }
    }
    return true;
}

void msc_record_count_line(struct msc_record_counts *counts, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    counts->n_trials++;
    counts->n_by_state[outcome->state]++;
    counts->n_baselines += line->baseline >= 0;
    counts->n_repeats += line->repeat_of >= 0;
    counts->n_retries += line->retry_of >= 0;
    counts->n_told += line->warm == MSC_RECORD_WARM_TOLD;
    counts->n_budgeted -= counts->ends_assembled;
    counts->ends_assembled = line->is_assembled;
    counts->n_budgeted += msc_record_is_budgeted(line) || line->is_assembled;
    counts->elapsed_s = fmax(counts->elapsed_s, line->elapsed_s);
    if (msc_record_is_evaluated(line) && outcome->time_us > 0) {
        counts->n_evaluated++;
        counts->reuse_sum += outcome->reuse_ratio;
        counts->reuse_ratio = counts->reuse_sum / (double)counts->n_evaluated;
    }
}

void msc_record_count(struct msc_record_counts *out, const struct msc_record *record) {
    if (record->counts) {
        *out = *record->counts;
        return;
    }
    struct msc_record_line line;
    *out = (struct msc_record_counts){0};
    for (size_t i = 0; i < record->n_trials; i++) {
        msc_record__held(&line, record, i);
        msc_record_count_line(out, &line);
    }
}

// A record that holds only its best trials, front and baselines. A first pass over the file chooses
// these trials. A second pass reads each of them, from a noted offset before its line.
#include "base/heap.h"
#include "records/record_front.h"
#include "records/record_internal.h"
#include "records/record_query.h"
#include "records/record_scan.h"

#include <string.h>

// The maximum number of offsets noted; with more trials they are spaced further apart.
#define MOST_PLACES 4096

struct chosen {
    struct msc_record_scan *scan;
    struct msc_record_counts *counts;
    struct msc_trial *best; // heap of at most most_best trials without choices, metrics and reason
    size_t n_best, most_best;
    struct msc_trial best_repeat; // the best trial that repeats another (id -1: none), since it may
                                  // be the best trial if the repeated one is left out
    int64_t *retries;             // [n_baselines] the last retry of each baseline, or -1
    struct msc_record_front front;
    uint64_t *places; // offsets of the trials 0, stride, 2 * stride, ...
    size_t n_places;
    int64_t stride;
    int64_t *ids; // ids of all chosen trials
    size_t n_ids;
};

static bool is_better_trial(const void *context, const void *a, const void *b) {
    (void)context;
    return msc_trial_compare(a, b) < 0;
}

static void note_place(struct chosen *c, int64_t id, uint64_t place) {
    if (id % c->stride != 0) {
        return;
    }
    if (c->n_places == MOST_PLACES) {
        for (size_t i = 0; i < MOST_PLACES / 2; i++) {
            c->places[i] = c->places[2 * i];
        }
        c->n_places = MOST_PLACES / 2;
        c->stride *= 2; // MOST_PLACES is even, so this trial is a multiple of the new stride too
    }
    c->places[c->n_places++] = place;
}

static enum msc_status choose_line(struct chosen *c, const struct msc_record_line *line) {
    struct msc_trial spare;
    const struct msc_heap heap = {.elements = c->best,
                                  .element_bytes = sizeof *c->best,
                                  .spare = &spare,
                                  .is_before = is_better_trial};
    struct msc_trial candidate;
    msc_record_count_line(c->counts, line);
    if (line->retry_of >= 0 && line->baseline >= 0) {
        c->retries[line->baseline] = line->trial.id;
    }
    if (!msc_trial_state_is_result(line->trial.outcome.state)) {
        return MSC_OK;
    }
    if (line->repeat_of >= 0) {
        bool is_first = c->best_repeat.id < 0;
        if (is_first || msc_trial_compare(&line->trial, &c->best_repeat) < 0) {
            c->best_repeat = line->trial;
        }
        return MSC_OK;
    }
    // best[0], the top of the heap, is the worst of its trials; a better trial replaces it.
    if (c->n_best < c->most_best || msc_trial_compare(&line->trial, &c->best[0]) < 0) {
        candidate = line->trial;
        candidate.proposal.choices = NULL;
        candidate.outcome.metrics = NULL;
        candidate.outcome.reason = NULL;
        msc_heap_offer(&heap, &c->n_best, c->most_best, &candidate);
    }
    return msc_record_front_offer(&c->front, line);
}

static enum msc_status make_chosen(struct chosen *c, size_t n_best) {
    const struct msc_record *record = msc_record_scan_record(c->scan);
    size_t n_baselines = record->space->n_baselines;
    c->front.n_objectives = record->goal.n_objectives;
    c->most_best = n_best;
    c->stride = 1;
    c->best_repeat.id = -1;
    c->counts = msc_alloc_zero(1, sizeof *c->counts);
    c->best = msc_alloc_zero(n_best, sizeof *c->best);
    c->retries = msc_alloc_zero(n_baselines, sizeof *c->retries);
    c->places = msc_alloc_zero(MOST_PLACES, sizeof *c->places);
    MSC_TRY(MSC_ALLOCATED(c->counts && c->best && c->retries && c->places));
    for (size_t i = 0; i < n_baselines; i++) {
        c->retries[i] = -1;
    }
    return MSC_OK;
}

static enum msc_status choose_lines(struct chosen *c) {
    const struct msc_record_line *line = NULL;
    uint64_t place = msc_record__scan_offset(c->scan);
    MSC_TRY(msc_record_scan_next(&line, c->scan));
    while (line) {
        note_place(c, line->trial.id, place);
        MSC_TRY(choose_line(c, line));
        place = msc_record__scan_offset(c->scan);
        MSC_TRY(msc_record_scan_next(&line, c->scan));
    }
    return msc_record_front_settle(&c->front);
}

static bool is_id_before(const void *context, const void *a, const void *b) {
    (void)context;
    return *(const int64_t *)a < *(const int64_t *)b;
}

static enum msc_status list_chosen(struct chosen *c) {
    const struct msc_record *record = msc_record_scan_record(c->scan);
    size_t n_baselines = record->space->n_baselines;
    int64_t spare;
    c->ids = msc_alloc_zero(c->n_best + 1 + 2 * n_baselines + c->front.n, sizeof *c->ids);
    MSC_TRY(MSC_ALLOCATED(c->ids));
    for (size_t i = 0; i < c->n_best; i++) {
        c->ids[c->n_ids++] = c->best[i].id;
    }
    if (c->best_repeat.id >= 0) {
        c->ids[c->n_ids++] = c->best_repeat.id;
    }
    for (size_t i = 0; i < n_baselines && i < record->n_trials; i++) {
        c->ids[c->n_ids++] = (int64_t)i;
        if (c->retries[i] >= 0) {
            c->ids[c->n_ids++] = c->retries[i];
        }
    }
    for (size_t i = 0; i < c->front.n; i++) {
        c->ids[c->n_ids++] = c->front.ids[i];
    }
    const struct msc_heap heap = {.elements = c->ids,
                                  .element_bytes = sizeof *c->ids,
                                  .spare = &spare,
                                  .is_before = is_id_before};
    msc_heap_sort(&heap, c->n_ids);
    size_t n = 0;
    for (size_t i = 0; i < c->n_ids; i++) {
        if (n == 0 || c->ids[n - 1] != c->ids[i]) {
            c->ids[n++] = c->ids[i];
        }
    }
    c->n_ids = n;
    return MSC_OK;
}

// Reads the chosen lines, now with all members, into `record`.
static enum msc_status hold_lines(struct msc_record *record, const struct chosen *c,
                                  struct msc_record_scan *again) {
    const struct msc_record_line *line = NULL;
    for (size_t i = 0; i < c->n_ids; i++) {
        int64_t id = c->ids[i];
        int64_t noted = id / c->stride;
        if ((int64_t)msc_record_n_trials(msc_record_scan_record(again)) <= noted * c->stride) {
            msc_record__scan_seek(again, noted * c->stride, c->places[noted]);
        }
        do {
            MSC_TRY(msc_record_scan_next(&line, again));
        } while (line && line->trial.id < id);
        struct msc_record_packed *packed =
            line ? msc_record__pack(&record->trial_arena, record->space, line) : NULL;
        if (!line) {
            return MSC_FAIL(MSC_E_IO, "%s: the file changed while it was read", record->path);
        }
        MSC_TRY(MSC_ALLOCATED(packed));
        record->trials[record->n_held++] = packed;
    }
    return MSC_OK;
}

static enum msc_status take_chosen(struct msc_record **out, struct chosen *c) {
    struct msc_record_scan *again = NULL;
    struct msc_record *record = NULL;
    MSC_TRY(list_chosen(c));
    const char *path = msc_record_scan_record(c->scan)->path;
    MSC_TRY(msc_record_scan_open(&again, path, NULL));
    record = msc_record__scan_take(c->scan);
    record->trials = msc_alloc_zero(c->n_ids, sizeof *record->trials);
    record->held = c->ids;
    record->counts = c->counts;
    c->ids = NULL;
    c->counts = NULL;
    enum msc_status status =
        record->trials ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", record->path);
    if (status == MSC_OK) {
        const struct chosen of = {
            .ids = record->held, .n_ids = c->n_ids, .places = c->places, .stride = c->stride};
        status = hold_lines(record, &of, again);
    }
    msc_record_scan_close(again);
    if (status != MSC_OK) {
        msc_record_close(record);
        return status;
    }
    *out = record;
    return MSC_OK;
}

enum msc_status msc_record_open_best(struct msc_record **out, const char *path, size_t n_best,
                                     const struct msc_log *log) {
    struct chosen c = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_record_scan_open(&c.scan, path, log));
    MSC_TRY_OUT(make_chosen(&c, n_best));
    MSC_TRY_OUT(choose_lines(&c));
    msc_record_scan_warn(c.scan);
    status = take_chosen(out, &c);
out:
    msc_record_scan_close(c.scan);
    msc_record_front_finish(&c.front);
    msc_free(c.counts);
    msc_free(c.best);
    msc_free(c.retries);
    msc_free(c.places);
    msc_free(c.ids);
    return status;
}

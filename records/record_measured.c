// Reconstructs times that damaged lines lost. The results of such a line are intact, and its time
// follows from the lines around it.
#include "records/record_internal.h"

#include <math.h>
#include <stdio.h>

void msc_record__note_damage(struct msc_record *record, size_t line) {
    record->n_damaged++;
    if (record->first_damaged == 0 || line < record->first_damaged) {
        record->first_damaged = line;
    }
}

static bool is_in_time_order(const struct msc_record *record) {
    double last = 0.0;
    for (size_t i = 0; i < record->n_trials; i++) {
        double elapsed_s = *msc_record__elapsed(record->trials[i]);
        if (elapsed_s < last) {
            return false;
        }
        last = isnan(elapsed_s) ? last : elapsed_s;
    }
    return true;
}

// Times never decrease from line to line. If they do, the smallest set of lines whose removal
// restores the order is taken as damaged: the longest increasing sequence is kept. `tails` has
// the last line of the best sequence of each length, `before` the previous line in the best
// sequence that ends with each line.
static void forget_disorder(struct msc_record *record, size_t tails[], size_t before[]) {
    struct msc_record_packed **trials = record->trials;
    size_t n = 0;
    for (size_t i = 0; i < record->n_trials; i++) {
        size_t low = 0;
        size_t high = n;
        if (isnan(*msc_record__elapsed(trials[i]))) {
            continue;
        }
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (*msc_record__elapsed(trials[tails[middle]]) <= *msc_record__elapsed(trials[i])) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        before[i] = low > 0 ? tails[low - 1] : SIZE_MAX;
        tails[low] = i;
        n += low == n;
    }
    size_t kept = n > 0 ? tails[n - 1] : SIZE_MAX;
    for (size_t i = record->n_trials; i-- > 0;) {
        if (i == kept) {
            kept = before[i];
        } else if (!isnan(*msc_record__elapsed(trials[i]))) {
            *msc_record__elapsed(trials[i]) = NAN;
            msc_record__note_damage(record, msc_record_line_number(record, (int64_t)i));
        }
    }
}

static enum msc_status check_time_order(struct msc_record *record) {
    enum msc_status status = MSC_OK;
    if (record->schema >= MSC_RECORD_SCHEMA_SUM || is_in_time_order(record)) {
        return MSC_OK;
    }
    size_t *tails = msc_alloc_zero(record->n_trials, sizeof *tails);
    size_t *before = msc_alloc_zero(record->n_trials, sizeof *before);
    if (tails && before) {
        forget_disorder(record, tails, before);
    } else {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory for %zu trials", record->path,
                          record->n_trials);
    }
    msc_free(tails);
    msc_free(before);
    return status;
}

enum msc_status msc_record__settle_measured(struct msc_record *record) {
    double last = 0.0;
    MSC_TRY(check_time_order(record));
    for (size_t i = 0; i < record->n_trials; i++) {
        double *elapsed_s = msc_record__elapsed(record->trials[i]);
        *elapsed_s = isnan(*elapsed_s) ? last : *elapsed_s;
        last = *elapsed_s;
    }
    msc_record__warn_measured(record);
    return MSC_OK;
}

void msc_record__warn_measured(const struct msc_record *record) {
    if (record->n_damaged > 0) {
        char more[48] = "";
        if (record->n_damaged > 1) {
            snprintf(more, sizeof more, " (and in %zu more)", record->n_damaged - 1);
        }
        msc_log(
            record->log, MSC_LOG_WARNING,
            "%s: `measured` is damaged in line %zu%s: times are estimated from the lines around "
            "it; the results are intact",
            record->path, record->first_damaged, more);
    }
}

// Reconstructs times that damaged lines lost. The results in such a line are intact, and its time
// is estimated from the lines around it.
#include "records/record_internal.h"

#include <math.h>
#include <stdio.h>

void msc_record__note_damage(struct msc_record *record, size_t line) {
    record->n_damaged++;
    if (record->first_damaged == 0 || line < record->first_damaged) {
        record->first_damaged = line;
    }
}

void msc_record__settle_measured(struct msc_record *record) {
    double last = 0.0;
    for (size_t i = 0; i < record->n_trials; i++) {
        double *elapsed_s = msc_record__elapsed(record->trials[i]);
        *elapsed_s = isnan(*elapsed_s) ? last : *elapsed_s;
        last = *elapsed_s;
    }
    msc_record__warn_measured(record);
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

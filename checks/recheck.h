// Evaluates the winner of a record again, to find out whether its line in the record is damaged.
//
// Under the numerics id that the line was measured with, every metric must have equal bits. A line
// that differs is left out (msc_record_leave_out), and the next best trial is checked. Under
// another numerics id nothing can be concluded, and the winner is kept.
#ifndef MSC_CHECKS_RECHECK_H
#define MSC_CHECKS_RECHECK_H

#include "base/cancel.h"
#include "base/log.h"
#include "env/api/env.h"
#include "records/record.h"

struct cJSON;

// If this many consecutive lines differ, damage is an unlikely cause: the machine or the
// environment gives different results each time.
#define MSC_RECHECK_MOST 8

struct msc_recheck_options {
    struct msc_env *env;
    const char *numerics; // numerics id of this program and machine
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

// Leaves a trial out of the record, and adds a row for it to `list`: `id`, `line`, `checksum`,
// `metric` and `difference`. *row, borrowed from the list, is that row.
enum msc_status msc_recheck_leave_out(struct cJSON **row, struct cJSON *list,
                                      struct msc_record *record, int64_t id, const char *metric,
                                      const char *difference);

// *left_out is a JSON list, owned by the caller (cJSON_Delete), of the lines that this call left
// out: `id`, `line`, `checksum`, `metric` and `difference`, a string. MSC_E_STATE after
// MSC_RECHECK_MOST lines.
enum msc_status msc_recheck_winner(struct cJSON **left_out, struct msc_record *record,
                                   const struct msc_recheck_options *options);

#endif

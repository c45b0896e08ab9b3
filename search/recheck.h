// The winner of a record, evaluated once more: what a damaged line claims does not come out again.
//
// Under the numerics id its line was made with, every metric must have equal bits. A line that says
// something else is left out (msc_record_leave_out), and the next best is looked at. Under other
// numerics nothing can be said, and the winner stays.
#ifndef MSC_SEARCH_RECHECK_H
#define MSC_SEARCH_RECHECK_H

#include "base/cancel.h"
#include "base/log.h"
#include "env/api/env.h"
#include "records/record.h"

struct cJSON;

// So many lines in a row that do not come out again are no damage: the machine or the environment
// does not compute the same twice.
#define MSC_RECHECK_MOST 8

struct msc_recheck_options {
    struct msc_env *env;
    const char *numerics; // of this program and machine
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

// *left_out is a JSON list, owned by the caller (cJSON_Delete), of what was left out now: `id`,
// `line`, `checksum`, `metric` and `difference`, a text. MSC_E_STATE after MSC_RECHECK_MOST lines.
enum msc_status msc_recheck_winner(struct cJSON **left_out, struct msc_record *record,
                                   const struct msc_recheck_options *options);

#endif

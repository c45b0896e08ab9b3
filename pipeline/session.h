// A session is one opened entry of a configuration. It owns the environment, its base strategy and
// the record, and releases them in reverse order.
//
//     struct msc_session s;
//     MSC_TRY_OUT(msc_session_open(&s, setup, i, MSC_SETUP_RUN));
//     ... s.env, s.goal ...
//     out: msc_session_close(&s);
#ifndef MSC_PIPELINE_SESSION_H
#define MSC_PIPELINE_SESSION_H

#include "env/api/drop.h"
#include "pipeline/setup.h"
#include "records/record.h"

// What a search lacks to be a race by default (pipeline/session_race.h).
enum msc_race_lack {
    MSC_RACE_LACK_NOTHING, // it is a race, or the reason is another one
    MSC_RACE_LACK_BATCHES,
    MSC_RACE_LACK_TIME, // a budget of time
};

struct msc_session {
    struct msc_setup *setup;        // borrowed
    struct msc_config_entry *entry; // entry of the configuration; takes over its record's values
    struct msc_record *record; // the record to continue, until the search takes it over; or NULL
    struct msc_strategy *base; // strategy that the entry starts from; NULL: the unmodified model
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_drops drops; // which of the goal's bounds are drops from the float model
    struct msc_race race;   // no rungs: no race
    enum msc_race_lack race_lack;
    struct cJSON *sameness; // {"sameness"}: remarks on the samples (model/sameness.h), or NULL
};

// Opens the entry: its record (in MSC_SETUP_LOOK only to compare it), base, parameters, environment
// and goal. Close the session even if this fails.
enum msc_status msc_session_open(struct msc_session *s, struct msc_setup *setup, size_t entry,
                                 enum msc_setup_mode mode);
void msc_session_close(struct msc_session *s); // accepts a zeroed struct

// Checks whether the samples, and the outputs on them, differ at all. Fills `sameness` and, at each
// launch, logs warnings.
enum msc_status msc_session_look_at_samples(struct msc_session *s);

#endif

// A session: one entry of a configuration, opened. It owns the environment, what that starts from,
// and the record, and releases them in reverse order.
//
//     struct msc_session s;
//     MSC_TRY_OUT(msc_session_open(&s, setup, i, MSC_SETUP_RUN));
//     ... s.env, s.goal ...
//     out: msc_session_close(&s);
#ifndef MSC_PIPELINE_SESSION_H
#define MSC_PIPELINE_SESSION_H

#include "pipeline/setup.h"
#include "records/record.h"

struct msc_session {
    struct msc_setup *setup;        // borrowed
    struct msc_config_entry *entry; // of the configuration; takes on what its record has
    struct msc_record *record;      // to continue, until the search takes it over; or NULL
    struct msc_strategy *base;      // that the entry starts from; NULL: the model as it is
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_race race;   // of the rounds; without rungs: none
    struct cJSON *sameness; // {"sameness"}: remarks on the samples (model/sameness.h), or NULL
};

// Opens the entry: its record (in MSC_SETUP_LOOK only to compare), base, parameters, environment
// and goal. On failure, too, the session is to be closed.
enum msc_status msc_session_open(struct msc_session *s, struct msc_setup *setup, size_t entry,
                                 enum msc_setup_mode mode);
void msc_session_close(struct msc_session *s); // accepts a zeroed one

// Fills `sameness`: whether the samples, and the outputs on them, differ at all. This is logged at
// each start.
enum msc_status msc_session_look_at_samples(struct msc_session *s);

#endif

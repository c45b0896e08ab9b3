// Chooses the rules of an entry's race (records/race.h).
//
// A record keeps its rules. Otherwise the configuration gives them with `race`. If it does not, a
// race with the default rules is run where it was measured to pay (bench/README.md).
#ifndef MSC_PIPELINE_SESSION_RACE_H
#define MSC_PIPELINE_SESSION_RACE_H

#include "pipeline/session.h"

struct msc_str;

// Sets the session's race, and the entry's number of trials in a round if that is not given.
// `record` NULL: the search has no record yet. Needs the session's environment and goal.
enum msc_status msc_session_choose_race(struct msc_session *s, const struct msc_record *record);
// Appends a line of advice if the search would be a race by default with smaller batches or a
// budget of time. Adds the batch size to `object` as "race_batch".
enum msc_status msc_session_advise_race(struct msc_str *text, struct cJSON *object,
                                        const struct msc_session *s);

#endif

// An environment for the tests of the search: the loss is the sum of the choices, the size is 10
// for choice 0, 9 for choice 1, ... of each task. It keeps bounds, counts what it does, and breaks
// when told to.
#ifndef MSC_TESTS_SEARCH_FAKE_ENV_H
#define MSC_TESTS_SEARCH_FAKE_ENV_H

#include "env/api/env.h"

struct fake_control {
    size_t n_calls;
    size_t n_trials; // evaluated
    size_t largest_call;
    enum msc_status fail_calls; // of more than one trial fail with this, unless MSC_OK
    size_t short_from;          // from this call on there is no memory
    size_t short_to;            // up to here
    int64_t fail_from;          // trials from this id on fail alone, too
    int64_t fail_to;            // up to here
    bool fails_softly;          // they alone, and not the call that they are in
    size_t lost_from; // from this call on the device is lost, in the midst of it; 0: never
    int64_t stop_at;  // raise the cancel level before this trial
    struct msc_cancel *cancel;
    int stop_level;
    int64_t delay_us;  // of a trial
    int64_t first_us;  // that the first call takes beyond that
    bool reports_late; // all trials of a call end together, as those of a network do
};

extern struct fake_control fake_control;
void fake_reset(void);
extern const struct msc_env_def msc_env_fake; // parameters: tasks, choices, baselines

#endif

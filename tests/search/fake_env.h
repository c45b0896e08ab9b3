// Environment for the tests of the search. The loss is the sum of the choices; a task costs 10 -
// choice bytes. The environment stops trials at their bounds, counts its calls, and fails as
// fake_control says.
#ifndef MSC_TESTS_SEARCH_FAKE_ENV_H
#define MSC_TESTS_SEARCH_FAKE_ENV_H

#include "env/api/env.h"

struct fake_control {
    size_t n_calls;
    size_t n_trials; // trials evaluated so far
    size_t largest_call;
    // calls of more than one trial fail with this status unless it is MSC_OK
    enum msc_status fail_calls;
    // calls short_from to short_to - 1 (the first call is 0) run out of memory
    size_t short_from;
    size_t short_to;
    int64_t fail_from; // trials fail_from to fail_to - 1 fail, even if evaluated one at a time
    int64_t fail_to;
    bool fails_softly; // only these trials fail, but the call that contains them succeeds
    size_t lost_from;  // from this call on, the device is lost in the middle of a call; 0: never
    int64_t stop_at;   // the cancel level is raised before this trial
    struct msc_cancel *cancel;
    int stop_level;
    int64_t delay_us;  // each trial takes this long
    int64_t first_us;  // the first call takes this much longer
    bool reports_late; // all trials of a call end together, as they do when a network is evaluated
};

extern struct fake_control fake_control;
void fake_reset(void);
extern const struct msc_env_def msc_env_fake; // parameters: tasks, choices, baselines

#endif

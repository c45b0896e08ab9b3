// An environment with batches for the tests of pools: what a point loses on a batch is a number that looks
// random, on some a little less than nothing; it keeps bounds.
#ifndef MSC_TESTS_SEARCH_BATCH_ENV_H
#define MSC_TESTS_SEARCH_BATCH_ENV_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_batch; // parameters: tasks, choices, batches
// From now on this one computes the last batch wrongly; with `always` the first one, too.
void batch_env_break(struct msc_env *env, bool always);
// The same of such a share of all numbers, drawn from a seed; never of the first uniform plan's.
void batch_env_lie(struct msc_env *env, double share, uint64_t seed);

#endif

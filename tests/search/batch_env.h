// Environment with batches for the tests of worker pools. The loss of a point on a batch is a
// pseudo-random number in [-0.05, 0.95), so a few are negative. The environment stops trials at
// their bounds.
#ifndef MSC_TESTS_SEARCH_BATCH_ENV_H
#define MSC_TESTS_SEARCH_BATCH_ENV_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_batch; // parameters: tasks, choices, batches
// From now on `env` computes the last batch wrongly; if `always`, every batch.
void batch_env_break(struct msc_env *env, bool always);
// From now on this share of all terms is wrong; `seed` chooses them. Points that start with choices
// 0, 0 (such as the first uniform plan) remain right.
void batch_env_lie(struct msc_env *env, double share, uint64_t seed);

#endif

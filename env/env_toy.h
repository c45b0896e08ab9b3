// The true optimum of the toy environment, for tests.
#ifndef MSC_ENV_ENV_TOY_H
#define MSC_ENV_ENV_TOY_H

#include "env/env.h"

// Finds the least distill_loss of all points of at most `max_size_bytes` (+inf: all points), and a
// point that has it. Dynamic programming over (task, choice, size) makes the result exact for any
// number of tasks, also with interactions. MSC_E_NOT_FOUND if no point is that small.
enum msc_status msc_env_toy_optimum(const struct msc_env *env, double max_size_bytes,
                                    uint32_t choices[], double *distill_loss);

#endif

// The gym view of an environment for reinforcement learning: a step chooses for one task at a time.
//
//     MSC_TRY(msc_gym_create(&gym, env, &goal, 0));
//     MSC_TRY(msc_gym_reset(gym, seed, &step));
//     while (!step.terminated && !step.truncated) {
//         MSC_TRY(msc_gym_step(gym, choose(step.observation, step.n_choices), &step));
//     }
//     printf("%g\n", step.reward);
//
// One episode is one trial. It has one step per task, in order. The call before a step (reset or
// step) returns the features of the task to choose for. The reward is 0 before the last step. At
// the last step, it is minus the first objective or, for an infeasible trial, minus (the worst
// objective so far + violation). A failed trial counts as violation 1. `terminated` means that the
// last task was chosen. `truncated` means that the budget of trials is spent: the step returns at
// once without an evaluation.
#ifndef MSC_ENV_GYM_H
#define MSC_ENV_GYM_H

#include "env/env.h"

MSC_PUBLIC_BEGIN

struct msc_gym;

// Result of reset and step. Pointers are borrowed until the next reset, step or restore.
struct msc_gym_step {
    size_t task;               // the task of the next step
    uint32_t n_choices;        // of that task; 0 if the episode is over
    const double *observation; // [n_features] of that task; NULL if the episode is over
    double reward;
    bool terminated;
    bool truncated;
    const struct msc_outcome *outcome; // of the trial, if terminated; else NULL
};

// Environment and goal are borrowed until destroy. `trial_budget` 0: no limit.
enum msc_status msc_gym_create(struct msc_gym **out, struct msc_env *env,
                               const struct msc_goal *goal, uint64_t trial_budget);
void msc_gym_destroy(struct msc_gym *gym); // accepts NULL

// Begins an episode; allowed at any time. The seed is kept with the state: environments that draw
// random numbers use it. The built-in environments do not.
enum msc_status msc_gym_reset(struct msc_gym *gym, uint64_t seed, struct msc_gym_step *step);
// MSC_E_STATE before the first reset and after an episode's end. MSC_E_INVALID if the task has no
// such choice; the episode is unchanged.
enum msc_status msc_gym_step(struct msc_gym *gym, uint32_t choice, struct msc_gym_step *step);

// The whole state, also in the middle of an episode. *out is owned by the caller (cJSON_Delete).
enum msc_status msc_gym_save(const struct msc_gym *gym, struct cJSON **out);
// Continues from a saved state. `step` describes the next step (n_choices 0: call reset).
// MSC_E_FORMAT leaves the state unchanged.
enum msc_status msc_gym_restore(struct msc_gym *gym, const struct cJSON *state,
                                struct msc_gym_step *step);

MSC_PUBLIC_END

#endif

#include "env/gym.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

struct msc_gym {
    struct msc_env *env;
    const struct msc_goal *goal;
    const struct msc_space *space;
    uint64_t trial_budget;
    // Members that msc_gym_save writes:
    uint64_t seed;
    uint64_t n_trials; // evaluated so far
    // the greatest (worst) value of the first objective so far; NaN before the first trial
    double worst;
    bool is_running;        // inside an episode
    size_t task;            // the task of the next step
    struct msc_trial trial; // choices of this episode, outcome of the last trial
    struct msc_arena arena; // memory of the trial
};

enum msc_status msc_gym_create(struct msc_gym **out, struct msc_env *env,
                               const struct msc_goal *goal, uint64_t trial_budget) {
    const struct msc_space *space = msc_env_space(env);
    MSC_TRY(msc_goal_check(goal, space));
    struct msc_gym *gym = msc_alloc_zero(1, sizeof *gym);
    MSC_TRY(MSC_ALLOCATED(gym));
    enum msc_status status = msc_trial_init(&gym->trial, &gym->arena, space);
    if (status != MSC_OK) {
        msc_gym_destroy(gym);
        return status;
    }
    gym->env = env;
    gym->goal = goal;
    gym->space = space;
    gym->trial_budget = trial_budget;
    gym->worst = NAN;
    *out = gym;
    return MSC_OK;
}

void msc_gym_destroy(struct msc_gym *gym) {
    if (gym) {
        msc_arena_finish(&gym->arena);
        msc_free(gym);
    }
}

static void describe_task(const struct msc_gym *gym, struct msc_gym_step *step) {
    *step = (struct msc_gym_step){.task = gym->task};
    if (gym->is_running) {
        step->n_choices = gym->space->tasks[gym->task].n_choices;
        step->observation = gym->space->tasks[gym->task].features;
    }
}

enum msc_status msc_gym_reset(struct msc_gym *gym, uint64_t seed, struct msc_gym_step *step) {
    gym->seed = seed;
    gym->task = 0;
    gym->is_running = true;
    memset(gym->trial.proposal.choices, 0,
           gym->space->n_tasks * sizeof *gym->trial.proposal.choices);
    describe_task(gym, step);
    return MSC_OK;
}

static double reward_of(struct msc_gym *gym) {
    const struct msc_outcome *outcome = &gym->trial.outcome;
    double objective = outcome->objectives[0];
    if (isfinite(objective) && !(objective <= gym->worst)) {
        gym->worst = objective;
    }
    if (outcome->state == MSC_TRIAL_COMPLETE) {
        return -objective;
    }
    double worst = isnan(gym->worst) ? 0.0 : gym->worst;
    return -(worst + (outcome->state == MSC_TRIAL_INFEASIBLE ? outcome->violation : 1.0));
}

static enum msc_status finish_episode(struct msc_gym *gym, struct msc_gym_step *step) {
    struct msc_trial *trial = &gym->trial;
    const struct msc_evaluation evaluation = {.trials = &trial, .n = 1};
    trial->id = (int64_t)gym->n_trials;
    MSC_TRY(msc_env_evaluate(gym->env, gym->goal, &evaluation));
    gym->n_trials++;
    gym->is_running = false;
    describe_task(gym, step);
    step->terminated = true;
    step->reward = reward_of(gym);
    step->outcome = &gym->trial.outcome;
    return MSC_OK;
}

enum msc_status msc_gym_step(struct msc_gym *gym, uint32_t choice, struct msc_gym_step *step) {
    if (!gym->is_running) {
        return MSC_FAIL(MSC_E_STATE, "step was called outside an episode: call reset first");
    }
    const struct msc_task *task = &gym->space->tasks[gym->task];
    if (choice >= task->n_choices) {
        return MSC_FAIL(MSC_E_INVALID, "task %s has no choice %u, expected 0 to %u", task->name,
                        choice, task->n_choices - 1);
    }
    if (gym->trial_budget > 0 && gym->n_trials >= gym->trial_budget) {
        gym->is_running = false;
        describe_task(gym, step);
        step->truncated = true;
        return MSC_OK;
    }
    gym->trial.proposal.choices[gym->task] = choice;
    if (gym->task + 1 == gym->space->n_tasks) {
        return finish_episode(gym, step);
    }
    gym->task++;
    describe_task(gym, step);
    return MSC_OK;
}

static enum msc_status write_state(const struct msc_gym *gym, cJSON *object) {
    MSC_TRY(msc_json_add_u64_text(object, "seed", gym->seed));
    MSC_TRY(msc_json_add_u64_text(object, "trials", gym->n_trials));
    MSC_TRY(msc_json_add_number(object, "worst", gym->worst));
    MSC_TRY(msc_json_add_bool(object, "running", gym->is_running));
    cJSON *choices = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "choices", choices));
    for (size_t t = 0; gym->is_running && t < gym->task; t++) {
        MSC_TRY(msc_json_push(choices, cJSON_CreateNumber(gym->trial.proposal.choices[t])));
    }
    cJSON *inner = NULL;
    MSC_TRY(msc_env_save(gym->env, &inner));
    return msc_json_add(object, "env", inner);
}

enum msc_status msc_gym_save(const struct msc_gym *gym, struct cJSON **out) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(object));
    enum msc_status status = write_state(gym, object);
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

struct saved {
    uint64_t seed, n_trials;
    double worst;
    bool is_running;
    const cJSON *choices;
    const cJSON *env;
};

static enum msc_status read_u64_text(uint64_t *out, const cJSON *state, const char *key) {
    const char *text;
    MSC_TRY(msc_json_get_text(&text, state, key, "gym state"));
    return msc_parse_u64(out, text)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "gym state.%s: \"%s\" is not an integer", key, text);
}

static enum msc_status gym_read_state(struct saved *saved, const struct msc_gym *gym,
                                      const cJSON *state) {
    MSC_TRY(read_u64_text(&saved->seed, state, "seed"));
    MSC_TRY(read_u64_text(&saved->n_trials, state, "trials"));
    MSC_TRY(msc_json_get_bool(&saved->is_running, state, "running", "gym state"));
    MSC_TRY(msc_json_get_array(&saved->choices, state, "choices", "gym state"));
    const cJSON *worst = msc_json_get(state, "worst");
    saved->worst = cJSON_IsNumber(worst) ? worst->valuedouble : NAN;
    saved->env = msc_json_get(state, "env");
    size_t n_choices = (size_t)cJSON_GetArraySize(saved->choices);
    if (n_choices >= gym->space->n_tasks || (!saved->is_running && n_choices > 0) || !saved->env) {
        return MSC_FAIL(MSC_E_FORMAT, "gym state: it holds %zu choices, expected fewer than %zu",
                        n_choices, gym->space->n_tasks);
    }
    size_t t = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, saved->choices) {
        const struct msc_task *task = &gym->space->tasks[t++];
        int64_t choice;
        if (!msc_json_read_i64(&choice, item, 0, (int64_t)task->n_choices - 1)) {
            return MSC_FAIL(MSC_E_FORMAT, "gym state: the choice of task %s does not exist",
                            task->name);
        }
    }
    return MSC_OK;
}

enum msc_status msc_gym_restore(struct msc_gym *gym, const struct cJSON *state,
                                struct msc_gym_step *step) {
    struct saved saved;
    MSC_TRY(gym_read_state(&saved, gym, state));
    MSC_TRY(msc_env_restore(gym->env, saved.env));
    gym->seed = saved.seed;
    gym->n_trials = saved.n_trials;
    gym->worst = saved.worst;
    gym->is_running = saved.is_running;
    gym->task = 0;
    memset(gym->trial.proposal.choices, 0,
           gym->space->n_tasks * sizeof *gym->trial.proposal.choices);
    const cJSON *item;
    cJSON_ArrayForEach(item, saved.choices) {
        gym->trial.proposal.choices[gym->task++] = (uint32_t)item->valuedouble;
    }
    describe_task(gym, step);
    return MSC_OK;
}

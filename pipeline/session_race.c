#include "pipeline/session_race.h"

#include "base/json.h"
#include "base/str.h"
#include "data/dataset.h"
#include "records/race.h"

#include <math.h>
#include <string.h>

// With fewer batches a race is not the default: most trials would be measured on a large share of
// the samples anyway.
#define FEWEST_BATCHES 16
// The number of trials in a round if it is not given. In larger rounds of a race an agent learns
// too late from the trials that the race has ended. Without a race, larger rounds share more work.
#define RACED_ROUND 8
#define ROUND 32

// The agent for which default races were measured. It weighs the estimated losses of trials that a
// race has ended by their error.
static bool has_weighing_agent(const struct msc_config_entry *e) {
    const cJSON *type = msc_json_get(e->agent, "type");
    return cJSON_IsString(type) && strcmp(type->valuestring, "auto") == 0;
}

// Whether all bounds are on exact metrics. Other metrics of a trial that a race has ended are
// unknown, so the agent would not learn whether the trial meets the bounds.
static bool are_bounds_exact(const struct msc_session *s) {
    bool are = true;
    for (size_t i = 0; i < s->goal.n_bounds; i++) {
        are = are && msc_env_space(s->env)->metrics[s->goal.bounds[i].metric].is_exact;
    }
    return are;
}

// Whether the search would be a race by default with enough batches and a budget of time. A search
// that measures several of its best trials again needs them in full.
static bool could_race(const struct msc_session *s) {
    const struct msc_config_entry *e = s->entry;
    return !e->race && !e->rerank && e->parallel <= RACED_ROUND && has_weighing_agent(e) &&
           msc_env_n_batches(s->env) > 0 && msc_goal_takes_bound(&s->goal, msc_env_space(s->env)) &&
           are_bounds_exact(s);
}

// With a budget of time, the time that a race saves buys trials. A budget of trials alone buys
// nothing, and a race sometimes ends the best of them early.
static enum msc_race_lack find_lack(const struct msc_session *s) {
    return msc_env_n_batches(s->env) < FEWEST_BATCHES ? MSC_RACE_LACK_BATCHES
           : s->entry->budget.seconds <= 0.0          ? MSC_RACE_LACK_TIME
                                                      : MSC_RACE_LACK_NOTHING;
}

static enum msc_status read_given(struct msc_session *s) {
    size_t n_batches = msc_env_n_batches(s->env);
    if (n_batches == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "race: environment %s measures each trial as a whole and cannot end it "
                        "early; remove race, or use quantize, prune or joint",
                        msc_env_definition(s->env)->name);
    }
    if (!msc_goal_takes_bound(&s->goal, msc_env_space(s->env))) {
        return MSC_FAIL(MSC_E_INVALID,
                        "race: trials are compared by distill_loss; make it the only "
                        "objective, or remove race");
    }
    return msc_race_read(&s->race, s->entry->race, n_batches, "race");
}

enum msc_status msc_session_choose_race(struct msc_session *s, const struct msc_record *record) {
    bool is_open = !record && could_race(s);
    s->race = (struct msc_race){0};
    s->race_lack = is_open ? find_lack(s) : MSC_RACE_LACK_NOTHING;
    if (s->entry->race && !cJSON_IsFalse(s->entry->race)) {
        MSC_TRY(read_given(s));
    } else if (is_open && s->race_lack == MSC_RACE_LACK_NOTHING) {
        msc_race_default(&s->race, msc_env_n_batches(s->env));
    }
    if (record) {
        s->race = *msc_record_race(record);
    }
    if (s->entry->parallel == 0) {
        s->entry->parallel = s->race.n_rungs > 0 ? RACED_ROUND : ROUND;
    }
    return MSC_OK;
}

// The largest batch with which the samples are enough batches; 0: there is none.
static int64_t racing_batch(const struct msc_session *s) {
    const struct msc_model *m = s->setup->model;
    bool is_free = m && m->dataset && m->is_batched && !msc_dataset_is_sequence(m->dataset);
    return is_free ? msc_dataset_n_samples(m->dataset) / FEWEST_BATCHES : 0;
}

static enum msc_status advise_batch(size_t *n_batches, struct msc_str *text, struct cJSON *object,
                                    const struct msc_session *s) {
    int64_t batch = racing_batch(s);
    *n_batches = 0;
    if (batch == 0) {
        return MSC_OK;
    }
    *n_batches = (size_t)((msc_dataset_n_samples(s->setup->model->dataset) - 1) / batch + 1);
    msc_str_printf(text,
                   "race: none, because the samples are only %zu batches; with \"batch\": %lld in "
                   "\"dataset\"%s",
                   msc_env_n_batches(s->env), (long long)batch,
                   s->entry->budget.seconds > 0.0 ? "" : " and \"race\": true");
    return msc_json_add_number(object, "race_batch", (double)batch);
}

enum msc_status msc_session_advise_race(struct msc_str *text, struct cJSON *object,
                                        const struct msc_session *s) {
    size_t n_batches = 0;
    size_t n = s->entry->parallel < RACED_ROUND ? s->entry->parallel : RACED_ROUND;
    struct msc_race race;
    if (s->race_lack == MSC_RACE_LACK_BATCHES) {
        MSC_TRY(advise_batch(&n_batches, text, object, s));
    } else if (s->race_lack == MSC_RACE_LACK_TIME) {
        n_batches = msc_env_n_batches(s->env);
        msc_str_append(text, "race: none, because there is no budget of time; with \"race\": true");
    }
    if (n_batches > 0) {
        msc_race_default(&race, n_batches);
        msc_str_printf(text, ", a round of %zu trials takes at most %.0f %% of %zu batches\n", n,
                       ceil(100.0 * msc_race_effort(&race, n, n_batches)), n_batches);
    }
    return MSC_OK;
}

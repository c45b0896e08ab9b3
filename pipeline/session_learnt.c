#include "pipeline/session_learnt.h"

#include "agents/agent.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "env/env.h"
#include "results/phases.h"
#include "search/warm.h"

#include <string.h>

static bool is_built_in(const struct msc_search_options *o) {
    const char *type = msc_json_text_of(o->agent_config, "type");
    return type && msc_agent_find(type);
}

// ---- From the record --------------------------------------------------------------------------

static bool has_same_space(const struct msc_record *record, const struct msc_space *space) {
    char text[MSC_HASH_TEXT_BYTES];
    const cJSON *own = msc_json_get(msc_record_header(record), "space");
    const char *hash = msc_json_text_of(own, "hash");
    return hash && strcmp(hash, msc_hash_format(text, msc_space_hash(space))) == 0;
}

static enum msc_status replay(cJSON **learnt, const struct msc_session *s,
                              const struct msc_search_options *o, const struct msc_record *record) {
    const struct msc_phases_options of = {
        .record = record,
        .space = msc_env_space(s->env),
        .agent_config = o->agent_config,
        .agent_folder = o->agent_folder,
    };
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(object));
    enum msc_status status = msc_phases_add(object, &of);
    *learnt = cJSON_DetachItemFromObjectCaseSensitive(object, "learnt");
    cJSON_Delete(object);
    if (status != MSC_OK && status != MSC_E_NOMEM) { // the search itself will refuse the record
        msc_log(s->setup->log, MSC_LOG_WARNING, "%s", msc_status_message());
        status = MSC_OK;
    }
    return status;
}

// Sets *has_trials: a search would continue the record.
static enum msc_status learn_from_record(cJSON **learnt, bool *has_trials,
                                         const struct msc_session *s,
                                         const struct msc_search_options *o) {
    struct msc_record *record = NULL;
    *has_trials = false;
    if (o->restart || !msc_file_exists(o->record_path)) {
        return MSC_OK;
    }
    enum msc_status status = msc_record_open(&record, o->record_path, MSC_RECORD_READ, NULL);
    if (status != MSC_OK) {
        return status == MSC_E_NOT_FOUND ? MSC_OK : status;
    }
    *has_trials = msc_record_n_trials(record) > 0;
    if (*has_trials && !o->warm_start && has_same_space(record, msc_env_space(s->env))) {
        status = replay(learnt, s, o, record);
    }
    msc_record_close(record);
    return status;
}

// ---- From records of other searches -----------------------------------------------------------

static enum msc_status tell_baselines(struct msc_agent *agent, struct msc_arena *arena,
                                      const struct msc_session *s) {
    const struct msc_space *space = msc_env_space(s->env);
    size_t n = space->n_baselines;
    struct msc_trial *trials = msc_arena_array(arena, n + 1, sizeof *trials);
    struct msc_trial **measured = msc_arena_array(arena, n + 1, sizeof *measured);
    MSC_TRY(MSC_ALLOCATED(trials && measured));
    for (size_t i = 0; i < n; i++) {
        measured[i] = &trials[i];
        MSC_TRY(msc_trial_init(&trials[i], arena, space));
        trials[i].id = (int64_t)i;
        trials[i].proposal.probe = true;
        memcpy(trials[i].proposal.choices, space->baselines[i].choices,
               space->n_tasks * sizeof *trials[i].proposal.choices);
    }
    const struct msc_evaluation all = {.trials = measured, .n = n};
    MSC_TRY(msc_env_evaluate(s->env, &s->goal, &all));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_agent_tell(agent, &trials[i]));
    }
    return MSC_OK;
}

static enum msc_status tell_point(struct msc_agent *agent, struct msc_trial *trial,
                                  const struct msc_session *s, const struct msc_warm_point *point) {
    const struct msc_space *space = msc_env_space(s->env);
    memcpy(trial->proposal.choices, point->choices, space->n_tasks * sizeof *point->choices);
    msc_trial_begin(trial, space);
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!space->metrics[i].is_exact) {
            trial->outcome.metrics[i] = point->metrics[i];
        }
    }
    msc_goal_judge(&s->goal, space, &trial->outcome);
    return msc_agent_tell(agent, trial);
}

// The agent is asked for one point, because it may learn from its observations only then.
static enum msc_status learn_from_points(cJSON *learnt, struct msc_agent *agent,
                                         struct msc_arena *arena, const struct msc_session *s,
                                         const struct msc_warm *warm) {
    const struct msc_space *space = msc_env_space(s->env);
    struct msc_trial trial;
    size_t n = 0;
    MSC_TRY(tell_baselines(agent, arena, s));
    MSC_TRY(msc_trial_init(&trial, arena, space));
    for (size_t i = 0; i < warm->n_told; i++) {
        trial.id = (int64_t)(space->n_baselines + i);
        MSC_TRY(tell_point(agent, &trial, s, &warm->points[i]));
    }
    MSC_TRY(msc_agent_ask(agent, &trial.proposal, 1, &n));
    return msc_agent_remarks(agent, learnt);
}

static enum msc_status learn_from_warm(cJSON **learnt, const struct msc_session *s,
                                       const struct msc_search_options *o) {
    const struct msc_space *space = msc_env_space(s->env);
    const struct msc_agent_host host = {
        .folder = o->agent_folder, .cancel = o->cancel, .lessons = msc_warm_lessons(o->warm)};
    struct msc_arena arena = {0};
    struct msc_agent *agent = NULL;
    struct msc_warm warm;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_warm_read(&warm, &arena, o->warm, space, "--warm-from"));
    if (warm.n_told == 0) {
        goto out;
    }
    *learnt = cJSON_CreateArray();
    MSC_TRY_OUT(MSC_ALLOCATED(*learnt));
    MSC_TRY_OUT(msc_agent_open(&agent, o->agent_config, space, &s->goal, o->seed, &host));
    status = learn_from_points(*learnt, agent, &arena, s, &warm);
out:
    msc_agent_destroy(agent);
    msc_arena_finish(&arena);
    return status;
}

// -----------------------------------------------------------------------------------------------

enum msc_status msc_session_add_learnt(struct msc_str *text, cJSON *object,
                                       const struct msc_session *s,
                                       const struct msc_search_options *o) {
    cJSON *learnt = NULL;
    const cJSON *remark = NULL;
    bool has_trials = false;
    if (!is_built_in(o)) {
        return MSC_OK;
    }
    enum msc_status status = learn_from_record(&learnt, &has_trials, s, o);
    if (status == MSC_OK && !has_trials && o->warm) {
        status = learn_from_warm(&learnt, s, o);
    }
    if (status != MSC_OK || cJSON_GetArraySize(learnt) == 0) {
        cJSON_Delete(learnt);
        return status;
    }
    cJSON_ArrayForEach(remark, learnt) {
        msc_str_printf(text, "learnt: %s\n", remark->valuestring);
    }
    return msc_json_add(object, "learnt", learnt);
}

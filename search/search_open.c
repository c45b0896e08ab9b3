// Prepares a search: record, agent, header, buffers.
#include "search/search_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "records/record_header.h"

// Opens the record, if there is one.
static enum msc_status open_search_record(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    enum msc_status status = MSC_E_NOT_FOUND;
    if (msc_file_exists(o->record_path)) {
        status = msc_record_open(&s->record, o->record_path, MSC_RECORD_APPEND, o->log);
    } else if (o->resume_only) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "%s: no record to resume", o->record_path);
    }
    return status == MSC_E_NOT_FOUND && !o->resume_only ? MSC_OK : status;
}

static enum msc_status add_hashes(cJSON *hashes, const struct msc_env *env) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash identity;
    MSC_TRY(msc_env_identity(&identity, env));
    return msc_json_add_text(hashes, "env", msc_hash_format(text, identity));
}

static enum msc_status add_budget(cJSON *budget, const struct msc_budget *from) {
    if (from->trials >= 0) {
        MSC_TRY(msc_json_add_number(budget, "trials", (double)from->trials));
    }
    if (from->seconds > 0.0) {
        MSC_TRY(msc_json_add_number(budget, "time", from->seconds));
    }
    return from->has_target ? msc_json_add_number(budget, "target", from->target) : MSC_OK;
}

// The points to begin with, from the header of an existing record or else from the options.
static const cJSON *find_warm(const struct msc_search *s) {
    return s->record ? msc_json_get(msc_record_header(s->record), "warm") : s->options->warm;
}

static enum msc_status make_search_header(struct cJSON **out, const struct msc_search *s) {
    enum msc_status status = MSC_OK;
    const struct msc_search_options *o = s->options;
    const cJSON *warm = find_warm(s);
    cJSON *budget = cJSON_CreateObject();
    cJSON *env = cJSON_CreateObject();
    cJSON *agent_object = cJSON_CreateObject();
    cJSON *hashes = o->hashes ? cJSON_Duplicate(o->hashes, true) : cJSON_CreateObject();
    MSC_TRY_OUT(MSC_ALLOCATED(budget && env && agent_object && hashes));
    MSC_TRY_OUT(add_budget(budget, &o->budget));
    MSC_TRY_OUT(msc_env_describe(o->env, env));
    MSC_TRY_OUT(msc_agent_describe(s->agent, agent_object));
    MSC_TRY_OUT(add_hashes(hashes, o->env));
    const struct msc_record_header from = {
        .program = o->program,
        .numerics = o->own_numerics ? o->own_numerics : o->numerics,
        .config = o->config,
        .budget = budget,
        .env = env,
        .agent = agent_object,
        .hashes = hashes,
        .more = o->more,
        .space = msc_env_space(o->env),
        .goal = o->goal,
        .drops = o->drops,
        .seed = o->seed,
        .parallel = o->parallel,
        .race = o->race,
    };
    status = msc_record_header_create(out, &from);
    if (status == MSC_OK && warm) {
        status = msc_json_add(*out, "warm", cJSON_Duplicate(warm, true));
        if (status != MSC_OK) {
            cJSON_Delete(*out);
            *out = NULL;
        }
    }
out:
    cJSON_Delete(budget);
    cJSON_Delete(env);
    cJSON_Delete(agent_object);
    cJSON_Delete(hashes);
    return status;
}

static enum msc_status open_search_agent(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    const struct msc_agent_host host = {
        .folder = o->agent_folder, .cancel = o->cancel, .lessons = msc_warm_lessons(find_warm(s))};
    enum msc_status status =
        msc_agent_open(&s->agent, o->agent_config, s->space, o->goal, o->seed, &host);
    return status == MSC_E_CANCELLED
               ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request before the agent was ready; the "
                                           "same command starts again, or continues the record")
               : status;
}

static enum msc_status make_buffers(struct msc_search *s) {
    size_t parallel = s->options->parallel;
    s->proposals = msc_alloc_zero(parallel, sizeof *s->proposals);
    s->choices = msc_alloc_zero(parallel * s->space->n_tasks + 1, sizeof *s->choices);
    s->batch_trials = msc_alloc_zero(MSC_ATTEMPT_MAX_TRIALS, sizeof *s->batch_trials);
    s->batch_items = msc_alloc_zero(MSC_ATTEMPT_MAX_TRIALS, sizeof *s->batch_items);
    MSC_TRY(MSC_ALLOCATED(s->proposals && s->choices && s->batch_trials && s->batch_items));
    return MSC_OK;
}

// The hash of the header identifies the record, because a header includes its creation time.
static enum msc_status open_attempt(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    struct msc_hash header;
    MSC_TRY(msc_json_hash(&header, msc_record_header(s->record)));
    const struct msc_attempt_options attempt = {
        .record_path = o->record_path,
        .record_hash = header,
        .next_id = (int64_t)s->n_recorded,
        .trial_seconds = o->trial_seconds,
        .is_elsewhere = o->pool != NULL,
        .worker = o->worker,
        .log = o->log,
    };
    return msc_attempt_open(&s->attempt, &attempt);
}

enum msc_status msc_search__open(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    cJSON *wanted = NULL;
    if (o->parallel < 1 || o->parallel > MSC_SEARCH_MAX_PARALLEL) {
        return MSC_FAIL(MSC_E_INVALID, "parallel is %u, expected 1 to %d", o->parallel,
                        MSC_SEARCH_MAX_PARALLEL);
    }
    s->space = msc_env_space(o->env);
    s->goal = o->goal;
    s->front.n_objectives = o->goal->n_objectives;
    s->n_space_points = msc_space_n_points(s->space);
    MSC_TRY(msc_goal_check(o->goal, s->space));
    MSC_TRY(msc_search__open_race(s));
    MSC_TRY(make_buffers(s));
    msc_worker_set_quiet(o->worker, o->quiet_seconds);
    if (!o->restart && !s->record) {
        MSC_TRY(open_search_record(s));
    }
    MSC_TRY(open_search_agent(s));
    if (o->restart) {
        MSC_TRY(msc_record_set_aside(NULL, o->record_path, o->log));
    }
    MSC_TRY(make_search_header(&wanted, s));
    enum msc_status status = s->record
                                 ? msc_record_header_compare(msc_record_header(s->record), wanted,
                                                             o->free_keys, o->record_path)
                                 : msc_record_create(&s->record, o->record_path, wanted, o->log);
    cJSON_Delete(wanted);
    MSC_TRY(status);
    MSC_TRY(msc_warm_read(&s->warm, &s->warm_arena, find_warm(s), s->space, o->record_path));
    s->n_recorded = msc_record_n_trials(s->record);
    s->elapsed_before_s = msc_record_elapsed_s(s->record);
    return open_attempt(s);
}

void msc_search__close(struct msc_search *s) {
    msc_attempt_close(s->attempt);
    msc_agent_destroy(s->agent);
    msc_points_finish(&s->points);
    msc_free(s->proposals);
    msc_free(s->choices);
    msc_free(s->items);
    msc_free(s->batch_trials);
    msc_free(s->batch_items);
    msc_free(s->batch_terms);
    msc_free(s->places);
    msc_free(s->sums);
    msc_record_front_finish(&s->front);
    msc_arena_finish(&s->arena);
    msc_arena_finish(&s->warm_arena);
    msc_record_close(s->record);
}

#include "results/phases.h"

#include "agents/agent.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "records/race.h"
#include "search/warm.h"

#include <stdio.h>
#include <string.h>

// Number of trials in the first phase. The second phase has as many; each later phase has twice as
// many as the phase before it.
#define FIRST_PHASE 32
#define GIVEN "given"
#define OTHER "other"

struct replay {
    const struct msc_phases_options *options;
    struct msc_agent *agent;
    struct msc_arena arena;
    struct msc_proposal *proposals; // [parallel]
    const char **origins;           // [n_trials]
    struct msc_race_known known;
    size_t n_trials, at;
};

// ---- Replay -----------------------------------------------------------------------------------

static struct msc_record_line line_at(const struct replay *r, size_t i) {
    return msc_record_trial(r->options->record, i);
}

// Lets the agent observe a line. Call this after note_line for all lines of the round, so that the
// agent observes the same as during the search.
static enum msc_status tell_line(const struct replay *r, size_t i) {
    const struct msc_record_line line = line_at(r, i);
    if (line.is_assembled) {
        return MSC_OK;
    }
    const struct msc_trial told = msc_race_told_of(&r->known, r->options->record, &line);
    return msc_agent_tell(r->agent, &told);
}

static void note_line(struct replay *r, size_t i) {
    const struct msc_record_line line = line_at(r, i);
    const struct msc_record *record = r->options->record;
    if (line.is_assembled) {
        return;
    }
    msc_race_note(&r->known, msc_record_race(record), msc_record_goal(record), &line);
}

// Opens the agent. Fails if the record names another version of the agent, since another version
// may propose other points.
static enum msc_status open_replayed_agent(struct replay *r) {
    const struct msc_record *record = r->options->record;
    const cJSON *old = msc_json_get(msc_record_header(record), "agent");
    const cJSON *version = msc_json_get(old, "version");
    const cJSON *warm = msc_json_get(msc_record_header(record), "warm");
    const struct msc_agent_host host = {.folder = r->options->agent_folder,
                                        .lessons = msc_warm_lessons(warm)};
    MSC_TRY(msc_agent_open(&r->agent, r->options->agent_config, r->options->space,
                           msc_record_goal(record), msc_record_seed(record), &host));
    unsigned own = msc_agent_definition(r->agent)->version;
    return cJSON_IsNumber(version) && version->valuedouble != own
               ? MSC_FAIL(MSC_E_UNSUPPORTED,
                          "%s: its agent has version %g, expected %u; use the program that began "
                          "the search",
                          msc_record_path(record), version->valuedouble, own)
               : MSC_OK;
}

static enum msc_status make_replay_room(struct replay *r) {
    uint32_t parallel = msc_record_parallel(r->options->record);
    r->n_trials = msc_record_n_trials(r->options->record);
    r->proposals = msc_arena_array(&r->arena, parallel, sizeof *r->proposals);
    r->origins = msc_arena_array(&r->arena, r->n_trials + 1, sizeof *r->origins);
    MSC_TRY(MSC_ALLOCATED(r->proposals && r->origins));
    for (uint32_t i = 0; i < parallel; i++) {
        r->proposals[i].choices =
            msc_arena_array(&r->arena, r->options->space->n_tasks, sizeof *r->proposals[i].choices);
        MSC_TRY(MSC_ALLOCATED(r->proposals[i].choices));
    }
    return MSC_OK;
}

static bool is_given(struct msc_record_line line) {
    return line.baseline >= 0 || line.retry_of >= 0 || line.is_assembled ||
           line.warm != MSC_RECORD_WARM_NONE;
}

// Lets the agent observe the trials that it did not propose, including all trials before the last
// warm start.
static enum msc_status tell_given(struct replay *r) {
    int64_t first = 0;
    for (size_t i = 0; i < msc_record_n_segments(r->options->record); i++) {
        const struct msc_record_segment *segment = msc_record_segment(r->options->record, i);
        first = segment->is_warm_start ? segment->first : first;
    }
    while (r->at < r->n_trials && ((int64_t)r->at < first || is_given(line_at(r, r->at)))) {
        note_line(r, r->at);
        MSC_TRY(tell_line(r, r->at));
        r->origins[r->at++] = GIVEN;
    }
    return MSC_OK;
}

static bool is_same_proposal(const struct replay *r, const struct msc_proposal *proposal) {
    const struct msc_proposal recorded = line_at(r, r->at).trial.proposal;
    return memcmp(recorded.choices, proposal->choices,
                  r->options->space->n_tasks * sizeof *proposal->choices) == 0;
}

// Replays one round of proposals. The agent does not observe a round that is incomplete in the
// record.
static enum msc_status replay_asked(struct replay *r) {
    size_t n = 0, n_taken = 0, begin = r->at;
    MSC_TRY(msc_agent_ask(r->agent, r->proposals, msc_record_parallel(r->options->record), &n));
    while (r->at < r->n_trials && n_taken < n) {
        const struct msc_record_line line = line_at(r, r->at);
        if (line.retry_of >= 0 || line.is_assembled) {
            r->origins[r->at++] = GIVEN;
            continue;
        }
        if (!is_same_proposal(r, &r->proposals[n_taken])) {
            break;
        }
        const char *origin = r->proposals[n_taken++].origin;
        r->origins[r->at++] = origin ? origin : OTHER;
    }
    if (r->at < r->n_trials && n_taken < n) {
        n = 0; // the agent proposes another point
    }
    if (n == 0) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: trial %zu does not replay: the agent proposes another point",
                        msc_record_path(r->options->record), r->at);
    }
    for (size_t i = begin; i < r->at; i++) {
        note_line(r, i);
    }
    for (size_t i = begin; i < r->at && n_taken == n; i++) {
        MSC_TRY(tell_line(r, i));
    }
    return MSC_OK;
}

static enum msc_status replay_record(struct replay *r) {
    MSC_TRY(make_replay_room(r));
    MSC_TRY(open_replayed_agent(r));
    while (r->at < r->n_trials) {
        MSC_TRY(tell_given(r));
        MSC_TRY(r->at < r->n_trials ? replay_asked(r) : MSC_OK);
    }
    return MSC_OK;
}

// ---- Phases -----------------------------------------------------------------------------------

static enum msc_status count_one(cJSON *origins, const char *origin, bool is_best) {
    cJSON *counts = msc_json_get(origins, origin);
    if (!counts) {
        counts = cJSON_CreateObject();
        MSC_TRY(msc_json_add(origins, origin, counts));
        MSC_TRY(msc_json_add_number(counts, "trials", 0));
        MSC_TRY(msc_json_add_number(counts, "best", 0));
    }
    cJSON *trials = msc_json_get(counts, "trials");
    cJSON *best = msc_json_get(counts, "best");
    cJSON_SetNumberValue(trials, trials->valuedouble + 1);
    cJSON_SetNumberValue(best, best->valuedouble + is_best);
    return MSC_OK;
}

static bool is_better(const struct msc_record_line *line, const struct msc_record_line *best) {
    enum msc_trial_state state = line->trial.outcome.state;
    bool may_win = msc_trial_state_is_result(state);
    return may_win && line->repeat_of < 0 &&
           (!best || msc_trial_compare(&line->trial, &best->trial) < 0);
}

static enum msc_status list_phases(cJSON *list, const struct replay *r) {
    struct msc_record_line best;
    bool has_best = false;
    cJSON *phase = NULL, *origins = NULL;
    size_t end = 0;
    for (size_t i = 0; i < r->n_trials; i++) {
        const struct msc_record_line line = line_at(r, i);
        bool is_best = is_better(&line, has_best ? &best : NULL);
        best = is_best ? line : best;
        has_best = has_best || is_best;
        if (i == end) {
            end = end == 0 ? FIRST_PHASE : 2 * end;
            phase = cJSON_CreateObject();
            MSC_TRY(msc_json_push(list, phase));
            MSC_TRY(msc_json_add_number(phase, "first", (double)i));
            MSC_TRY(msc_json_add_number(phase, "last",
                                        (double)(end < r->n_trials ? end : r->n_trials) - 1));
            origins = cJSON_CreateObject();
            MSC_TRY(msc_json_add(phase, "origins", origins));
        }
        MSC_TRY(count_one(origins, r->origins[i], is_best));
    }
    return MSC_OK;
}

static enum msc_status add_learnt(cJSON *object, const struct replay *r) {
    cJSON *learnt = cJSON_CreateArray();
    cJSON_DeleteItemFromObjectCaseSensitive(object, "learnt");
    MSC_TRY(msc_json_add(object, "learnt", learnt));
    MSC_TRY(msc_agent_remarks(r->agent, learnt));
    if (!learnt->child) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, "learnt");
    }
    return MSC_OK;
}

static enum msc_status replay_and_add(cJSON *object, struct replay *r) {
    MSC_TRY(replay_record(r));
    cJSON *phases = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "phases", phases));
    MSC_TRY(list_phases(phases, r));
    return add_learnt(object, r);
}

enum msc_status msc_phases_add(struct cJSON *object, const struct msc_phases_options *options) {
    struct replay r = {.options = options};
    enum msc_status status = replay_and_add(object, &r);
    msc_agent_destroy(r.agent);
    msc_arena_finish(&r.arena);
    return status;
}

// ---- For people -------------------------------------------------------------------------------

#define MAX_ORIGINS 16

// Collects the names of origins in all phases, in order of appearance.
static size_t gather_origins(const char *words[MAX_ORIGINS], const cJSON *phases) {
    size_t n = 0;
    const cJSON *phase = NULL, *item = NULL;
    cJSON_ArrayForEach(phase, phases) {
        cJSON_ArrayForEach(item, msc_json_get(phase, "origins")) {
            size_t k = 0;
            while (k < n && strcmp(words[k], item->string) != 0) {
                k++;
            }
            if (k == n && n < MAX_ORIGINS) {
                words[n++] = item->string;
            }
        }
    }
    return n;
}

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return item ? item->valuedouble : 0;
}

enum msc_status msc_phases_text(struct msc_str *out, const struct cJSON *report, size_t n_columns) {
    const char *words[MAX_ORIGINS];
    const cJSON *phases = msc_json_get(report, "phases");
    size_t n = gather_origins(words, phases);
    struct msc_table table = {.n_columns = n + 1, .indent = 2};
    const cJSON *phase = NULL, *remark = NULL;
    msc_str_append(out, "phases: trials by origin (in parentheses: new bests)\n");
    msc_table_add(&table, "trials");
    for (size_t i = 0; i < n; i++) {
        msc_table_add(&table, words[i]);
    }
    cJSON_ArrayForEach(phase, phases) {
        char text[64];
        const cJSON *origins = msc_json_get(phase, "origins");
        snprintf(text, sizeof text, "%.0f-%.0f", number_of(phase, "first"),
                 number_of(phase, "last"));
        msc_table_add(&table, text);
        for (size_t i = 0; i < n; i++) {
            const cJSON *counts = msc_json_get(origins, words[i]);
            double best = number_of(counts, "best");
            snprintf(text, sizeof text, best > 0 ? "%.0f (%.0f)" : "%.0f",
                     number_of(counts, "trials"), best);
            msc_table_add(&table, counts ? text : "-");
        }
    }
    msc_table_write(out, &table, n_columns);
    msc_table_finish(&table);
    cJSON_ArrayForEach(remark, msc_json_get(report, "learnt")) {
        msc_str_printf(out, "  learnt: %s\n", remark->valuestring);
    }
    return msc_str_status(out);
}

#include "results/optuna.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "records/record_query.h"

#include <math.h>
#include <string.h>

// Values of optuna.storages.journal._storage.JournalOperation.
enum operation {
    CREATE_STUDY = 0,
    SET_STUDY_USER_ATTRIBUTE = 2,
    SET_STUDY_SYSTEM_ATTRIBUTE = 3,
    CREATE_TRIAL = 4,
};

// Values of optuna.trial.TrialState.
enum trial_state { STATE_COMPLETE = 1, STATE_PRUNED = 2, STATE_FAIL = 3 };

// Values of optuna.study.StudyDirection.
enum direction { MINIMIZE = 1, MAXIMIZE = 2 };

enum { CHUNK_BYTES = 1 << 20 };

struct journal {
    const struct msc_record *record;
    const struct msc_space *space;
    const struct msc_goal *goal;
    struct msc_str distributions; // the same for every trial: {"task": "{\"name\": ...}", ...}
    struct msc_str text;          // lines not written yet
};

static void begin_operation(struct journal *j, enum operation operation) {
    msc_str_printf(&j->text, "{\"op_code\":%d,\"worker_id\":\"mscgym\"", (int)operation);
}

// ---- The study --------------------------------------------------------------------------------

static void write_study_name(struct msc_str *out, const char *path) {
    struct msc_str name = {0};
    static const char ending[] = ".jsonl";
    msc_str_append(&name, msc_path_name(path));
    size_t n = sizeof ending - 1;
    if (name.length > n && strcmp(name.data + name.length - n, ending) == 0) {
        name.length -= n;
        name.data[name.length] = '\0';
    }
    out->failed |= name.failed;
    msc_json_write_text(out, msc_str_text(&name));
    msc_str_finish(&name);
}

static void write_study_attribute(struct journal *j, const char *key, const char *value) {
    begin_operation(j, SET_STUDY_USER_ATTRIBUTE);
    msc_str_append(&j->text, ",\"study_id\":0,\"user_attr\":{");
    msc_json_write_text(&j->text, key);
    msc_str_char(&j->text, ':');
    msc_json_write_text(&j->text, value);
    msc_str_append(&j->text, "}}\n");
}

static enum msc_status write_study(struct journal *j) {
    const cJSON *header = msc_record_header(j->record);
    const cJSON *program = msc_json_get(header, "program");
    const cJSON *agent = msc_json_get(header, "agent");
    const cJSON *type = msc_json_get(agent, "type");
    char identity[MSC_HASH_TEXT_BYTES];
    struct msc_hash hash;
    MSC_TRY(msc_record_identity(&hash, j->record));
    begin_operation(j, CREATE_STUDY);
    msc_str_append(&j->text, ",\"study_name\":");
    write_study_name(&j->text, msc_record_path(j->record));
    msc_str_append(&j->text, ",\"directions\":[");
    for (size_t i = 0; i < j->goal->n_objectives; i++) {
        msc_str_printf(&j->text, "%s%d", i > 0 ? "," : "",
                       j->goal->objectives[i].is_maximised ? MAXIMIZE : MINIMIZE);
    }
    msc_str_append(&j->text, "]}\n");
    begin_operation(j, SET_STUDY_SYSTEM_ATTRIBUTE);
    msc_str_append(&j->text, ",\"study_id\":0,\"system_attr\":{\"study:metric_names\":[");
    for (size_t i = 0; i < j->goal->n_objectives; i++) {
        msc_str_append(&j->text, i > 0 ? "," : "");
        msc_json_write_text(&j->text, j->space->metrics[j->goal->objectives[i].metric].name);
    }
    msc_str_append(&j->text, "]}}\n");
    write_study_attribute(j, "record", msc_hash_format(identity, hash));
    write_study_attribute(j, "program", cJSON_IsString(program) ? program->valuestring : "");
    write_study_attribute(j, "agent", cJSON_IsString(type) ? type->valuestring : "");
    return MSC_OK;
}

// Optuna stores a distribution as JSON text in a JSON string.
static void write_distributions(struct journal *j) {
    struct msc_str inner = {0};
    msc_str_char(&j->distributions, '{');
    for (size_t t = 0; t < j->space->n_tasks; t++) {
        const struct msc_task *task = &j->space->tasks[t];
        msc_str_clear(&inner);
        msc_str_append(&inner,
                       "{\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":[");
        for (uint32_t k = 0; k < task->n_choices; k++) {
            msc_str_append(&inner, k > 0 ? "," : "");
            msc_json_write_text(&inner, task->labels[k]);
        }
        msc_str_append(&inner, "]}}");
        msc_str_append(&j->distributions, t > 0 ? "," : "");
        msc_json_write_text(&j->distributions, task->name);
        msc_str_char(&j->distributions, ':');
        msc_json_write_text(&j->distributions, msc_str_text(&inner));
    }
    msc_str_char(&j->distributions, '}');
    j->distributions.failed |= inner.failed;
    msc_str_finish(&inner);
}

// ---- Trials -----------------------------------------------------------------------------------

// Writes a time in UTC, in the format of Python's datetime.isoformat, or null if the record has no
// start time.
static void write_time(struct journal *j, const char *key, double elapsed_s) {
    char text[MSC_CLOCK_TEXT_BYTES];
    double seconds = msc_record_begun_s(j->record) + elapsed_s;
    msc_str_printf(&j->text, ",\"%s\":", key);
    if (isnan(seconds)) {
        msc_str_append(&j->text, "null");
        return;
    }
    double whole = floor(seconds);
    int microseconds = (int)((seconds - whole) * 1e6);
    msc_clock_format(text, whole);
    text[strcspn(text, "Z")] = '\0';
    msc_str_printf(&j->text, "\"%s.%06d+00:00\"", text, microseconds);
}

static bool are_objectives_there(const struct journal *j, const struct msc_outcome *outcome) {
    for (size_t i = 0; i < j->goal->n_objectives; i++) {
        if (!isfinite(outcome->metrics[j->goal->objectives[i].metric])) {
            return false;
        }
    }
    return true;
}

static enum trial_state state_of(const struct journal *j, const struct msc_outcome *outcome) {
    if (outcome->state == MSC_TRIAL_FAILED) {
        return STATE_FAIL;
    }
    bool is_complete =
        msc_trial_state_is_result(outcome->state) && are_objectives_there(j, outcome);
    return is_complete ? STATE_COMPLETE : STATE_PRUNED;
}

static void write_values(struct journal *j, const struct msc_outcome *outcome,
                         enum trial_state state) {
    const struct msc_goal *goal = j->goal;
    if (state != STATE_COMPLETE) {
        msc_str_append(&j->text, ",\"value\":null,\"values\":null");
    } else if (goal->n_objectives == 1) {
        msc_str_append(&j->text, ",\"value\":");
        msc_json_write_number(&j->text, outcome->metrics[goal->objectives[0].metric]);
        msc_str_append(&j->text, ",\"values\":null");
    } else {
        msc_str_append(&j->text, ",\"value\":null,\"values\":[");
        for (size_t i = 0; i < goal->n_objectives; i++) {
            msc_str_append(&j->text, i > 0 ? "," : "");
            msc_json_write_number(&j->text, outcome->metrics[goal->objectives[i].metric]);
        }
        msc_str_char(&j->text, ']');
    }
}

static void write_params(struct journal *j, const uint32_t choices[]) {
    msc_str_append(&j->text, ",\"params\":{");
    for (size_t t = 0; t < j->space->n_tasks; t++) {
        msc_str_append(&j->text, t > 0 ? "," : "");
        msc_json_write_text(&j->text, j->space->tasks[t].name);
        msc_str_printf(&j->text, ":%u", (unsigned)choices[t]);
    }
    msc_str_append(&j->text, "},\"distributions\":");
    msc_str_append(&j->text, msc_str_text(&j->distributions));
}

static void write_text_attribute(struct journal *j, const char *key, const char *value) {
    msc_str_printf(&j->text, ",\"%s\":", key);
    msc_shown_append_string(&j->text, value);
}

static void write_id_attribute(struct journal *j, const char *key, int64_t id) {
    if (id >= 0) {
        msc_str_printf(&j->text, ",\"%s\":%lld", key, (long long)id);
    }
}

static void write_user_attributes(struct journal *j, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    msc_str_append(&j->text, ",\"user_attrs\":{\"state\":");
    msc_json_write_text(&j->text, msc_trial_state_name(outcome->state));
    for (size_t i = 0; i < j->space->n_metrics; i++) {
        if (isfinite(outcome->metrics[i])) {
            msc_str_append(&j->text, ",");
            msc_json_write_text(&j->text, j->space->metrics[i].name);
            msc_str_append(&j->text, ":");
            msc_json_write_number(&j->text, outcome->metrics[i]);
        }
    }
    msc_str_append(&j->text, ",\"violation\":");
    msc_json_write_number(&j->text, outcome->violation);
    if (outcome->reason && outcome->reason[0]) {
        write_text_attribute(j, "reason", outcome->reason);
    }
    if (line->baseline >= 0) {
        write_text_attribute(j, "baseline", j->space->baselines[line->baseline].label);
    }
    write_id_attribute(j, "parent", line->trial.proposal.parent);
    write_id_attribute(j, "repeat_of", line->repeat_of);
    write_id_attribute(j, "retry_of", line->retry_of);
    msc_str_char(&j->text, '}');
}

// Writes a constraint for each bound: the amount by which it is exceeded, negative if it is met.
// Optuna needs all constraints of a trial: if one of them is unknown, none is written.
static void write_constraints(struct journal *j, const struct msc_outcome *outcome) {
    msc_str_append(&j->text, ",\"system_attrs\":{");
    size_t begin = j->text.length;
    bool is_first = true;
    for (size_t i = 0; i < j->goal->n_bounds; i++) {
        const struct msc_bound *bound = &j->goal->bounds[i];
        const double sides[] = {outcome->metrics[bound->metric] - bound->max,
                                bound->min - outcome->metrics[bound->metric]};
        const bool is_limited[] = {isfinite(bound->max), isfinite(bound->min)};
        for (size_t side = 0; side < 2; side++) {
            if (is_limited[side] && !isfinite(sides[side])) {
                j->text.length = begin;
                msc_str_char(&j->text, '}');
                return;
            }
            if (is_limited[side]) {
                msc_str_append(&j->text, is_first ? "\"constraints\":[" : ",");
                msc_json_write_number(&j->text, sides[side]);
                is_first = false;
            }
        }
    }
    msc_str_append(&j->text, is_first ? "}" : "]}");
}

static void write_intermediate(struct journal *j, const struct msc_record_line *line) {
    const struct msc_race *race = msc_record_race(j->record);
    bool is_first = true;
    msc_str_append(&j->text, ",\"intermediate_values\":{");
    for (size_t i = 0; race && i < line->n_rungs && i < race->n_rungs; i++) {
        if (isfinite(line->rungs[i])) {
            msc_str_printf(&j->text, "%s\"%u\":", is_first ? "" : ",", (unsigned)race->rungs[i]);
            msc_json_write_number(&j->text, line->rungs[i]);
            is_first = false;
        }
    }
    msc_str_char(&j->text, '}');
}

static void write_trial(struct journal *j, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    enum trial_state state = state_of(j, outcome);
    double took_s = (double)outcome->time_us * 1e-6;
    begin_operation(j, CREATE_TRIAL);
    msc_str_printf(&j->text, ",\"study_id\":0,\"state\":%d", (int)state);
    write_time(j, "datetime_start", fmax(line->elapsed_s - took_s, 0.0));
    write_time(j, "datetime_complete", line->elapsed_s);
    write_values(j, outcome, state);
    write_params(j, line->trial.proposal.choices);
    write_user_attributes(j, line);
    write_constraints(j, outcome);
    write_intermediate(j, line);
    msc_str_append(&j->text, "}\n");
}

// ---- The file ---------------------------------------------------------------------------------

static enum msc_status flush(struct journal *j, struct msc_file_writer *file, size_t at_least) {
    MSC_TRY(msc_str_status(&j->distributions));
    MSC_TRY(msc_str_status(&j->text));
    if (j->text.length < at_least) {
        return MSC_OK;
    }
    MSC_TRY(msc_file_writer_write(file, j->text.data, j->text.length));
    msc_str_clear(&j->text);
    return MSC_OK;
}

static enum msc_status write_journal(struct journal *j, struct msc_file_writer *file) {
    write_distributions(j);
    MSC_TRY(write_study(j));
    for (size_t i = 0; i < msc_record_n_trials(j->record); i++) {
        const struct msc_record_line line = msc_record_trial(j->record, i);
        write_trial(j, &line);
        MSC_TRY(flush(j, file, CHUNK_BYTES));
    }
    MSC_TRY(flush(j, file, 1));
    return msc_file_writer_commit(file);
}

enum msc_status msc_optuna_save(const struct msc_record *record, const char *path) {
    struct journal journal = {
        .record = record, .space = msc_record_space(record), .goal = msc_record_goal(record)};
    struct msc_file_writer file = {0};
    enum msc_status status = msc_file_writer_begin(&file, path);
    if (status == MSC_OK) {
        status = write_journal(&journal, &file);
    }
    msc_file_writer_abort(&file);
    msc_str_finish(&journal.distributions);
    msc_str_finish(&journal.text);
    return status;
}

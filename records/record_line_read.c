// Reads trial and segment lines; record_line.c writes them.
#include "base/json.h"
#include "records/record_cursor.h"
#include "records/record_internal.h"

#include <math.h>
#include <string.h>

static int64_t read_optional_id(struct msc_record_cursor *c, const char *key) {
    return msc_record__accept(c, key) ? msc_record__read_i64(c) : -1;
}

// Reads single-digit choices (the usual case) with their commas, up to the last task; returns their
// number.
static size_t read_short_choices(struct msc_record_cursor *c, const struct msc_space *space,
                                 uint32_t choices[], size_t first) {
    const char *at = c->at;
    size_t t = first;
    for (; t + 1 < space->n_tasks && c->end - at >= 2 && at[1] == ','; t++, at += 2) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9 || digit >= space->tasks[t].n_choices) {
            break;
        }
        choices[t] = digit;
    }
    c->at = at;
    return t;
}

static void line_read_choices(struct msc_record_cursor *c, const struct msc_space *space,
                              uint32_t choices[]) {
    msc_record__expect(c, "[");
    for (size_t t = 0; t < space->n_tasks && c->is_good; t++) {
        t = read_short_choices(c, space, choices, t);
        int64_t choice = msc_record__read_i64(c);
        c->is_good = c->is_good && choice >= 0 && choice < space->tasks[t].n_choices;
        choices[t] = (uint32_t)choice;
        msc_record__expect(c, t + 1 < space->n_tasks ? "," : "");
    }
    msc_record__expect(c, "]");
}

static void line_read_metrics(struct msc_record_cursor *c, const struct msc_record *record,
                              double metrics[]) {
    const char *before = "{";
    msc_record__expect(c, ",\"metrics\":");
    for (size_t i = 0; i < record->space->n_metrics; i++) {
        const char *place = c->at;
        metrics[i] = NAN;
        if (msc_record__accept(c, before) &&
            msc_record__accept_n(c, record->keys[i].text, record->keys[i].length)) {
            metrics[i] = msc_record__read_number(c);
            before = ",";
        } else {
            c->at = place;
        }
    }
    msc_record__expect(c, before[0] == '{' ? "{}" : "}");
}

static void line_read_state(struct msc_record_cursor *c, struct msc_outcome *outcome) {
    char name[32] = "";
    if (msc_record__accept(c, ",\"state\":\"complete\"")) { // the usual case
        outcome->state = MSC_TRIAL_COMPLETE;
    } else {
        msc_record__expect(c, ",\"state\":");
        msc_record__read_text(c, name, sizeof name);
        c->is_good = c->is_good && msc_trial_state_parse(&outcome->state, name);
    }
    if (msc_record__accept(c, ",\"cause\":")) {
        msc_record__read_text(c, name, sizeof name);
        for (int i = 0; i <= MSC_CAUSE_ENVIRONMENT; i++) {
            if (strcmp(name, msc_record__cause_names[i]) == 0) {
                outcome->cause = (enum msc_trial_cause)i;
            }
        }
    }
}

static enum msc_record_warm line_read_warm(struct msc_record_cursor *c) {
    char name[32] = "";
    if (msc_record__accept(c, ",\"warm\":")) {
        msc_record__read_text(c, name, sizeof name);
        for (int i = 0; i < MSC_RECORD_WARM_COUNT; i++) {
            if (strcmp(name, msc_record__warm_names[i]) == 0) {
                return (enum msc_record_warm)i;
            }
        }
        c->is_good = false;
    }
    return MSC_RECORD_WARM_NONE;
}

// The number of the line being read.
static size_t next_line_number(const struct msc_record *record) {
    return 2 + record->n_trials + record->n_segments;
}

// If `measured` is damaged, the rest of the line is still valid, but its time is unknown.
static bool line_read_measured(struct msc_record_line *out, const char *line, size_t n_body,
                               size_t length) {
    struct msc_outcome *outcome = &out->trial.outcome;
    size_t n_measured = 0;
    struct msc_record_cursor c = {.at = line + n_body + MSC_RECORD_CHECKSUM_BYTES, .is_good = true};
    c.is_good = msc_record__check_end(&n_measured, line, length);
    c.end = c.is_good ? line + n_measured : c.at;
    msc_record__expect(&c, ",\"measured\":{\"us\":");
    outcome->time_us = (uint64_t)msc_record__read_i64(&c);
    msc_record__expect(&c, ",\"reuse\":");
    outcome->reuse_ratio = msc_record__read_number(&c);
    msc_record__expect(&c, ",\"elapsed_s\":");
    out->elapsed_s = msc_record__read_number(&c);
    if (c.is_good && c.at == c.end && out->elapsed_s >= 0.0) {
        return true;
    }
    outcome->time_us = 0;
    outcome->reuse_ratio = 0.0;
    out->elapsed_s = NAN;
    return false;
}

static enum msc_status check_ids(const struct msc_record *record,
                                 const struct msc_record_line *line) {
    int64_t id = line->trial.id;
    if (id != (int64_t)record->n_trials) {
        return MSC_FAIL(MSC_E_FORMAT, "trial id %lld, expected %zu", (long long)id,
                        record->n_trials);
    }
    if (line->repeat_of >= id || line->retry_of >= id || line->trial.proposal.parent >= id) {
        return MSC_FAIL(MSC_E_FORMAT, "trial %lld refers to a later trial", (long long)id);
    }
    return MSC_OK;
}

static void line_read_proposal(struct msc_record_cursor *c, const struct msc_record *record,
                               struct msc_proposal *proposal) {
    msc_record__expect(c, ",\"choices\":");
    line_read_choices(c, record->space, proposal->choices);
    msc_record__expect(c, ",\"parent\":");
    proposal->parent = msc_record__read_i64(c);
    msc_record__expect(c, ",\"bound\":");
    proposal->bound = msc_record__accept(c, "null") ? INFINITY : msc_record__read_number(c);
    proposal->probe = msc_record__accept(c, ",\"probe\":true");
}

static void line_read_outcome(struct msc_record_cursor *c, const struct msc_record *record,
                              struct msc_outcome *outcome) {
    line_read_state(c, outcome);
    outcome->reason[0] = '\0';
    if (msc_record__accept(c, ",\"reason\":")) {
        msc_record__read_text(c, outcome->reason, MSC_REASON_BYTES);
    }
    line_read_metrics(c, record, outcome->metrics);
    msc_record__expect(c, ",\"violation\":");
    outcome->violation = msc_record__read_number(c);
}

static void line_read_rungs(struct msc_record_cursor *c, const struct msc_record *record,
                            struct msc_record_line *line) {
    if (!msc_record__accept(c, ",\"rungs\":[")) {
        return;
    }
    do {
        c->is_good = c->is_good && line->n_rungs < record->race.n_rungs;
        if (c->is_good) {
            line->rungs[line->n_rungs++] = msc_record__read_number(c);
        }
    } while (c->is_good && msc_record__accept(c, ","));
    msc_record__expect(c, "]");
}

enum msc_status msc_record__read_trial(struct msc_record *record, const char *line, size_t n_body,
                                       size_t length) {
    struct msc_record_cursor c = {.at = line, .end = line + n_body, .is_good = true};
    char *text = record->line_reason; // holds a label, then the reason
    struct msc_record_line *read = &record->line;
    msc_record__begin_line(read);
    read->trial.proposal.choices = record->scratch;
    read->trial.outcome.metrics = record->line_metrics;
    read->trial.outcome.reason = text;
    msc_record__expect(&c, "{\"kind\":\"trial\",\"id\":");
    read->trial.id = msc_record__read_i64(&c);
    line_read_proposal(&c, record, &read->trial.proposal);
    if (msc_record__accept(&c, ",\"baseline\":")) {
        msc_record__read_text(&c, text, sizeof record->line_reason);
    }
    read->warm = line_read_warm(&c);
    read->is_assembled = msc_record__accept(&c, MSC_RECORD_ASSEMBLED);
    read->repeat_of = read_optional_id(&c, ",\"repeat_of\":");
    read->retry_of = read_optional_id(&c, ",\"retry_of\":");
    line_read_outcome(&c, record, &read->trial.outcome);
    line_read_rungs(&c, record, read);
    if (!c.is_good || c.at != c.end) {
        return MSC_FAIL(MSC_E_FORMAT, "malformed trial line (at column %zu)",
                        (size_t)(c.at - line) + 1);
    }
    MSC_TRY(check_ids(record, read));
    if (!line_read_measured(read, line, n_body, length)) {
        msc_record__note_damage(record, next_line_number(record));
    }
    read->baseline = msc_record__baseline_of(record->space, read);
    read->trial.proposal.probe |= read->baseline >= 0;
    msc_goal_set_objectives(&record->goal, &read->trial.outcome);
    return MSC_OK;
}

enum msc_status msc_record__read_segment(struct msc_record *record, const char *line, size_t n_body,
                                         size_t length) {
    enum msc_status status = MSC_OK;
    struct msc_record_segment segment = {0};
    cJSON *object = NULL;
    size_t n_measured = 0;
    MSC_TRY(msc_record__parse_body(&object, line, n_body, "segment"));
    if (!msc_record__check_end(&n_measured, line, length)) {
        msc_record__note_damage(record, next_line_number(record));
    }
    MSC_TRY_OUT(msc_json_get_i64(&segment.first, object, "first", "segment"));
    MSC_TRY_OUT(msc_json_get_text(&segment.numerics, object, "numerics", "segment"));
    MSC_TRY_OUT(msc_json_get_bool(&segment.is_warm_start, object, "warm_start", "segment"));
    if (segment.first != (int64_t)record->n_trials) {
        status = MSC_FAIL(MSC_E_FORMAT, "a segment that begins at trial %lld, expected %zu",
                          (long long)segment.first, record->n_trials);
        goto out;
    }
    status = msc_record__add_segment(record, &segment);
out:
    cJSON_Delete(object);
    return status;
}

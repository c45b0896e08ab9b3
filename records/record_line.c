// Writes trial, segment and header lines. Lines are formatted by hand, because a search may write
// a hundred thousand per second. record_sum.c writes the end of a line; record_line_read.c reads
// lines back.
#include "base/clock.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const msc_record__cause_names[MSC_CAUSE_ENVIRONMENT + 1] = {
    [MSC_CAUSE_NONE] = "none",
    [MSC_CAUSE_TRIAL] = "trial",
    [MSC_CAUSE_ENVIRONMENT] = "environment",
};

const char *const msc_record__warm_names[MSC_RECORD_WARM_COUNT] = {
    [MSC_RECORD_WARM_NONE] = "none",
    [MSC_RECORD_WARM_TOLD] = "told",
    [MSC_RECORD_WARM_TRIED] = "tried",
};

static void line_write_number(struct msc_str *out, double value) {
    assert(!isnan(value));
    if (isinf(value)) {
        msc_str_append(out, value > 0 ? "\"inf\"" : "\"-inf\"");
    } else {
        msc_json_write_number(out, value);
    }
}

// Reserves room for all choices once; most have one digit.
static void line_write_choices(struct msc_str *out, const uint32_t choices[], size_t n) {
    const size_t longest = sizeof "4294967295,";
    if (out->failed ||
        msc_grow(&out->data, &out->capacity, out->length + n * longest + 2, 1) != MSC_OK) {
        out->failed = true;
        return;
    }
    char *end = out->data + out->length;
    for (size_t i = 0; i < n; i++) {
        char digits[10];
        size_t first = sizeof digits;
        uint32_t value = choices[i];
        do {
            digits[--first] = (char)('0' + value % 10);
            value /= 10;
        } while (value > 0);
        *end++ = i > 0 ? ',' : '[';
        memcpy(end, digits + first, sizeof digits - first);
        end += sizeof digits - first;
    }
    *end = '\0';
    out->length = (size_t)(end - out->data);
    msc_str_append(out, n > 0 ? "]" : "[]");
}

static void line_write_id(struct msc_str *out, const char *key, int64_t id) {
    if (id >= 0) {
        msc_str_append(out, key);
        msc_str_i64(out, id);
    }
}

static void line_write_metrics(struct msc_str *out, const struct msc_record *record,
                               const double metrics[]) {
    char before = '{';
    msc_str_append(out, ",\"metrics\":");
    for (size_t i = 0; i < record->space->n_metrics; i++) {
        if (!isnan(metrics[i])) {
            msc_str_char(out, before);
            msc_str_append_n(out, record->keys[i].text, record->keys[i].length);
            line_write_number(out, metrics[i]);
            before = ',';
        }
    }
    msc_str_append(out, before == '{' ? "{}" : "}");
}

// Writes a measured value with three decimal places, which is precise enough and fast.
static void line_write_thousandths(struct msc_str *out, double value) {
    uint64_t n = msc_record__thousandths(value);
    char places[4] = {'.', (char)('0' + n / 100 % 10), (char)('0' + n / 10 % 10),
                      (char)('0' + n % 10)};
    msc_str_u64(out, n / 1000);
    msc_str_append_n(out, places, n % 1000 == 0 ? 0 : sizeof places);
}

static void line_write_measured(struct msc_str *out, size_t begin,
                                const struct msc_record_line *line) {
    msc_str_append(out, ",\"measured\":{\"us\":");
    msc_str_u64(out, line->trial.outcome.time_us);
    msc_str_append(out, ",\"reuse\":");
    line_write_thousandths(out, line->trial.outcome.reuse_ratio);
    msc_str_append(out, ",\"elapsed_s\":");
    line_write_thousandths(out, line->elapsed_s);
    msc_record__write_end(out, begin);
}

static void line_write_proposal(struct msc_str *out, const struct msc_record *record,
                                const struct msc_record_line *line) {
    const struct msc_proposal *proposal = &line->trial.proposal;
    msc_str_append(out, ",\"choices\":");
    line_write_choices(out, proposal->choices, record->space->n_tasks);
    msc_str_append(out, ",\"parent\":");
    msc_str_i64(out, proposal->parent);
    msc_str_append(out, ",\"bound\":");
    if (isinf(proposal->bound) && proposal->bound > 0) {
        msc_str_append(out, "null");
    } else {
        line_write_number(out, proposal->bound);
    }
    if (proposal->probe && line->baseline < 0) {
        msc_str_append(out, ",\"probe\":true");
    }
}

static void line_write_outcome(struct msc_str *out, const struct msc_record *record,
                               const struct msc_outcome *outcome) {
    msc_str_append(out, ",\"state\":\"");
    msc_str_append(out, msc_trial_state_name(outcome->state));
    msc_str_char(out, '"');
    if (outcome->cause != MSC_CAUSE_NONE) {
        msc_str_append(out, ",\"cause\":\"");
        msc_str_append(out, msc_record__cause_names[outcome->cause]);
        msc_str_char(out, '"');
    }
    if (outcome->reason[0] != '\0') {
        msc_str_append(out, ",\"reason\":");
        msc_json_write_text(out, outcome->reason);
    }
    line_write_metrics(out, record, outcome->metrics);
    msc_str_append(out, ",\"violation\":");
    line_write_number(out, outcome->violation);
}

static void line_write_rungs(struct msc_str *out, const struct msc_record_line *line) {
    for (size_t i = 0; i < line->n_rungs; i++) {
        msc_str_append(out, i == 0 ? ",\"rungs\":[" : ",");
        line_write_number(out, line->rungs[i]);
    }
    msc_str_append(out, line->n_rungs > 0 ? "]" : "");
}

void msc_record__write_trial(struct msc_str *out, const struct msc_record *record,
                             const struct msc_record_line *line) {
    size_t begin = out->length;
    msc_str_append(out, "{\"kind\":\"trial\",\"id\":");
    msc_str_i64(out, line->trial.id);
    line_write_proposal(out, record, line);
    if (line->baseline >= 0) {
        msc_str_append(out, ",\"baseline\":");
        msc_str_append_n(out, record->labels[line->baseline].text,
                         record->labels[line->baseline].length);
    }
    if (line->warm != MSC_RECORD_WARM_NONE) {
        msc_str_append(out, ",\"warm\":\"");
        msc_str_append(out, msc_record__warm_names[line->warm]);
        msc_str_char(out, '"');
    }
    msc_str_append(out, line->is_assembled ? MSC_RECORD_ASSEMBLED : "");
    line_write_id(out, ",\"repeat_of\":", line->repeat_of);
    line_write_id(out, ",\"retry_of\":", line->retry_of);
    line_write_outcome(out, record, &line->trial.outcome);
    line_write_rungs(out, line);
    msc_record__write_checksum(out, begin);
    line_write_measured(out, begin, line);
}

static void write_measured_time(struct msc_str *out, size_t begin) {
    char text[MSC_CLOCK_TEXT_BYTES];
    msc_str_append(out, ",\"measured\":{\"time\":\"");
    msc_str_append(out, msc_clock_format(text, msc_clock_wall_seconds()));
    msc_str_char(out, '"');
    msc_record__write_end(out, begin);
}

void msc_record__write_segment(struct msc_str *out, const struct msc_record_segment *segment) {
    size_t begin = out->length;
    msc_str_append(out, "{\"kind\":\"segment\",\"first\":");
    msc_str_i64(out, segment->first);
    msc_str_append(out, ",\"numerics\":");
    msc_json_write_text(out, segment->numerics);
    msc_str_append(out, segment->is_warm_start ? ",\"warm_start\":true" : ",\"warm_start\":false");
    msc_record__write_checksum(out, begin);
    write_measured_time(out, begin);
}

void msc_record__write_header(struct msc_str *out, const struct cJSON *header) {
    size_t begin = out->length;
    msc_json_write(out, header);
    if (out->failed) {
        return;
    }
    assert(out->data[out->length - 1] == '}');
    out->length--; // leaves the object open for its last two members
    msc_record__write_checksum(out, begin);
    write_measured_time(out, begin);
}

enum msc_record_line_kind msc_record__line_kind(const char *line, size_t length) {
    static const char *const begins[] = {
        [MSC_RECORD_LINE_HEADER] = MSC_RECORD_MAGIC,
        [MSC_RECORD_LINE_TRIAL] = "{\"kind\":\"trial\"",
        [MSC_RECORD_LINE_SEGMENT] = "{\"kind\":\"segment\"",
    };
    for (size_t i = 0; i < MSC_RECORD_LINE_UNKNOWN; i++) {
        size_t n = strlen(begins[i]);
        if (length > n && memcmp(line, begins[i], n) == 0) {
            return (enum msc_record_line_kind)i;
        }
    }
    return MSC_RECORD_LINE_UNKNOWN;
}

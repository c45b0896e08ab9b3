// Trial, segment and header lines as text and back. Lines are put together by hand: a search may
// write a hundred thousand in a second. record_sum.c has what every line ends in.
#include "base/clock.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// So many digits always fit in 64 bits.
#define MOST_DIGITS 19

static const char *const cause_names[] = {
    [MSC_CAUSE_NONE] = "none",
    [MSC_CAUSE_TRIAL] = "trial",
    [MSC_CAUSE_ENVIRONMENT] = "environment",
};

static const char *const warm_names[] = {
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

// Room for all choices is made once; most have one digit.
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

// Three decimal places are plenty for what is measured, and cheap to print.
static void line_write_thousandths(struct msc_str *out, double value) {
    uint64_t n = msc_record__thousandths(value);
    char places[4] = {'.', (char)('0' + n / 100 % 10), (char)('0' + n / 10 % 10),
                      (char)('0' + n % 10)};
    msc_str_u64(out, n / 1000);
    msc_str_append_n(out, places, n % 1000 == 0 ? 0 : sizeof places);
}

static void line_write_measured(struct msc_str *out, size_t begin, int schema,
                                const struct msc_record_line *line) {
    msc_str_append(out, ",\"measured\":{\"us\":");
    msc_str_u64(out, line->trial.outcome.time_us);
    msc_str_append(out, ",\"reuse\":");
    line_write_thousandths(out, line->trial.outcome.reuse_ratio);
    msc_str_append(out, ",\"elapsed_s\":");
    line_write_thousandths(out, line->elapsed_s);
    msc_record__write_end(out, begin, schema);
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
        msc_str_append(out, cause_names[outcome->cause]);
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
        msc_str_append(out, warm_names[line->warm]);
        msc_str_char(out, '"');
    }
    line_write_id(out, ",\"repeat_of\":", line->repeat_of);
    line_write_id(out, ",\"retry_of\":", line->retry_of);
    line_write_outcome(out, record, &line->trial.outcome);
    line_write_rungs(out, line);
    msc_record__write_checksum(out, begin);
    line_write_measured(out, begin, record->schema, line);
}

static void write_measured_time(struct msc_str *out, size_t begin, int schema) {
    char text[MSC_CLOCK_TEXT_BYTES];
    msc_str_append(out, ",\"measured\":{\"time\":\"");
    msc_str_append(out, msc_clock_format(text, msc_clock_wall_seconds()));
    msc_str_char(out, '"');
    msc_record__write_end(out, begin, schema);
}

void msc_record__write_segment(struct msc_str *out, int schema,
                               const struct msc_record_segment *segment) {
    size_t begin = out->length;
    msc_str_append(out, "{\"kind\":\"segment\",\"first\":");
    msc_str_i64(out, segment->first);
    msc_str_append(out, ",\"numerics\":");
    msc_json_write_text(out, segment->numerics);
    msc_str_append(out, segment->is_warm_start ? ",\"warm_start\":true" : ",\"warm_start\":false");
    msc_record__write_checksum(out, begin);
    write_measured_time(out, begin, schema);
}

void msc_record__write_header(struct msc_str *out, const struct cJSON *header) {
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(header, "schema");
    size_t begin = out->length;
    msc_json_write(out, header);
    if (out->failed) {
        return;
    }
    assert(out->data[out->length - 1] == '}');
    out->length--; // the object stays open for its last two members
    msc_record__write_checksum(out, begin);
    write_measured_time(out, begin, cJSON_IsNumber(schema) ? schema->valueint : MSC_RECORD_SCHEMA);
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

// A reader of the one form that the writer above produces. A checksum that fits makes any other
// form the work of another program or schema.
struct cursor {
    const char *at;
    const char *end;
    bool is_good;
};

static bool line_accept(struct cursor *c, const char *text, size_t length) {
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

static bool line_accept_text(struct cursor *c, const char *text) {
    return line_accept(c, text, strlen(text));
}

static void line_expect(struct cursor *c, const char *text) {
    c->is_good = c->is_good && line_accept_text(c, text);
}

// Any number that a double has, digit by digit, by a copy that ends where it does.
static double line_read_odd_number(struct cursor *c) {
    char text[40];
    size_t length = 0;
    while (c->at < c->end && length < sizeof text - 1 &&
           ((*c->at >= '0' && *c->at <= '9') || *c->at == '-' || *c->at == '+' || *c->at == '.' ||
            *c->at == 'e' || *c->at == 'E')) {
        text[length++] = *c->at++;
    }
    text[length] = '\0';
    double value = 0.0;
    c->is_good = c->is_good && msc_parse_double(&value, text);
    return value;
}

static bool is_number_end(const struct cursor *c) {
    return c->at == c->end || *c->at == ',' || *c->at == '}' || *c->at == ']';
}

struct digits {
    uint64_t mantissa;
    size_t n;          // digits
    size_t n_counting; // without zeros before the first other one
};

static void read_digits(struct digits *d, struct cursor *c) {
    const char *first = c->at;
    uint64_t mantissa = d->mantissa;
    size_t n_counting = d->n_counting;
    for (; c->at < c->end && n_counting <= MOST_DIGITS; c->at++) {
        unsigned digit = (unsigned)(*c->at - '0');
        if (digit > 9) {
            break;
        }
        mantissa = mantissa * 10 + digit;
        n_counting += mantissa > 0;
    }
    d->n += (size_t)(c->at - first);
    d->mantissa = mantissa;
    d->n_counting = n_counting;
}

// Of nearly all numbers of a record the digits fit in an integer, and msc_round_decimal rounds them:
// strtod takes half of the time that a line takes.
static double line_read_number(struct cursor *c) {
    if (c->at < c->end && *c->at == '"') {
        bool is_positive = line_accept_text(c, "\"inf\"");
        c->is_good = c->is_good && (is_positive || line_accept_text(c, "\"-inf\""));
        return is_positive ? INFINITY : -INFINITY;
    }
    const char *first = c->at;
    struct digits d = {0};
    bool is_negative = line_accept(c, "-", 1);
    read_digits(&d, c);
    size_t n_whole = d.n;
    bool has_point = d.n > 0 && c->at < c->end && *c->at == '.';
    if (has_point) {
        c->at++;
        read_digits(&d, c);
    }
    double value = 0.0;
    bool has_digits = n_whole > 0 && (!has_point || d.n > n_whole);
    int exponent = -(int)(d.n - n_whole);
    bool is_plain = has_digits && d.n_counting <= MOST_DIGITS && is_number_end(c);
    if (is_plain && msc_round_decimal(&value, d.mantissa, exponent)) {
        return is_negative ? -value : value;
    }
    c->at = first;
    return line_read_odd_number(c);
}

static int64_t line_read_i64(struct cursor *c) {
    bool is_negative = line_accept_text(c, "-");
    int64_t value = 0;
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - first < 18) {
        value = value * 10 + (*c->at++ - '0');
    }
    c->is_good = c->is_good && c->at > first;
    return is_negative ? -value : value;
}

static int64_t read_optional_id(struct cursor *c, const char *key) {
    return line_accept_text(c, key) ? line_read_i64(c) : -1;
}

// A JSON text, decoded into `out` of `capacity` bytes; what does not fit is cut.
static void line_read_text(struct cursor *c, char *out, size_t capacity) {
    const char *first = c->at;
    bool has_escape = false;
    line_expect(c, "\"");
    while (c->at < c->end && *c->at != '"') {
        has_escape = has_escape || *c->at == '\\';
        c->at += *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
    }
    line_expect(c, "\"");
    if (!c->is_good) {
        return;
    }
    cJSON *value = NULL;
    const char *text = first + 1;
    size_t length = (size_t)(c->at - first) - 2;
    if (has_escape) {
        c->is_good = msc_json_parse(&value, first, (size_t)(c->at - first), "text") == MSC_OK;
        text = c->is_good ? value->valuestring : "";
        length = strlen(text);
    }
    length = length < capacity ? length : capacity - 1;
    memcpy(out, text, length);
    out[length] = '\0';
    cJSON_Delete(value);
}

static void line_read_choices(struct cursor *c, const struct msc_space *space, uint32_t choices[]) {
    line_expect(c, "[");
    for (size_t t = 0; t < space->n_tasks && c->is_good; t++) {
        if (t > 0) {
            line_expect(c, ",");
        }
        bool is_one_digit = c->end - c->at >= 2 && c->at[0] >= '0' && c->at[0] <= '9' &&
                            (c->at[1] == ',' || c->at[1] == ']');
        int64_t choice = is_one_digit ? *c->at++ - '0' : line_read_i64(c);
        c->is_good = c->is_good && choice >= 0 && choice < space->tasks[t].n_choices;
        choices[t] = (uint32_t)choice;
    }
    line_expect(c, "]");
}

static void line_read_metrics(struct cursor *c, const struct msc_record *record, double metrics[]) {
    const char *before = "{";
    line_expect(c, ",\"metrics\":");
    for (size_t i = 0; i < record->space->n_metrics; i++) {
        const char *place = c->at;
        metrics[i] = NAN;
        if (line_accept_text(c, before) &&
            line_accept(c, record->keys[i].text, record->keys[i].length)) {
            metrics[i] = line_read_number(c);
            before = ",";
        } else {
            c->at = place;
        }
    }
    line_expect(c, before[0] == '{' ? "{}" : "}");
}

static void line_read_state(struct cursor *c, struct msc_outcome *outcome) {
    char name[32] = "";
    if (line_accept_text(c, ",\"state\":\"complete\"")) { // as nearly always
        outcome->state = MSC_TRIAL_COMPLETE;
    } else {
        line_expect(c, ",\"state\":");
        line_read_text(c, name, sizeof name);
        c->is_good = c->is_good && msc_trial_state_parse(&outcome->state, name);
    }
    if (line_accept_text(c, ",\"cause\":")) {
        line_read_text(c, name, sizeof name);
        for (int i = 0; i <= MSC_CAUSE_ENVIRONMENT; i++) {
            if (strcmp(name, cause_names[i]) == 0) {
                outcome->cause = (enum msc_trial_cause)i;
            }
        }
    }
}

static enum msc_record_warm line_read_warm(struct cursor *c) {
    char name[32] = "";
    if (line_accept_text(c, ",\"warm\":")) {
        line_read_text(c, name, sizeof name);
        for (int i = 0; i < MSC_RECORD_WARM_COUNT; i++) {
            if (strcmp(name, warm_names[i]) == 0) {
                return (enum msc_record_warm)i;
            }
        }
        c->is_good = false;
    }
    return MSC_RECORD_WARM_NONE;
}

// Number of the line that is being read.
static size_t next_line_number(const struct msc_record *record) {
    return 2 + record->n_trials + record->n_segments;
}

// A line whose `measured` is damaged still tells what it is for. Its time is not known then.
static bool line_read_measured(const struct msc_record *record, struct msc_record_line *out,
                               const char *line, size_t n_body, size_t length) {
    struct msc_outcome *outcome = &out->trial.outcome;
    size_t n_measured = 0;
    struct cursor c = {.at = line + n_body + MSC_RECORD_CHECKSUM_BYTES, .is_good = true};
    c.is_good = msc_record__check_end(&n_measured, record->schema, line, length);
    c.end = c.is_good ? line + n_measured : c.at;
    line_expect(&c, ",\"measured\":{\"us\":");
    outcome->time_us = (uint64_t)line_read_i64(&c);
    line_expect(&c, ",\"reuse\":");
    outcome->reuse_ratio = line_read_number(&c);
    line_expect(&c, ",\"elapsed_s\":");
    out->elapsed_s = line_read_number(&c);
    if (c.is_good && c.at == c.end && out->elapsed_s >= 0.0) {
        return true;
    }
    outcome->time_us = 0;
    outcome->reuse_ratio = 0.0;
    out->elapsed_s = NAN;
    return false;
}

// The label in the line is for people: which baseline it is follows from the ids.
int64_t msc_record__baseline_of(const struct msc_space *space, const struct msc_record_line *line) {
    int64_t first = line->retry_of >= 0 ? line->retry_of : line->trial.id;
    return first < (int64_t)space->n_baselines ? first : -1;
}

static enum msc_status check_ids(const struct msc_record *record,
                                 const struct msc_record_line *line) {
    int64_t id = line->trial.id;
    if (id != (int64_t)record->n_trials) {
        return MSC_FAIL(MSC_E_FORMAT, "trial id %lld, expected %zu", (long long)id,
                        record->n_trials);
    }
    if (line->repeat_of >= id || line->retry_of >= id || line->trial.proposal.parent >= id) {
        return MSC_FAIL(MSC_E_FORMAT, "trial %lld refers to a later one", (long long)id);
    }
    return MSC_OK;
}

static void line_read_proposal(struct cursor *c, const struct msc_record *record,
                               struct msc_proposal *proposal) {
    line_expect(c, ",\"choices\":");
    line_read_choices(c, record->space, proposal->choices);
    line_expect(c, ",\"parent\":");
    proposal->parent = line_read_i64(c);
    line_expect(c, ",\"bound\":");
    proposal->bound = line_accept_text(c, "null") ? INFINITY : line_read_number(c);
    proposal->probe = line_accept_text(c, ",\"probe\":true");
}

static void line_read_outcome(struct cursor *c, const struct msc_record *record,
                              struct msc_outcome *outcome) {
    line_read_state(c, outcome);
    outcome->reason[0] = '\0';
    if (line_accept_text(c, ",\"reason\":")) {
        line_read_text(c, outcome->reason, MSC_REASON_BYTES);
    }
    line_read_metrics(c, record, outcome->metrics);
    line_expect(c, ",\"violation\":");
    outcome->violation = line_read_number(c);
}

static void line_read_rungs(struct cursor *c, const struct msc_record *record,
                            struct msc_record_line *line) {
    if (!line_accept_text(c, ",\"rungs\":[")) {
        return;
    }
    do {
        c->is_good = c->is_good && line->n_rungs < record->race.n_rungs;
        if (c->is_good) {
            line->rungs[line->n_rungs++] = line_read_number(c);
        }
    } while (c->is_good && line_accept_text(c, ","));
    line_expect(c, "]");
}

enum msc_status msc_record__read_trial(struct msc_record *record, const char *line, size_t n_body,
                                       size_t length) {
    struct cursor c = {.at = line, .end = line + n_body, .is_good = true};
    char *text = record->line_reason; // a label, then the reason
    struct msc_record_line *read = &record->line;
    *read = (struct msc_record_line){
        .trial = {.proposal.choices = record->scratch,
                  .outcome = {.metrics = record->line_metrics, .reason = text}}};
    line_expect(&c, "{\"kind\":\"trial\",\"id\":");
    read->trial.id = line_read_i64(&c);
    line_read_proposal(&c, record, &read->trial.proposal);
    if (line_accept_text(&c, ",\"baseline\":")) {
        line_read_text(&c, text, sizeof record->line_reason);
    }
    read->warm = line_read_warm(&c);
    read->repeat_of = read_optional_id(&c, ",\"repeat_of\":");
    read->retry_of = read_optional_id(&c, ",\"retry_of\":");
    line_read_outcome(&c, record, &read->trial.outcome);
    line_read_rungs(&c, record, read);
    if (!c.is_good || c.at != c.end) {
        return MSC_FAIL(MSC_E_FORMAT, "a trial line of another form (at column %zu)",
                        (size_t)(c.at - line) + 1);
    }
    MSC_TRY(check_ids(record, read));
    if (!line_read_measured(record, read, line, n_body, length)) {
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
    if (!msc_record__check_end(&n_measured, record->schema, line, length)) {
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

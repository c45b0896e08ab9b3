// Reading a record file, and which part of it counts.
#include "base/file.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <stdio.h>
#include <string.h>

// Where a reader stands in the text.
struct lines {
    const char *text;
    size_t length;
    size_t at;     // begin of the next line
    size_t number; // of the line last returned, from 1
};

// The next line that ends in a newline; false at the end and at a torn last line.
static bool load_next_line(struct lines *lines, const char **line, size_t *length) {
    const char *begin = lines->text + lines->at;
    const char *end = memchr(begin, '\n', lines->length - lines->at);
    if (!end) {
        return false;
    }
    *line = begin;
    *length = (size_t)(end - begin);
    lines->at += *length + 1;
    lines->number++;
    return true;
}

bool msc_record__is_torn_header(const char *text, size_t length) {
    size_t n = strlen(MSC_RECORD_MAGIC);
    return memcmp(text, MSC_RECORD_MAGIC, length < n ? length : n) == 0 &&
           !memchr(text, '\n', length);
}

// What does not count may be cut only where it can be the torn end of one write: no good line
// follows, there are no more lines than a write has, and they are not all that there is.
static enum msc_status check_tail(const struct msc_record *record, struct lines lines) {
    const size_t number = lines.number;
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    size_t n_lines = 1;
    size_t n_good = 0;
    char what[96];
    while (load_next_line(&lines, &line, &length)) {
        n_lines++;
        n_good += msc_record__check_line(&n_body, line, length);
    }
    if (n_good > 0) {
        snprintf(what, sizeof what, "%zu good lines follow", n_good);
    } else if (number == 2) {
        snprintf(what, sizeof what, "no line after the header is good");
    } else if (n_lines > record->parallel) {
        snprintf(what, sizeof what, "so are the %zu lines after it, more than one write had",
                 n_lines - 1);
    } else {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s: line %zu is damaged (its checksum does not fit) and %s",
                    record->path, number, what);
}

enum msc_status msc_record__read_header(struct msc_record *record, const char *line,
                                        size_t length) {
    size_t n_body = 0;
    if (msc_record__line_kind(line, length) != MSC_RECORD_LINE_HEADER) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: it is no record: line 1 is no header", record->path);
    }
    if (!msc_record__check_line(&n_body, line, length)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: line 1 (the header) is damaged: its checksum does not fit",
                        record->path);
    }
    cJSON *header = NULL;
    cJSON *whole = NULL;
    size_t n_measured = 0;
    MSC_TRY(msc_record__parse_body(&header, line, n_body, record->path));
    MSC_TRY(msc_record__take_header(record, header));
    record->header_line = msc_arena_printf(&record->arena, "%.*s\n", (int)length, line);
    if (!record->header_line) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", record->path);
    }
    bool is_good = msc_record__check_end(&n_measured, record->schema, line, length) &&
                   msc_json_parse(&whole, line, length, record->path) == MSC_OK;
    cJSON *measured = cJSON_DetachItemFromObjectCaseSensitive(whole, "measured");
    cJSON_Delete(whole);
    if (is_good && measured) {
        return msc_json_add(header, "measured", measured);
    }
    msc_record__note_damage(record, 1);
    return MSC_OK;
}

static enum msc_status load_line(struct msc_record *record, const char *line, size_t n_body,
                                 size_t length) {
    switch (msc_record__line_kind(line, length)) {
    case MSC_RECORD_LINE_TRIAL:
        return msc_record__read_trial(record, line, n_body, length);
    case MSC_RECORD_LINE_SEGMENT:
        return msc_record__read_segment(record, line, n_body, length);
    default:
        return MSC_FAIL(MSC_E_FORMAT, "a line that is neither trial nor segment");
    }
}

// Up to the first line whose checksum does not fit, which is then the last one of `lines`.
static enum msc_status load_good_lines(struct msc_record *record, struct lines *lines) {
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    while (load_next_line(lines, &line, &length) && msc_record__check_line(&n_body, line, length)) {
        enum msc_status status = load_line(record, line, n_body, length);
        if (status != MSC_OK) {
            return msc_status_prefix(status, "%s: line %zu", record->path, lines->number);
        }
        record->n_bytes += length + 1;
    }
    return MSC_OK;
}

static enum msc_status load_lines(struct msc_record *record, struct lines *lines) {
    enum msc_status status = load_good_lines(record, lines);
    if (status == MSC_OK && record->n_bytes < lines->at) {
        status = check_tail(record, *lines);
    }
    return status == MSC_E_FORMAT
               ? MSC_FAIL(status, "%s; mscgym salvage %s -o NEW saves what is before it",
                          msc_status_message(), record->path)
               : status;
}

static enum msc_status load_header(struct msc_record *record, struct lines *lines) {
    const char *line = NULL;
    size_t length = 0;
    if (msc_record__is_torn_header(lines->text, lines->length)) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "%s: no complete header in it yet", record->path);
    }
    if (!load_next_line(lines, &line, &length)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: it is no record: line 1 is no header", record->path);
    }
    MSC_TRY(msc_record__read_header(record, line, length));
    record->n_bytes = length + 1;
    return MSC_OK;
}

static enum msc_status load_text(struct msc_record *record, const char *text, size_t length) {
    struct lines lines = {.text = text, .length = length};
    MSC_TRY(load_header(record, &lines));
    MSC_TRY(load_lines(record, &lines));
    MSC_TRY(msc_record__settle_measured(record));
    record->n_committed = record->n_trials;
    record->n_committed_segments = record->n_segments;
    record->was_cut = record->n_bytes < length;
    return MSC_OK;
}

static void count_left_out(struct msc_record_salvaged *out, struct lines *lines, size_t n_good) {
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    lines->at = n_good;
    while (load_next_line(lines, &line, &length)) {
        out->n_left_out++;
        out->n_sound += msc_record__check_line(&n_body, line, length);
    }
    out->n_left_out += lines->at < lines->length;
}

enum msc_status msc_record__load_good(struct msc_record_salvaged *out, struct msc_record *record,
                                      const char *text, size_t length) {
    struct lines lines = {.text = text, .length = length};
    MSC_TRY(load_header(record, &lines));
    enum msc_status status = load_good_lines(record, &lines);
    if (status != MSC_OK && status != MSC_E_FORMAT) {
        return status;
    }
    *out = (struct msc_record_salvaged){
        .n_trials = record->n_trials,
        .line = 2 + record->n_trials + record->n_segments,
    };
    count_left_out(out, &lines, (size_t)record->n_bytes);
    return MSC_OK;
}

enum msc_status msc_record__load(struct msc_record *record) {
    char *text = NULL;
    size_t length = 0;
    MSC_TRY(msc_file_read(&text, &length, record->path));
    enum msc_status status = load_text(record, text, length);
    msc_free(text);
    return status;
}

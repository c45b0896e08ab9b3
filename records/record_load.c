// Reading a record file, and which part of it counts.
#include "base/file.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <string.h>

// Where a reader stands in the text.
struct lines {
    const char *text;
    size_t length;
    size_t at;     // begin of the next line
    size_t number; // of the line last returned, from 1
};

// The next line that ends in a newline; false at the end and at a torn last line.
static bool next_line(struct lines *lines, const char **line, size_t *length) {
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

static enum msc_status fail_damaged(const struct msc_record *record, struct lines lines,
                                    size_t *n_good) {
    size_t number = lines.number;
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    *n_good = 0;
    while (next_line(&lines, &line, &length)) {
        *n_good += msc_record__check_line(&n_body, line, length);
    }
    if (*n_good == 0) {
        return MSC_OK;
    }
    return MSC_FAIL(
        MSC_E_FORMAT,
        "%s: line %zu is damaged (its checksum does not fit) and %zu good lines follow; "
        "to go on from what is before it: head -n %zu OLD > NEW",
        record->path, number, *n_good, number - 1);
}

static enum msc_status read_header(struct msc_record *record, const char *line, size_t length) {
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
    MSC_TRY(msc_json_parse(&header, line, length, record->path));
    return msc_record__take_header(record, header);
}

static enum msc_status read_line(struct msc_record *record, const char *line, size_t n_body,
                                 size_t length) {
    switch (msc_record__line_kind(line, length)) {
    case MSC_RECORD_LINE_TRIAL:
        return msc_record__read_trial(record, line, n_body, length);
    case MSC_RECORD_LINE_SEGMENT:
        return msc_record__read_segment(record, line, length);
    default:
        return MSC_FAIL(MSC_E_FORMAT, "a line that is neither trial nor segment");
    }
}

static enum msc_status read_lines(struct msc_record *record, struct lines *lines) {
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    size_t n_good = 0;
    while (next_line(lines, &line, &length)) {
        if (!msc_record__check_line(&n_body, line, length)) {
            MSC_TRY(fail_damaged(record, *lines, &n_good));
            return MSC_OK; // nothing good follows: a tail to cut
        }
        enum msc_status status = read_line(record, line, n_body, length);
        if (status != MSC_OK) {
            return msc_status_prefix(status, "%s: line %zu", record->path, lines->number);
        }
        record->n_bytes += length + 1;
    }
    return MSC_OK;
}

static enum msc_status load_text(struct msc_record *record, const char *text, size_t length) {
    struct lines lines = {.text = text, .length = length};
    const char *line = NULL;
    size_t line_length = 0;
    if (msc_record__is_torn_header(text, length)) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "%s: no complete header in it yet", record->path);
    }
    if (!next_line(&lines, &line, &line_length)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: it is no record: line 1 is no header", record->path);
    }
    MSC_TRY(read_header(record, line, line_length));
    record->n_bytes = line_length + 1;
    MSC_TRY(read_lines(record, &lines));
    record->n_committed = record->n_trials;
    record->n_committed_segments = record->n_segments;
    record->was_cut = record->n_bytes < length;
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

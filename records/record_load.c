// Reads a record file and determines its valid part.
#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "records/record_internal.h"
#include "records/record_reader.h"

#include <stdio.h>
#include <string.h>

bool msc_record__is_torn_header(const char *text, size_t length) {
    size_t n = strlen(MSC_RECORD_MAGIC);
    return (length == 0 || memcmp(text, MSC_RECORD_MAGIC, length < n ? length : n) == 0) &&
           !(length > 0 && memchr(text, '\n', length));
}

enum msc_status msc_record__read_header(struct msc_record *record, const char *line,
                                        size_t length) {
    size_t n_body = 0;
    if (msc_record__line_kind(line, length) != MSC_RECORD_LINE_HEADER) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: not a record: line 1 is not a header", record->path);
    }
    if (!msc_record__check_line(&n_body, line, length)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: line 1 (the header) is damaged: its checksum does not match",
                        record->path);
    }
    cJSON *header = NULL;
    cJSON *whole = NULL;
    size_t n_measured = 0;
    MSC_TRY(msc_record__parse_body(&header, line, n_body, record->path));
    MSC_TRY(msc_record__take_header(record, header));
    record->header_line = msc_arena_printf(&record->arena, "%.*s\n", (int)length, line);
    MSC_TRY(MSC_ALLOCATED(record->header_line));
    bool is_good = msc_record__check_end(&n_measured, line, length) &&
                   msc_json_parse_lists(&whole, line, length, record->path, "warm") == MSC_OK;
    cJSON *measured = cJSON_DetachItemFromObjectCaseSensitive(whole, "measured");
    cJSON_Delete(whole);
    if (is_good && measured) {
        return msc_json_add(header, "measured", measured);
    }
    msc_record__note_damage(record, 1);
    return MSC_OK;
}

enum msc_status msc_record__open_lines(struct msc_record *record,
                                       struct msc_record_reader *reader) {
    const char *line = NULL;
    size_t length = 0;
    MSC_TRY(msc_record__reader_open(reader, record->path));
    MSC_TRY(msc_record__reader_next(&line, &length, reader));
    if (!line) {
        return msc_record__is_torn_header(reader->buffer + reader->at, reader->end - reader->at)
                   ? MSC_FAIL(MSC_E_NOT_FOUND, "%s: it has no complete header yet", record->path)
                   : MSC_FAIL(MSC_E_FORMAT, "%s: not a record: line 1 is not a header",
                              record->path);
    }
    MSC_TRY(msc_record__read_header(record, line, length));
    record->n_bytes = length + 1;
    return MSC_OK;
}

// Checks that an invalid rest can be the torn end of one write: it has no good line and no more
// lines than one write has, and it does not begin directly after the header. `reader` is past its
// first line.
static enum msc_status check_tail(const struct msc_record *record,
                                  struct msc_record_reader *reader) {
    const size_t number = reader->number;
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    size_t n_lines = 0;
    size_t n_good = 0;
    char what[96];
    do {
        n_lines++;
        MSC_TRY(msc_record__reader_next(&line, &length, reader));
        n_good += line && msc_record__check_line(&n_body, line, length);
    } while (line);
    if (n_good > 0) {
        snprintf(what, sizeof what, "%zu good lines follow", n_good);
    } else if (number == 2) {
        snprintf(what, sizeof what, "no line after the header is good");
    } else if (n_lines > record->parallel) {
        snprintf(what, sizeof what, "so are the %zu lines after it, more than a torn write leaves",
                 n_lines - 1);
    } else {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s: line %zu is damaged (its checksum does not match) and %s",
                    record->path, number, what);
}

static enum msc_status read_line(struct msc_record_line **out, struct msc_record *record,
                                 const char *line, size_t n_body, size_t length) {
    switch (msc_record__line_kind(line, length)) {
    case MSC_RECORD_LINE_TRIAL:
        *out = &record->line;
        return msc_record__read_trial(record, line, n_body, length);
    case MSC_RECORD_LINE_SEGMENT:
        return msc_record__read_segment(record, line, n_body, length);
    default:
        return MSC_FAIL(MSC_E_FORMAT, "a line that is neither trial nor segment");
    }
}

enum msc_status msc_record__next_good(struct msc_record_line **out, struct msc_record *record,
                                      struct msc_record_reader *reader) {
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    *out = NULL;
    while (!*out) {
        MSC_TRY(msc_record__reader_next(&line, &length, reader));
        if (!line || !msc_record__check_line(&n_body, line, length)) {
            return MSC_OK;
        }
        enum msc_status status = read_line(out, record, line, n_body, length);
        if (status != MSC_OK) {
            return msc_status_prefix(status, "%s: line %zu", record->path, reader->number);
        }
        record->n_bytes = reader->offset;
    }
    return MSC_OK;
}

static enum msc_status next_line(struct msc_record_line **out, struct msc_record *record,
                                 struct msc_record_reader *reader) {
    MSC_TRY(msc_record__next_good(out, record, reader));
    bool is_damaged = reader->offset > record->n_bytes;
    record->was_cut = !*out && (is_damaged || reader->end > reader->at);
    if (*out || !is_damaged) {
        return MSC_OK;
    }
    const size_t number = reader->number;
    MSC_TRY(check_tail(record, reader));
    msc_record__reader_seek(reader, record->n_bytes, number);
    return MSC_OK;
}

// Adds to the error message the advice to salvage the lines before the damage.
static enum msc_status fail_damaged(const struct msc_record *record) {
    struct msc_str path = {0};
    msc_shown_append_path(&path, record->path);
    enum msc_status status =
        MSC_FAIL(MSC_E_FORMAT, "%s; mscgym salvage %s -o NEW saves the lines before it",
                 msc_status_message(), msc_str_text(&path));
    msc_str_finish(&path);
    return status;
}

enum msc_status msc_record__next_line(struct msc_record_line **out, struct msc_record *record,
                                      struct msc_record_reader *reader) {
    enum msc_status status = next_line(out, record, reader);
    return status == MSC_E_FORMAT ? fail_damaged(record) : status;
}

static enum msc_status load_lines(struct msc_record *record, struct msc_record_reader *reader) {
    struct msc_record_line *line = NULL;
    MSC_TRY(msc_record__open_lines(record, reader));
    MSC_TRY(msc_record__next_line(&line, record, reader));
    while (line) {
        MSC_TRY(msc_record__add_trial(record, line));
        MSC_TRY(msc_record__next_line(&line, record, reader));
    }
    msc_record__settle_measured(record);
    record->n_committed = record->n_trials;
    record->n_committed_segments = record->n_segments;
    return MSC_OK;
}

enum msc_status msc_record__load(struct msc_record *record) {
    struct msc_record_reader reader = {0};
    enum msc_status status = load_lines(record, &reader);
    msc_record__reader_close(&reader);
    return status;
}

enum msc_status msc_record__load_header(struct msc_record *record) {
    struct msc_record_reader reader = {0};
    enum msc_status status = msc_record__open_lines(record, &reader);
    msc_record__reader_close(&reader);
    return status;
}

static enum msc_status load_good(struct msc_record_salvaged *out, struct msc_record *record,
                                 struct msc_record_reader *reader) {
    struct msc_record_line *good = NULL;
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_record__open_lines(record, reader));
    do {
        status = msc_record__next_good(&good, record, reader);
        record->n_trials += status == MSC_OK && good;
    } while (status == MSC_OK && good);
    if (status != MSC_OK && status != MSC_E_FORMAT) {
        return status;
    }
    *out = (struct msc_record_salvaged){
        .n_trials = record->n_trials,
        .line = 2 + record->n_trials + record->n_segments,
    };
    msc_record__reader_seek(reader, record->n_bytes, out->line);
    for (;;) {
        MSC_TRY(msc_record__reader_next(&line, &length, reader));
        if (!line) {
            break;
        }
        out->n_left_out++;
        out->n_sound += msc_record__check_line(&n_body, line, length);
    }
    out->n_left_out += reader->end > reader->at;
    return MSC_OK;
}

enum msc_status msc_record__load_good(struct msc_record_salvaged *out, struct msc_record *record) {
    struct msc_record_reader reader = {0};
    enum msc_status status = load_good(out, record, &reader);
    msc_record__reader_close(&reader);
    return status;
}

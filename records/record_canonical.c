// The canonical text of a record: everything that may differ between equal runs is removed.
#include "base/json.h"
#include "records/record_internal.h"
#include "records/record_query.h"
#include "records/record_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct canonical {
    enum msc_status (*write)(void *payload, const char *line, size_t length);
    void *payload;
    struct msc_str line;
    int64_t *left_out; // [n_left_out], ids of assembled plans (is_assembled), which are not in the
                       // agent's sequence
    size_t n_left_out, capacity;
};

// Removes objects called `budget` at any depth, since they may differ between launches.
static void strip_budgets(cJSON *value) {
    cJSON *next = NULL;
    for (cJSON *item = value->child; item; item = next) {
        next = item->next;
        if (item->string && strcmp(item->string, "budget") == 0 && cJSON_IsObject(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(value, item));
        } else {
            strip_budgets(item);
        }
    }
}

// The position of `what` between `at` and `end`; `end` if it is not found. Neither text contains
// NUL.
static const char *find(const char *at, const char *end, const char *what) {
    size_t n = strlen(what);
    for (; (size_t)(end - at) >= n; at++) {
        if (memcmp(at, what, n) == 0) {
            return at;
        }
    }
    return end;
}

// The id of a trial, reduced by the number of `left_out` trials before it.
static int64_t id_in_sequence(const struct canonical *c, int64_t id) {
    size_t n = 0;
    while (n < c->n_left_out && c->left_out[n] < id) {
        n++;
    }
    return id - (int64_t)n;
}

// Appends a line with ids renumbered to the sequence. The keys of ids are found by their text. They
// cannot match inside a JSON string, in which every quote has a backslash before it.
static void append_in_sequence(struct canonical *c, const char *body, size_t n_body) {
    static const char *const keys[] = {
        ",\"id\":", ",\"first\":", ",\"parent\":", ",\"repeat_of\":", ",\"retry_of\":"};
    const char *end = body + n_body;
    for (size_t i = 0; c->n_left_out > 0 && i < sizeof keys / sizeof keys[0]; i++) {
        const char *at = find(body, end, keys[i]);
        if (at < end) {
            char *rest = NULL;
            at += strlen(keys[i]);
            msc_str_append_n(&c->line, body, (size_t)(at - body));
            msc_str_i64(&c->line, id_in_sequence(c, strtoll(at, &rest, 10)));
            body = rest;
        }
    }
    msc_str_append_n(&c->line, body, (size_t)(end - body));
}

static enum msc_status leave_out(struct canonical *c, const char *body, size_t n_body) {
    const char *end = body + n_body;
    const char *id = find(body, end, ",\"id\":");
    assert(id < end);
    MSC_TRY(msc_grow(&c->left_out, &c->capacity, c->n_left_out + 1, sizeof *c->left_out));
    c->left_out[c->n_left_out++] = strtoll(id + strlen(",\"id\":"), NULL, 10);
    return MSC_OK;
}

static enum msc_status write_canonical_body(struct canonical *c, const char *body, size_t n_body) {
    msc_str_clear(&c->line);
    append_in_sequence(c, body, n_body);
    msc_record__write_checksum(&c->line, 0);
    msc_str_char(&c->line, '}');
    MSC_TRY(msc_str_status(&c->line));
    return c->write(c->payload, c->line.data, c->line.length);
}

// Writes the header without the members that may differ, up to its last brace.
static enum msc_status write_header_identity(struct msc_str *out, cJSON *header) {
    cJSON_DeleteItemFromObjectCaseSensitive(header, "measured");
    strip_budgets(header);
    msc_json_write(out, header);
    MSC_TRY(msc_str_status(out));
    out->length--;
    return MSC_OK;
}

enum msc_status msc_record_identity(struct msc_hash *out, const struct msc_record *record) {
    struct msc_str text = {0};
    cJSON *header = cJSON_Duplicate(msc_record_header(record), true);
    enum msc_status status = header ? write_header_identity(&text, header)
                                    : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", record->path);
    if (status == MSC_OK) {
        *out = msc_hash_bytes(text.data, text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(header);
    return status;
}

enum msc_status msc_record_checksum(struct msc_hash *out, const struct msc_record *record,
                                    int64_t id) {
    struct msc_str text = {0};
    size_t n_body = 0;
    const struct msc_record_line line = msc_record_trial(record, (size_t)id);
    msc_record__write_trial(&text, record, &line);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        bool is_line = msc_record__check_line(&n_body, text.data, text.length);
        assert(is_line);
        (void)is_line;
        *out = msc_hash_bytes(text.data, n_body);
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status write_canonical_header(struct canonical *c, const char *line, size_t n_body,
                                              const char *path) {
    cJSON *header = NULL;
    struct msc_str text = {0};
    MSC_TRY(msc_record__parse_body(&header, line, n_body, path));
    enum msc_status status = write_header_identity(&text, header);
    if (status == MSC_OK) {
        status = write_canonical_body(c, text.data, text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(header);
    return status;
}

// Writes the lines before offset n_good, the end of the valid part.
static enum msc_status write_canonical_lines(struct canonical *c, struct msc_record_reader *reader,
                                             uint64_t n_good, const char *path) {
    const char *line = NULL;
    size_t length = 0;
    size_t n_body = 0;
    while (reader->offset < n_good) {
        MSC_TRY(msc_record__reader_next(&line, &length, reader));
        if (!line || !msc_record__check_line(&n_body, line, length)) {
            return MSC_FAIL(MSC_E_IO, "%s: the file changed while it was read", path);
        }
        bool is_header = reader->number == 1;
        if (!is_header && find(line, line + n_body, MSC_RECORD_ASSEMBLED) < line + n_body) {
            MSC_TRY(leave_out(c, line, n_body));
            continue;
        }
        MSC_TRY(is_header ? write_canonical_header(c, line, n_body, path)
                          : write_canonical_body(c, line, n_body));
    }
    return MSC_OK;
}

enum msc_status msc_record_canonical(const char *path, const struct msc_log *log,
                                     enum msc_status (*write)(void *payload, const char *line,
                                                              size_t length),
                                     void *payload) {
    enum msc_status status = MSC_OK;
    struct canonical c = {.write = write, .payload = payload};
    struct msc_record_reader reader = {0};
    uint64_t n_good = 0;
    // Checks every line and finds the end of the valid part.
    MSC_TRY(msc_record_check(&n_good, path, log));
    MSC_TRY_OUT(msc_record__reader_open(&reader, path));
    status = write_canonical_lines(&c, &reader, n_good, path);
out:
    msc_str_finish(&c.line);
    msc_free(c.left_out);
    msc_record__reader_close(&reader);
    return status;
}

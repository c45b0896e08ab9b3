// A record file: it is read, queried, compared with itself, printed, salvaged, opened for
// appending, appended to and read again. Lines that were valid before must still be valid
// afterwards, with the same bytes. Bytes that were cut off must be kept.
//
// The first byte is 'r' for the file as given. With 's', the checksums of every line are first
// replaced by correct ones, so that the code after the check is reached.
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "records/record_header.h"
#include "records/record_internal.h"
#include "records/record_query.h"
#include "results/report.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "r.jsonl"
#define CUT_NAME "r.jsonl.cut"
#define NEW_NAME "n.jsonl"
#define N_TOP 5

// ---- Checksums --------------------------------------------------------------------------------

// Appends a line with the hash after `key` corrected, if the line has one.
static void seal_key(struct msc_str *out, const char *key, const char *line, size_t length) {
    size_t n_key = strlen(key);
    for (size_t at = 0; at + n_key + MSC_HASH_TEXT_BYTES <= length; at++) {
        if (memcmp(line + at, key, n_key) == 0) {
            char digits[MSC_HASH_TEXT_BYTES];
            msc_str_append_n(out, line, at + n_key);
            msc_str_append(out, msc_hash_format(digits, msc_hash_bytes(line, at)));
            at += n_key + MSC_HASH_TEXT_BYTES - 1;
            msc_str_append_n(out, line + at, length - at);
            return;
        }
    }
    msc_str_append_n(out, line, length);
}

static void seal_line(struct msc_str *out, const char *line, size_t length) {
    struct msc_str half = {0};
    seal_key(&half, ",\"checksum\":\"", line, length);
    seal_key(out, ",\"sum\":\"", msc_str_text(&half), half.length);
    msc_str_finish(&half);
}

static void seal(struct msc_str *out, const char *text, size_t length) {
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t n = end ? (size_t)(end - text) : length;
        seal_line(out, text, n);
        msc_str_append(out, end ? "\n" : "");
        n += end ? 1 : 0;
        text += n;
        length -= n;
    }
}

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status take_line(void *payload, const char *line, size_t length) {
    size_t *n_lines = payload;
    if (length < 2 || memchr(line, '\n', length)) {
        fuzz_fail("a canonical line that is none");
    }
    *n_lines += 1;
    return MSC_OK;
}

// A record opened with only its best trials answers queries like the whole record.
static void compare_best(const struct msc_record *record) {
    struct msc_record *best = NULL;
    int64_t ids[2][N_TOP], *fronts[2] = {NULL, NULL};
    size_t n[2] = {0}, n_front[2] = {0};
    struct msc_record_line winners[2];
    struct msc_record_counts counts[2];
    if (fuzz_check(msc_record_open_best(&best, fuzz_path(FILE_NAME), N_TOP, &fuzz_log)) != MSC_OK) {
        fuzz_fail("a record that is good cannot be read in little memory");
    }
    const struct msc_record *const records[] = {record, best};
    bool has_winner[2];
    for (size_t i = 0; i < 2; i++) {
        msc_record_top(ids[i], &n[i], N_TOP, records[i]);
        fuzz_check(msc_record_front(&fronts[i], &n_front[i], records[i]));
        msc_record_count(&counts[i], records[i]);
        has_winner[i] = msc_record_best(&winners[i], records[i]);
    }
    bool is_same =
        n[0] == n[1] && memcmp(ids[0], ids[1], n[0] * sizeof ids[0][0]) == 0 &&
        n_front[0] == n_front[1] &&
        (n_front[0] == 0 || memcmp(fronts[0], fronts[1], n_front[0] * sizeof *fronts[0]) == 0) &&
        counts[0].n_trials == counts[1].n_trials && counts[0].n_repeats == counts[1].n_repeats &&
        has_winner[0] == has_winner[1] &&
        (!has_winner[0] || winners[0].trial.id == winners[1].trial.id);
    if (!is_same) {
        fuzz_fail("a record answers otherwise in little memory");
    }
    for (size_t i = 0; i < 2; i++) {
        msc_free(fronts[i]);
    }
    msc_record_close(best);
}

static void ask_all(const struct msc_record *record) {
    struct msc_record_line line;
    int64_t ids[N_TOP], *front = NULL;
    size_t n = 0;
    struct msc_record_counts counts;
    const struct msc_report_options options = {.record = record, .n_top = N_TOP, .has_front = true};
    cJSON *report = NULL;
    struct msc_str text = {0};
    msc_record_best(&line, record);
    msc_record_count(&counts, record);
    msc_record_top(ids, &n, N_TOP, record);
    fuzz_check(msc_record_front(&front, &n, record));
    msc_free(front);
    for (size_t i = 0; i < msc_record_space(record)->n_baselines; i++) {
        msc_record_baseline(&line, record, i);
    }
    if (fuzz_check(msc_report_create(&report, &options)) == MSC_OK) {
        fuzz_check(msc_report_text(&text, report));
    }
    msc_str_finish(&text);
    cJSON_Delete(report);
    const cJSON *header = msc_record_header(record);
    if (fuzz_check(msc_record_header_compare(header, header, NULL, FILE_NAME)) != MSC_OK) {
        fuzz_fail("a header differs from itself");
    }
}

// The number of valid trials, or -1 if the record is refused.
static int64_t read_record(uint64_t *n_bytes) {
    struct msc_record *record = NULL;
    int64_t n = -1;
    size_t n_lines = 0;
    if (fuzz_check(msc_record_open(&record, fuzz_path(FILE_NAME), MSC_RECORD_READ, &fuzz_log)) ==
        MSC_OK) {
        ask_all(record);
        compare_best(record);
        n = (int64_t)msc_record_n_trials(record);
        *n_bytes = msc_record_n_bytes(record);
    }
    enum msc_status status =
        fuzz_check(msc_record_canonical(fuzz_path(FILE_NAME), &fuzz_log, take_line, &n_lines));
    if ((status == MSC_OK) != (n >= 0) ||
        (n >= 0 && n_lines != 1 + (size_t)n + msc_record_n_segments(record))) {
        fuzz_fail("the canonical form has other lines than the record");
    }
    msc_record_close(record);
    return n;
}

// ---- Appending --------------------------------------------------------------------------------

static void append_one(struct msc_record *record) {
    const struct msc_space *space = msc_record_space(record);
    double metrics[MSC_MAX_METRICS];
    uint32_t *choices = msc_alloc_zero(space->n_tasks, sizeof *choices);
    for (size_t i = 0; i < MSC_MAX_METRICS; i++) {
        metrics[i] = i % 2 == 0 ? 0.5 : NAN;
    }
    char reason[] = "a \"reason\"";
    const struct msc_record_line line = {
        .trial = {.id = (int64_t)msc_record_n_trials(record),
                  .proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
                  .outcome = {.metrics = metrics, .reason = reason}},
        .repeat_of = -1,
        .retry_of = -1,
        .baseline = -1,
    };
    if (choices && fuzz_check(msc_record_append_trial(record, &line)) == MSC_OK &&
        fuzz_check(msc_record_commit(record)) != MSC_OK) {
        fuzz_fail("a line could not be committed");
    }
    msc_free(choices);
}

// Checks that the file starts with the first `n` bytes of `text`. The file is read with stdio,
// because msc_file_read refuses Git LFS pointers.
static void check_kept(const char *name, const char *text, size_t n) {
    FILE *file = fopen(fuzz_path(name), "rb");
    char *now = malloc(n + 1);
    if (file == NULL || now == NULL || fread(now, 1, n, file) != n || memcmp(now, text, n) != 0) {
        fuzz_fail("opening for appending lost what was there");
    }
    free(now);
    fclose(file);
}

// A salvaged file must be a valid record, and a valid record must be salvaged completely.
static void salvage(const char *text, int64_t n, size_t n_good) {
    struct msc_record_salvaged found = {0};
    struct msc_record *record = NULL;
    enum msc_status status =
        fuzz_check(msc_record_salvage(&found, fuzz_path(FILE_NAME), fuzz_path(NEW_NAME)));
    if (n >= 0 && (status != MSC_OK || (int64_t)found.n_trials != n)) {
        fuzz_fail("a record that is good cannot be salvaged");
    }
    if (status == MSC_OK) {
        if (fuzz_check(msc_record_open(&record, fuzz_path(NEW_NAME), MSC_RECORD_READ, &fuzz_log)) !=
                MSC_OK ||
            msc_record_n_trials(record) != found.n_trials || msc_record_was_cut(record)) {
            fuzz_fail("what was salvaged is no record");
        }
        check_kept(NEW_NAME, text, n >= 0 ? n_good : (size_t)msc_record_n_bytes(record));
        msc_record_close(record);
        fuzz_remove(NEW_NAME);
    }
}

static void append(const char *text, size_t length) {
    struct msc_record *record = NULL;
    uint64_t n_good = length, n_after = 0;
    int64_t n = read_record(&n_good);
    salvage(text, n, (size_t)n_good);
    enum msc_status status =
        fuzz_check(msc_record_open(&record, fuzz_path(FILE_NAME), MSC_RECORD_APPEND, &fuzz_log));
    if ((status == MSC_OK) != (n >= 0)) {
        fuzz_fail("reading and appending do not agree on a record");
    }
    check_kept(FILE_NAME, text, (size_t)n_good); // all bytes, if the record was refused
    if (status == MSC_OK) {
        if (n_good < length) {
            check_kept(CUT_NAME, text + n_good, length - (size_t)n_good);
            fuzz_remove(CUT_NAME);
        }
        append_one(record);
        msc_record_close(record);
        check_kept(FILE_NAME, text, (size_t)n_good);
        if (read_record(&n_after) != n + 1) {
            fuzz_fail("a line that was appended does not count");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {FILE_NAME, NULL};
    struct msc_str text = {0};
    if (n_bytes < 1 || n_bytes > FUZZ_MAX_BYTES || (data[0] != 'r' && data[0] != 's')) {
        return -1;
    }
    if (data[0] == 's') {
        seal(&text, (const char *)data + 1, n_bytes - 1);
    } else {
        msc_str_append_n(&text, (const char *)data + 1, n_bytes - 1);
    }
    fuzz_write(FILE_NAME, msc_str_text(&text), text.length);
    append(msc_str_text(&text), text.length);
    msc_str_finish(&text);
    fuzz_check_files(files);
    return 0;
}

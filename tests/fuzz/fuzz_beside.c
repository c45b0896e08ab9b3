// Files next to a record: RECORD.result.json, .rerank.json and .distill.json, as `show` and
// `report` read them. The bytes are their three texts, separated by zeros; an empty text means no
// file. The checksums and trial ids that bind them to the record are corrected, so that the code
// after those checks is reached.
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_query.h"
#include "report/document.h"
#include "report/page.h"
#include "records/kept.h"
#include "results/report.h"
#include "records/reranked.h"
#include "tests/fuzz/fuzz.h"
#include "tests/records/records_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N_TRIALS = 20, N_FILES = 3, N_TOP = 5 };

static const struct {
    const char *ending, *schema;
} files[N_FILES] = {
    {".result.json", "mscgym.result.1"},
    {".rerank.json", "mscgym.rerank.1"},
    {".distill.json", "mscgym.distill.1"},
};

// ---- Corrections ------------------------------------------------------------------------------

static void put(cJSON *object, const char *key, cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, value);
}

static void put_hash(cJSON *object, const char *key, struct msc_hash hash) {
    char text[MSC_HASH_TEXT_BYTES];
    put(object, key, cJSON_CreateString(msc_hash_format(text, hash)));
}

// Corrects the checksum of every object with an `id`, so that the object fits the line of the trial
// with that id.
static void seal_rows(cJSON *value, const struct msc_record *record) {
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(value, "id");
    struct msc_hash checksum;
    for (cJSON *item = value->child; item; item = item->next) {
        seal_rows(item, record);
    }
    if (cJSON_IsNumber(id) && id->valuedouble >= 0.0 && id->valuedouble < N_TRIALS &&
        msc_record_checksum(&checksum, record, (int64_t)id->valuedouble) == MSC_OK) {
        put_hash(value, "checksum", checksum);
    }
}

static void put_id(cJSON *row, double id) {
    if (cJSON_GetObjectItemCaseSensitive(row, "id")) {
        put(row, "id", cJSON_CreateNumber(id));
    }
}

// Inserts the trials that must be listed: the winner, or the best trials in any order.
static void put_trials(cJSON *kept, const struct msc_record *record) {
    cJSON *plans = cJSON_GetObjectItemCaseSensitive(kept, "plans"), *row = NULL;
    struct msc_record_line best;
    int64_t ids[N_TRIALS + 8];
    size_t n = 0, i = 0;
    if (msc_record_best(&best, record)) {
        put_id(cJSON_GetObjectItemCaseSensitive(kept, "winner"), (double)best.trial.id);
    }
    // Lists as many of the best trials as there are plans.
    size_t n_plans = (size_t)cJSON_GetArraySize(plans), top = 0;
    while (n_plans <= N_TRIALS && n < n_plans && top < n_plans) {
        msc_reranked_candidates(ids, &n, ++top, record);
    }
    if (n > 0 && n == n_plans) {
        put(kept, "top", cJSON_CreateNumber((double)top));
    }
    cJSON_ArrayForEach(row, plans) {
        if (i < n) {
            put_id(row, (double)ids[i++]);
        }
    }
}

static void seal(cJSON *kept, size_t file, const struct msc_record *record) {
    struct msc_hash hash;
    if (!cJSON_IsObject(kept)) {
        return;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(kept, "checksum");
    put_trials(kept, record);
    seal_rows(kept, record);
    put(kept, "schema", cJSON_CreateString(files[file].schema));
    if (msc_record_identity(&hash, record) == MSC_OK) {
        put_hash(kept, "record", hash);
    }
    if (msc_json_hash(&hash, kept) == MSC_OK) {
        put_hash(kept, "checksum", hash);
    }
}

static void write_beside(const struct fixture *f, size_t file, const char *text, size_t length,
                         const struct msc_record *record) {
    char path[PATH_MAX + 16];
    cJSON *kept = NULL;
    struct msc_str out = {0};
    snprintf(path, sizeof path, "%s%s", f->path, files[file].ending);
    if (length == 0) {
        unlink(path);
        return;
    }
    if (fuzz_check(msc_json_parse(&kept, text, length, "beside")) == MSC_OK) {
        seal(kept, file, record);
        msc_json_write(&out, kept);
    } else {
        msc_str_append_n(&out, text, length);
    }
    fixture_put(path, msc_str_text(&out), out.length);
    msc_str_finish(&out);
    cJSON_Delete(kept);
}

// ---- Asking -----------------------------------------------------------------------------------

// Runs `show` with all of its options.
static void show(const char *path) {
    struct msc_record *record = NULL;
    cJSON *kept = NULL, *report = NULL;
    struct msc_str text = {0};
    if (fuzz_check(msc_report_open_record(&record, &kept, path, N_TOP, true, &fuzz_log)) !=
        MSC_OK) {
        return;
    }
    const struct msc_report_options o = {.record = record, .n_top = N_TOP, .has_front = true};
    if (fuzz_check(msc_report_create(&report, &o)) == MSC_OK &&
        fuzz_check(msc_report_add_beside(report, record, kept, &fuzz_log)) == MSC_OK) {
        fuzz_check(msc_report_text(&text, report));
        fuzz_check(msc_report_text_folded(&text, report, 80));
    }
    msc_str_finish(&text);
    cJSON_Delete(report);
    cJSON_Delete(kept);
    msc_record_close(record);
}

// Runs `report` on the record, and on the record twice.
static void make_page(const char *path) {
    const char *const paths[] = {path, path};
    for (size_t n = 1; n <= 2; n++) {
        cJSON *document = NULL;
        struct msc_str text = {0};
        const struct msc_document_options o = {.paths = paths, .n = n, .log = &fuzz_log};
        if (fuzz_check(msc_document_create(&document, &o)) == MSC_OK) {
            fuzz_check(msc_page_write(&text, document, &(struct msc_page_options){.back = NULL}));
        }
        msc_str_finish(&text);
        cJSON_Delete(document);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static struct fixture *f;
    struct msc_record *record = NULL;
    const char *text = (const char *)data, *end = text + n_bytes;
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    if (!f) {
        fixture_setup((void **)&f);
        fixture_write(f, N_TRIALS);
    }
    if (fuzz_check(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL)) != MSC_OK) {
        fuzz_fail("the record is gone");
    }
    for (size_t file = 0; file < N_FILES; file++) {
        const char *zero = memchr(text, '\0', (size_t)(end - text));
        const char *last = zero ? zero : end;
        write_beside(f, file, text, (size_t)(last - text), record);
        text = zero ? zero + 1 : end;
    }
    msc_record_close(record);
    show(f->path);
    make_page(f->path);
    return 0;
}

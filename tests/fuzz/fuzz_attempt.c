// RECORD.attempt, which notes trials that ended the program. The first byte is 'r' for the file as
// given, or 's' to prepend the head that a valid file of this record has. The second byte is the
// record's number of trials. Whatever the file contains, trials may be judged, begun and ended, and
// the resulting file is read again.
#include "base/alloc.h"
#include "base/file.h"
#include "search/attempt.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define FILE_NAME "r.jsonl.attempt"

enum { N_TRIALS = 5 };

static const struct msc_hash identity = {.low = 1, .high = 2};

static struct msc_attempt *open_attempt(int64_t next_id) {
    struct msc_attempt *attempt = NULL;
    const struct msc_attempt_options options = {.record_path = fuzz_path("r.jsonl"),
                                                .record_hash = identity,
                                                .next_id = next_id,
                                                .trial_seconds = 1.0,
                                                .log = &fuzz_log};
    if (fuzz_check(msc_attempt_open(&attempt, &options)) != MSC_OK) {
        fuzz_fail("a search that cannot begin for what an earlier one left");
    }
    return attempt;
}

static void evaluate(struct msc_attempt *attempt, int64_t next_id, bool is_whole) {
    static const struct msc_space space = {.n_tasks = 0};
    struct msc_arena arena = {0};
    struct msc_trial trials[N_TRIALS], *list[N_TRIALS];
    size_t n = 0;
    msc_attempt_has_suspects(attempt);
    for (size_t i = 0; i < N_TRIALS; i++) {
        struct msc_trial *trial = &trials[n];
        if (msc_trial_init(trial, &arena, &space) != MSC_OK) {
            fuzz_fail(msc_status_message());
        }
        trial->id = next_id + (int64_t)i;
        if (msc_attempt_judge(attempt, trial) == MSC_ATTEMPT_FAILED) {
            if (trial->outcome.state != MSC_TRIAL_FAILED || !trial->outcome.reason[0]) {
                fuzz_fail("a trial that failed without a reason");
            }
        } else {
            list[n++] = trial;
        }
    }
    if (n > 0) {
        msc_attempt_begin(attempt, list, n, n == 1);
        msc_attempt_finished(attempt, n - 1);
    }
    if (n > 0 && is_whole) {
        msc_attempt_end(attempt);
        msc_attempt_committed(attempt, next_id + N_TRIALS);
    }
    msc_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {FILE_NAME, NULL};
    static const char magic[8] = "mscatt1";
    char page[40960] = {0};
    size_t at = 0;
    if (n_bytes < 2 || n_bytes > sizeof page - 64 || (data[0] != 'r' && data[0] != 's')) {
        return -1;
    }
    if (data[0] == 's') {
        memcpy(page, magic, sizeof magic);
        memcpy(page + sizeof magic, &identity, sizeof identity);
        at = sizeof magic + sizeof identity;
    }
    memcpy(page + at, data + 2, n_bytes - 2);
    fuzz_write(FILE_NAME, page, at + n_bytes - 2);
    for (int launch = 0; launch < 4; launch++) {
        struct msc_attempt *attempt = open_attempt(data[1]);
        evaluate(attempt, data[1], launch == 3);
        msc_attempt_close(attempt);
    }
    fuzz_check_files(files);
    fuzz_remove(FILE_NAME);
    return 0;
}

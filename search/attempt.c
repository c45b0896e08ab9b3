#include "search/attempt.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "mscatt1"
// A round or trial vanishes if the process ends in an unknown way. A round that vanished this often
// runs its trials one by one. A trial that vanished this often while running alone has failed.
#define ROUND_VANISHED_LIMIT 2
#define TRIAL_VANISHED_LIMIT 3
// A trial that was killed from outside this often while running alone has failed. A single kill may
// be unrelated to the trial.
#define TRIAL_KILLED_LIMIT 2
// A trial that exceeded its limit, or showed no sign of life, this often while running alone has
// failed. Fewer times may be the machine's fault.
#define TRIAL_STALLED_LIMIT 3

enum fate {
    FATE_ALONE,     // run it alone next
    FATE_CRASHED,   // failed: crashed while alone
    FATE_KILLED,    // failed: killed from outside while alone
    FATE_TIMED_OUT, // failed: exceeded its limit while alone
    FATE_VANISHED,  // failed: vanished too often while alone
    FATE_QUIET,     // failed: no sign of life while alone
};

// Bits of page.flight: how the trials in flight are evaluated.
#define FLIGHT_ALONE 1u
#define FLIGHT_ELSEWHERE 2u

struct suspect {
    int64_t id;
    uint8_t fate;
    uint8_t n_vanished;
    uint8_t n_killed;
    uint8_t signal_number;
    uint8_t n_stalled;
    uint8_t padding[3];
};

// The file's content, in native byte order, because the file is never moved to another machine.
struct page {
    char magic[8];
    struct msc_hash record_hash;
    uint32_t n_in_flight; // number of trials in `ids`; 0 between evaluations
    uint32_t flight;      // bits of FLIGHT_*
    int64_t round_first;  // first id of the round that vanished
    uint32_t n_round_vanished;
    uint32_t n_suspects;
    int64_t ids[MSC_ATTEMPT_MAX_TRIALS]; // trials in flight
    uint8_t is_finished[MSC_ATTEMPT_MAX_TRIALS];
    struct suspect suspects[MSC_ATTEMPT_MAX_TRIALS];
};

struct msc_attempt {
    char *path;
    struct page *page; // the mapped file, or private memory if there is no file
    bool is_mapped;
    double trial_seconds;
    bool is_elsewhere;
    struct msc_worker *worker;
    const struct msc_log *log;
};

static bool is_sound(const struct page *page) {
    return memcmp(page->magic, MAGIC, sizeof page->magic) == 0 &&
           page->n_in_flight <= MSC_ATTEMPT_MAX_TRIALS &&
           page->n_suspects <= MSC_ATTEMPT_MAX_TRIALS;
}

// Opens or creates the file. Refuses links, which may lead to a file of another owner.
static int open_own(const char *path) {
    struct stat info;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0 && (fstat(descriptor, &info) != 0 || info.st_nlink > 1)) {
        close(descriptor);
        errno = EEXIST;
        return -1;
    }
    return descriptor;
}

static struct page *map_page(const char *path) {
    int descriptor = open_own(path);
    if (descriptor < 0) {
        return NULL;
    }
    // Allocates the file's blocks now. If the disk were full, a later store into a hole would kill
    // the process.
    void *page = MAP_FAILED;
    int error = posix_fallocate(descriptor, 0, sizeof(struct page));
    if (error == 0) {
        page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        error = errno;
    }
    close(descriptor);
    if (page == MAP_FAILED) {
        unlink(path);
        errno = error;
        return NULL;
    }
    return page;
}

static struct suspect *find_suspect(struct page *page, int64_t id) {
    for (uint32_t i = 0; i < page->n_suspects; i++) {
        if (page->suspects[i].id == id) {
            return &page->suspects[i];
        }
    }
    return NULL;
}

static struct suspect *add_suspect(struct page *page, int64_t id) {
    struct suspect *suspect = find_suspect(page, id);
    if (!suspect && page->n_suspects < MSC_ATTEMPT_MAX_TRIALS) {
        suspect = &page->suspects[page->n_suspects++];
        *suspect = (struct suspect){.id = id, .fate = FATE_ALONE};
    }
    return suspect;
}

// Counts a death of the process while the trial ran alone. Returns false if the limit is reached;
// the trial has then failed.
static bool is_forgiven(struct suspect *suspect, enum msc_worker_death death) {
    switch (death) {
    case MSC_WORKER_DEATH_KILLED:
        return ++suspect->n_killed < TRIAL_KILLED_LIMIT;
    case MSC_WORKER_DEATH_LIMIT:
    case MSC_WORKER_DEATH_QUIET:
        return ++suspect->n_stalled < TRIAL_STALLED_LIMIT;
    case MSC_WORKER_DEATH_CRASH:
    case MSC_WORKER_DEATH_LOST: // never blamed on trials (msc_worker_take_death)
    case MSC_WORKER_DEATH_NONE:
        break;
    }
    return false;
}

// Handles a death that the parent saw. A failed trial counts as progress at once, because its line
// may be written much later: after the lines of earlier trials or, in a race, after the whole
// round.
static void blame_trials(struct msc_attempt *attempt, const int64_t ids[], size_t n, bool was_alone,
                         enum msc_worker_death death, int signal_number) {
    struct page *page = attempt->page;
    static const uint8_t fates[] = {
        [MSC_WORKER_DEATH_CRASH] = FATE_CRASHED,
        [MSC_WORKER_DEATH_KILLED] = FATE_KILLED,
        [MSC_WORKER_DEATH_LIMIT] = FATE_TIMED_OUT,
        [MSC_WORKER_DEATH_QUIET] = FATE_QUIET,
    };
    for (size_t i = 0; i < n; i++) {
        struct suspect *suspect = add_suspect(page, ids[i]);
        if (suspect && was_alone && !is_forgiven(suspect, death)) {
            suspect->fate = fates[death];
            suspect->signal_number = (uint8_t)signal_number;
            msc_worker_add_progress(attempt->worker, 1);
        }
    }
}

static void note_vanished(struct page *page, int64_t id) {
    struct suspect *suspect = add_suspect(page, id);
    if (suspect && ++suspect->n_vanished >= TRIAL_VANISHED_LIMIT) {
        suspect->fate = FATE_VANISHED;
    }
}

// Handles a death of unknown cause.
static void mark_round(struct page *page, size_t n) {
    if ((page->flight & FLIGHT_ALONE) && n == 1) {
        note_vanished(page, page->ids[0]);
        return;
    }
    if (page->n_round_vanished == 0 || page->round_first != page->ids[0]) {
        page->round_first = page->ids[0];
        page->n_round_vanished = 0;
    }
    page->n_round_vanished++;
    for (size_t i = 0; i < n && page->n_round_vanished >= ROUND_VANISHED_LIMIT; i++) {
        add_suspect(page, page->ids[i]);
    }
}

static void take_leftovers(struct msc_attempt *attempt, int64_t next_id,
                           enum msc_worker_death death, int signal_number) {
    struct page *page = attempt->page;
    size_t n = 0;
    bool was_alone = (page->flight & FLIGHT_ALONE) || page->n_in_flight == 1;
    bool was_elsewhere = page->flight & FLIGHT_ELSEWHERE;
    for (uint32_t i = 0; i < page->n_in_flight; i++) {
        if (!page->is_finished[i] && page->ids[i] >= next_id) {
            page->ids[n++] = page->ids[i];
        }
    }
    page->n_in_flight = 0;
    if (n == 0 || (was_elsewhere && death != MSC_WORKER_DEATH_CRASH)) {
        return;
    }
    msc_log(attempt->log, MSC_LOG_WARNING, "%zu trial%s from %lld on %s in flight when the %s", n,
            n == 1 ? "" : "s", (long long)page->ids[0], n == 1 ? "was" : "were",
            death == MSC_WORKER_DEATH_NONE    ? "program vanished"
            : death == MSC_WORKER_DEATH_LIMIT ? "time limit was reached"
            : death == MSC_WORKER_DEATH_QUIET ? "search process hung"
                                              : "search process died");
    if (death == MSC_WORKER_DEATH_NONE) {
        mark_round(page, n);
    } else {
        blame_trials(attempt, page->ids, n, was_alone, death, signal_number);
    }
}

void msc_attempt_blame(struct msc_attempt *attempt, const int64_t ids[], size_t n, bool was_alone,
                       enum msc_worker_death death, int signal_number) {
    if (death != MSC_WORKER_DEATH_NONE) {
        blame_trials(attempt, ids, n, was_alone, death, signal_number);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (was_alone) {
            note_vanished(attempt->page, ids[i]);
        } else {
            add_suspect(attempt->page, ids[i]);
        }
    }
}

static enum msc_status open_page(struct msc_attempt *attempt, const char *record_path) {
    struct msc_str path = {0};
    msc_str_append(&path, record_path);
    msc_str_append(&path, ".attempt");
    MSC_TRY(msc_str_take(&attempt->path, &path));
    attempt->page = map_page(attempt->path);
    attempt->is_mapped = attempt->page != NULL;
    if (!attempt->is_mapped) {
        char reason[128] = "";
        if (strerror_r(errno, reason, sizeof reason) != 0) {
            snprintf(reason, sizeof reason, "error %d", errno);
        }
        msc_log(attempt->log, MSC_LOG_WARNING,
                "%s: cannot be created (%s): after a resume, a trial that crashed the process will "
                "crash it again",
                attempt->path, reason);
        attempt->page = msc_alloc_zero(1, sizeof *attempt->page);
    }
    return MSC_ALLOCATED(attempt->page);
}

enum msc_status msc_attempt_open(struct msc_attempt **out,
                                 const struct msc_attempt_options *options) {
    struct msc_attempt *attempt = msc_alloc_zero(1, sizeof *attempt);
    MSC_TRY(MSC_ALLOCATED(attempt));
    attempt->trial_seconds = options->trial_seconds;
    attempt->is_elsewhere = options->is_elsewhere;
    attempt->worker = options->worker;
    attempt->log = options->log;
    enum msc_status status = open_page(attempt, options->record_path);
    if (status != MSC_OK) {
        msc_attempt_close(attempt);
        return status;
    }
    struct page *page = attempt->page;
    int signal_number = 0;
    enum msc_worker_death death =
        msc_worker_take_death(&signal_number, options->worker, options->record_hash);
    if (!is_sound(page) || !msc_hash_equal(page->record_hash, options->record_hash)) {
        memset(page, 0, sizeof *page);
        memcpy(page->magic, MAGIC, sizeof page->magic);
        page->record_hash = options->record_hash;
    }
    take_leftovers(attempt, options->next_id, death, signal_number);
    msc_attempt_committed(attempt, options->next_id);
    *out = attempt;
    return MSC_OK;
}

void msc_attempt_close(struct msc_attempt *attempt) {
    if (!attempt) {
        return;
    }
    if (attempt->page) {
        msc_attempt_end(attempt);
        bool is_needed = attempt->page->n_suspects > 0 || attempt->page->n_round_vanished > 0;
        if (attempt->is_mapped) {
            munmap(attempt->page, sizeof *attempt->page);
        } else {
            msc_free(attempt->page);
        }
        if (attempt->is_mapped && !is_needed) {
            unlink(attempt->path);
        }
    }
    msc_free(attempt->path);
    msc_free(attempt);
}

bool msc_attempt_has_suspects(const struct msc_attempt *attempt) {
    return attempt->page->n_suspects > 0;
}

enum msc_attempt_verdict msc_attempt_judge(const struct msc_attempt *attempt,
                                           struct msc_trial *trial) {
    struct msc_outcome *outcome = &trial->outcome;
    const struct suspect *suspect = find_suspect(attempt->page, trial->id);
    if (!suspect) {
        return MSC_ATTEMPT_FREE;
    }
    switch ((enum fate)suspect->fate) {
    case FATE_CRASHED:
        msc_outcome_fail(outcome, MSC_CAUSE_TRIAL,
                         "the process crashed while it evaluated this trial alone (signal %d)",
                         suspect->signal_number);
        return MSC_ATTEMPT_FAILED;
    case FATE_KILLED:
        msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT,
                         "the process was killed %d times while it evaluated this trial alone: out "
                         "of memory, most likely",
                         TRIAL_KILLED_LIMIT);
        return MSC_ATTEMPT_FAILED;
    case FATE_TIMED_OUT:
        msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT,
                         "alone, it took longer than %.0f ms, %d times",
                         attempt->trial_seconds * 1e3, TRIAL_STALLED_LIMIT);
        return MSC_ATTEMPT_FAILED;
    case FATE_QUIET:
        msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT,
                         "alone, it left the process without a sign of life %d times",
                         TRIAL_STALLED_LIMIT);
        return MSC_ATTEMPT_FAILED;
    case FATE_VANISHED:
        msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT,
                         "the program vanished %d times while it evaluated this trial alone",
                         TRIAL_VANISHED_LIMIT);
        return MSC_ATTEMPT_FAILED;
    case FATE_ALONE:
        break;
    }
    return MSC_ATTEMPT_ALONE;
}

void msc_attempt_begin(struct msc_attempt *attempt, struct msc_trial *const trials[], size_t n,
                       bool is_alone) {
    struct page *page = attempt->page;
    assert(n <= MSC_ATTEMPT_MAX_TRIALS);
    for (size_t i = 0; i < n; i++) {
        page->ids[i] = trials[i]->id;
    }
    memset(page->is_finished, 0, n);
    page->flight = (is_alone ? FLIGHT_ALONE : 0) | (attempt->is_elsewhere ? FLIGHT_ELSEWHERE : 0);
    atomic_signal_fence(memory_order_seq_cst);
    page->n_in_flight = (uint32_t)n;
    msc_worker_begin(attempt->worker, attempt->trial_seconds * (double)n);
}

void msc_attempt_finished(struct msc_attempt *attempt, size_t index) {
    attempt->page->is_finished[index] = 1;
}

void msc_attempt_end(struct msc_attempt *attempt) {
    msc_worker_end(attempt->worker);
    attempt->page->n_in_flight = 0;
}

void msc_attempt_committed(struct msc_attempt *attempt, int64_t next_id) {
    struct page *page = attempt->page;
    if (page->n_round_vanished > 0 && page->round_first < next_id) {
        page->n_round_vanished = 0;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < page->n_suspects; i++) {
        if (page->suspects[i].id >= next_id) {
            page->suspects[n++] = page->suspects[i];
        }
    }
    page->n_suspects = n;
}

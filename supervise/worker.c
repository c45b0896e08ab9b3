// The worker's side of supervision.
#include "supervise/supervise.h"

#include "base/clock.h"
#include "base/str.h"
#include "supervise/worker_page.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// A signal handler has no argument, so it needs globals.
static struct msc_cancel *signalled_cancel;
static volatile sig_atomic_t least_level = 1;

static void raise_level(int signal_number) {
    (void)signal_number;
    signalled_cancel->level = signalled_cancel->level < least_level ? least_level : 2;
}

void msc_worker_stop_at_once(void) {
    least_level = 2;
}

bool msc_worker_is_wanted(void) {
    return getenv(MSC_WORKER_VARIABLE) != NULL;
}

static enum msc_status listen_to_signals(struct msc_cancel *cancel) {
    static const int heard[] = {SIGINT, SIGTERM, SIGHUP};
    // While ignored, SIGPIPE and SIGXFSZ make a call fail instead of ending the process. Ignoring
    // SIGTTOU lets the worker write to the terminal from its own process group.
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    struct sigaction action = {.sa_handler = raise_level, .sa_flags = SA_RESTART};
    sigset_t waiting; // signals that the parent blocked when it started the worker
    sigemptyset(&waiting);
    sigemptyset(&action.sa_mask);
    signalled_cancel = cancel;
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++) {
        struct sigaction before;
        bool is_hangup_ignored = heard[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
                                 before.sa_handler == SIG_IGN; // started by nohup
        if (!is_hangup_ignored && sigaction(heard[i], &action, NULL) != 0) {
            return MSC_FAIL(MSC_E_IO, "cannot handle signal %d", heard[i]);
        }
        sigaddset(&waiting, heard[i]);
    }
    sigprocmask(SIG_UNBLOCK, &waiting, NULL);
    action.sa_handler = SIG_IGN;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        sigaction(ignored[i], &action, NULL);
    }
    return MSC_OK;
}

static enum msc_status take_page(struct msc_worker *worker, const char *variable) {
    int64_t descriptor = -1;
    struct stat info;
    bool is_good = msc_parse_i64(&descriptor, variable) && descriptor >= 0 &&
                   fstat((int)descriptor, &info) == 0 &&
                   info.st_size == (off_t)sizeof(struct msc_worker_page);
    void *page = MAP_FAILED;
    if (is_good) {
        page = mmap(NULL, sizeof(struct msc_worker_page), PROT_READ | PROT_WRITE, MAP_SHARED,
                    (int)descriptor, 0);
    }
    if (page == MAP_FAILED || memcmp(page, MSC_WORKER_MAGIC, sizeof worker->page->magic) != 0) {
        return MSC_FAIL(
            MSC_E_STATE,
            "%s=%s does not name the shared page of a parent process; unset this variable",
            MSC_WORKER_VARIABLE, variable);
    }
    close((int)descriptor);
    worker->page = page;
    worker->cancel->beats = &worker->page->beats;
    atomic_store(&worker->page->is_open, 1);
    return MSC_OK;
}

enum msc_status msc_worker_open(struct msc_worker *worker, struct msc_cancel *cancel) {
    *worker = (struct msc_worker){.cancel = cancel};
    MSC_TRY(listen_to_signals(cancel));
    const char *variable = getenv(MSC_WORKER_VARIABLE);
    if (variable) {
        MSC_TRY(take_page(worker, variable));
        // Programs that this program starts are not workers.
        unsetenv(MSC_WORKER_VARIABLE);
    }
    return MSC_OK;
}

void msc_worker_close(struct msc_worker *worker) {
    if (worker->page) {
        worker->cancel->beats = NULL;
        atomic_store(&worker->page->is_closed, 1);
        munmap(worker->page, sizeof *worker->page);
        worker->page = NULL;
    }
}

void msc_worker_begin(struct msc_worker *worker, double seconds) {
    if (worker && worker->page) {
        uint64_t deadline_ns = seconds > 0.0 ? msc_clock_ns() + (uint64_t)(seconds * 1e9) : 0;
        atomic_store(&worker->page->is_busy, 1);
        atomic_store(&worker->page->deadline_ns, deadline_ns);
    }
}

void msc_worker_end(struct msc_worker *worker) {
    if (worker && worker->page) {
        atomic_store(&worker->page->deadline_ns, 0);
        atomic_store(&worker->page->is_busy, 0);
    }
}

void msc_worker_set_quiet(struct msc_worker *worker, double seconds) {
    if (worker && worker->page) {
        atomic_store(&worker->page->quiet_ns, (uint64_t)(seconds * 1e9));
    }
}

void msc_worker_add_trial(struct msc_worker *worker, uint64_t time_us) {
    if (worker && worker->page) {
        int magnitude = 0;
        for (uint64_t ns = time_us * 1000; ns > 1; ns /= 2) {
            magnitude++;
        }
        atomic_fetch_add(&worker->page->trials[magnitude], 1);
    }
}

void msc_worker_name_log(struct msc_worker *worker, const char *path, enum msc_log_level level) {
    if (worker && worker->page && strlen(path) < MSC_WORKER_PATH_BYTES) {
        memcpy(worker->page->log_path, path, strlen(path) + 1);
        atomic_store(&worker->page->log_level, (int32_t)level);
    }
}

static void append_text(char page[], size_t *at, const char *text) {
    memcpy(page + *at, text, strlen(text) + 1);
    *at += strlen(text) + 1;
}

void msc_worker_note_aside(struct msc_worker *worker, const char *record, const char *path,
                           const char *aside) {
    if (!worker || !worker->page) {
        return;
    }
    size_t at = atomic_load(&worker->page->n_aside_bytes);
    if (at + strlen(record) + strlen(path) + strlen(aside) + 3 <= MSC_WORKER_ASIDE_BYTES) {
        append_text(worker->page->aside, &at, record);
        append_text(worker->page->aside, &at, path);
        append_text(worker->page->aside, &at, aside);
        atomic_store(&worker->page->n_aside_bytes, (uint32_t)at);
    }
}

void msc_worker_add_progress(struct msc_worker *worker, uint64_t n) {
    if (worker && worker->page && n > 0) {
        atomic_fetch_add(&worker->page->progress, n);
        atomic_store(&worker->page->n_left, 0);
    }
}

bool msc_worker_leave(struct msc_worker *worker, enum msc_status status) {
    struct msc_worker_page *page = worker ? worker->page : NULL;
    bool is_lost = page && (status == MSC_E_LOST ||
                            (status == MSC_E_DEVICE && atomic_load(&page->n_left) > 0));
    if (is_lost && !atomic_load(&page->is_leaving)) {
        snprintf(page->why, sizeof page->why, "%s", msc_status_message());
        atomic_fetch_add(&page->n_left, 1);
        atomic_store(&page->is_leaving, 1);
    }
    return is_lost;
}

// Reports a death once.
static enum msc_worker_death take_death(int *signal_number, struct msc_worker_page *page) {
    *signal_number = atomic_load(&page->signal_number);
    return (enum msc_worker_death)atomic_exchange(&page->death, MSC_WORKER_DEATH_NONE);
}

enum msc_worker_death msc_worker_take_death(int *signal_number, struct msc_worker *worker,
                                            struct msc_hash record) {
    *signal_number = 0;
    if (!worker || !worker->page) {
        return MSC_WORKER_DEATH_NONE;
    }
    struct msc_worker_page *page = worker->page;
    bool is_same = atomic_load(&page->record_low) == record.low &&
                   atomic_load(&page->record_high) == record.high;
    atomic_store(&page->record_low, record.low);
    atomic_store(&page->record_high, record.high);
    if (!is_same) {
        return MSC_WORKER_DEATH_NONE;
    }
    enum msc_worker_death death = take_death(signal_number, page);
    return death == MSC_WORKER_DEATH_LOST ? MSC_WORKER_DEATH_NONE : death;
}

void msc_worker_note_part(struct msc_worker *worker, int64_t part) {
    if (worker && worker->page) {
        atomic_store(&worker->page->in_flight, part < 0 ? 0 : (uint64_t)part + 1);
    }
}

enum msc_worker_death msc_worker_take_part(int64_t *part, int *signal_number,
                                           struct msc_worker *worker) {
    *part = -1;
    *signal_number = 0;
    if (!worker || !worker->page) {
        return MSC_WORKER_DEATH_NONE;
    }
    struct msc_worker_page *page = worker->page;
    *part = (int64_t)atomic_exchange(&page->in_flight, 0) - 1;
    return take_death(signal_number, page);
}

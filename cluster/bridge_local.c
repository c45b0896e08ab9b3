// A bridge to workers that are children of this process.
#include "cluster/bridge.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/str.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define MAX_FAILED 3 // workers in a row that were never ready
#define PAUSE_S 1.0  // before the next start
#define GRACE_S 0.5  // for a worker whose input was closed
#define END_JOBS_S 10.0
#define MAX_WORDS 32
#define OTHER_FILES 64 // files that this process may have open in addition to workers' pipes

// A slot, which holds one worker at a time.
struct place {
    struct msc_process *process; // NULL: none
    int32_t worker;
    bool is_told; // was MSC_BRIDGE_UP reported for this worker?
    bool is_given_up;
    bool is_ready;
    int n_failed;       // workers in a row that were never ready
    double start_s;     // earliest time of the next start
    struct msc_str out; // lines that are not yet written
    size_t n_written;
};

struct local {
    struct msc_bridge bridge;
    struct msc_bridge_local_options options;
    bool is_begun; // were jobs of an earlier coordinator ended?
    size_t n;
    struct place *places;         // [n]
    struct pollfd *polled;        // [2 * n]
    struct msc_process **stopped; // [n]
    int32_t n_workers;            // workers started so far
    size_t turn;                  // the slot to read from next
    char why[384];                // why the last worker ended
    bool is_missing;              // the last worker ended because its program was not found
};

static void free_local(struct local *l) {
    msc_free(l->places);
    msc_free(l->polled);
    msc_free(l->stopped);
    msc_free(l);
}

static struct place *find_place(struct local *l, int32_t worker) {
    for (size_t i = 0; i < l->n; i++) {
        if (l->places[i].process && l->places[i].worker == worker) {
            return &l->places[i];
        }
    }
    return NULL;
}

// ---- Jobs -------------------------------------------------------------------------------------

// Copies `words` with `word` at index `at`, which may be one past the end.
static bool replace_word(const char **out, const char *const words[], size_t at, const char *word) {
    size_t n = 0;
    for (; words[n] && n < MAX_WORDS - 2; n++) {
        out[n] = words[n];
    }
    out[n] = out[n + 1] = NULL;
    if (at <= n) {
        out[at] = word;
    }
    return at <= n && !words[n];
}

// Ends jobs whose names begin with `name`. A job that cannot be ended now ends by itself later.
static void end_jobs(const struct local *l, const char *name) {
    static const char *const nothing_more[] = {NULL};
    const char *argv[MAX_WORDS];
    size_t n = 0;
    while (l->options.end_jobs[n]) {
        n++;
    }
    char message[512]; // keeps the current error message
    snprintf(message, sizeof message, "%s", msc_status_message());
    if (replace_word(argv, l->options.end_jobs, n, name) &&
        msc_process_call(argv, nothing_more, END_JOBS_S, NULL, 1) != MSC_OK) {
        (void)msc_status_restore(MSC_E_STATE, message);
    }
}

static void end_job(const struct local *l, int32_t worker) {
    char name[128];
    if (l->options.are_jobs) {
        snprintf(name, sizeof name, "%s%d.", l->options.job_name, (int)worker);
        end_jobs(l, name);
    }
}

static enum msc_status check_words(const struct local *l, bool is_room) {
    return is_room ? MSC_OK
                   : MSC_FAIL(MSC_E_INVALID, "%s: the command of the workers has too many words",
                              l->options.argv[0]);
}

static enum msc_status start_job(struct local *l, struct msc_process **out, int32_t worker) {
    const struct msc_bridge_local_options *o = &l->options;
    const char *argv[MAX_WORDS];
    char word[256];
    snprintf(word, sizeof word, "%s%d.", o->argv[o->name_at], (int)worker);
    MSC_TRY(check_words(l, replace_word(argv, o->argv, o->name_at, word)));
    return msc_process_start_gently(out, argv);
}

static enum msc_status begin_jobs(struct local *l) {
    const struct msc_bridge_local_options *o = &l->options;
    if (!o->are_jobs || l->is_begun) {
        return MSC_OK;
    }
    end_jobs(l, o->job_name);
    MSC_TRY(o->begin ? o->begin(o->payload) : MSC_OK);
    l->is_begun = true;
    return MSC_OK;
}

// ---- Places -----------------------------------------------------------------------------------

static void empty_place(struct place *place) {
    msc_process_stop(place->process, 0.0);
    place->process = NULL;
    msc_str_finish(&place->out);
    place->n_written = 0;
    place->start_s = msc_clock_seconds() + PAUSE_S;
}

// Gives up a slot after MAX_FAILED workers in a row that were never ready.
static void count_end(struct place *place) {
    place->n_failed = place->is_ready ? 0 : place->n_failed + 1;
    place->is_given_up = place->is_given_up || place->n_failed >= MAX_FAILED;
}

// Handles a program that has ended or could not be started.
static void note_end(struct local *l, struct place *place, struct msc_bridge_event *event) {
    const char *name = l->options.job_name;
    if (l->options.are_jobs && place->process) {
        snprintf(l->why, sizeof l->why, "%s (job %s%d.)", msc_status_message(), name,
                 (int)place->worker);
    } else {
        snprintf(l->why, sizeof l->why, "%s", msc_status_message());
    }
    count_end(place);
    *event = (struct msc_bridge_event){
        .kind = MSC_BRIDGE_DOWN, .worker = place->worker, .text = l->why, .length = strlen(l->why)};
    empty_place(place);
    end_job(l, place->worker);
}

static enum msc_status start_worker(struct local *l, struct place *place) {
    place->worker = l->n_workers++;
    place->is_told = false;
    place->is_ready = false;
    if (l->options.are_jobs) {
        return start_job(l, &place->process, place->worker);
    }
    const char *const *words = l->options.argv;
    const char *argv[MAX_WORDS];
    char word[24];
    if (l->options.place_at > 0) {
        snprintf(word, sizeof word, "%zu", (size_t)(place - l->places));
        MSC_TRY(check_words(l, replace_word(argv, words, l->options.place_at, word)));
        words = argv;
    }
    return msc_process_start(&place->process, words, NULL);
}

// Starts workers that are due. True if a worker could not be started, as `event` says.
static bool start_due(struct local *l, struct msc_bridge_event *event, double *until_s) {
    for (size_t i = 0; i < l->n; i++) {
        struct place *place = &l->places[i];
        bool is_open = !place->process && !place->is_given_up;
        if (is_open && place->start_s > msc_clock_seconds()) {
            *until_s = place->start_s < *until_s ? place->start_s : *until_s;
        } else if (is_open) {
            enum msc_status status = start_worker(l, place);
            l->is_missing = status == MSC_E_NOT_FOUND;
            if (status != MSC_OK) {
                note_end(l, place, event);
                return true;
            }
        }
    }
    return false;
}

static void flush(struct place *place) {
    while (place->n_written < place->out.length) {
        size_t n = 0;
        if (msc_process_send_some(place->process, place->out.data + place->n_written,
                                  place->out.length - place->n_written, &n) != MSC_OK ||
            n == 0) {
            break; // the worker may have ended; reading its output will show that
        }
        place->n_written += n;
    }
    if (place->n_written == place->out.length) {
        msc_str_clear(&place->out);
        place->n_written = 0;
    }
}

static enum msc_status local_send(struct msc_bridge *bridge, int32_t worker, const char *line,
                                  size_t length) {
    struct place *place = find_place((struct local *)bridge, worker);
    if (!place) {
        return MSC_OK;
    }
    msc_str_append_n(&place->out, line, length);
    MSC_TRY(msc_str_status(&place->out));
    flush(place);
    return MSC_OK;
}

static void local_ready(struct msc_bridge *bridge, int32_t worker) {
    struct place *place = find_place((struct local *)bridge, worker);
    if (place) {
        place->is_ready = true;
    }
}

static void local_drop(struct msc_bridge *bridge, int32_t worker, bool for_good) {
    struct local *l = (struct local *)bridge;
    struct place *place = find_place(l, worker);
    if (place) {
        place->is_given_up = for_good;
        count_end(place);
        empty_place(place);
        end_job(l, worker);
    }
}

static bool tell_up(struct place *place, struct msc_bridge_event *event) {
    place->is_told = true;
    event->kind = MSC_BRIDGE_UP;
    return true;
}

// Takes one event from output that has already arrived. Slots take turns.
static bool take_event(struct local *l, struct msc_bridge_event *event) {
    for (size_t k = 0; k < l->n; k++) {
        struct place *place = &l->places[(l->turn + k) % l->n];
        if (!place->process) {
            continue;
        }
        event->worker = place->worker;
        if (!place->is_told && !l->options.are_jobs) {
            return tell_up(place, event);
        }
        flush(place);
        if (msc_process_next_line(place->process, &event->text, &event->length) != MSC_OK) {
            note_end(l, place, event);
            return true;
        }
        if (event->text) {
            // The first line of a job is a beat. It does not name the worker, so the event has no
            // text.
            if (!place->is_told) {
                event->text = NULL;
                event->length = 0;
                return tell_up(place, event);
            }
            event->kind = MSC_BRIDGE_LINE;
            l->turn = (size_t)(place - l->places) + 1;
            return true;
        }
    }
    return false;
}

static bool is_over(const struct local *l) {
    size_t n_given_up = 0;
    for (size_t i = 0; i < l->n; i++) {
        n_given_up += l->places[i].is_given_up;
    }
    return n_given_up == l->n;
}

static void wait_for_something(struct local *l, double until_s) {
    nfds_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct place *place = &l->places[i];
        if (place->process) {
            l->polled[n++] =
                (struct pollfd){.fd = msc_process_output(place->process), .events = POLLIN};
            if (place->out.length > place->n_written) {
                l->polled[n++] =
                    (struct pollfd){.fd = msc_process_input(place->process), .events = POLLOUT};
            }
        }
    }
    double left_ms = (until_s - msc_clock_seconds()) * 1e3;
    if (left_ms > 0) {
        poll(l->polled, n, (int)left_ms + 1);
    }
}

static enum msc_status local_next(struct msc_bridge *bridge, struct msc_bridge_event *event,
                                  double timeout_s) {
    struct local *l = (struct local *)bridge;
    double end_s = msc_clock_seconds() + timeout_s;
    *event = (struct msc_bridge_event){.kind = MSC_BRIDGE_NOTHING};
    MSC_TRY(begin_jobs(l));
    for (;;) {
        double until_s = end_s;
        if (is_over(l)) {
            bool is_hinted = l->is_missing && l->options.hint;
            return MSC_FAIL(MSC_E_STATE, "no worker is left%s%s%s", l->why[0] ? ": " : "", l->why,
                            is_hinted ? l->options.hint : "");
        }
        if (start_due(l, event, &until_s) || take_event(l, event) || msc_clock_seconds() >= end_s) {
            return MSC_OK;
        }
        wait_for_something(l, until_s);
    }
}

// Stops all workers at once: a user who has requested a stop twice should not wait for one worker
// after another.
static void stop_workers(struct local *l) {
    for (size_t i = 0; i < l->n; i++) {
        l->stopped[i] = l->places[i].process;
        msc_str_finish(&l->places[i].out);
    }
    msc_process_stop_all(l->stopped, l->n, GRACE_S);
}

static void local_close(struct msc_bridge *bridge) {
    struct local *l = (struct local *)bridge;
    stop_workers(l);
    if (l->is_begun) {
        end_jobs(l, l->options.job_name);
    }
    if (l->is_begun && l->options.end) {
        l->options.end(l->options.payload);
    }
    free_local(l);
}

static const struct msc_bridge_def bridge_local = {
    .send = local_send,
    .ready = local_ready,
    .drop = local_drop,
    .next = local_next,
    .close = local_close,
};

// Raises the limit on open files to allow two for the pipes of each worker.
static enum msc_status allow_files(size_t n_workers) {
    struct rlimit limit;
    rlim_t wanted = 2 * (rlim_t)n_workers + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return MSC_OK;
    }
    limit.rlim_cur = wanted;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%zu workers need %llu open files, but this process may open only %llu: "
                          "raise the limit (ulimit -Hn) or use fewer workers",
                          n_workers, (unsigned long long)wanted,
                          (unsigned long long)limit.rlim_max);
}

enum msc_status msc_bridge_open_local(struct msc_bridge **out,
                                      const struct msc_bridge_local_options *options) {
    size_t n = options->n_workers;
    MSC_TRY(allow_files(n));
    struct local *l = msc_alloc_zero(1, sizeof *l);
    MSC_TRY(MSC_ALLOCATED(l));
    l->bridge.def = &bridge_local;
    l->options = *options;
    l->n = n;
    l->places = msc_alloc_zero(n, sizeof *l->places);
    l->polled = msc_alloc_zero(2 * n, sizeof *l->polled);
    l->stopped = msc_alloc_zero(n, sizeof *l->stopped);
    if (!l->places || !l->polled || !l->stopped) {
        free_local(l);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    *out = &l->bridge;
    return MSC_OK;
}

// The parent's side of supervision. It has one thread that blocks all relevant signals and waits
// for them in one place, so it needs no handlers.

// memfd_create is a Linux extension.
#define _GNU_SOURCE

#include "supervise/supervise.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "records/record.h"
#include "supervise/process_session.h"
#include "supervise/watchdog.h"
#include "supervise/worker_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define POLL_NS 100000000
#define DEFAULT_KILL_AFTER_S 5.0
#define DEFAULT_LOST_PAUSE_S 1.0
// `timeout` and shells send a signal to a process and also to its group, so signals within this
// time count as one request.
#define SAME_REQUEST_NS 50000000
#define EXIT_NOT_STARTED 127

struct supervisor {
    const struct msc_supervise_options *options;
    struct msc_worker_page *page;
    int page_descriptor;
    char **environment; // the worker's environment variables
    struct msc_arena arena;
    sigset_t heard;    // the signals that the parent waits for
    sigset_t before;   // signal mask to restore at the end
    sigset_t starting; // signal mask of a worker until its handlers are installed
    struct sigaction child_before;
    pid_t parent;
    pid_t worker;
    int guarded;    // write end of a pipe that the session's guard reads; -1: none
    int n_requests; // requests to stop that were passed to the worker
    uint64_t last_request_ns;
    struct msc_watchdog watchdog;
    uint64_t last_beat_ns;
    bool was_limit;  // the worker was killed at a time limit
    bool was_quiet;  // the worker was killed after it gave no sign of life
    bool was_forced; // the worker was killed after requests to stop
};

// Writes to the log, and also to the worker's log file, because the worker may be unable to do so.
static void say_death(const struct supervisor *s, enum msc_log_level level, const char *format, ...)
    MSC_PRINTF(3, 4);

static void say_death(const struct supervisor *s, enum msc_log_level level, const char *format,
                      ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    msc_log(s->options->log, level, "%s", line);
    if (s->options->append && (int32_t)level <= atomic_load(&s->page->log_level)) {
        s->options->append(s->page->log_path, level, line);
    }
}

static enum msc_status make_page(struct supervisor *s) {
    s->page_descriptor = memfd_create("mscgym-worker", 0);
    if (s->page_descriptor < 0 || ftruncate(s->page_descriptor, (off_t)sizeof *s->page) != 0) {
        return MSC_FAIL(MSC_E_IO, "cannot create shared memory for the search process");
    }
    void *page =
        mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, s->page_descriptor, 0);
    if (page == MAP_FAILED) {
        return MSC_FAIL(MSC_E_NOMEM, "cannot map shared memory for the search process");
    }
    s->page = page;
    memcpy(s->page->magic, MSC_WORKER_MAGIC, sizeof s->page->magic);
    atomic_store(&s->page->log_level, -1);
    return MSC_OK;
}

static enum msc_status make_environment(struct supervisor *s) {
    size_t n = 0;
    while (environ[n]) {
        n++;
    }
    s->environment = msc_arena_array(&s->arena, n + 4, sizeof *s->environment);
    char *variable = msc_arena_printf(&s->arena, "%s=%d", MSC_WORKER_VARIABLE, s->page_descriptor);
    MSC_TRY(MSC_ALLOCATED(s->environment && variable));
    memcpy(s->environment, environ, n * sizeof *environ);
    s->environment[n++] = variable;
    // These variables are read when a program is loaded, so a search cannot set them itself.
    // Waiting OpenMP threads must sleep: on a shared machine spinning is many times slower.
    // Activations use huge pages if possible: touching new small pages costs more than many
    // kernels. Large blocks are returned to the system when freed; otherwise the memory limit could
    // not be enforced.
    static char passive[] = "OMP_WAIT_POLICY=passive";
    static char huge_pages[] =
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576";
    if (!getenv("OMP_WAIT_POLICY")) {
        s->environment[n++] = passive;
    }
    if (!getenv("GLIBC_TUNABLES")) {
        s->environment[n++] = huge_pages;
    }
    return MSC_OK;
}

static void block_signals(struct supervisor *s) {
    struct sigaction hangup;
    sigemptyset(&s->heard);
    sigaddset(&s->heard, SIGINT);
    sigaddset(&s->heard, SIGTERM);
    sigaddset(&s->heard, SIGTSTP);
    sigaddset(&s->heard, SIGCHLD);
    // Under nohup, SIGHUP remains ignored.
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN) {
        sigaddset(&s->heard, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &s->heard, &s->before);
    // Requests to stop that arrive while a worker starts are delivered once its handlers are
    // installed.
    s->starting = s->before;
    sigaddset(&s->starting, SIGINT);
    sigaddset(&s->starting, SIGTERM);
    sigaddset(&s->starting, SIGHUP);
    // If SIGCHLD were ignored, the worker's exit status would be lost.
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &normal, &s->child_before);
}

// Runs between fork and exec, so it makes only async-signal-safe calls.
static void become_worker(const struct supervisor *s) {
    setsid(); // the session identifies all processes that the worker starts
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != s->parent) {
        _exit(EXIT_NOT_STARTED);
    }
    sigprocmask(SIG_SETMASK, &s->starting, NULL);
    execve(s->options->program ? s->options->program : "/proc/self/exe", s->options->argv,
           s->environment);
    atomic_store(&s->page->start_error, errno);
    _exit(EXIT_NOT_STARTED);
}

// If the parent is killed, the worker and its agents are killed with it, but not processes that the
// agents started. The guard is a process that waits for the parent's end and then ends those
// processes.
static void guard_worker(const struct supervisor *s, int descriptor) {
    char nothing;
    ssize_t n;
    setsid();
    close(s->guarded);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        close(i);
    }
    do {
        n = read(descriptor, &nothing, 1);
    } while (n < 0 && errno == EINTR);
    pid_t worker = (pid_t)atomic_load(&s->page->worker);
    if (worker > 0 && n == 0) { // the pipe has ended, so the parent is gone
        msc_session_end(worker);
    }
    _exit(EXIT_SUCCESS);
}

// Starts the guard as a grandchild, so that the parent has no child but the worker to wait for.
static enum msc_status start_guard(struct supervisor *s) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return MSC_FAIL(MSC_E_IO, "cannot open a pipe for the search process: %s", strerror(errno));
    }
    s->guarded = ends[1];
    pid_t between = fork();
    if (between == 0) {
        pid_t guarding = fork();
        if (guarding == 0) {
            guard_worker(s, ends[0]);
        }
        _exit(guarding < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    close(ends[0]);
    int state = EXIT_FAILURE;
    if (between < 0 || waitpid(between, &state, 0) != between || state != 0) {
        return MSC_FAIL(MSC_E_IO, "cannot start the search process: no more processes or memory");
    }
    return MSC_OK;
}

static enum msc_status start_worker(struct supervisor *s) {
    atomic_store(&s->page->is_open, 0);
    atomic_store(&s->page->is_closed, 0);
    atomic_store(&s->page->is_busy, 0);
    atomic_store(&s->page->deadline_ns, 0);
    atomic_store(&s->page->is_leaving, 0);
    atomic_store(&s->page->quiet_ns, (uint64_t)(MSC_WATCHDOG_DEFAULT_S * 1e9));
    s->was_limit = false;
    s->was_quiet = false;
    msc_watchdog_begin(&s->watchdog, s->page, msc_clock_ns());
    s->worker = fork();
    if (s->worker == 0) {
        become_worker(s);
    }
    if (s->worker < 0) {
        return MSC_FAIL(MSC_E_IO, "cannot start the search process: no more processes or memory");
    }
    atomic_store(&s->page->worker, s->worker);
    return MSC_OK;
}

// Signals the worker and its process group.
static void signal_worker(const struct supervisor *s, int signal_number) {
    if (s->worker > 0 && kill(-s->worker, signal_number) != 0) {
        kill(s->worker, signal_number); // the worker has no process group of its own yet
    }
}

static void hand_on(struct supervisor *s, int signal_number) {
    uint64_t now_ns = msc_clock_ns();
    bool is_same = s->n_requests > 0 && now_ns - s->last_request_ns < SAME_REQUEST_NS;
    s->last_request_ns = now_ns;
    if (!is_same) {
        s->n_requests++;
        if (s->worker > 0) {
            kill(s->worker, signal_number);
        }
        say_death(s, MSC_LOG_INFO, "%s",
                  s->n_requests == 1 ? "stopping after the running trials; a second request "
                                       "(Ctrl-C) stops at once, and nothing is lost"
                                     : "stopping at once; nothing is lost");
    }
}

// Ctrl-Z stops the whole job. Time spent stopped does not count (supervise/watchdog.h).
static void stop_and_continue(const struct supervisor *s) {
    signal_worker(s, SIGSTOP);
    raise(SIGSTOP);
    signal_worker(s, SIGCONT);
}

static void hear(struct supervisor *s) {
    const struct timespec poll = {.tv_nsec = POLL_NS};
    int signal_number = sigtimedwait(&s->heard, NULL, &poll);
    if (signal_number == SIGTSTP) {
        stop_and_continue(s);
    } else if (signal_number > 0 && signal_number != SIGCHLD) {
        hand_on(s, signal_number);
    }
}

static void tell_alive(struct supervisor *s) {
    uint64_t now_ns = msc_clock_ns();
    if (s->options->beat && (double)(now_ns - s->last_beat_ns) * 1e-9 >= MSC_SUPERVISE_BEAT_S) {
        s->last_beat_ns = now_ns;
        s->options->beat(atomic_load(&s->page->is_busy) != 0);
    }
}

static void check_deadlines(struct supervisor *s) {
    uint64_t now_ns = msc_clock_ns();
    bool is_quiet = msc_watchdog_look(&s->watchdog, s->page, now_ns);
    uint64_t deadline_ns = atomic_load(&s->page->deadline_ns);
    double kill_after_s =
        s->options->kill_after_s > 0.0 ? s->options->kill_after_s : DEFAULT_KILL_AFTER_S;
    bool is_over = deadline_ns > 0 && now_ns > deadline_ns;
    if ((is_over || is_quiet) && !s->was_limit && !s->was_quiet) {
        s->was_limit = is_over;
        s->was_quiet = !is_over;
        signal_worker(s, SIGKILL);
    }
    if (s->n_requests >= 2 && (double)(now_ns - s->last_request_ns) * 1e-9 > kill_after_s &&
        !s->was_forced) {
        s->was_forced = true;
        signal_worker(s, SIGKILL);
    }
}

// Waits until the worker has ended. Unless it succeeded, ends everything that it started; programs
// that it ran to their end may have left processes on purpose.
static int wait_for_worker(struct supervisor *s) {
    int state = 0;
    for (;;) {
        siginfo_t death = {0};
        int failed = waitid(P_PID, (id_t)s->worker, &death, WEXITED | WNOHANG | WNOWAIT);
        if (death.si_pid == s->worker || (failed && errno == ECHILD)) {
            if (death.si_code != CLD_EXITED || death.si_status != 0) {
                msc_session_end(s->worker);
            }
            waitpid(s->worker, &state, 0);
            s->worker = 0;
            atomic_store(&s->page->worker, 0);
            return state;
        }
        hear(s);
        check_deadlines(s);
        tell_alive(s);
    }
}

// Waits before another worker opens the device. `n_before`: restarts that have already failed.
static void wait_for_device(struct supervisor *s, int n_before) {
    double pause_s = s->options->lost_pause_s;
    pause_s = (pause_s > 0.0 ? pause_s : DEFAULT_LOST_PAUSE_S) * (double)(1 << n_before);
    uint64_t begin_ns = msc_clock_ns();
    while (s->n_requests == 0 && (double)(msc_clock_ns() - begin_ns) * 1e-9 < pause_s) {
        hear(s);
        tell_alive(s);
    }
}

static enum msc_worker_death classify_death(const struct supervisor *s, int state) {
    if (s->was_limit) {
        return MSC_WORKER_DEATH_LIMIT;
    }
    if (s->was_quiet) {
        return MSC_WORKER_DEATH_QUIET;
    }
    if (WIFSIGNALED(state)) {
        return WTERMSIG(state) == SIGKILL ? MSC_WORKER_DEATH_KILLED : MSC_WORKER_DEATH_CRASH;
    }
    if (atomic_load(&s->page->is_leaving)) {
        return MSC_WORKER_DEATH_LOST;
    }
    // If the worker exits before msc_worker_close, a library has called exit.
    bool has_closed = atomic_load(&s->page->is_closed) || !atomic_load(&s->page->is_open);
    return has_closed ? MSC_WORKER_DEATH_NONE : MSC_WORKER_DEATH_CRASH;
}

static enum msc_status check_started(const struct supervisor *s, int state) {
    int error = atomic_load(&s->page->start_error);
    if (WIFEXITED(state) && WEXITSTATUS(state) == EXIT_NOT_STARTED &&
        !atomic_load(&s->page->is_open) && error != 0) {
        return MSC_FAIL(MSC_E_IO, "cannot start the search process %s: %s", s->options->argv[0],
                        strerror(error));
    }
    return MSC_OK;
}

static void describe_death(char *out, size_t n_bytes, const struct supervisor *s,
                           enum msc_worker_death death, int state) {
    if (death == MSC_WORKER_DEATH_LIMIT) {
        snprintf(out, n_bytes, "exceeded a trial's time limit");
    } else if (death == MSC_WORKER_DEATH_QUIET) {
        snprintf(out, n_bytes, "showed no sign of life for %.3g s",
                 (double)msc_watchdog_limit_ns(s->page) * 1e-9);
    } else if (death == MSC_WORKER_DEATH_LOST) {
        snprintf(out, n_bytes, "has lost its device (%.*s)", MSC_WORKER_WHY_BYTES - 1,
                 s->page->why);
    } else if (WIFSIGNALED(state)) {
        snprintf(out, n_bytes, "died of signal %d (%s)", WTERMSIG(state),
                 strsignal(WTERMSIG(state)));
    } else {
        snprintf(out, n_bytes, "exited %s (code %d)",
                 atomic_load(&s->page->is_busy) ? "in the middle of a trial" : "before its end",
                 WEXITSTATUS(state));
    }
}

static enum msc_status check_restart(const struct supervisor *s, enum msc_worker_death death,
                                     const char *what, int n_restarts) {
    if (s->n_requests > 0) {
        return MSC_FAIL(MSC_E_STATE,
                        "the search process %s after a request to stop; the record is intact",
                        s->was_forced ? "was killed: it did not end by itself" : what);
    }
    if (n_restarts == MSC_SUPERVISE_MAX_RESTARTS) {
        return MSC_FAIL(
            death == MSC_WORKER_DEATH_LOST ? MSC_E_DEVICE : MSC_E_STATE,
            "the search process %s, and %d restarts brought no new trial; the record is intact",
            what, n_restarts);
    }
    return MSC_OK;
}

// Stores the death for the next worker, unless an earlier death has not been reported yet.
static void note_death(const struct supervisor *s, enum msc_worker_death death, int state) {
    if (death != MSC_WORKER_DEATH_LOST || atomic_load(&s->page->death) == MSC_WORKER_DEATH_NONE) {
        atomic_store(&s->page->signal_number, WIFSIGNALED(state) ? WTERMSIG(state) : 0);
        atomic_store(&s->page->death, death);
    }
}

static enum msc_status supervise_worker(struct supervisor *s, int *exit_code) {
    uint64_t progress = 0;
    int n_restarts = 0; // consecutive restarts without progress
    for (;;) {
        char what[MSC_WORKER_WHY_BYTES + 64];
        MSC_TRY(start_worker(s));
        int state = wait_for_worker(s);
        MSC_TRY(check_started(s, state));
        enum msc_worker_death death = classify_death(s, state);
        if (death == MSC_WORKER_DEATH_NONE) {
            *exit_code = WEXITSTATUS(state);
            return MSC_OK;
        }
        describe_death(what, sizeof what, s, death, state);
        uint64_t progress_now = atomic_load(&s->page->progress);
        n_restarts = progress_now > progress ? 0 : n_restarts;
        progress = progress_now;
        MSC_TRY(check_restart(s, death, what, n_restarts));
        say_death(s, MSC_LOG_WARNING, "the search process %s and is restarted", what);
        if (death == MSC_WORKER_DEATH_LOST) {
            wait_for_device(s, n_restarts);
            MSC_TRY(check_restart(s, death, what, n_restarts));
        }
        n_restarts++;
        note_death(s, death, state);
    }
}

// A file that was set aside: a search's record or its section's strategy file.
struct aside {
    // Borrowed from the page: the search's record, and the file's former and present paths.
    const char *record, *path, *now;
};

static const char *behind(const char *text) {
    return text + strlen(text) + 1;
}

// Reads the next file that was set aside; false if there are no more.
static bool next_aside(struct aside *aside, const struct supervisor *s, uint32_t *at) {
    if (*at >= atomic_load(&s->page->n_aside_bytes)) {
        return false;
    }
    aside->record = s->page->aside + *at;
    aside->path = behind(aside->record);
    aside->now = behind(aside->path);
    *at = (uint32_t)(behind(aside->now) - s->page->aside);
    return true;
}

static enum msc_status take_back(const struct supervisor *s, const struct aside *aside) {
    if (strcmp(aside->record, aside->path) == 0) {
        return msc_record_take_back(aside->path, aside->now, s->options->log);
    }
    MSC_TRY(msc_file_rename(aside->now, aside->path));
    msc_file_sync_folder(aside->path);
    say_death(
        s, MSC_LOG_INFO,
        "%s: restored the old strategy file, because the new search failed before its first trial",
        aside->path);
    return MSC_OK;
}

// If a search failed before its agent's first trial, restores the files that it was to replace.
// Keeps the search's error message.
static void take_files_back(const struct supervisor *s) {
    char message[512];
    struct aside aside;
    uint32_t at = 0;
    while (next_aside(&aside, s, &at)) {
        if (msc_record_is_begun(aside.record)) {
            return;
        }
    }
    snprintf(message, sizeof message, "%s", msc_status_message());
    at = 0;
    while (next_aside(&aside, s, &at)) {
        if (take_back(s, &aside) != MSC_OK) {
            say_death(s, MSC_LOG_WARNING, "%s", msc_status_message());
        }
    }
    (void)msc_status_restore(MSC_E_STATE, message);
}

enum msc_status msc_supervise(int *exit_code, const struct msc_supervise_options *options) {
    enum msc_status status = MSC_OK;
    struct supervisor s = {
        .options = options, .page_descriptor = -1, .guarded = -1, .parent = getpid()};
    *exit_code = EXIT_FAILURE;
    block_signals(&s);
    MSC_TRY_OUT(make_page(&s));
    MSC_TRY_OUT(make_environment(&s));
    MSC_TRY_OUT(start_guard(&s));
    status = supervise_worker(&s, exit_code);
    if (status != MSC_OK || *exit_code != 0) {
        take_files_back(&s);
    }
out:
    if (s.page) {
        munmap(s.page, sizeof *s.page);
    }
    if (s.guarded >= 0) {
        close(s.guarded);
    }
    if (s.page_descriptor >= 0) {
        close(s.page_descriptor);
    }
    sigaction(SIGCHLD, &s.child_before, NULL);
    // After a request has ended the search, a second request must not change how the program ends.
    sigprocmask(SIG_SETMASK, s.n_requests > 0 ? &s.starting : &s.before, NULL);
    msc_arena_finish(&s.arena);
    return status;
}

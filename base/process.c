#include "base/process_internal.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Longest line that a program may write.
#define LINE_LIMIT ((size_t)64 << 20)
// The child closes all descriptors below this number. Otherwise an orphaned child could keep a
// descriptor without close-on-exec, such as a lock, open after this process ends.
#define DESCRIPTOR_LIMIT 4096

// Time that a program has to end after SIGTERM, before it gets SIGKILL.
#define TERM_GRACE_S 1.0

extern char **environ;

// A child that could not execute the program sends this to the parent.
struct start_error {
    bool in_folder;
    int code;
};

enum {
    CHILD_INPUT,
    PARENT_INPUT,
    PARENT_OUTPUT,
    CHILD_OUTPUT,
    PARENT_ERROR,
    CHILD_ERROR,
    PIPE_ENDS,
};

static void close_ends(int ends[PIPE_ENDS]) {
    for (int i = 0; i < PIPE_ENDS; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
            ends[i] = -1;
        }
    }
}

// Opens three pipes, which are closed on exec. None of their ends is a standard descriptor.
static bool open_ends(int ends[PIPE_ENDS]) {
    for (int i = 0; i < PIPE_ENDS; i++) {
        ends[i] = -1;
    }
    for (int i = 0; i < PIPE_ENDS; i += 2) {
        int pair[2];
        if (pipe(pair) != 0) {
            return false;
        }
        for (int j = 0; j < 2; j++) {
            ends[i + j] = fcntl(pair[j], F_DUPFD_CLOEXEC, 3);
            close(pair[j]);
        }
        if (ends[i] < 0 || ends[i + 1] < 0) {
            return false;
        }
    }
    return true;
}

static void close_inherited(int kept) {
    long limit = sysconf(_SC_OPEN_MAX);
    int end = limit > 0 && limit < DESCRIPTOR_LIMIT ? (int)limit : DESCRIPTOR_LIMIT;
    for (int i = 3; i < end; i++) {
        if (i != kept) {
            close(i);
        }
    }
}

// Between fork and exec only async-signal-safe calls are allowed.
static void become_program(const char *const argv[], const char *folder, char *const environment[],
                           const int ends[PIPE_ENDS], pid_t parent, int death_signal) {
    struct start_error error = {0};
    sigset_t none;
    // Ends the child if the parent is killed.
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) {
        _exit(126);
    }
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    dup2(ends[CHILD_INPUT], STDIN_FILENO);
    dup2(ends[CHILD_OUTPUT], STDOUT_FILENO);
    close_inherited(ends[CHILD_ERROR]);
    if (folder && chdir(folder) != 0) {
        error.in_folder = true;
    } else {
        // exec does not change its arguments, although they are not declared const.
        union {
            const char *const *given;
            char *const *wanted;
        } arguments = {.given = argv};
        if (environment) {
            environ = (char **)environment;
        }
        execvp(argv[0], arguments.wanted);
    }
    error.code = errno;
    ssize_t written = write(ends[CHILD_ERROR], &error, sizeof error);
    _exit(written == (ssize_t)sizeof error ? 127 : 126);
}

static void set_nonblocking(int descriptor) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

static enum msc_status read_start_error(int descriptor, const char *name, const char *folder) {
    struct start_error error;
    ssize_t n;
    do {
        n = read(descriptor, &error, sizeof error);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof error) {
        return MSC_OK; // exec closed the pipe, so the program runs
    }
    enum msc_status status = error.code == ENOENT ? MSC_E_NOT_FOUND : MSC_E_IO;
    return error.in_folder
               ? MSC_FAIL(status, "%s: cannot start in folder %s: %s", name, folder,
                          strerror(error.code))
               : MSC_FAIL(status, "%s: cannot be started: %s", name, strerror(error.code));
}

enum msc_status msc_process__start(struct msc_process **out, const char *const argv[],
                                   const char *folder, char *const environment[],
                                   int death_signal) {
    enum msc_status status = MSC_OK;
    int ends[PIPE_ENDS];
    struct msc_process *process = msc_alloc_zero(1, sizeof *process);
    MSC_TRY(MSC_ALLOCATED(process));
    process->pid = -1;
    process->input = -1;
    process->output = -1;
    process->name = msc_strdup(argv[0]);
    if (!open_ends(ends)) {
        status = MSC_FAIL(MSC_E_IO, "%s: cannot open pipes: %s", argv[0], strerror(errno));
        goto out;
    }
    MSC_TRY_OUT(MSC_ALLOCATED(process->name));
    pid_t parent = getpid();
    process->pid = fork();
    if (process->pid == 0) {
        become_program(argv, folder, environment, ends, parent, death_signal);
    }
    if (process->pid < 0) {
        status = MSC_FAIL(MSC_E_IO, "%s: cannot be started: %s", argv[0], strerror(errno));
        goto out;
    }
    // child and parent both call this, because either may be first
    setpgid(process->pid, process->pid);
    close(ends[CHILD_ERROR]);
    ends[CHILD_ERROR] = -1;
    MSC_TRY_OUT(read_start_error(ends[PARENT_ERROR], argv[0], folder));
    process->input = ends[PARENT_INPUT];
    process->output = ends[PARENT_OUTPUT];
    ends[PARENT_INPUT] = -1;
    ends[PARENT_OUTPUT] = -1;
    set_nonblocking(process->input);
    set_nonblocking(process->output);
    *out = process;
    process = NULL;
out:
    close_ends(ends);
    msc_process_stop(process, 0.0);
    return status;
}

enum msc_status msc_process_start(struct msc_process **out, const char *const argv[],
                                  const char *folder) {
    return msc_process__start(out, argv, folder, NULL, SIGKILL);
}

enum msc_status msc_process_start_gently(struct msc_process **out, const char *const argv[]) {
    return msc_process__start(out, argv, NULL, NULL, SIGTERM);
}

void msc_process_set_cancel(struct msc_process *process, const struct msc_cancel *cancel,
                            int level) {
    process->cancel = cancel;
    process->cancel_level = level;
}

// Waits until the descriptor is ready, or until it is time to check again whether the program still
// runs. Returns READY in both cases.
static enum msc_process_waited wait_ready(const struct msc_process *process, int descriptor,
                                          short events, double deadline_s) {
    double left_s = deadline_s - msc_clock_seconds();
    if (msc_cancel_reached(process->cancel, process->cancel_level)) {
        return MSC_PROCESS_CANCELLED;
    }
    if (left_s <= 0.0) {
        return MSC_PROCESS_LATE;
    }
    left_s = left_s > MSC_PROCESS_POLL_S ? MSC_PROCESS_POLL_S : left_s;
    struct pollfd ready = {.fd = descriptor, .events = events};
    int n = poll(&ready, 1, (int)(left_s * 1000.0 + 1.0));
    return n < 0 && errno != EINTR ? MSC_PROCESS_LATE : MSC_PROCESS_READY;
}

enum msc_status msc_process__fail_waiting(const struct msc_process *process,
                                          enum msc_process_waited waited, const char *what,
                                          double timeout_s) {
    return waited == MSC_PROCESS_CANCELLED
               ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request")
               : MSC_FAIL(MSC_E_IO, "%s: %s; waited %g s", process->name, what, timeout_s);
}

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// False if the process still runs at the deadline. Otherwise stores how it ended. The process is
// not reaped, so its id is not reused.
bool msc_process__has_ended(struct msc_process *process, double deadline_s) {
    for (;;) {
        siginfo_t death = {0};
        int failed = waitid(P_PID, (id_t)process->pid, &death, WEXITED | WNOHANG | WNOWAIT);
        if ((failed && errno != EINTR) || death.si_pid == process->pid) {
            process->death = death;
            return true;
        }
        if (msc_clock_seconds() >= deadline_s) {
            return false;
        }
        pause_briefly();
    }
}

enum msc_status msc_process__fail_ended(struct msc_process *process) {
    if (!msc_process__has_ended(process, msc_clock_seconds() + 1.0)) {
        return MSC_FAIL(MSC_E_IO, "%s: closed its output, but still runs", process->name);
    }
    int code = process->death.si_code;
    return MSC_FAIL(MSC_E_IO, "%s: ended %s %d", process->name,
                    code == CLD_KILLED || code == CLD_DUMPED ? "by signal" : "with exit status",
                    process->death.si_status);
}

// Kills everything in the program's group that still runs at the deadline; the group was asked to
// end earlier. A process that has left the group (setsid) keeps running.
static void end_group(struct msc_process *process, double deadline_s) {
    if (!msc_process__has_ended(process, deadline_s)) {
        kill(process->pid, SIGKILL);
        msc_process__has_ended(process, msc_clock_seconds() + 10.0);
    }
    // The group id is not reused while the group has members.
    waitpid(process->pid, NULL, WNOHANG);
    while (kill(-process->pid, 0) == 0 && msc_clock_seconds() < deadline_s) {
        pause_briefly();
    }
    kill(-process->pid, SIGKILL);
}

// Writes without the SIGPIPE that a closed pipe would raise.
static ssize_t write_quietly(int descriptor, const char *text, size_t length) {
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = write(descriptor, text, length);
    int code = errno;
    if (n < 0 && code == EPIPE && !sigismember(&pending, SIGPIPE)) {
        sigtimedwait(&pipe_signal, NULL, &(struct timespec){0});
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return n;
}

enum msc_status msc_process_send(struct msc_process *process, const char *text, size_t length,
                                 double timeout_s) {
    double deadline_s = msc_clock_seconds() + timeout_s;
    while (length > 0) {
        ssize_t n = write_quietly(process->input, text, length);
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        } else if (errno == EPIPE) {
            return MSC_OK; // the program's last output may still be unread
        } else if (errno != EAGAIN && errno != EINTR) {
            return MSC_FAIL(MSC_E_IO, "%s: cannot be written to: %s", process->name,
                            strerror(errno));
        } else if (msc_process__has_ended(process, 0.0)) {
            return MSC_OK; // the program's children may hold the pipe open, but do not answer
        } else {
            enum msc_process_waited waited =
                wait_ready(process, process->input, POLLOUT, deadline_s);
            if (waited != MSC_PROCESS_READY) {
                return msc_process__fail_waiting(process, waited, "does not read its input",
                                                 timeout_s);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status pipe_make_room(struct msc_process *process) {
    if (process->begin > 0) {
        memmove(process->buffer, process->buffer + process->begin, process->end - process->begin);
        process->end -= process->begin;
        process->begin = 0;
    }
    if (process->end >= LINE_LIMIT) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: wrote a line of more than %zu bytes", process->name,
                        LINE_LIMIT);
    }
    return msc_grow(&process->buffer, &process->capacity, process->end + 4096, 1);
}

// The next complete line of the bytes read so far, without its newline; NULL if no line is
// complete.
char *msc_process__take_line(struct msc_process *process, size_t *length, size_t n_seen) {
    char *start = process->buffer ? process->buffer + process->begin : NULL;
    size_t n_held = process->end - process->begin;
    char *newline = start ? memchr(start + n_seen, '\n', n_held - n_seen) : NULL;
    if (!newline) {
        return NULL;
    }
    *newline = '\0';
    *length = (size_t)(newline - start);
    process->begin += *length + 1;
    return start;
}

// Checks whether the process has ended. If so, the program has ended too. Its children may keep its
// output open and even write more, but only the bytes in the pipe at that moment are read.
static void notice_end(struct msc_process *process) {
    double now_s = msc_clock_seconds();
    if (process->is_at_end || now_s < process->next_look_s) {
        return;
    }
    process->next_look_s = now_s + MSC_PROCESS_POLL_S;
    if (msc_process__has_ended(process, 0.0)) {
        int n_left = 0;
        process->is_at_end = true;
        process->n_left = ioctl(process->output, FIONREAD, &n_left) == 0 ? (size_t)n_left : 0;
    }
}

// Reads the available bytes. *n is 0 if the output has ended, negative if nothing is available yet.
static enum msc_status read_now(struct msc_process *process, ssize_t *n) {
    MSC_TRY(pipe_make_room(process));
    notice_end(process);
    size_t n_wanted = process->capacity - process->end;
    if (process->is_at_end && n_wanted > process->n_left) {
        n_wanted = process->n_left;
    }
    do {
        *n = n_wanted > 0 ? read(process->output, process->buffer + process->end, n_wanted) : 0;
    } while (*n < 0 && errno == EINTR);
    if (*n > 0) {
        process->end += (size_t)*n;
        process->n_left -= process->is_at_end ? (size_t)*n : 0;
    }
    return *n >= 0 || errno == EAGAIN
               ? MSC_OK
               : MSC_FAIL(MSC_E_IO, "%s: cannot be read from: %s", process->name, strerror(errno));
}

// Waits for more bytes. *is_over: the output has ended.
enum msc_status msc_process__read_more(struct msc_process *process, bool *is_over,
                                       double deadline_s, double timeout_s) {
    for (;;) {
        ssize_t n;
        MSC_TRY(read_now(process, &n));
        *is_over = n == 0;
        if (n >= 0) {
            return MSC_OK;
        }
        enum msc_process_waited waited = wait_ready(process, process->output, POLLIN, deadline_s);
        if (waited != MSC_PROCESS_READY) {
            return msc_process__fail_waiting(process, waited, "no answer", timeout_s);
        }
    }
}

enum msc_status msc_process_receive(struct msc_process *process, const char **line, size_t *length,
                                    double timeout_s) {
    double deadline_s = msc_clock_seconds() + timeout_s;
    size_t n_seen = 0;
    for (;;) {
        bool is_over = false;
        *line = msc_process__take_line(process, length, n_seen);
        if (*line) {
            return MSC_OK;
        }
        n_seen = process->end - process->begin;
        MSC_TRY(msc_process__read_more(process, &is_over, deadline_s, timeout_s));
        if (is_over) {
            return msc_process__fail_ended(process);
        }
    }
}

enum msc_status msc_process_send_some(struct msc_process *process, const char *text, size_t length,
                                      size_t *n_sent) {
    ssize_t n = write_quietly(process->input, text, length);
    *n_sent = n > 0 ? (size_t)n : 0;
    if (n < 0 && errno == EPIPE) {
        *n_sent = length; // the program's last output may still be unread
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot be written to: %s", process->name, strerror(errno));
    }
    return MSC_OK;
}

enum msc_status msc_process_next_line(struct msc_process *process, const char **line,
                                      size_t *length) {
    for (;;) {
        ssize_t n;
        *line = msc_process__take_line(process, length, 0);
        if (*line) {
            return MSC_OK;
        }
        MSC_TRY(read_now(process, &n));
        if (n <= 0) {
            return n < 0 ? MSC_OK : msc_process__fail_ended(process);
        }
    }
}

int msc_process_input(const struct msc_process *process) {
    return process->input;
}

int msc_process_output(const struct msc_process *process) {
    return process->output;
}

enum msc_status msc_process_request(struct msc_process *process, struct msc_str *request,
                                    double timeout_s) {
    msc_str_char(request, '\n');
    MSC_TRY(msc_str_status(request));
    return msc_process_send(process, request->data, request->length, timeout_s);
}

enum msc_status msc_process_answer(struct msc_process *process, struct cJSON **answer,
                                   double timeout_s) {
    const char *line;
    size_t length;
    cJSON *parsed = NULL;
    MSC_TRY(msc_process_receive(process, &line, &length, timeout_s));
    MSC_TRY(msc_json_parse(&parsed, line, length, "answer"));
    const cJSON *error = msc_json_get(parsed, "error");
    enum msc_status status = MSC_OK;
    if (!cJSON_IsObject(parsed)) {
        status = MSC_FAIL(MSC_E_FORMAT, "answer: expected a JSON object");
    } else if (error) {
        status = MSC_FAIL(MSC_E_STATE, "it reported: %s",
                          cJSON_IsString(error) ? error->valuestring : "an error without text");
    }
    if (status != MSC_OK) {
        cJSON_Delete(parsed);
        return status;
    }
    *answer = parsed;
    return MSC_OK;
}

static bool is_started(const struct msc_process *process) {
    return process && process->pid > 0;
}

static void free_process(struct msc_process *process) {
    if (process && process->output >= 0) {
        close(process->output);
    }
    if (process) {
        msc_free(process->buffer);
        msc_free(process->name);
    }
    msc_free(process);
}

void msc_process__leave(struct msc_process *process) {
    if (process->input >= 0) {
        close(process->input);
    }
    waitpid(process->pid, NULL, WNOHANG);
    free_process(process);
}

void msc_process_stop_all(struct msc_process *const processes[], size_t n, double grace_s) {
    for (size_t i = 0; i < n; i++) {
        if (processes[i] && processes[i]->input >= 0) {
            close(processes[i]->input);
        }
    }
    double deadline_s = msc_clock_seconds() + grace_s;
    for (size_t i = 0; i < n; i++) {
        if (is_started(processes[i])) {
            msc_process__has_ended(processes[i], deadline_s);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (is_started(processes[i])) {
            kill(-processes[i]->pid, SIGTERM);
        }
    }
    deadline_s = msc_clock_seconds() + TERM_GRACE_S;
    for (size_t i = 0; i < n; i++) {
        if (is_started(processes[i])) {
            end_group(processes[i], deadline_s);
        }
        free_process(processes[i]);
    }
}

void msc_process_stop(struct msc_process *process, double grace_s) {
    msc_process_stop_all(&process, 1, grace_s);
}

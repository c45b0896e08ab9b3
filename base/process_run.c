// Runs programs without input until they end.
#include "base/process_internal.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"

#include <string.h>
#include <unistd.h>

extern char **environ;

// Stores the line, trimmed, in `last` unless the line is blank.
static void keep_line(struct msc_str *last, const char *line, size_t length) {
    static const char blanks[] = " \t\r\v\f";
    while (length > 0 && strchr(blanks, line[length - 1])) {
        length--;
    }
    while (length > 0 && strchr(blanks, line[0])) {
        line++;
        length--;
    }
    if (length > 0) {
        msc_str_clear(last);
        msc_str_append_n(last, line, length);
    }
}

static enum msc_status check_patience(const struct msc_process *process, const char *what,
                                      double deadline_s, double timeout_s) {
    bool is_late = msc_clock_seconds() >= deadline_s;
    if (!is_late && !msc_cancel_reached(process->cancel, process->cancel_level)) {
        return MSC_OK;
    }
    return msc_process__fail_waiting(process, is_late ? MSC_PROCESS_LATE : MSC_PROCESS_CANCELLED,
                                     what, timeout_s);
}

static enum msc_status process_finish(struct msc_process *process, struct msc_str *last,
                                      double timeout_s) {
    double deadline_s = msc_clock_seconds() + timeout_s;
    bool is_over = false;
    close(process->input);
    process->input = -1;
    while (!is_over) {
        size_t length;
        for (const char *line = msc_process__take_line(process, &length, 0); line;
             line = msc_process__take_line(process, &length, 0)) {
            keep_line(last, line, length);
        }
        MSC_TRY(msc_process__read_more(process, &is_over, deadline_s, timeout_s));
        MSC_TRY(is_over ? MSC_OK
                        : check_patience(process, "still writes output", deadline_s, timeout_s));
    }
    if (process->end > process->begin) { // a last line without a newline
        keep_line(last, process->buffer + process->begin, process->end - process->begin);
    }
    while (!msc_process__has_ended(process, msc_clock_seconds() + MSC_PROCESS_POLL_S)) {
        MSC_TRY(
            check_patience(process, "closed its output, but still runs", deadline_s, timeout_s));
    }
    return process->death.si_code != CLD_EXITED || process->death.si_status != 0
               ? msc_process__fail_ended(process)
               : MSC_OK;
}

// Callers treat the line as a C string, so it must not contain NUL.
static enum msc_status check_line(const struct msc_str *last, const char *name) {
    return msc_utf8_check(msc_str_text(last), last->length, "its last line") == MSC_OK
               ? MSC_OK
               : msc_status_prefix(MSC_E_STATE, "%s", name);
}

// If a program succeeded, its children may keep running; if it failed, they are ended.
static void run_end(struct msc_process *process, enum msc_status status) {
    if (status == MSC_OK) {
        msc_process__leave(process);
    } else {
        msc_process_stop(process, 0.0);
    }
}

enum msc_status msc_process_run(struct msc_str *last, const char *const argv[], const char *folder,
                                double timeout_s, const struct msc_cancel *cancel, int level) {
    struct msc_process *process = NULL;
    msc_str_clear(last);
    MSC_TRY(msc_process_start(&process, argv, folder));
    msc_process_set_cancel(process, cancel, level);
    enum msc_status status = process_finish(process, last, timeout_s);
    if (status == MSC_OK && last->length == 0 && !last->failed) {
        status = MSC_FAIL(MSC_E_STATE, "%s: wrote nothing to its standard output", argv[0]);
    }
    status = status == MSC_OK ? msc_str_status(last) : status;
    if (status == MSC_OK) {
        status = check_line(last, argv[0]);
    }
    run_end(process, status);
    return status == MSC_E_IO ? MSC_FAIL(MSC_E_STATE, "%s", msc_status_message()) : status;
}

// `more` followed by the caller's environment. Of several entries with one name, the first is
// valid.
static char **join_environment(const char *const more[], struct msc_arena *arena) {
    size_t n_more = 0;
    size_t n_ours = 0;
    while (more[n_more]) {
        n_more++;
    }
    while (environ && environ[n_ours]) {
        n_ours++;
    }
    char **joined = msc_arena_array(arena, n_more + n_ours + 1, sizeof *joined);
    for (size_t i = 0; joined && i < n_more; i++) {
        joined[i] = msc_arena_strdup(arena, more[i]);
        joined = joined[i] ? joined : NULL;
    }
    for (size_t i = 0; joined && i < n_ours; i++) {
        joined[n_more + i] = environ[i];
    }
    return joined;
}

enum msc_status msc_process_call(const char *const argv[], const char *const environment[],
                                 double timeout_s, const struct msc_cancel *cancel, int level) {
    struct msc_process *process = NULL;
    struct msc_arena arena = {0};
    struct msc_str last = {0};
    char **joined = join_environment(environment, &arena);
    enum msc_status status = joined ? msc_process__start(&process, argv, NULL, joined, SIGKILL)
                                    : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", argv[0]);
    if (status == MSC_OK) {
        msc_process_set_cancel(process, cancel, level);
        status = process_finish(process, &last, timeout_s);
        run_end(process, status);
    }
    msc_str_finish(&last);
    msc_arena_finish(&arena);
    return status;
}

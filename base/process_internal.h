// Internal to base/: shared by process.c and process_run.c.
#ifndef MSC_BASE_PROCESS_INTERNAL_H
#define MSC_BASE_PROCESS_INTERNAL_H

#include "base/process.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

// Interval between checks whether the program has ended or a stop was requested.
#define MSC_PROCESS_POLL_S 0.1

struct msc_process {
    // Id of the process and of its group; -1: not started. Only msc_process_stop reaps the process,
    // so the id is not reused until then.
    pid_t pid;
    siginfo_t death;                 // how the process ended, valid once it has ended
    int input;                       // the program's input, written here
    int output;                      // the program's output, read here
    const struct msc_cancel *cancel; // NULL: waits cannot be cancelled
    int cancel_level;
    char *name;
    char *buffer;
    size_t capacity;
    size_t begin; // [begin, end) in `buffer`: bytes read but not yet returned
    size_t end;
    double next_look_s; // time of the next check whether the program still runs
    bool is_at_end;     // the process has ended
    size_t n_left;      // unread bytes of its output when it ended
};

enum msc_process_waited {
    MSC_PROCESS_READY,
    MSC_PROCESS_LATE,
    MSC_PROCESS_CANCELLED,
};

// Like msc_process_start. `environment` NULL: the caller's. The child gets `death_signal` when the
// starting thread ends.
enum msc_status msc_process__start(struct msc_process **out, const char *const argv[],
                                   const char *folder, char *const environment[], int death_signal);
// The next complete line of the bytes read so far, without its newline; NULL if no line is
// complete. The first n_seen bytes are known to have no newline.
char *msc_process__take_line(struct msc_process *process, size_t *length, size_t n_seen);
// Waits for more bytes. *is_over: the output has ended.
enum msc_status msc_process__read_more(struct msc_process *process, bool *is_over,
                                       double deadline_s, double timeout_s);
// False if the process still runs at the deadline. Otherwise stores how it ended. The process is
// not reaped, so its id is not reused.
bool msc_process__has_ended(struct msc_process *process, double deadline_s);
// Frees a program that has ended; its children keep running.
void msc_process__leave(struct msc_process *process);
enum msc_status msc_process__fail_ended(struct msc_process *process);
enum msc_status msc_process__fail_waiting(const struct msc_process *process,
                                          enum msc_process_waited waited, const char *what,
                                          double timeout_s);

#endif

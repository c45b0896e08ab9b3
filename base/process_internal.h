// What the files of processes share.
#ifndef MSC_BASE_PROCESS_INTERNAL_H
#define MSC_BASE_PROCESS_INTERNAL_H

#include "base/process.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

// Between looks at whether the program still runs, and somebody wants us to stop.
#define MSC_PROCESS_POLL_S 0.1

struct msc_process {
    // Also of its group. Waited for only by msc_process_stop, so that until then nobody else can
    // have the number. -1: not started
    pid_t pid;
    siginfo_t death;                 // how it ended, once it has
    int input;                       // we write
    int output;                      // we read
    const struct msc_cancel *cancel; // NULL: nobody can stop a wait
    int cancel_level;
    char *name;
    char *buffer;
    size_t capacity;
    size_t begin; // of what was read and not yet handed out
    size_t end;
    double next_look_s; // at whether it still runs
    bool is_at_end;     // it has ended
    size_t n_left;      // bytes of its output that count then and are not yet read
};

enum msc_process_waited {
    MSC_PROCESS_READY,
    MSC_PROCESS_LATE,
    MSC_PROCESS_CANCELLED,
};

// As msc_process_start; `environment` NULL: ours. `death_signal` is sent to it when we end.
enum msc_status msc_process__start(struct msc_process **out, const char *const argv[],
                                   const char *folder, char *const environment[], int death_signal);
// The next complete line of what was read, of which n_seen bytes have no newline; *length without its
// own. NULL: there is none.
char *msc_process__take_line(struct msc_process *process, size_t *length, size_t n_seen);
// Reads more. *is_over: it has ended or closed its output, and there is no more.
enum msc_status msc_process__read_more(struct msc_process *process, bool *is_over,
                                       double deadline_s, double timeout_s);
// Keeps how it ended; its number stays taken.
bool msc_process__has_ended(struct msc_process *process, double deadline_s);
// Frees one that has ended, and leaves alone what it has started.
void msc_process__leave(struct msc_process *process);
enum msc_status msc_process__fail_ended(struct msc_process *process);
enum msc_status msc_process__fail_waiting(const struct msc_process *process,
                                          enum msc_process_waited waited, const char *what,
                                          double timeout_s);

#endif

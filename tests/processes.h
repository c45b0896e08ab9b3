// Helpers for tests that watch processes which are not their children.
#ifndef MSC_TESTS_PROCESSES_H
#define MSC_TESTS_PROCESSES_H

#include "tests/msc_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#define PROCESSES_PATIENCE_MS 20000

static inline void sleep_ms(int ms) {
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

// The letter by which Linux names the process's state in /proc, such as S, or Z for a zombie.
// Returns 0 if there is no such process.
static inline char process_state(pid_t pid) {
    char path[64];
    char state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            state = 0;
        }
        fclose(file);
    }
    return state;
}

// Returns whether the process runs. A zombie, which has ended but was not waited for, does not run.
static inline bool process_runs(pid_t pid) {
    char state = process_state(pid);
    return state != 0 && state != 'Z' && state != 'X';
}

static inline void assert_process_ends(pid_t pid) {
    for (int i = 0; i < PROCESSES_PATIENCE_MS / 10 && process_runs(pid); i++) {
        sleep_ms(10);
    }
    assert_false(process_runs(pid));
}

// Waits until a program has written its process id to the file, and returns the id.
static inline pid_t process_noted(const char *path) {
    int pid = 0;
    for (int i = 0; i < PROCESSES_PATIENCE_MS / 10 && pid == 0; i++) {
        FILE *file = fopen(path, "r");
        char newline = 0;
        if (!file || fscanf(file, "%d%c", &pid, &newline) != 2) {
            pid = 0;
            sleep_ms(10);
        }
        if (file) {
            fclose(file);
        }
    }
    assert_true(pid > 0);
    return pid;
}

#endif

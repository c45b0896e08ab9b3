#include "supervise/process_session.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Time that processes get to end after SIGTERM, and again after SIGKILL; and the polling interval.
#define GRACE_NS 1000000000
#define POLL_NS 5000000

// Zombie processes do not count as alive.
static bool lives_in_session(pid_t pid, pid_t session) {
    char path[64];
    char text[512];
    char state;
    int its_session;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')'); // the last ')': the name may contain any characters
    return name_end && sscanf(name_end + 1, " %c %*d %*d %d", &state, &its_session) == 2 &&
           its_session == session && state != 'Z' && state != 'X';
}

// Sends a signal to all processes of a session. False: the session has no processes.
static bool signal_session(pid_t session, int signal_number) {
    bool is_anybody = false;
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
        if (pid > 0 && lives_in_session(pid, session)) {
            kill(pid, signal_number);
            is_anybody = true;
        }
    }
    if (folder) {
        closedir(folder);
    }
    return is_anybody;
}

void msc_session_end(pid_t session) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    uint64_t begin_ns = msc_clock_ns();
    bool is_anybody = signal_session(session, SIGTERM);
    while (is_anybody && msc_clock_ns() - begin_ns < GRACE_NS) {
        nanosleep(&pause, NULL);
        is_anybody = signal_session(session, 0);
    }
    while (is_anybody && msc_clock_ns() - begin_ns < 2 * GRACE_NS) {
        is_anybody = signal_session(session, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

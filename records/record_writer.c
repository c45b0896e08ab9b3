#include "records/record_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_DESCRIPTORS 4096

// True if the process has this file open. Also true if that cannot be determined, because only the
// user who runs a process may read the list of its open files. Some file systems list a different
// device for a lock, so the file is compared through /proc/PID/fd.
static bool may_have_open(long process, const struct stat *file) {
    bool is_told = false;
    for (int i = 0; i < MOST_DESCRIPTORS; i++) {
        char path[64];
        struct stat open_file;
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, i);
        if (stat(path, &open_file) == 0) {
            is_told = true;
            if (open_file.st_dev == file->st_dev && open_file.st_ino == file->st_ino) {
                return true;
            }
        }
    }
    return !is_told;
}

static size_t count_threads(long process) {
    char line[256];
    size_t n = 0;
    snprintf(line, sizeof line, "/proc/%ld/status", process);
    FILE *file = fopen(line, "re");
    while (file && n == 0 && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "Threads: %zu", &n);
    }
    if (file) {
        fclose(file);
    }
    return n;
}

// The start time of a process is field 22, in ticks since boot. It follows the name, which may
// contain any character.
static double seconds_run(long process) {
    char text[1024];
    unsigned long long begin = 0;
    struct timespec now;
    snprintf(text, sizeof text, "/proc/%ld/stat", process);
    FILE *file = fopen(text, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file) {
        fclose(file);
    }
    const char *behind = strrchr(text, ')');
    bool is_told = behind && sscanf(behind + 1,
                                    "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                    "%*s %*s %*s %*s %llu",
                                    &begin) == 1;
    if (!is_told || clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
        return NAN;
    }
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
           (double)begin / (double)sysconf(_SC_CLK_TCK);
}

// A line is "1: FLOCK  ADVISORY  WRITE 1234 00:1b:5678 0 EOF"; the line of a waiting process has
// "->" after "1:".
static bool read_lock(long *process, unsigned long *inode, const char *line) {
    char mode[16];
    return sscanf(line, "%*d: FLOCK %*s %15s %ld %*x:%*x:%lu", mode, process, inode) == 3 &&
           strcmp(mode, "WRITE") == 0;
}

void msc_record_find_writer(struct msc_record_writer *out, const char *path) {
    struct stat file;
    char line[256];
    FILE *locks = fopen("/proc/locks", "re");
    *out = (struct msc_record_writer){
        .is_written = locks ? MSC_RECORD_WRITTEN_NO : MSC_RECORD_WRITTEN_UNKNOWN, .run_s = NAN};
    bool is_there = stat(path, &file) == 0;
    while (locks && is_there && out->is_written == MSC_RECORD_WRITTEN_NO &&
           fgets(line, sizeof line, locks)) {
        long process = 0;
        unsigned long inode = 0;
        if (read_lock(&process, &inode, line) && inode == (unsigned long)file.st_ino &&
            may_have_open(process, &file)) {
            out->is_written = MSC_RECORD_WRITTEN_YES;
            out->process = process > 0 ? process : 0;
            out->n_threads = process > 0 ? count_threads(process) : 0;
            out->run_s = process > 0 ? seconds_run(process) : NAN;
        }
    }
    if (locks) {
        fclose(locks);
    }
}

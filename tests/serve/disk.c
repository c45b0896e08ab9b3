// Preloaded (LD_PRELOAD) into `mscgym serve`: makes calls slow, or lets them fail, as the file
// MSC_DISK_RULES says when the call is made. Each line of it is a rule:
//
//     CALL TEXT MILLISECONDS ERRNO
//
// A call (open, opendir, fsync or fork) whose path contains the text waits, and fails if the
// number of the error is not 0. A fork has the path "-". Only the server is concerned, not its
// searches.
#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t read_all(const char *path, char *text, size_t most) {
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, text, most - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (file >= 0) {
        close(file);
    }
    return n > 0 ? (size_t)n : 0;
}

static int is_server(void) {
    char words[4096];
    read_all("/proc/self/cmdline", words, sizeof words);
    return strcmp(words + strlen(words) + 1, "serve") == 0;
}

// Follows the rules for a call: returns 0, or -1 with errno if the call must fail.
static int follow_rules(const char *call, const char *path) {
    const char *rules = getenv("MSC_DISK_RULES");
    char text[1024], of_call[16], part[256], *rest = NULL;
    int wait_ms = 0, error = 0, found = 0;
    if (!rules || !is_server()) {
        return 0;
    }
    read_all(rules, text, sizeof text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%15s %255s %d %d", of_call, part, &wait_ms, &error) == 4 &&
            strcmp(of_call, call) == 0 && strstr(path, part)) {
            usleep((useconds_t)wait_ms * 1000);
            found = error != 0 ? error : found;
        }
    }
    errno = found != 0 ? found : errno;
    return found != 0 ? -1 : 0;
}

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

static mode_t mode_of(int flags, va_list list) {
    return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    return follow_rules("open", path) != 0 ? -1
                                           : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int file = open_at(AT_FDCWD, path, flags, mode_of(flags, list));
    va_end(list);
    return file;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int file = open_at(folder, path, flags, mode_of(flags, list));
    va_end(list);
    return file;
}

DIR *opendir(const char *path) {
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) real("opendir");
    return follow_rules("opendir", path) != 0 ? NULL : next(path);
}

int fsync(int file) {
    char link[64], path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return follow_rules("fsync", path) != 0 ? -1 : (int)syscall(SYS_fsync, file);
}

pid_t fork(void) {
    pid_t (*next)(void) = (pid_t(*)(void))real("fork");
    return follow_rules("fork", "-") != 0 ? -1 : next();
}

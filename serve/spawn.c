#include "serve/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define KEPT_AS 3
// Descriptors of the server are below this number, because its connections are limited.
#define DESCRIPTOR_LIMIT 4096

extern char **environ;

// Between fork and exec only async-signal-safe calls are allowed.
static void become_program(const struct msc_spawn *spawn, const int files[3], pid_t parent) {
    // exec does not change its arguments, although they are not declared const.
    union {
        const char *const *given;
        char *const *wanted;
    } arguments = {.given = spawn->argv};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(126);
    }
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    for (int i = 0; i < 3; i++) {
        dup2(files[i], i);
    }
    dup2(spawn->kept, KEPT_AS); // the copy is not closed on exec
    for (int i = KEPT_AS + 1; i < DESCRIPTOR_LIMIT; i++) {
        close(i);
    }
    execve(spawn->argv[0], arguments.wanted, environ);
    _exit(127);
}

// Opens files above the descriptors that they become.
static int open_above(int folder, const char *name, int flags) {
    int descriptor = openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, 0666);
    int above = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, KEPT_AS + 1) : -1;
    if (descriptor >= 0) {
        close(descriptor);
    }
    return above;
}

static void close_all(const int files[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (files[i] >= 0) {
            close(files[i]);
        }
    }
}

enum msc_status msc_spawn_status(int error) {
    switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
        return MSC_E_NOMEM;
    default:
        return MSC_E_IO;
    }
}

enum msc_status msc_spawn(pid_t *out, const struct msc_spawn *spawn) {
    enum msc_status status = MSC_OK;
    int folder = open(spawn->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int files[4] = {
        open_above(AT_FDCWD, "/dev/null", O_RDONLY),
        folder < 0 ? -1 : open_above(folder, spawn->output, O_WRONLY | O_CREAT | O_TRUNC),
        folder < 0 ? -1 : open_above(folder, spawn->log, O_WRONLY | O_CREAT | O_APPEND),
        folder,
    };
    int error = errno; // of the last one that failed
    pid_t parent = getpid();
    if (folder < 0 || files[0] < 0 || files[1] < 0 || files[2] < 0) {
        status =
            MSC_FAIL(msc_spawn_status(error), "cannot open the job's files: %s", strerror(error));
    }
    pid_t pid = status == MSC_OK ? fork() : -1;
    if (pid == 0) {
        if (fchdir(folder) != 0) {
            _exit(126);
        }
        become_program(spawn, files, parent);
    }
    if (status == MSC_OK && pid < 0) {
        status =
            MSC_FAIL(msc_spawn_status(errno), "the search cannot be started: %s", strerror(errno));
    }
    close_all(files, 4);
    *out = pid;
    return status;
}

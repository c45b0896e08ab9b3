// Starts a program that writes to files, for a server with several threads.
//
// The program is in a process group of its own. It is killed when the thread that started it ends,
// so also when the server is killed. The caller waits for it by waitpid.
#ifndef MSC_SERVE_SPAWN_H
#define MSC_SERVE_SPAWN_H

#include "base/status.h"

#include <sys/types.h>

struct msc_spawn {
    const char *const *argv; // NULL-terminated; argv[0] is a path
    const char *folder;      // where it runs
    const char *output;      // file for its standard output, begun anew; relative to `folder`
    const char *log;         // file to which its standard error is appended; relative to `folder`
    // A descriptor that the program and its own children inherit, such as a lock. All others are
    // closed.
    int kept;
};

// MSC_E_IO: a file cannot be opened, or the system starts no process. MSC_E_NOMEM: likewise,
// because the machine has no room for it now. If the program itself cannot be executed, it ends
// with exit code 127.
enum msc_status msc_spawn(pid_t *out, const struct msc_spawn *spawn);
// The status for an error of the system: MSC_E_NOMEM if it may go away by itself, else MSC_E_IO.
enum msc_status msc_spawn_status(int error);

#endif

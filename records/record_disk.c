// The file of a record: opens it with its lock, writes to it, and reports failures.
// POSIX does not define flock.
#define _DEFAULT_SOURCE

#include "records/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum msc_status msc_record__fail_system(const char *what, const char *path, int error) {
    char reason[128];
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", error);
    }
    return MSC_FAIL(error == ENOENT ? MSC_E_NOT_FOUND : MSC_E_IO, "%s: cannot %s: %s", path, what,
                    reason);
}

// Opens the path again if the file was renamed while this process waited for the lock.
enum msc_status msc_record__open_locked(int *out, const char *path, int flags) {
    for (;;) {
        struct stat held;
        struct stat named;
        int descriptor = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
        if (descriptor < 0) {
            return msc_record__fail_system("open the record for writing", path, errno);
        }
        if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
            int error = errno;
            close(descriptor);
            if (error == EWOULDBLOCK) {
                return MSC_FAIL(MSC_E_STATE,
                                "%s: another process is writing this record (it holds the lock); "
                                "wait for it or stop it",
                                path);
            }
            return msc_record__fail_system("lock the record", path, error);
        }
        if (fstat(descriptor, &held) == 0 && stat(path, &named) == 0 &&
            held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
            if (!S_ISREG(held.st_mode)) {
                close(descriptor);
                return MSC_FAIL(MSC_E_IO, "%s: a record must be a regular file", path);
            }
            *out = descriptor;
            return MSC_OK;
        }
        close(descriptor);
    }
}

enum msc_status msc_record__write_at(int descriptor, const char *data, size_t n_bytes,
                                     uint64_t offset, const char *path) {
    while (n_bytes > 0) {
        ssize_t n = pwrite(descriptor, data, n_bytes, (off_t)offset);
        if (n < 0 && errno != EINTR) {
            return msc_record__fail_system("write the record", path, errno);
        }
        if (n > 0) {
            data += n;
            n_bytes -= (size_t)n;
            offset += (uint64_t)n;
        }
    }
    if (fdatasync(descriptor) != 0) {
        return msc_record__fail_system("write the record to its disk", path, errno);
    }
    return MSC_OK;
}

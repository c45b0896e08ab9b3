#include "pipeline/log_file.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct msc_log_file {
    int descriptor;
    const struct msc_log *next;
    struct msc_log log;
    struct msc_log alone;
};

// A line that cannot be written (full disk, full pipe) is lost, since only the record matters. No
// memory is allocated, so that running out of memory can be logged.
static void log_file_append(void *payload, enum msc_log_level level, const char *line) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const struct msc_log_file *file = payload;
    char when[MSC_CLOCK_TEXT_BYTES];
    msc_clock_format(when, msc_clock_wall_seconds());
    if (file->descriptor >= 0) {
        const char *const parts[] = {when, " ", names[level], ": ", line, "\n"};
        struct iovec pieces[sizeof parts / sizeof parts[0]];
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            pieces[i] = (struct iovec){.iov_base = (char *)parts[i], .iov_len = strlen(parts[i])};
        }
        ssize_t n = writev(file->descriptor, pieces, sizeof parts / sizeof parts[0]);
        (void)n;
    }
}

static void log_file_write(void *payload, enum msc_log_level level, const char *line) {
    const struct msc_log_file *file = payload;
    log_file_append(payload, level, line);
    if (file->next && file->next->write && level <= file->next->level) {
        file->next->write(file->next->payload, level, line);
    }
}

enum msc_status msc_log_file_open(struct msc_log_file **out, const char *path,
                                  enum msc_log_level level, const struct msc_log *next) {
    struct msc_log_file *file = msc_alloc_zero(1, sizeof *file);
    MSC_TRY(MSC_ALLOCATED(file));
    // O_NONBLOCK: if the path is a pipe, does not wait for a reader, because the search must go on.
    int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    file->descriptor = path ? open(path, how, 0644) : -1;
    if (path && file->descriptor < 0) {
        const char *why =
            errno == ENXIO ? "no process reads from this pipe; name a file" : strerror(errno);
        enum msc_status status =
            MSC_FAIL(MSC_E_IO, "%s: cannot write this log file: %s", path, why);
        msc_free(file);
        return status;
    }
    file->next = next;
    file->log.level = level;
    file->log.write = log_file_write;
    file->log.payload = file;
    file->alone = (struct msc_log){.level = level, .write = log_file_append, .payload = file};
    *out = file;
    return MSC_OK;
}

const struct msc_log *msc_log_file_log(const struct msc_log_file *file) {
    return &file->log;
}

const struct msc_log *msc_log_file_alone(const struct msc_log_file *file) {
    return &file->alone;
}

void msc_log_file_close(struct msc_log_file *file) {
    if (file) {
        if (file->descriptor >= 0) {
            close(file->descriptor);
        }
        msc_free(file);
    }
}

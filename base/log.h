// Messages go to a log, handed down by the caller: the library never prints by itself.
//
//     msc_log(log, MSC_LOG_INFO, "%zu sites, %zu tasks", n_sites, n_tasks);
//
// A NULL log is silent.
#ifndef MSC_BASE_LOG_H
#define MSC_BASE_LOG_H

#include "base/status.h"

MSC_PUBLIC_BEGIN

enum msc_log_level {
    MSC_LOG_ERROR,
    MSC_LOG_WARNING,
    MSC_LOG_INFO,
    MSC_LOG_DEBUG,
};

struct msc_log {
    enum msc_log_level level; // messages above it are dropped
    // One complete line without newline, safe to show (base/shown.h). May be called from several
    // threads.
    void (*write)(void *payload, enum msc_log_level level, const char *line);
    void *payload;
};

void msc_log(const struct msc_log *log, enum msc_log_level level, const char *format, ...)
    MSC_PRINTF(3, 4);

MSC_PUBLIC_END

#endif

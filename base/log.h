// Messages go to a log that the caller passes in; the library itself never prints.
//
//     msc_log(log, MSC_LOG_INFO, "%zu sites, %zu tasks", n_sites, n_tasks);
//
// A NULL log is silent.
#ifndef MSC_BASE_LOG_H
#define MSC_BASE_LOG_H

#include "base/status.h"

#include <stddef.h>

MSC_PUBLIC_BEGIN

enum msc_log_level {
    MSC_LOG_ERROR,
    MSC_LOG_WARNING,
    MSC_LOG_INFO,
    MSC_LOG_DEBUG,
};

// Names of levels in configurations and options. "runtime" means info, "critical" means error.
#define MSC_LOG_LEVEL_NAMES "debug|info|runtime|warn|warning|error|critical"
// The i-th of these names, and its level.
const char *msc_log_level_name(size_t i);
enum msc_log_level msc_log_level_at(size_t i);

struct msc_log {
    enum msc_log_level level; // messages above it are dropped
    // Receives one complete line without newline, safe to show (base/shown.h). May be called from
    // several threads.
    void (*write)(void *payload, enum msc_log_level level, const char *line);
    void *payload;
};

void msc_log(const struct msc_log *log, enum msc_log_level level, const char *format, ...)
    MSC_PRINTF(3, 4);

MSC_PUBLIC_END

#endif

#include "base/log.h"

#include "base/alloc.h"
#include "base/shown.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 512 // enough for most lines

// In the order of MSC_LOG_LEVEL_NAMES.
static const struct {
    const char *name;
    enum msc_log_level level;
} levels[] = {
    {"debug", MSC_LOG_DEBUG},    {"info", MSC_LOG_INFO},       {"runtime", MSC_LOG_INFO},
    {"warn", MSC_LOG_WARNING},   {"warning", MSC_LOG_WARNING}, {"error", MSC_LOG_ERROR},
    {"critical", MSC_LOG_ERROR},
};

const char *msc_log_level_name(size_t i) {
    return levels[i].name;
}

enum msc_log_level msc_log_level_at(size_t i) {
    return levels[i].level;
}

// Replaces line breaks in a message, because the receiver expects a single line.
static void join_lines(char *text, size_t length) {
    while (length > 0 && text[length - 1] == '\n') {
        text[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            text[i] = ' ';
        }
    }
}

// If memory is short, the beginning of the message is still written.
static void write_shown(const struct msc_log *log, enum msc_log_level level, const char *line) {
    char buffer[LINE_BYTES];
    size_t length = msc_shown_copy(buffer, sizeof buffer, line);
    char *longer = length < sizeof buffer ? NULL : msc_alloc(length + 1);
    if (longer) {
        msc_shown_copy(longer, length + 1, line);
    }
    log->write(log->payload, level, longer ? longer : buffer);
    msc_free(longer);
}

void msc_log(const struct msc_log *log, enum msc_log_level level, const char *format, ...) {
    if (!log || !log->write || level > log->level) {
        return;
    }
    char buffer[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (n < 0) {
        return;
    }
    char *line = buffer;
    size_t length = (size_t)n;
    char *longer = length < sizeof buffer ? NULL : msc_alloc(length + 1);
    if (longer) {
        va_start(arguments, format);
        vsnprintf(longer, length + 1, format, arguments);
        va_end(arguments);
        line = longer;
    } else if (length >= sizeof buffer) {
        length = sizeof buffer - 1;
    }
    join_lines(line, length);
    write_shown(log, level, line);
    msc_free(longer);
}

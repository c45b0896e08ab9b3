#include "base/log.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>

// The receiver writes lines; a message that came in several is made one.
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

void msc_log(const struct msc_log *log, enum msc_log_level level, const char *format, ...) {
    if (!log || !log->write || level > log->level) {
        return;
    }
    char buffer[512];
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
        length = sizeof buffer - 1; // without memory the beginning is better than silence
    }
    join_lines(line, length);
    log->write(log->payload, level, line);
    msc_free(longer);
}

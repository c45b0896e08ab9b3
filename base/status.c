#include "base/status.h"

#include "base/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 2048
#define WHERE_BYTES 256

// The message must survive the return through any number of callers, so each thread has its own.
static _Thread_local char message_text[MESSAGE_BYTES];
static _Thread_local char where_text[WHERE_BYTES];

// Makes the message safe to show, because it may quote the contents of files.
static void set_message(const char text[MESSAGE_BYTES]) {
    msc_shown_copy(message_text, MESSAGE_BYTES, text);
}

enum msc_status msc_status_fail(enum msc_status status, const char *file, int line,
                                const char *format, ...) {
    // The arguments may include the current message, so the new one is built in a separate
    // buffer.
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set_message(text);
    snprintf(where_text, sizeof where_text, "%s:%d", file, line);
    return status;
}

enum msc_status msc_status_prefix(enum msc_status status, const char *format, ...) {
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n >= 0 && (size_t)n < sizeof text) {
        // Only the end of a message that is longer than the buffer is lost, and the end is least
        // important.
        size_t left = sizeof text - (size_t)n;
        if (snprintf(text + n, left, ": %s", message_text) < 0) {
            text[n] = '\0';
        }
    }
    set_message(text);
    return status;
}

const char *msc_status_message(void) {
    return message_text;
}

const char *msc_status_where(void) {
    return where_text;
}

enum msc_status msc_status_restore(enum msc_status status, const char *message) {
    if (message != message_text) {
        msc_shown_copy(message_text, sizeof message_text, message ? message : "");
    }
    return status;
}

const char *msc_status_name(enum msc_status status) {
    static const char *const names[] = {
        "ok",           "invalid", "out of memory", "input/output", "format",      "unsupported",
        "device error", "state",   "not found",     "cancelled",    "device lost",
    };
    int index = -(int)status;
    if (index < 0 || (size_t)index >= sizeof names / sizeof names[0]) {
        return "unknown status";
    }
    return names[index];
}

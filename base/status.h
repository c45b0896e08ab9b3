// Status codes and error text.
//
// Every fallible function returns `enum msc_status`: 0 is success, everything else negative. The
// failing site sets a message of one line: the object, what was expected and what was found.
// Callers forward the status unchanged:
//
//     if (n != 64) {
//         return MSC_FAIL(MSC_E_FORMAT, "%s: header is %zu bytes, expected 64", path, n);
//     }
//     MSC_TRY(msc_file_read(&text, &n_bytes, path));
//
// The message belongs to the calling thread and is valid until that thread's next failure. It is
// safe to show even if it quotes names from outside (base/shown.h).
#ifndef MSC_BASE_STATUS_H
#define MSC_BASE_STATUS_H

#include "base/public.h"

MSC_PUBLIC_BEGIN

enum msc_status {
    MSC_OK = 0,
    MSC_E_INVALID = -1,     // the caller's argument or configuration is wrong
    MSC_E_NOMEM = -2,       // out of memory, or over the memory budget
    MSC_E_IO = -3,          // the operating system refused to read or write
    MSC_E_FORMAT = -4,      // a file is damaged or not of its format
    MSC_E_UNSUPPORTED = -5, // well formed, but not supported by this build
    MSC_E_DEVICE = -6,      // a compute device failed or is absent
    MSC_E_STATE = -7,       // called in the wrong order, or a file belongs to something else
    MSC_E_NOT_FOUND = -8,   // a name or file does not exist
    MSC_E_CANCELLED = -9,   // stopped on request
    MSC_E_LOST = -10,       // a compute device is gone with all its data, until it is reopened
};

#if defined(__GNUC__)
#define MSC_PRINTF(format_index, first_argument)                                                   \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define MSC_PRINTF(format_index, first_argument)
#endif

// Sets the calling thread's message and source position; returns `status` for use in a return
// statement.
enum msc_status msc_status_fail(enum msc_status status, const char *file, int line,
                                const char *format, ...) MSC_PRINTF(4, 5);

// Puts text before the current message: "context: text". For callers that know the file name.
enum msc_status msc_status_prefix(enum msc_status status, const char *format, ...) MSC_PRINTF(2, 3);

// The calling thread's last message, never NULL. Borrowed until that thread's next failure.
const char *msc_status_message(void);

// The source position of the last failure, "file:line", for debug logs. Borrowed until that
// thread's next failure.
const char *msc_status_where(void);

// Sets the calling thread's message to another thread's, to forward a worker's failure.
enum msc_status msc_status_restore(enum msc_status status, const char *message);

// "ok", "invalid", "out of memory", ...
const char *msc_status_name(enum msc_status status);

#define MSC_FAIL(status, ...) msc_status_fail((status), __FILE__, __LINE__, __VA_ARGS__)

#define MSC_TRY(call)                                                                              \
    do {                                                                                           \
        enum msc_status msc_try_status = (call);                                                   \
        if (msc_try_status != MSC_OK) {                                                            \
            return msc_try_status;                                                                 \
        }                                                                                          \
    } while (0)

// Like MSC_TRY, for functions that hold resources: sets the local `status` and jumps to `out`.
#define MSC_TRY_OUT(call)                                                                          \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != MSC_OK) {                                                                    \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

MSC_PUBLIC_END

#endif

// A request to stop, set by a signal handler or another thread and polled by long work.
#ifndef MSC_BASE_CANCEL_H
#define MSC_BASE_CANCEL_H

#include <signal.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// 0: go on. 1: finish what has begun, then stop. 2: stop at once. Only ever grows.
struct msc_cancel {
    volatile sig_atomic_t level;
};

// NULL means that nobody can cancel.
static inline bool msc_cancel_soon(const struct msc_cancel *cancel) {
    return cancel && cancel->level >= 1;
}
static inline bool msc_cancel_now(const struct msc_cancel *cancel) {
    return cancel && cancel->level >= 2;
}

#ifdef __cplusplus
}
#endif

#endif

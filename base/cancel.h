// A request to stop. A signal handler or another thread sets it; long-running work polls it.
#ifndef MSC_BASE_CANCEL_H
#define MSC_BASE_CANCEL_H

#include "base/public.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// Level 0: continue. 1: finish the current work, then stop. 2: stop at once. The level never
// decreases.
struct msc_cancel {
    volatile sig_atomic_t level;
    // Incremented by every poll, so that a watchdog can see progress. NULL if there is no
    // watchdog.
    uint64_t *beats;
};

// Raises the request; safe from any thread and in signal handlers.
static inline void msc_cancel_raise(struct msc_cancel *cancel, int level) {
    __atomic_store_n(&cancel->level, level, __ATOMIC_RELAXED);
}

// Signals progress without polling, for long work that cannot stop. Beats of several threads at the
// same time may count as one.
static inline void msc_cancel_beat(const struct msc_cancel *cancel) {
    if (cancel && cancel->beats) {
        uint64_t n = __atomic_load_n(cancel->beats, __ATOMIC_RELAXED);
        __atomic_store_n(cancel->beats, n + 1, __ATOMIC_RELAXED);
    }
}

// Poll the request; each poll is a beat. NULL means that nobody can cancel.
static inline bool msc_cancel_soon(const struct msc_cancel *cancel) {
    msc_cancel_beat(cancel);
    return cancel && __atomic_load_n(&cancel->level, __ATOMIC_RELAXED) >= 1;
}
static inline bool msc_cancel_now(const struct msc_cancel *cancel) {
    msc_cancel_beat(cancel);
    return cancel && __atomic_load_n(&cancel->level, __ATOMIC_RELAXED) >= 2;
}

static inline bool msc_cancel_reached(const struct msc_cancel *cancel, int level) {
    return level > 1 ? msc_cancel_now(cancel) : msc_cancel_soon(cancel);
}

MSC_PUBLIC_END

#endif

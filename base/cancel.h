// A request to stop, set by a signal handler or another thread and polled by long work.
#ifndef MSC_BASE_CANCEL_H
#define MSC_BASE_CANCEL_H

#include "base/public.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// 0: go on. 1: finish what has begun, then stop. 2: stop at once. Only ever grows.
struct msc_cancel {
    volatile sig_atomic_t level;
    // Moves on with every poll: a sign of life for whoever watches. NULL: nobody does.
    uint64_t *beats;
};

// Raises the request; safe from any thread and in signal handlers.
static inline void msc_cancel_raise(struct msc_cancel *cancel, int level) {
    __atomic_store_n(&cancel->level, level, __ATOMIC_RELAXED);
}

// What takes long and cannot stop says so that it lives. Beats of several threads may be one.
static inline void msc_cancel_beat(const struct msc_cancel *cancel) {
    if (cancel && cancel->beats) {
        uint64_t n = __atomic_load_n(cancel->beats, __ATOMIC_RELAXED);
        __atomic_store_n(cancel->beats, n + 1, __ATOMIC_RELAXED);
    }
}

// Polls, which are beats. NULL means that nobody can cancel.
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

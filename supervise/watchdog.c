#include "supervise/watchdog.h"

#include "supervise/worker_page.h"

// The parent looks ten times a second. A gap longer than this means that the parent was stopped.
#define LONGEST_GAP_NS 2000000000
#define MEDIAN_TRIALS 100

// The median of trial times, rounded up to a power of two; 0 without trials.
static uint64_t median_ns(const struct msc_worker_page *page) {
    uint64_t counts[MSC_WORKER_MAGNITUDES];
    uint64_t n = 0;
    for (int i = 0; i < MSC_WORKER_MAGNITUDES; i++) {
        counts[i] = atomic_load(&page->trials[i]);
        n += counts[i];
    }
    uint64_t n_below = 0;
    for (int i = 0; n > 0 && i < MSC_WORKER_MAGNITUDES - 1; i++) {
        n_below += counts[i];
        if (2 * n_below >= n) {
            return (uint64_t)1 << (i + 1);
        }
    }
    return 0;
}

uint64_t msc_watchdog_limit_ns(const struct msc_worker_page *page) {
    uint64_t limit_ns = atomic_load(&page->quiet_ns);
    uint64_t trial_ns = median_ns(page);
    if (limit_ns == 0 || trial_ns <= limit_ns / MEDIAN_TRIALS) {
        return limit_ns;
    }
    return trial_ns < UINT64_MAX / MEDIAN_TRIALS ? trial_ns * MEDIAN_TRIALS : UINT64_MAX;
}

void msc_watchdog_begin(struct msc_watchdog *watchdog, const struct msc_worker_page *page,
                        uint64_t now_ns) {
    *watchdog = (struct msc_watchdog){
        .last_ns = now_ns,
        .beats = __atomic_load_n(&page->beats, __ATOMIC_RELAXED),
    };
}

bool msc_watchdog_look(struct msc_watchdog *watchdog, struct msc_worker_page *page,
                       uint64_t now_ns) {
    uint64_t gap_ns = now_ns - watchdog->last_ns;
    uint64_t beats = __atomic_load_n(&page->beats, __ATOMIC_RELAXED);
    watchdog->last_ns = now_ns;
    if (gap_ns > LONGEST_GAP_NS) {
        uint64_t deadline_ns = atomic_load(&page->deadline_ns);
        if (deadline_ns > 0) {
            atomic_compare_exchange_strong(&page->deadline_ns, &deadline_ns, deadline_ns + gap_ns);
        }
        gap_ns = 0;
    }
    watchdog->quiet_ns = beats == watchdog->beats ? watchdog->quiet_ns + gap_ns : 0;
    watchdog->beats = beats;
    uint64_t limit_ns = msc_watchdog_limit_ns(page);
    return limit_ns > 0 && watchdog->quiet_ns > limit_ns;
}

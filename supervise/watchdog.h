// Detects a hung worker. The parent looks at regular intervals and sums up the time since the
// worker's last beat (base/cancel.h). A long gap between two looks does not count: the parent
// itself was stopped, or the machine was suspended.
//
// A worker counts as hung after the limit that it set (msc_worker_set_quiet), or after a hundred
// median trials if that is longer: trials of an hour may be quiet for longer.
#ifndef MSC_SUPERVISE_WATCHDOG_H
#define MSC_SUPERVISE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#define MSC_WATCHDOG_DEFAULT_S 600.0

struct msc_worker_page;

// Plain data for one worker, initialised by msc_watchdog_begin.
struct msc_watchdog {
    uint64_t last_ns;  // time of the last look
    uint64_t beats;    // number of beats at that time
    uint64_t quiet_ns; // time without a beat until then
};

void msc_watchdog_begin(struct msc_watchdog *watchdog, const struct msc_worker_page *page,
                        uint64_t now_ns);
// Looks once. Postpones the deadline of the trials in flight by the time that does not count.
// Returns true if the worker hangs.
bool msc_watchdog_look(struct msc_watchdog *watchdog, struct msc_worker_page *page,
                       uint64_t now_ns);
// The current limit on the time without a beat; 0: no limit.
uint64_t msc_watchdog_limit_ns(const struct msc_worker_page *page);

#endif

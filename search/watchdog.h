// Does a worker still live? Its parent looks now and then, and counts the time since the last beat
// (base/cancel.h). Only time in which the parent could look counts: a long gap between two looks
// means that it was stopped itself, or that the machine slept, and a laptop that is closed for the
// night has done nothing wrong.
//
// A worker counts as hung after the limit that it set (msc_worker_set_quiet), or after a hundred
// median trials where that is more: what evaluates trials of an hour may be quiet for longer.
#ifndef MSC_SEARCH_WATCHDOG_H
#define MSC_SEARCH_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#define MSC_WATCHDOG_DEFAULT_S 600.0

struct msc_worker_page;

// Plain data, of one worker; init by msc_watchdog_begin.
struct msc_watchdog {
    uint64_t last_ns;  // of the last look
    uint64_t beats;    // as they were then
    uint64_t quiet_ns; // without a beat since
};

void msc_watchdog_begin(struct msc_watchdog *watchdog, const struct msc_worker_page *page,
                        uint64_t now_ns);
// One look. Moves the deadline of the trials in flight by what was lost. True when the worker hangs.
bool msc_watchdog_look(struct msc_watchdog *watchdog, struct msc_worker_page *page,
                       uint64_t now_ns);
// 0: none.
uint64_t msc_watchdog_limit_ns(const struct msc_worker_page *page);

#endif

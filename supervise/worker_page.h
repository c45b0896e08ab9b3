// Memory shared by parent and worker: a page whose file descriptor the worker inherits.
#ifndef MSC_SUPERVISE_WORKER_PAGE_H
#define MSC_SUPERVISE_WORKER_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

// Environment variable that passes the descriptor to the worker.
#define MSC_WORKER_VARIABLE "MSCGYM_WORKER"
#define MSC_WORKER_MAGIC "mscwork1"

#define MSC_WORKER_MAGNITUDES 64
#define MSC_WORKER_PATH_BYTES 4096
#define MSC_WORKER_WHY_BYTES 256
#define MSC_WORKER_ASIDE_BYTES 65536

// Members are _Atomic because one side reads while the other writes.
struct msc_worker_page {
    char magic[8];
    // Written by the worker:
    _Atomic uint64_t deadline_ns;             // kill after this time (msc_clock_ns); 0: never
    _Atomic uint64_t progress;                // summed over all workers (msc_worker_add_progress)
    _Atomic uint32_t is_busy;                 // are trials in flight?
    _Atomic uint32_t is_open;                 // the worker has taken over the page
    _Atomic uint32_t is_closed;               // the worker has closed the page
    _Atomic uint64_t record_low, record_high; // hash of the record being written
    uint64_t beats;                           // accessed only by __atomic (base/cancel.h)
    _Atomic uint64_t quiet_ns;                // longest time without a beat; 0: unlimited
    // Number of trials that took 2^i to 2^(i+1) ns, for all workers.
    _Atomic uint64_t trials[MSC_WORKER_MAGNITUDES];
    _Atomic uint64_t in_flight;  // 1 + number of the part, if there is no record; 0: none
    _Atomic uint32_t is_leaving; // the worker ends because its device is lost
    char why[MSC_WORKER_WHY_BYTES];
    _Atomic uint32_t n_left; // consecutive workers that left without progress
    char log_path[MSC_WORKER_PATH_BYTES];
    _Atomic int32_t log_level; // enum msc_log_level of log_path; -1: no file
    // Files that were set aside before the search began. For each: the path of the search's record,
    // its former path and its present path, all NUL-terminated.
    char aside[MSC_WORKER_ASIDE_BYTES];
    _Atomic uint32_t n_aside_bytes;
    // Written by the parent (start_error by its child before exec):
    _Atomic uint32_t death; // enum msc_worker_death of the previous worker
    _Atomic int32_t signal_number;
    _Atomic int32_t start_error;
    _Atomic int32_t worker; // process id and session id of the worker; 0: not started yet
};

#endif

// What parent and worker share: one page of memory behind a file descriptor that the worker
// inherits.
#ifndef MSC_SEARCH_WORKER_PAGE_H
#define MSC_SEARCH_WORKER_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

// Environment variable of the worker: "<descriptor>".
#define MSC_WORKER_VARIABLE "MSCGYM_WORKER"
#define MSC_WORKER_MAGIC "mscwork1"

#define MSC_WORKER_MAGNITUDES 64
#define MSC_WORKER_PATH_BYTES 4096
#define MSC_WORKER_WHY_BYTES 256
#define MSC_WORKER_ASIDE_BYTES 65536

// _Atomic: written on one side while the other reads.
struct msc_worker_page {
    char magic[8];
    // Written by the worker.
    _Atomic uint64_t deadline_ns;             // kill it after this (msc_clock_ns); 0: never
    _Atomic uint64_t progress;                // of all workers: msc_worker_add_progress
    _Atomic uint32_t is_busy;                 // trials are in flight
    _Atomic uint32_t is_open;                 // the worker has taken the page over
    _Atomic uint32_t is_closed;               // and has come to its own end
    _Atomic uint64_t record_low, record_high; // hash of the record being written
    uint64_t beats;                           // by __atomic alone (base/cancel.h)
    _Atomic uint64_t quiet_ns;                // so long without a beat; 0: for ever
    // How many trials took 2^i to 2^(i+1) ns, of all workers.
    _Atomic uint64_t trials[MSC_WORKER_MAGNITUDES];
    _Atomic uint64_t in_flight;  // where no record says so: 1 + a part's number; 0: none
    _Atomic uint32_t is_leaving; // it ends as its device is lost
    char why[MSC_WORKER_WHY_BYTES];
    _Atomic uint32_t n_left; // workers in a row that have left so, until there is progress
    char log_path[MSC_WORKER_PATH_BYTES];
    _Atomic int32_t log_level; // enum msc_log_level of that file; -1: there is none
    // What was set aside before the search began: the path of the search's record, zero, path, zero, the path
    // that it has now, zero, …
    char aside[MSC_WORKER_ASIDE_BYTES];
    _Atomic uint32_t n_aside_bytes;
    // Written by the parent (start_error by the child before it executes the program).
    _Atomic uint32_t death; // enum msc_worker_death of the worker before
    _Atomic int32_t signal_number;
    _Atomic int32_t start_error;
    _Atomic int32_t worker; // its process id, which is that of its session; 0: none yet
};

#endif

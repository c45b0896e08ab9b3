// A backend for tests of planning and scheduling. It runs every step joint by joint through the
// reference kernels. Switches select what a real backend may do (fuse, use channels-last layout,
// hide its memory) and what may go wrong. The backend counts the requests that it gets.
//
//     struct fake_backend fake;
//     fake_open(&fake, 4);
//     fake.uses_last = true;
//     ... &fake.base ...
//     fake_close(&fake);    // checks that everything was released
#ifndef MSC_TESTS_FAKE_BACKEND_H
#define MSC_TESTS_FAKE_BACKEND_H

#include "base/cancel.h"
#include "kernels/backend.h"

#include <stdatomic.h>

struct fake_backend {
    struct msc_backend base;
    // Abilities, to be set before a plan is made.
    bool fuses;            // fuses element-wise joints into the step before them
    bool uses_last;        // convolutions use channels-last layout
    bool quantizes;        // steps write quantised variants of their outputs
    bool moves;            // reorders and axis swaps also run on integers
    bool hides_memory;     // its addresses are not host pointers; set by fake_hide_memory
    bool does_nothing;     // runs return without computing
    int64_t most_compared; // compares samples of at most this many elements; fake_compare_values
    // Faults, which may be changed between calls.
    const char *failing_joint; // steps with this joint fail if their weights have `failing_bits`
    int failing_bits;          // 0: they fail with any weights
    // The number of the first allocation that fails, counted from 1, and the number of allocations
    // that fail; 0: none.
    int first_failing_take;
    int n_failing_takes;
    long long capacity_bytes;  // size of the backend's memory; 0: unlimited
    long long besides_bytes;   // additional memory that each run needs
    bool tells_memory;         // reports the size of its memory
    struct msc_cancel *cancel; // raised after `cancel_after` steps have run
    int cancel_after;
    bool lacks_memory_to_compare;
    int lost_after; // the device is lost after this number of steps; 0: never
    // Counters of requests.
    atomic_int n_runs, n_reorders, n_quantised, n_packed, n_taken, n_refused;
    atomic_int n_fused, n_unstored; // variants written by steps; outputs that are not stored
    atomic_int n_moved;             // runs of steps on integers
    atomic_int n_launches, n_waits; // calls of `run`, and calls of `download_all`
    atomic_int n_compared;          // tensors compared with references
    atomic_int live_buffers, live_weights, live_kernels;
    atomic_llong live_bytes, peak_bytes;
};

void fake_open(struct fake_backend *fake, int n_threads);
void fake_hide_memory(struct fake_backend *fake);
// Behaves like a device: hidden memory, several calls of a step at a time, one wait for several
// downloads.
void fake_run_together(struct fake_backend *fake);
// Like fake_run_together, and compares values with references.
void fake_compare_values(struct fake_backend *fake);
void fake_close(struct fake_backend *fake);

#endif

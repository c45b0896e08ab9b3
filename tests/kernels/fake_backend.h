// A backend for tests of planning and scheduling: every step joint by joint through the reference
// kernels, with switches for what a real one may do (fuse, keep channels last, hide its memory) and
// for what may go wrong. Counts what it is asked for.
//
//     struct fake_backend fake;
//     fake_open(&fake, 4);
//     fake.uses_last = true;
//     ... &fake.base ...
//     fake_close(&fake);    // checks that everything was given back
#ifndef MSC_TESTS_FAKE_BACKEND_H
#define MSC_TESTS_FAKE_BACKEND_H

#include "base/cancel.h"
#include "kernels/backend.h"

#include <stdatomic.h>

struct fake_backend {
    struct msc_backend base;
    // What it does. Set before a plan is made.
    bool fuses;        // element-wise joints into what comes before them
    bool uses_last;    // convolutions read and write channels last
    bool quantizes;    // steps write quantised variants of their output
    bool moves;        // reorders and swapped axes also run over integers
    bool hides_memory; // its addresses are no host pointers; set by fake_hide_memory
    bool does_nothing; // runs return at once
    // What goes wrong. May be changed between calls.
    const char *failing_joint; // steps with this joint fail, with weights of `failing_bits`
    int failing_bits;          // 0: whatever the weights
    int first_failing_take;    // allocations counted from 1, so many of them; 0: none
    int n_failing_takes;
    long long capacity_bytes;  // all the memory that it has; 0: any
    long long besides_bytes;   // that a run must have besides
    bool tells_memory;         // how much of that there is
    struct msc_cancel *cancel; // asked to stop at once when so many steps have run
    int cancel_after;
    int lost_after; // so many steps have run, and the device is lost; 0: it is not
    // What it was asked for.
    atomic_int n_runs, n_reorders, n_quantised, n_packed, n_taken, n_refused;
    atomic_int n_fused, n_unstored; // variants written by steps; their outputs that had no memory
    atomic_int n_moved;             // runs over integers
    atomic_int n_launches, n_waits; // calls of run and of download_all
    atomic_int live_buffers, live_weights, live_kernels;
    atomic_llong live_bytes, peak_bytes;
};

void fake_open(struct fake_backend *fake, int n_threads);
void fake_hide_memory(struct fake_backend *fake);
// Like a device: hidden memory, several calls of a step at a time, downloads that wait once.
void fake_run_together(struct fake_backend *fake);
void fake_close(struct fake_backend *fake);

#endif

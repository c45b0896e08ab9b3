// Measures a network under variants of its steps (kernels/backend.h), in turn with the network
// under the choices by rule. Steps of equal work are one class and share a choice.
//
//     struct msc_schedule_bench *bench;
//     MSC_TRY(msc_schedule_bench_open(&bench, &options));
//     MSC_TRY(msc_schedule_bench_run(&time, bench, choices, 5));   // [msc_schedule_bench_n(bench)]
//     msc_schedule_bench_close(bench);
#ifndef MSC_ENV_SCHEDULE_BENCH_H
#define MSC_ENV_SCHEDULE_BENCH_H

#include "base/cancel.h"
#include "data/dataset.h"
#include "kernels/backend.h"

#include <stddef.h>

struct msc_strategy;
struct msc_schedule_bench;

// All pointers are borrowed until the bench is closed.
struct msc_schedule_options {
    const struct msc_graph *graph;
    const struct msc_dataset *dataset; // the network runs its first batch
    struct msc_backend *backend;
    const struct msc_strategy *strategy; // edits of the network; NULL: none
    uint64_t memory_bytes;
    const struct msc_cancel *cancel;
    const struct msc_log *log;
};

struct msc_schedule_class {
    struct msc_variants variants; // two or more
    const char *joint;            // name of the first step's first joint
    int32_t n_steps;
    double us; // time of all its steps by rule; NaN: the device does not tell the time of a step
};

// Runs the network twice. Errors are those of its evaluation. *out is owned by the caller.
enum msc_status msc_schedule_bench_open(struct msc_schedule_bench **out,
                                        const struct msc_schedule_options *options);
void msc_schedule_bench_close(struct msc_schedule_bench *bench); // accepts NULL

// The number of classes, 0 if no step has a choice; and a class, borrowed.
size_t msc_schedule_bench_n(const struct msc_schedule_bench *bench);
const struct msc_schedule_class *msc_schedule_bench_class(const struct msc_schedule_bench *bench,
                                                          size_t i);
// The class of the step that computes this joint. MSC_E_NOT_FOUND: there is no such joint, or its
// step has no choice.
enum msc_status msc_schedule_bench_find(size_t *out, const struct msc_schedule_bench *bench,
                                        const char *joint);
// The point that chooses by rule, or what is kept for this device.
void msc_schedule_bench_by_rule(const struct msc_schedule_bench *bench, uint32_t choices[]);
void msc_schedule_bench_kept(const struct msc_schedule_bench *bench, uint32_t choices[]);

// Microseconds of one run. Least times count, because other load of the machine disturbs them
// least. A device that tells the time of steps counts the sum over all steps of the least time
// under the step's variant, in all runs since the bench was opened; so steps with equal choices
// count the same under the point as by rule. Other devices count the least whole run of all rounds.
// If processors of this machine compute, whole runs count processor time.
struct msc_schedule_time {
    double us, rule_us;
    // [n_classes] of the steps of a class; NaN: not known. Borrowed until the next run.
    const double *class_us, *class_rule_us;
};
enum msc_status msc_schedule_bench_run(struct msc_schedule_time *out,
                                       struct msc_schedule_bench *bench, const uint32_t choices[],
                                       int64_t n_rounds);
// Like msc_schedule_bench_run, but measures whole runs, and by rule twice: *spread is the
// difference of these equal two, relative to the lesser.
enum msc_status msc_schedule_bench_whole(struct msc_schedule_time *out, double *spread,
                                         struct msc_schedule_bench *bench, const uint32_t choices[],
                                         int64_t n_rounds);

#endif

// A fake backend, a network and trials for tests of the evaluator. Results are checked with
// eval_case.h.
//
//     struct eval_bench b;
//     eval_open_bench(&b);
//     eval_open_net(&b.c, 8, 1);
//     eval_draw_all(&b);
//     b.ev = eval_create(&b, 2, 1 << 20);
//     eval_run_and_check(&b, b.ev, 0, N_TRIALS);
//     eval_close_bench(&b);
#ifndef MSC_TESTS_EVAL_BENCH_H
#define MSC_TESTS_EVAL_BENCH_H

#include "eval_case.h"
#include "fake_backend.h"

enum { N_TRIALS = 24 };

struct eval_bench {
    struct fake_backend fake;
    struct eval_case c;
    struct eval_edits edits[EVAL_MAX_TRIALS];
    struct msc_eval_trial trials[EVAL_MAX_TRIALS];
    struct eval_results results;
    struct msc_evaluator *ev;
};

// Opens a fake backend with four threads; the test then sets its switches.
void eval_open_bench(struct eval_bench *b);
// Draws the edits of each trial from its number; trial 0 has none.
void eval_draw_all(struct eval_bench *b);
void eval_close_bench(struct eval_bench *b);
struct msc_evaluator *eval_create(struct eval_bench *b, int n_threads, uint64_t memory_bytes);

// Runs trials [first, first + n) of b->edits together and checks their results.
void eval_run_and_check(struct eval_bench *b, struct msc_evaluator *ev, size_t first, size_t n);
void eval_check_all(struct eval_bench *b, size_t first, size_t n);
struct msc_evaluator_stats eval_stats_of(const struct msc_evaluator *ev);

// Gives a slot of the trial an edit: number `choice` of the slot's quantisations.
void eval_edit_slot(struct eval_bench *b, size_t trial, const char *joint, int32_t operand,
                    int choice);
// Runs the first n trials; the results are not checked.
void eval_run_edits(struct eval_bench *b, size_t n);

#endif

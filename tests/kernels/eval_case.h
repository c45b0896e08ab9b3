// Networks, trials and expected results for tests of plans and of the evaluator.
//
// Expected results are computed joint by joint with the reference kernels, and every operand with
// an edit is fake-quantised. This computation uses no plan, no cache and no threads.
#ifndef MSC_TESTS_EVAL_CASE_H
#define MSC_TESTS_EVAL_CASE_H

#include "base/rng.h"
#include "kernels/engine/evaluator.h"

#include "tests/msc_test.h"

#define EVAL_MAX_SLOTS 64
#define EVAL_MAX_WANTED 4
#define EVAL_MAX_BATCHES 8
#define EVAL_MAX_TRIALS 40
#define EVAL_CHANNELS 16

struct eval_quant {
    struct msc_edit edit;
    float scales[EVAL_CHANNELS];
    int32_t zero_points[EVAL_CHANNELS];
};

enum { EVAL_CHOICES = 3 }; // per slot: 8, 4 and 16 bits

struct eval_case {
    struct msc_graph *g;
    struct msc_rng rng;
    struct msc_dataset *data;
    struct msc_sites sites;
    int32_t wanted[EVAL_MAX_WANTED];
    size_t n_wanted;
    struct eval_quant quants[EVAL_MAX_SLOTS][EVAL_CHOICES];
};

// Three convolutions in a row, "conv1" to "conv3", on samples [2,5,5]. The last result is wanted.
void eval_open_chain(struct eval_case *c, int64_t n_samples, int64_t batch);
// Like eval_open_chain, but on samples [2,height,width].
void eval_open_chain_of(struct eval_case *c, int64_t height, int64_t width, int64_t n_samples,
                        int64_t batch);
// A single relu of 8 MiB.
void eval_open_large(struct eval_case *c);
// Convolutions with a residual, a hard swish of several joints, a constant, a split, reshaping,
// pooling and linear layers. Two outputs and an inner tensor are wanted.
void eval_open_net(struct eval_case *c, int64_t n_samples, int64_t batch);
// Like eval_open_net, but on samples with alternating widths; each sample is a batch.
void eval_open_widths(struct eval_case *c, const int64_t widths[], int64_t n_samples);
// Uses the slots of a target's sites. Each slot has the quantisations of its site's first slot.
void eval_set_target(struct eval_case *c, const char *name);
void eval_close(struct eval_case *c);

// A trial's edits. Each slot (with a target, each site) has none or one of the slot's
// quantisations, drawn from the trial's number.
struct eval_edits {
    const struct msc_edit *edits[EVAL_MAX_SLOTS];
};
void eval_draw_edits(const struct eval_case *c, uint64_t number, struct eval_edits *out);
int32_t eval_slot(const struct eval_case *c, const char *joint, int32_t operand);

// Values of the wanted tensors for each (trial, batch).
struct eval_results {
    struct msc_array *values[EVAL_MAX_TRIALS][EVAL_MAX_BATCHES][EVAL_MAX_WANTED];
    int begins[EVAL_MAX_TRIALS], ends[EVAL_MAX_TRIALS];
    // whether the sink received the values since the trial began
    bool is_handed[EVAL_MAX_TRIALS][EVAL_MAX_BATCHES];
    const struct eval_case *c;
    struct msc_sink sink;
    int failing_trial; // the sink refuses this trial's second batch; -1: none
};
void eval_results_init(struct eval_results *r, const struct eval_case *c);
void eval_results_finish(struct eval_results *r);

// Runs trials [first, first + n) of `edits` together as trials 0 … n - 1 of the results.
enum msc_status eval_run(struct msc_evaluator *ev, struct eval_results *r,
                         const struct eval_edits edits[], struct msc_eval_trial trials[], size_t n);
// Compares one trial's results with the expected ones, bit by bit.
void eval_check(const struct eval_case *c, const struct eval_results *r, size_t trial,
                const struct eval_edits *edits);

#endif

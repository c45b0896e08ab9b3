// The evaluator: runs many trials over a dataset at once and feeds tensors to a sink.
//
// Going through a plan's steps, each value of a trial gets a value number, by the hash of the step,
// of the value numbers of its inputs and of the edits that apply to them. What has one number is
// computed once for a batch, whatever trial asks for it, and stays in a cache with a byte budget,
// across calls too; so a trial pays only for what it changes. Threads take what is to be computed
// as its inputs get ready, each kernel on one thread. The bits of a result depend on the plan, the
// batch and the edits alone.
//
// The words of this folder:
//
//     step, value        what a plan is made of (kernels/plan.h)
//     expression         what is computed: a step over numbered inputs, its packed weights under
//                        edits, a value under a quantisation, an input (kernels/engine/numbering.h)
//     value number       which output of which expression a value is for a trial
//     key                hash of an expression and a batch, by which the cache finds the result
//     quantised variant  a value under the quantisation of one that reads it
//     live-out value     what leaves a plan's steps: for sinks, or for the remainder
//     remainder          the dynamic-shape remainder of a plan: joints whose shapes only running
//                        them tells, and those behind them (kernels/engine/remainder.h)
//     node               an expression on one batch in a schedule, or the feeding of a sink
//     target             what a sink reads of a trial: a live-out value, or that of a slot
//     window             some batches that all trials go through before the next are begun
//
//     struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
//     o.backend = backend;
//     MSC_TRY(msc_evaluator_create(&ev, graph, dataset, wanted, n_wanted, &o));
//     struct msc_eval_trial trials[2] = {{.edits = none}, {.edits = all_8_bit}};
//     MSC_TRY(msc_evaluator_run(ev, trials, 2, &sink, 0));
#ifndef MSC_KERNELS_ENGINE_EVALUATOR_H
#define MSC_KERNELS_ENGINE_EVALUATOR_H

#include "base/cancel.h"
#include "data/dataset.h"
#include "kernels/backend.h"

MSC_PUBLIC_BEGIN

struct msc_evaluator;

// Is told what each step took that ran, and each value that was quantised by itself, from the
// evaluator's threads. Where a backend runs several calls of a step together it is told of none.
struct msc_step_timer {
    // `step` MSC_NO_ID: value `value` was quantised.
    void (*ran)(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                uint64_t ns);
    void *payload;
};

struct msc_evaluator_options {
    struct msc_backend *backend; // borrowed until the evaluator is destroyed
    int n_threads;               // at most the backend's n_threads
    // Of the backend, as far as it has that. Where it is the host's memory it is what the whole
    // process may hold: what else it holds is taken off, as it is at each call.
    uint64_t memory_bytes;
    // Of the host, that the whole process may hold where only running a network tells how much it
    // takes (a Loop that goes on and on): a trial that would take more fails. 0: what is free.
    uint64_t host_bytes;
    // Slots are those of its sites (graph/site.h), and wanted tensors are given as it passes them
    // on; NULL: what the operator table marks.
    const struct msc_target *target;
    const struct msc_cancel *cancel;
    const struct msc_log *log;
    const struct msc_step_timer *timer; // borrowed until the evaluator is destroyed; NULL: none
};

#define MSC_EVALUATOR_OPTIONS_INIT                                                                 \
    { .n_threads = 1, .memory_bytes = (uint64_t)1 << 30 }

struct msc_eval_trial {
    // [n_slots] in the order of msc_sites; NULL entries stay float. Edits are borrowed for the
    // call.
    const struct msc_edit *const *edits;
    // Not 0: the float32 input of every activation quantisation is multiplied element by element by
    // 1 + 2^-22 or 1 - 2^-22, at random from this seed: how far rounding alone moves the loss.
    uint64_t noise_seed;
    // Results. `status` tells why a trial could not be evaluated, `message` in one line.
    enum msc_status status;
    char message[200];
    double reuse_ratio; // multiply-accumulates answered from other trials or the cache, 0 … 1
};

// Called from the evaluator's threads. Calls for different (trial, batch) may overlap.
struct msc_sink {
    // Optional: a trial begins; whatever the sink got of it before is void and comes again. Once
    // before the first value of each trial, and once more before a trial that ran out of memory is
    // tried again; no other call is under way. Between this and `end` each value comes once at most.
    // A sink that adds up or keeps what is to be freed needs it; one that only puts each value in
    // its own place does not.
    void (*begin)(void *payload, size_t trial);
    // Optional: values of the wanted tensors for one batch, plain, in host memory, borrowed for the
    // call. Those whose lengths depend on data come in the shapes they have. A failure fails the
    // trial.
    enum msc_status (*batch)(void *payload, size_t trial, size_t batch,
                             const struct msc_view values[]);
    // Optional: the value that a slot of an activation reads, before its edits, in the plan's
    // layout; one by one, as they are computed, so that they need not all be held. `part` is the
    // chunk of a sequence, else 0.
    enum msc_status (*slot)(void *payload, size_t trial, size_t batch, int32_t part, int32_t slot,
                            const struct msc_view *value);
    // Optional: after the last batch of a trial, also of one that failed; one call at a time.
    void (*end)(void *payload, size_t trial);
    // Optional: is enough known of a trial? Asked now and then, when all batches up to some number
    // were given; such a trial is given no more of them and ends with the call.
    bool (*is_over)(void *payload, size_t trial);
    void *payload;
};

enum {
    // Compute everything but packed weights anew, and keep nothing: for measuring latency.
    MSC_EVAL_FRESH = 1 << 0,
};

// `graph` and `dataset` are borrowed until the evaluator is destroyed; `wanted` are tensor ids of
// the graph. Batches get a plan for each signature: the shapes of inputs, and what those hold that
// parameters come from (a Reshape's shape). MSC_E_UNSUPPORTED: there are thousands of these, or more
// than memory does for. Of sequences wanted tensors come with a row for each chunk
// (kernels/engine/sequence.h). *out is owned by the caller.
enum msc_status msc_evaluator_create(struct msc_evaluator **out, const struct msc_graph *graph,
                                     const struct msc_dataset *dataset, const int32_t wanted[],
                                     size_t n_wanted, const struct msc_evaluator_options *options);
void msc_evaluator_destroy(struct msc_evaluator *ev); // accepts NULL

// Evaluates n trials over all batches. MSC_OK also when trials failed one by one; MSC_E_CANCELLED
// when stopped; MSC_E_LOST when the backend has lost its device: trials that were not over have not
// failed; MSC_E_INVALID: an edit does not fit its slot (msc_edit_check). A trial that ran out of memory
// is tried once more alone with an empty cache; its sink begins anew.
enum msc_status msc_evaluator_run(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                  size_t n, const struct msc_sink *sink, unsigned flags);

// The same over the batches from `first` to before `end` alone.
enum msc_status msc_evaluator_run_batches(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                          size_t n, size_t first, size_t end,
                                          const struct msc_sink *sink);

// The slots that edits refer to: those of the graph, the same for every plan.
const struct msc_sites *msc_evaluator_sites(const struct msc_evaluator *ev);
// The plan that batch `b` runs by.
const struct msc_plan *msc_evaluator_plan(const struct msc_evaluator *ev, size_t batch);
// What costs are counted on: the graph in the lengths of one sample, the first, whatever the size of
// batches; or of the first batch, where the network runs for no sample alone.
struct msc_outline {
    const struct msc_plan *plan; // without steps
    double n_samples;            // that it computes at once
};
// Made at the first call; what it holds belongs to the evaluator.
enum msc_status msc_evaluator_outline(struct msc_outline *out, struct msc_evaluator *ev);
const struct msc_dataset *msc_evaluator_dataset(const struct msc_evaluator *ev);
int msc_evaluator_n_threads(const struct msc_evaluator *ev);

struct msc_evaluator_stats {
    uint64_t steps_run;    // since creation
    uint64_t steps_reused; // answered from the cache or by another trial of the same call
    uint64_t bytes_held;   // now, with free buffers kept for reuse
    uint64_t bytes_peak;
    uint64_t remainder_weights_made; // since creation: edited weights of joints behind the steps
    double macs_run, macs_asked;
};
void msc_evaluator_get_stats(const struct msc_evaluator *ev, struct msc_evaluator_stats *out);
// The least `memory_bytes` that trials can be evaluated in, found by evaluating as many as there
// are threads with nothing kept, under these edits and noise, which asks for the most: float32
// values that are else stored quantised; what lies behind a plan's steps counts as if every thread
// were at the largest. Everything cached is freed.
enum msc_status msc_evaluator_measure_memory(struct msc_evaluator *ev,
                                             const struct msc_edit *const edits[], uint64_t *out);
// Frees everything cached.
void msc_evaluator_drop_cache(struct msc_evaluator *ev);

MSC_PUBLIC_END

#endif

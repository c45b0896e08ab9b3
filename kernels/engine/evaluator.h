// The evaluator: runs many trials over a dataset at once and feeds tensors to a sink.
//
// Each value of a trial gets a value number, which depends on its step, on the value numbers of the
// step's inputs, and on the edits that apply to them. Values with the same number are computed once
// per batch, for all trials. A cache with a byte budget keeps them, also for later calls. So only
// the values that a trial changes are computed. Threads take steps whose inputs are ready; each
// kernel runs on one thread. The bits of a result depend only on the plan, the batch and the edits.
//
// Terms of this folder:
//
//     step, value        parts of a plan (kernels/plan.h)
//     expression         one computation: a step over numbered inputs, its packed weights under
//                        edits, a value under a quantisation, an input (kernels/engine/numbering.h)
//     value number       names the output of an expression; equal values of trials share it
//     key                hash of an expression and a batch; the cache finds results by it
//     quantised variant  a value under the quantisation of one of its consumers
//     live-out value     a value read after the steps: by sinks or by the remainder
//     remainder          the dynamic-shape remainder of a plan: joints whose shapes are known only
//                        at run time, and their consumers (kernels/engine/remainder.h)
//     node               an expression on one batch in a schedule, or a call of the sink
//     target             what a sink reads of a trial: a live-out value, or the value of a slot
//     window             batches that all trials complete before the next window begins
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

// Reports the time of each step that ran and of each value that was quantised outside of a step,
// from the evaluator's threads. If a backend runs several calls of a step together, nothing is
// reported for them.
struct msc_step_timer {
    // If `step` is MSC_NO_ID, the time is that of quantising the value with id `value`.
    void (*ran)(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                uint64_t ns);
    void *payload;
};

struct msc_evaluator_options {
    struct msc_backend *backend; // borrowed until the evaluator is destroyed
    int n_threads;               // at most the backend's n_threads
    // Limit on the backend's memory. If the backend uses host memory, the limit covers the whole
    // process: the memory that the process uses for other things is deducted.
    uint64_t memory_bytes;
    // Limit on the host memory of the whole process: a trial that would exceed it fails. The limit
    // matters for networks whose memory use is known only while they run (such as a Loop that never
    // ends). 0: all free memory.
    uint64_t host_bytes;
    // The deployment target (graph/target.h) whose sites (graph/site.h) are the slots. Sinks get
    // the wanted tensors as this target stores them (for example quantised). NULL: the sites of the
    // operator table.
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
    // If not 0, the float32 input of every activation quantisation gets noise from this seed: each
    // element is multiplied by 1 + 2^-22 or 1 - 2^-22. This shows how much rounding differences
    // change the loss.
    uint64_t noise_seed;
    // Results. If a trial could not be evaluated, `status` has the kind of failure and `message`
    // explains it in one line.
    enum msc_status status;
    char message[200];
    double reuse_ratio; // share of MACs reused from other trials or the cache, 0 … 1
};

// The values of a wanted tensor in one batch that trials are compared with.
struct msc_eval_reference {
    const float *values; // [n_samples][n], borrowed for the run
    int64_t n_samples, n;
    struct msc_hash key; // equal keys have equal values in the same batch
};

// Called from the evaluator's threads. Calls for different pairs (trial, batch) may overlap.
struct msc_sink {
    // Optional: a trial begins. Called before the first value of each trial, and again if a trial
    // that ran out of memory is retried; no other call of the sink is active. The sink then
    // discards everything it has received for the trial, because all values are sent again. From
    // this call to `end`, each value comes at most once. Only sinks that accumulate or own values
    // need `begin`.
    void (*begin)(void *payload, size_t trial);
    // Optional: receives the wanted tensors of one batch, in NCHW and in host memory, borrowed for
    // the call. Data-dependent dims have their computed lengths. If `batch` fails, the trial fails.
    enum msc_status (*batch)(void *payload, size_t trial, size_t batch,
                             const struct msc_view values[]);
    // Optional: receives the value that an activation slot reads, before its edits, in the plan's
    // layout. Values come one by one as they are computed, so that not all of them are in memory at
    // once. `part` is the index of the chunk for sequences, otherwise 0.
    enum msc_status (*slot)(void *payload, size_t trial, size_t batch, int32_t part, int32_t slot,
                            const struct msc_view *value);
    // Optional: called after a trial's last batch, even if the trial failed; one call at a time.
    void (*end)(void *payload, size_t trial);
    // Optional: true if the sink needs no further batches of a trial. Called between windows, when
    // the sink has received all batches before some index. If true, the trial gets no further
    // batches, and its `end` is called at the end of the run.
    bool (*is_over)(void *payload, size_t trial);
    // Optional, for sinks with `slot`: true if the sink wants the value of this slot. Values of
    // other slots may be given too. If there is no `batch`, only the wanted slot values and their
    // inputs are computed. NULL: all slots.
    bool (*wants_slot)(void *payload, int32_t slot);
    // Optional, both or none, for sinks with `batch` that only need the distance of each wanted
    // tensor from a reference. `reference` returns false if the tensor with this index among the
    // wanted tensors must be given in this batch. If it returns true for all of them, `squares` may
    // be called in place of `batch`, so that a device keeps the values: squares[i][s] is the sum of
    // (y - z)^2 over the elements of sample s of tensor i, as msc_squares_sum computes it.
    bool (*reference)(void *payload, size_t batch, int32_t index, struct msc_eval_reference *out);
    enum msc_status (*squares)(void *payload, size_t trial, size_t batch,
                               const double *const squares[]);
    void *payload;
};

enum {
    // For measuring latency: compute everything again except packed weights, and keep no results in
    // the cache.
    MSC_EVAL_FRESH = 1 << 0,
    // For calls that follow one another and need much of the same: keep results for the next eight
    // calls or so, in up to three quarters of the memory, even if this call needs them only once.
    MSC_EVAL_KEEP = 1 << 1,
    // For calls that each read slots further on in the network: keep only results that a step reads
    // which no call has run yet, in up to three quarters of the memory. So each step runs once, and
    // its result takes the memory of an earlier one.
    MSC_EVAL_ONWARD = 1 << 2,
};

// `graph` and `dataset` are borrowed until the evaluator is destroyed; `wanted` are tensor ids of
// the graph. Batches of one signature share a plan. A signature consists of the shapes of all
// inputs and the values of inputs that give parameters of joints (a Reshape's shape).
// MSC_E_UNSUPPORTED: there are thousands of signatures, or too many for the memory. For sequences,
// wanted tensors have a row per chunk (kernels/engine/sequence.h). *out is owned by the caller.
enum msc_status msc_evaluator_create(struct msc_evaluator **out, const struct msc_graph *graph,
                                     const struct msc_dataset *dataset, const int32_t wanted[],
                                     size_t n_wanted, const struct msc_evaluator_options *options);
void msc_evaluator_destroy(struct msc_evaluator *ev); // accepts NULL

// Evaluates n trials over all batches. Returns MSC_OK even if single trials failed.
// MSC_E_CANCELLED: the call was stopped; MSC_E_LOST: the backend lost its device, and unfinished
// trials do not count as failed; MSC_E_INVALID: an edit does not fit its slot (msc_edit_check). A
// trial that ran out of memory is retried once on its own, with an empty cache; the sink then gets
// a new `begin` for it.
enum msc_status msc_evaluator_run(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                  size_t n, const struct msc_sink *sink, unsigned flags);

// Like msc_evaluator_run, but only over the batches `first` … `end` - 1.
enum msc_status msc_evaluator_run_batches(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                          size_t n, size_t first, size_t end,
                                          const struct msc_sink *sink);

// The slots that edits refer to. They are slots of the graph, so they are the same for every plan.
const struct msc_sites *msc_evaluator_sites(const struct msc_evaluator *ev);
// The plan of batch `b`.
const struct msc_plan *msc_evaluator_plan(const struct msc_evaluator *ev, size_t batch);
// The graph on which costs are counted. It is bound to the first sample, so that costs do not
// depend on the batch size. If the network cannot run on a single sample, it is bound to the first
// batch.
struct msc_outline {
    const struct msc_plan *plan; // without steps
    double n_samples;            // samples that the graph computes at once
};
// The outline is made at the first call. The evaluator owns the plan.
enum msc_status msc_evaluator_outline(struct msc_outline *out, struct msc_evaluator *ev);
const struct msc_dataset *msc_evaluator_dataset(const struct msc_evaluator *ev);
// The options' request to stop; may be NULL.
const struct msc_cancel *msc_evaluator_cancel(const struct msc_evaluator *ev);
int msc_evaluator_n_threads(const struct msc_evaluator *ev);

struct msc_evaluator_stats {
    uint64_t steps_run;    // steps computed since creation
    uint64_t steps_reused; // steps found in the cache, or computed for another trial of the call
    uint64_t bytes_held;   // bytes held now, including free buffers kept for reuse
    uint64_t bytes_peak;
    uint64_t remainder_weights_made; // weights quantised for remainders since creation
    double macs_run, macs_asked;
};
void msc_evaluator_get_stats(const struct msc_evaluator *ev, struct msc_evaluator_stats *out);
// Measures the smallest `memory_bytes` with which trials can be evaluated. It evaluates one trial
// per thread under these edits, without keeping results. The trials use noise, which is the worst
// case: values that are stored quantised are then also needed as float32. The memory of remainders
// is counted as if every thread ran the largest remainder at once. All cached results are freed.
enum msc_status msc_evaluator_measure_memory(struct msc_evaluator *ev,
                                             const struct msc_edit *const edits[], uint64_t *out);
// Frees all cached results.
void msc_evaluator_drop_cache(struct msc_evaluator *ev);

MSC_PUBLIC_END

#endif

// Shared by the files of the schedule. No other file includes it.
//
// Order of work in a call of msc_schedule_run:
//
//     schedule_targets.c   finds the value numbers that the sink reads of each trial
//     schedule_trials.c    tracks each trial: its begin, failures, early stop and end
//     then for each window
//     schedule_build.c     makes nodes backwards from the targets, up to cached results
//     schedule_onward.c    finds the results that later calls will read
//     schedule_walk.c      lets threads take nodes until all are done
//     schedule_take.c          chooses the next nodes
//     schedule_entries.c       allocates and releases memory for results
//     schedule_compute.c       runs steps and packs weights
//     schedule_quantize.c      quantises values that no step quantises
//     schedule_feed.c          gives values to the sink
//     schedule_compare.c       gives distances to the sink, if the backend can compare values
#ifndef MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H
#define MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H

#include "kernels/engine/numbering.h"
#include "kernels/engine/schedule.h"

#include <pthread.h>

struct msc_node {
    int32_t expr;                    // id of the expression; MSC_NO_ID: a sink node
    int32_t plan;                    // plan of the expression
    int32_t batch;                   // for weights, the batch that first needed them
    int32_t trial;                   // trial that the node was made for; others may use it too
    int32_t first_target, n_targets; // targets that a sink node reads
    int32_t n_pending;               // inputs that are not ready yet
    int32_t first_edge;              // first of the edges to the nodes that wait for this node, or
                                     // MSC_NO_ID
    int32_t n_users;                 // number of nodes that have yet to read this node's result
    int32_t n_fused;                 // quantisations of its output that this node computes itself
    bool is_shared;                  // the result is used by several trials
    bool is_fused;                   // a quantisation computed by the step whose output it reads
    bool is_begun;                   // already taken by a thread; set only for roots and weights
    int32_t failure;                 // failure of this node or of one of its inputs, or MSC_NO_ID
    struct msc_entry *entry;         // set while the result is computed or will still be read
};

struct msc_edge {
    int32_t node, next;
};

struct msc_id_list {
    int32_t *items;
    size_t n, capacity;
};

// One plan: its expressions in this call, and the ids of their nodes in this window.
struct msc_scheduled_plan {
    const struct msc_plan *plan;
    struct msc_numbering numbering;
    int32_t n_batches;
    const int32_t *batches;          // [n_batches] batches that use this plan, ascending
    int32_t first_column, n_columns; // `batches` of the current window
    int32_t *nodes;                  // [n_exprs][n_columns] node id or MSC_NO_ID
    size_t nodes_capacity;
    struct msc_value_number *targets; // [n_trials][n_targets]; expr MSC_NO_ID: nothing to read
    size_t targets_capacity;
    // For MSC_EVAL_ONWARD: the expressions that give live-out values, and for each expression
    // whether a step will read it that has not run yet.
    struct msc_id_list ends;
    bool *is_awaited; // [n_exprs]
    size_t is_awaited_capacity;
    int32_t *most_together; // [plan->n_steps] limit on the nodes of a step that run together;
                            // lowered when memory runs out
    // Steps and MACs that the targets need, including reused results.
    int32_t n_steps_asked;
    double macs_asked;
};

struct msc_failure {
    int32_t node; // node in which the failure arose
    enum msc_status status;
    char message[200];
};

// The progress of a trial.
struct msc_progress {
    int64_t sinks_left;          // sink nodes still to finish, over all batches
    int32_t failed_batch;        // lowest index of a failed batch, or MSC_NO_ID
    int32_t failed_node;         // earliest node of that batch in which a failure arose
    bool is_over;                // skips further windows
    double macs_asked, macs_run; // summed over the batches evaluated for this trial
};

struct msc_schedule {
    struct msc_schedule_options options;
    struct msc_scheduled_plan *plans; // [options.n_plans]
    int32_t *columns;                 // [batches] index of each batch in the `batches` of its plan
    int32_t *batches;                 // [batches] grouped by plan

    // The current job.
    struct msc_job job;
    int32_t n_targets;             // targets per trial: live-out values, then slot values
    int32_t n_live_out;            // targets that are live-out values: the maximum over plans
    struct msc_progress *progress; // [n_trials]
    size_t progress_capacity;

    // The current window.
    int32_t first_batch, end_batch;
    struct msc_node *nodes;
    size_t n_nodes, nodes_capacity;
    struct msc_edge *edges;
    size_t n_edges, edges_capacity;
    struct msc_id_list roots; // nodes ready from the start, in order
    size_t next_root;
    struct msc_id_list ready;     // a stack with room for every node
    struct msc_id_list stack;     // expressions whose nodes are being made
    int32_t trial_built;          // trial whose nodes are being made
    struct msc_failure *failures; // failures[0] is used if there is no memory for another failure
    size_t n_failures, failures_capacity;

    pthread_mutex_t lock; // guards everything except the sink calls of different trials
    pthread_cond_t wake;
    pthread_mutex_t end_lock; // allows one `end` at a time
    size_t n_done;
    int n_started; // threads that have begun to work
    int n_waiting;
    int stepper;          // thread that now runs a step for several nodes, or MSC_NO_ID
    enum msc_status stop; // status that ends all trials at once: MSC_E_CANCELLED, MSC_E_LOST;
                          // otherwise MSC_OK
    char stop_message[200];
    struct msc_host_buffer *host_buffers; // list of buffers that are not in use

    struct msc_schedule_stats stats;
};

static inline bool msc_schedule__is_fresh(const struct msc_schedule *s) {
    return (s->job.flags & MSC_EVAL_FRESH) != 0;
}

static inline const struct msc_plan *msc_schedule__plan(const struct msc_schedule *s,
                                                        const struct msc_node *node) {
    return s->plans[node->plan].plan;
}

static inline bool msc_schedule__is_onward(const struct msc_schedule *s) {
    return (s->job.flags & MSC_EVAL_ONWARD) != 0;
}

// The expression of a node that is not a sink node.
static inline const struct msc_expr *msc_schedule__expr(const struct msc_schedule *s,
                                                        const struct msc_node *node) {
    return &s->plans[node->plan].numbering.exprs[node->expr];
}

// The step of a node that computes a step or packs weights.
static inline const struct msc_step *msc_schedule__step(const struct msc_schedule *s,
                                                        const struct msc_node *node) {
    return &msc_schedule__plan(s, node)->steps[msc_schedule__expr(s, node)->index];
}

// The value number that a node reads as its input i.
static inline struct msc_value_number msc_schedule__input(const struct msc_schedule *s,
                                                          const struct msc_node *node, int32_t i) {
    const struct msc_numbering *num = &s->plans[node->plan].numbering;
    return num->inputs[num->exprs[node->expr].first_input + i];
}

// The targets [n_targets] of a trial under one plan.
static inline struct msc_value_number *msc_schedule__targets(const struct msc_schedule *s,
                                                             const struct msc_scheduled_plan *p,
                                                             size_t trial) {
    return &p->targets[trial * (size_t)s->n_targets];
}

// The key of an expression's result in the cache. Packed weights serve every batch.
static inline struct msc_hash msc_schedule__key(const struct msc_expr *expr, int32_t batch) {
    return expr->kind == MSC_EXPR_WEIGHTS ? expr->hash
                                          : msc_hash_add_u64(expr->hash, (uint64_t)batch + 1);
}

// The address at which the node id of an expression for a batch is stored.
static inline int32_t *msc_schedule__place(const struct msc_schedule *s,
                                           const struct msc_scheduled_plan *p, int32_t expr,
                                           int32_t batch) {
    // Packed weights serve every batch: their node is stored under the first batch of the window.
    bool is_shared = p->numbering.exprs[expr].kind == MSC_EXPR_WEIGHTS;
    int32_t column = is_shared ? 0 : s->columns[batch] - p->first_column;
    return &p->nodes[(size_t)expr * (size_t)p->n_columns + (size_t)column];
}

// The node of an expression for the batch of `node`.
static inline struct msc_node *msc_schedule__node(const struct msc_schedule *s,
                                                  const struct msc_node *node, int32_t expr) {
    return &s->nodes[*msc_schedule__place(s, &s->plans[node->plan], expr, node->batch)];
}

// The next node fused into a step, or NULL. Follows the edges from *e on (initially the first_edge
// of the step's node) and advances *e.
static inline struct msc_node *msc_schedule__next_fused(const struct msc_schedule *s, int32_t *e) {
    while (*e != MSC_NO_ID) {
        struct msc_node *user = &s->nodes[s->edges[*e].node];
        *e = s->edges[*e].next;
        if (user->is_fused) {
            return user;
        }
    }
    return NULL;
}

// A view, in the backend's memory, of the value that `node` reads under the value number `number`.
static inline struct msc_view msc_schedule__view(const struct msc_schedule *s,
                                                 const struct msc_node *node, int32_t value,
                                                 struct msc_value_number number) {
    const struct msc_scheduled_plan *p = &s->plans[node->plan];
    const struct msc_entry *entry = msc_schedule__node(s, node, number.expr)->entry;
    struct msc_view v = msc_plan_view(p->plan, value, entry->outputs[number.output].data);
    v.quant = msc_numbering_integers(&p->numbering, number);
    v.quant = v.quant && v.quant->is_dynamic ? &entry->found : v.quant;
    v.dtype = v.quant ? msc_quant_dtype(v.quant) : v.dtype;
    return v;
}

// A view of a value under a quantisation (NULL: unquantised). Its elements are bytes, or float32 if
// the quantisation has more than 8 bits.
static inline struct msc_view msc_schedule__quantized_view(const struct msc_plan *plan,
                                                           int32_t value,
                                                           const struct msc_quant *quant,
                                                           void *data) {
    struct msc_view v = msc_plan_view(plan, value, data);
    if (quant) {
        v.quant = msc_quant_is_integer(quant) ? quant : NULL;
        v.dtype = msc_quant_dtype(quant);
    }
    return v;
}

// ---- Targets ----------------------------------------------------------------------------------

// Numbers the values of all trials under every plan, and finds the value numbers that the sink
// reads.
enum msc_status msc_schedule__number_trials(struct msc_schedule *s);
// Lists the expressions of the live-out values of the trial that was numbered last. A sink may not
// read them in this call.
enum msc_status msc_schedule__list_ends(struct msc_scheduled_plan *p,
                                        const struct msc_eval_trial *trial);
// Called when the nodes of a window are made: finds the expressions that a later call will read.
enum msc_status msc_schedule__find_awaited(struct msc_schedule *s);
// The value of the plan that target i reads, or MSC_NO_ID.
int32_t msc_schedule__target_value(const struct msc_schedule *s, const struct msc_plan *plan,
                                   int32_t i);

// ---- Trials -----------------------------------------------------------------------------------

// Calls the sink's `begin` for all trials.
void msc_schedule__announce_trials(struct msc_schedule *s);
// Resets the progress of all trials. Requires their targets.
enum msc_status msc_schedule__begin_trials(struct msc_schedule *s);
// Called when a sink node is done or has failed. Returns true if it was the last sink node of the
// trial and `end` is due. The caller holds the lock.
bool msc_schedule__finish_sink(struct msc_schedule *s, const struct msc_node *node);
// Calls the sink's `end`. The caller holds the lock, which is released during the call.
void msc_schedule__end_trial(struct msc_schedule *s, int32_t trial);
// Called when a window is done: finds the trials that have ended and will skip the next window.
// MSC_E_CANCELLED: the call was stopped; MSC_E_LOST: the device was lost.
enum msc_status msc_schedule__end_window(struct msc_schedule *s);
// Called after the last window: ends the trials that have skipped a window.
void msc_schedule__end_trials(struct msc_schedule *s);

// ---- Lists ------------------------------------------------------------------------------------

enum msc_status msc_schedule__push_id(struct msc_id_list *list, int32_t id);

// ---- A window ---------------------------------------------------------------------------------

// Makes the nodes of all trials that have not ended.
enum msc_status msc_schedule__build(struct msc_schedule *s);
// Runs all nodes, or stops early if the job is cancelled.
void msc_schedule__walk(struct msc_schedule *s);

// The maximum number of nodes that run together.
#define MSC_SCHEDULE_TOGETHER 64

// Takes the nodes that a thread runs next: one node, or up to MSC_SCHEDULE_TOGETHER nodes of one
// step or sink nodes. Waits until a node is ready; returns 0 when all nodes are done. The caller
// holds the lock.
int32_t msc_schedule__take(struct msc_schedule *s, int32_t ids[], int thread);
// Called before the first node is taken: if the backend runs nodes together, marks the roots as
// ready.
void msc_schedule__ready_roots(struct msc_schedule *s);

// ---- Entries (the caller holds the lock) ------------------------------------------------------

// Allocates the results of a node (unless nothing reads them) and the results of nodes fused into
// it.
enum msc_status msc_schedule__allocate_entries(struct msc_schedule *s, struct msc_node *node);
// Discards the results of a node that failed and of nodes fused into it.
void msc_schedule__discard_entries(struct msc_schedule *s, struct msc_node *node);
// Called when a node has read its inputs: releases entries that have no further readers.
void msc_schedule__release_inputs(struct msc_schedule *s, const struct msc_node *node);
// Called after a stop: releases entries that are still held for nodes that never ran.
void msc_schedule__release_unread(struct msc_schedule *s);

// ---- The work of a node (without the lock) ----------------------------------------------------

// Computes a node whose inputs are ready and whose entries are allocated. If the node packs
// weights, the caller owns *weights.
enum msc_status msc_schedule__compute(struct msc_schedule *s, const struct msc_node *node,
                                      int thread, void **weights, size_t *weights_bytes);
// Computes n nodes of one step together. On failure, none of their results is valid.
enum msc_status msc_schedule__compute_together(struct msc_schedule *s, const int32_t ids[],
                                               int32_t n, int thread);
// Computes a node that quantises a value.
enum msc_status msc_schedule__quantize(struct msc_schedule *s, const struct msc_node *node,
                                       int thread);
// Gives the values of n sink nodes to the sink, one after the other, until one fails. Returns the
// number that succeeded; *status is MSC_OK or the failure of the next node.
int32_t msc_schedule__feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                enum msc_status *status);
// A view of a target's value in the backend's memory; its data is NULL if the target has no value.
struct msc_view msc_schedule__target_view(const struct msc_schedule *s, const struct msc_node *node,
                                          int32_t target);
// Like msc_schedule__feed_sink, but lets the backend compare the values, and gives only their
// distances to the sink. Ends before the first node whose values must be given; returns 0 with
// MSC_OK if that is the first one.
int32_t msc_schedule__compare_sinks(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                    enum msc_status *status);
// Frees the buffers kept for feeding sinks. No thread may be feeding a sink.
void msc_schedule__finish_feeding(struct msc_schedule *s);

#endif

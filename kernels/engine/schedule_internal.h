// The work of one call as a graph of nodes, and the threads that walk it.
//
// A node is an expression (kernels/engine/numbering.h) on one batch (packed weights: on none), or
// it feeds the sink what one (trial, batch) gave: live-out values together, slot values one by one.
// Nodes are made backwards from what the sink wants, so what only leads to cached results is never
// touched. Threads take ready nodes last in, first out, which follows a batch down the network
// while its data is in cache and frees it soonest.
//
// Weights are packed when a step waits for them alone: otherwise steps that have their inputs would
// hold them until the weights' turn comes.
//
// Of what only one among many trials wants nothing is kept: the next call will hardly ask for it.
//
// A call goes through the dataset in windows of some batches, no more than keep all threads busy:
// only what a window finds in the cache is held for it, and trials that turn out to be over take no
// part in the next.
//
// Where the backend can, a step's output is quantised while the step runs: the nodes of its
// quantisations are fused into it. When nobody else reads the output it is not stored, unless the
// trials are few.
//
// Where a backend runs several calls of a step at less cost than one by one (max_calls), it is the
// other way about: the earliest step with ready nodes is next, with all of them, and sinks come
// last, so that the host waits for the device once in a window.
#ifndef MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H
#define MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H

#include "kernels/engine/cache.h"
#include "kernels/engine/numbering.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

struct msc_node {
    int32_t expr;                    // MSC_NO_ID: a sink node
    int32_t group;                   // which plan's expressions
    int32_t batch;                   // MSC_NO_ID for weights
    int32_t trial;                   // that it was made for; others may want it, too
    int32_t first_target, n_targets; // of a sink node
    int32_t n_pending;               // inputs not ready yet
    int32_t first_edge;              // to the nodes that wait for this one, or MSC_NO_ID
    int32_t n_users;                 // nodes that have still to read it
    int32_t n_fused;                 // quantisations among its users that it makes itself
    bool is_shared;                  // wanted by several trials
    bool is_fused;                   // made by the step that it reads
    bool is_begun;                   // a root, or weights, that was taken
    int32_t failure;                 // the one that reached this node, or MSC_NO_ID
    struct msc_entry *entry;         // once ready and until the last user has read it
};

struct msc_edge {
    int32_t node, next;
};

// The expressions of one plan and where their nodes are.
struct msc_group {
    struct msc_numbering numbering;
    int32_t n_batches;
    int32_t *batches; // [n_batches] those that run by this plan, ascending
    size_t batches_capacity;
    const int32_t *columns;          // [all batches] a batch's place in `batches`; borrowed
    int32_t first_column, n_columns; // the batches of the window at hand
    int32_t *nodes;                  // [n_classes][n_columns] node id or MSC_NO_ID
    size_t nodes_capacity;
    struct msc_value_number *targets; // [n_trials][n_targets]; id MSC_NO_ID: nothing to read
    size_t targets_capacity;
    // What the targets ask of the plan, whoever answers it.
    int32_t n_steps_asked;
    double macs_asked;
};

// Where the id of an expression's node for a batch is kept.
int32_t *msc_group_node(const struct msc_group *g, int32_t expr, int32_t batch);

struct msc_failure {
    int32_t node; // that failed itself
    enum msc_status status;
    char message[200];
};

struct msc_schedule {
    struct msc_backend *backend;
    const struct msc_dataset *dataset;
    struct msc_cache *cache;
    const struct msc_cancel *cancel;
    const struct msc_reference_limits *limits; // for steps that run bodies; may be NULL
    int n_threads;
    int n_groups;
    struct msc_group *groups;
    int32_t n_targets; // of each trial: wanted values, then slot values
    int32_t n_wanted;  // that go together, as many as the plan with the most has
    struct msc_eval_trial *trials;
    size_t n_trials;
    const struct msc_sink *sink;

    struct msc_node *nodes;
    size_t n_nodes, nodes_capacity;
    struct msc_edge *edges;
    size_t n_edges, edges_capacity;
    int32_t *ready, *roots; // a stack of ready nodes; nodes ready from the start, in order
    size_t n_ready, ready_capacity, n_roots, roots_capacity, next_root;
    int32_t *stack; // of expressions whose nodes are being made
    size_t n_stack, stack_capacity;
    struct msc_failure *failures; // the first stands for those there was no memory to note
    size_t n_failures, failures_capacity;
    struct msc_progress {            // of a trial
        int64_t sinks_left;          // nodes, over all batches
        int32_t failed_batch;        // lowest one that failed, or MSC_NO_ID
        int32_t failed_node;         // ... the first there that failed itself
        bool is_over;                // takes no part in further windows
        double macs_asked, macs_run; // those of batches that it took part in
    } * progress;                    // [n_trials]
    size_t progress_capacity;
    int32_t first_batch, end_batch; // the window at hand
    int32_t trial_built;            // whose nodes are being made

    pthread_mutex_t lock; // guards everything but the trials' own sink calls
    pthread_cond_t wake;
    pthread_mutex_t end_lock; // one `end` at a time
    size_t n_done;
    int n_waiting;
    bool is_cancelled;
    bool is_fresh;        // MSC_EVAL_FRESH
    bool is_last_attempt; // trials out of memory end now, else they are tried again
    uint64_t steps_run, steps_reused;
    double macs_run, macs_asked;
};

static inline const struct msc_expr *msc_node_expr(const struct msc_schedule *s,
                                                   const struct msc_node *node) {
    return &s->groups[node->group].numbering.exprs[node->expr];
}

// The value of the plan behind target i of a trial, or MSC_NO_ID.
static inline int32_t msc_schedule_target(const struct msc_schedule *s, const struct msc_plan *plan,
                                          int32_t i) {
    if (i >= s->n_wanted) {
        int32_t slot = i - s->n_wanted;
        return slot < plan->sites.n_slots ? plan->slot_values[slot] : MSC_NO_ID;
    }
    bool is_asked = i < plan->n_wanted || plan->wants_remainder || s->sink->slot;
    return is_asked && i < plan->n_live_out ? plan->live_out[i] : MSC_NO_ID;
}

// What an expression's result is found by in the cache. Packed weights serve every batch.
static inline struct msc_hash msc_schedule_key(const struct msc_expr *expr, int32_t batch) {
    return expr->kind == MSC_EXPR_WEIGHTS ? expr->hash
                                          : msc_hash_add_u64(expr->hash, (uint64_t)batch + 1);
}

// The node of an expression for the batch of `node`.
struct msc_node *msc_schedule_node(const struct msc_schedule *s, const struct msc_node *node,
                                   int32_t expr);

// Begins a call: all trials are at their start.
enum msc_status msc_schedule_begin(struct msc_schedule *s);
// Makes the nodes of all trials for the window; groups hold their targets already.
enum msc_status msc_schedule_build(struct msc_schedule *s);
// Walks them to the end. Trials receive their status; MSC_E_CANCELLED when stopped.
enum msc_status msc_schedule_run(struct msc_schedule *s);
// Ends the trials that did not take part in the last window.
void msc_schedule_end(struct msc_schedule *s);

// Nodes that are run together at most.
#define MSC_SCHEDULE_TOGETHER 64

// The nodes that a thread is to run next, up to MSC_SCHEDULE_TOGETHER: several only if they are of
// one step, or hand-overs. Waits for some; 0 when all is done. With the lock.
int32_t msc_schedule_take(struct msc_schedule *s, int32_t ids[]);
// Before the first is taken: where nodes are run together, those ready from the start are.
void msc_schedule_ready_roots(struct msc_schedule *s);

// What a node stands for, without the lock. Those of its inputs and its own entries are there.
enum msc_status msc_schedule_compute(struct msc_schedule *s, const struct msc_node *node,
                                     int thread, void **weights, size_t *weights_bytes);
// The same for n nodes of one step. On failure nothing is known of any of them.
enum msc_status msc_schedule_compute_together(struct msc_schedule *s, const int32_t ids[],
                                              int32_t n, int thread);
// Gives the sink what n sink nodes hold, one after the other until one fails. Returns how many it
// was given; *status is that of the next.
int32_t msc_schedule_feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                               enum msc_status *status);

#ifdef __cplusplus
}
#endif

#endif

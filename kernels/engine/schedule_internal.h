// What the files of the schedule share. Nobody else includes this.
//
// Within one call of msc_schedule_run:
//
//     schedule_targets.c   which value numbers the sink reads of each trial
//     schedule_trials.c    how far each trial is: begins, fails, is over, ends
//     then for each window
//     schedule_build.c     nodes backwards from the targets, down to what the cache has
//     schedule_walk.c      threads take nodes until all are done
//     schedule_take.c          which are next
//     schedule_entries.c       memory for what they make, and when it may go
//     schedule_compute.c       steps and packed weights
//     schedule_quantize.c      quantisations of their own
//     schedule_feed.c          values to the sink
#ifndef MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H
#define MSC_KERNELS_ENGINE_SCHEDULE_INTERNAL_H

#include "kernels/engine/numbering.h"
#include "kernels/engine/schedule.h"

#include <pthread.h>

struct msc_node {
    int32_t expr;                    // id; MSC_NO_ID: a sink node
    int32_t plan;                    // whose expression
    int32_t batch;                   // of weights the first that they were asked for
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

// One plan: its expressions in this call, and where their nodes in this window are.
struct msc_scheduled_plan {
    const struct msc_plan *plan;
    struct msc_numbering numbering;
    int32_t n_batches;
    const int32_t *batches;          // [n_batches] those that run by it, ascending
    int32_t first_column, n_columns; // the batches of the window at hand
    int32_t *nodes;                  // [n_exprs][n_columns] node id or MSC_NO_ID
    size_t nodes_capacity;
    struct msc_value_number *targets; // [n_trials][n_targets]; expr MSC_NO_ID: nothing to read
    size_t targets_capacity;
    int32_t *most_together; // [plan->n_steps] nodes of a step that there was memory for at a time
    // What the targets ask of the plan, whoever answers it.
    int32_t n_steps_asked;
    double macs_asked;
};

struct msc_failure {
    int32_t node; // that failed itself
    enum msc_status status;
    char message[200];
};

struct msc_id_list {
    int32_t *items;
    size_t n, capacity;
};

// How far a trial is.
struct msc_progress {
    int64_t sinks_left;          // nodes, over all batches
    int32_t failed_batch;        // lowest one that failed, or MSC_NO_ID
    int32_t failed_node;         // ... the first there that failed itself
    bool is_over;                // takes no part in further windows
    double macs_asked, macs_run; // those of batches that it took part in
};

struct msc_schedule {
    struct msc_schedule_options options;
    struct msc_scheduled_plan *plans; // [options.n_plans]
    int32_t *columns;                 // [batches] a batch's place among those of its plan
    int32_t *batches;                 // [batches] those of one plan together

    // The job at hand.
    struct msc_job job;
    int32_t n_targets;             // of each trial: live-out values, then slot values
    int32_t n_live_out;            // that go together, as many as the plan with the most has
    struct msc_progress *progress; // [n_trials]
    size_t progress_capacity;

    // The window at hand.
    int32_t first_batch, end_batch;
    struct msc_node *nodes;
    size_t n_nodes, nodes_capacity;
    struct msc_edge *edges;
    size_t n_edges, edges_capacity;
    struct msc_id_list roots; // nodes ready from the start, in order
    size_t next_root;
    struct msc_id_list ready;     // a stack, with room for every node
    struct msc_id_list stack;     // of expressions whose nodes are being made
    int32_t trial_built;          // whose nodes are being made
    struct msc_failure *failures; // the first stands for those there was no memory to note
    size_t n_failures, failures_capacity;

    pthread_mutex_t lock; // guards everything but the trials' own sink calls
    pthread_cond_t wake;
    pthread_mutex_t end_lock; // one `end` at a time
    size_t n_done;
    int n_waiting;
    int stepper; // the thread at a step whose nodes run together, or MSC_NO_ID
    enum msc_status stop; // what ends all trials at once: MSC_E_CANCELLED, MSC_E_LOST; else MSC_OK
    char stop_message[200];
    struct msc_host_buffer *host_buffers; // none of them in use

    struct msc_schedule_stats stats;
};

static inline bool msc_schedule__is_fresh(const struct msc_schedule *s) {
    return (s->job.flags & MSC_EVAL_FRESH) != 0;
}

static inline const struct msc_plan *msc_schedule__plan(const struct msc_schedule *s,
                                                        const struct msc_node *node) {
    return s->plans[node->plan].plan;
}

// Not of a sink node.
static inline const struct msc_expr *msc_schedule__expr(const struct msc_schedule *s,
                                                        const struct msc_node *node) {
    return &s->plans[node->plan].numbering.exprs[node->expr];
}

// Of a node of a step or of its weights.
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

// The targets of a trial [n_targets] under one plan.
static inline struct msc_value_number *msc_schedule__targets(const struct msc_schedule *s,
                                                             const struct msc_scheduled_plan *p,
                                                             size_t trial) {
    return &p->targets[trial * (size_t)s->n_targets];
}

// What an expression's result is found by in the cache. Packed weights serve every batch.
static inline struct msc_hash msc_schedule__key(const struct msc_expr *expr, int32_t batch) {
    return expr->kind == MSC_EXPR_WEIGHTS ? expr->hash
                                          : msc_hash_add_u64(expr->hash, (uint64_t)batch + 1);
}

// Where the id of an expression's node for a batch is kept.
static inline int32_t *msc_schedule__place(const struct msc_schedule *s,
                                           const struct msc_scheduled_plan *p, int32_t expr,
                                           int32_t batch) {
    // Packed weights serve every batch: their node stands under the window's first.
    bool is_shared = p->numbering.exprs[expr].kind == MSC_EXPR_WEIGHTS;
    int32_t column = is_shared ? 0 : s->columns[batch] - p->first_column;
    return &p->nodes[(size_t)expr * (size_t)p->n_columns + (size_t)column];
}

// The node of an expression for the batch of `node`.
static inline struct msc_node *msc_schedule__node(const struct msc_schedule *s,
                                                  const struct msc_node *node, int32_t expr) {
    return &s->nodes[*msc_schedule__place(s, &s->plans[node->plan], expr, node->batch)];
}

// The next node fused into a step, after edge *e (of its own first_edge at the start), or NULL.
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

// ---- Targets ----------------------------------------------------------------------------------

// Numbers the values of all trials under every plan, and notes which of them the sink reads.
enum msc_status msc_schedule__number_trials(struct msc_schedule *s);
// The value of the plan behind target i of a trial, or MSC_NO_ID.
int32_t msc_schedule__target_value(const struct msc_schedule *s, const struct msc_plan *plan,
                                   int32_t i);

// ---- Trials -----------------------------------------------------------------------------------

// To the sink.
void msc_schedule__announce_trials(struct msc_schedule *s);
// All trials are at their start. Their targets are known.
enum msc_status msc_schedule__begin_trials(struct msc_schedule *s);
// A sink node is done, or failed. Returns true when it was the trial's last and `end` is due. With
// the lock.
bool msc_schedule__finish_sink(struct msc_schedule *s, const struct msc_node *node);
// Tells the sink. With the lock, which is let go meanwhile.
void msc_schedule__end_trial(struct msc_schedule *s, int32_t trial);
// A window is done: trials that are over take no part in the next. MSC_E_CANCELLED when stopped;
// MSC_E_LOST where the device was lost.
enum msc_status msc_schedule__end_window(struct msc_schedule *s);
// Ends the trials that did not take part in the last window.
void msc_schedule__end_trials(struct msc_schedule *s);

// ---- A window ---------------------------------------------------------------------------------

// Makes the nodes of all trials that are not over.
enum msc_status msc_schedule__build(struct msc_schedule *s);
// Walks them to the end, or until somebody cancels.
void msc_schedule__walk(struct msc_schedule *s);

// Nodes that are run together at most.
#define MSC_SCHEDULE_TOGETHER 64

// The nodes that a thread is to run next, up to MSC_SCHEDULE_TOGETHER: several only if they are of
// one step, or sink nodes. Waits for some; 0 when all is done. With the lock.
int32_t msc_schedule__take(struct msc_schedule *s, int32_t ids[], int thread);
// Before the first is taken: where nodes are run together, those ready from the start are.
void msc_schedule__ready_roots(struct msc_schedule *s);

// ---- Entries (with the lock) ------------------------------------------------------------------

// Memory for what a node makes: for itself, if anybody reads it, and for what is fused into it.
enum msc_status msc_schedule__allocate_entries(struct msc_schedule *s, struct msc_node *node);
// Of a node that failed, and of what is fused into it.
void msc_schedule__discard_entries(struct msc_schedule *s, struct msc_node *node);
// A node has read its inputs: entries may go when it was their last reader.
void msc_schedule__release_inputs(struct msc_schedule *s, const struct msc_node *node);
// After a stop: lets go of what readers that never ran still hold.
void msc_schedule__release_unread(struct msc_schedule *s);

// ---- What a node stands for (without the lock) ------------------------------------------------

// Those of the node's inputs and its own entries are there. Of weights: *weights is the caller's.
enum msc_status msc_schedule__compute(struct msc_schedule *s, const struct msc_node *node,
                                      int thread, void **weights, size_t *weights_bytes);
// The same for n nodes of one step. On failure nothing is known of any of them.
enum msc_status msc_schedule__compute_together(struct msc_schedule *s, const int32_t ids[],
                                               int32_t n, int thread);
// The quantisation that a node stands for.
enum msc_status msc_schedule__quantize(struct msc_schedule *s, const struct msc_node *node,
                                       int thread);
// Gives the sink what n sink nodes hold, one after the other until one fails. Returns how many it
// was given; *status is that of the next.
int32_t msc_schedule__feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                enum msc_status *status);
// Frees what feeding has kept. Nobody feeds.
void msc_schedule__finish_feeding(struct msc_schedule *s);

// A value that `node` reads as `number`, at the backend's address.
struct msc_view msc_schedule__view(const struct msc_schedule *s, const struct msc_node *node,
                                   int32_t value, struct msc_value_number number);
// A value under a quantisation: integers of a byte, or float32 where they do not fit one. NULL: as
// it is.
struct msc_view msc_schedule__quantized_view(const struct msc_plan *plan, int32_t value,
                                             const struct msc_quant *quant, void *data);

#endif

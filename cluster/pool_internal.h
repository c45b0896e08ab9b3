// The internals of a pool, shared by the pool_*.c files.
#ifndef MSC_CLUSTER_POOL_INTERNAL_H
#define MSC_CLUSTER_POOL_INTERNAL_H

#include "base/alloc.h"
#include "base/str.h"
#include "cluster/node_message.h"
#include "cluster/pool.h"

#define MSC_POOL_NOBODY (-1)

enum msc_pool_worker_state {
    MSC_POOL_ASKED, // init was sent
    MSC_POOL_READY,
};

struct msc_pool_worker {
    int32_t number;
    enum msc_pool_worker_state state;
    char name[160];    // "host 123" or "host 123 of job 45", for example
    bool has_joined;   // was the worker ever ready?
    bool is_new;       // is the worker's arrival yet to be reported?
    double heard_s;    // time of the worker's last line
    double busy_s;     // time of the worker's last report that it is measuring
    double answered_s; // time of the worker's last answer
    size_t n_open;     // parts assigned to the worker now
    uint64_t n_parts;  // parts assigned to the worker so far, without copies of others' parts
    int64_t since;     // id of the first trial that the worker may have measured
};

// A worker that a part is assigned to.
struct msc_pool_holder {
    int32_t worker; // MSC_POOL_NOBODY: unassigned
    bool is_sent;
    double sent_s;
};

// A part: a range of batches of a range of trials.
struct msc_pool_shard {
    uint64_t id;
    struct msc_node_range range;  // n 0: whole trials
    size_t first_trial, n_trials; // indices into the job's order
    bool is_unbounded;
    struct msc_pool_holder holders[2]; // holders[1] has a copy of the part
    int n_lost;
    bool is_done; // answered, or no longer needed
    // A check repeats a piece of shard `of` on worker `checker`; worker `checked` measured it
    // first. The check waits until the shard is answered, so that a trial that kills its process
    // kills only one worker.
    bool is_check, is_waiting;
    size_t of;
    int32_t checked, checker;
};

// Why a worker stopped before a batch of a trial.
struct msc_pool_stop {
    enum msc_trial_cause cause; // MSC_CAUSE_NONE: the trial's bound
    int32_t by;
    char reason[MSC_REASON_BYTES];
};

// The results of a trial so far.
struct msc_pool_trial {
    bool is_done;
    // Of a whole trial: the worker that measured it, and what it answered. The search may change
    // the outcome later, for example if the loss is not a number.
    int32_t by;
    enum msc_trial_state state;
    enum msc_trial_cause cause;
    const double *metrics;
    bool has_rest;    // is the rest being measured without the bound?
    double reuse_sum; // sum over batches
    uint64_t time_us;
};

// One evaluation.
struct msc_pool_job {
    const struct msc_evaluation *e;
    const struct msc_env_part *part; // NULL: all batches
    struct msc_env_batches batches;
    size_t first, end; // range of batches; both 0: whole trials
    struct msc_arena arena;
    size_t *order;                 // [n] trials sorted by choices
    struct msc_pool_trial *trials; // [n]
    double **terms;                // [n]
    uint8_t *is_there;             // [n][batches.n]
    int32_t *by;                   // [n][batches.n]: the worker that measured each batch
    // [n][batches.n]: why a worker stopped before the batch; NULL: no worker did. If another worker
    // measured the batch, the measured result counts.
    const struct msc_pool_stop **stops;
    size_t n_open;
    struct msc_pool_shard *shards;
    size_t n_shards, capacity;
};

struct msc_pool {
    struct msc_pool_options options;
    struct msc_env_elsewhere elsewhere;
    char canary[MSC_HASH_TEXT_BYTES]; // "": no worker has reported one yet
    char identity[MSC_HASH_TEXT_BYTES];
    bool is_begun, has_named_files;
    struct msc_pool_worker *workers;
    size_t n_workers, workers_capacity;
    struct msc_pool_job *job; // NULL: no evaluation runs
    bool has_news;            // have parts or workers changed, so that parts may have to be sent?
    uint64_t next_shard;
    uint64_t secret;   // random, so that workers cannot tell which parts are checked
    double unit_s[64]; // seconds per trial and batch in each of the latest parts
    size_t n_units;
    struct msc_pool_death *deaths;
    size_t n_deaths, deaths_capacity;
    struct msc_pool_figures figures;
    // Time at the last event, in seconds. Only time during which this process read workers' lines
    // counts: workers must not seem late because this process was busy or stopped.
    double now_s;
    double clock_s;     // the clock at the last event
    double looked_s;    // time of the last check of the workers
    double copied_s;    // time of the last search for late parts
    double said_s;      // time of the last warning that no worker is ready
    char absence[256];  // why the last worker failed to start
    char refusal[1024]; // why the last refused worker was refused
    char loss[600];     // why the last dropped worker was dropped; "" once another is ready
    struct msc_str message;
};

// pool.c
// The caller frees shards and arena of *job, also on failure.
enum msc_status msc_pool__open_job(struct msc_pool_job *job, const struct msc_env *env,
                                   const struct msc_evaluation *e, const struct msc_env_part *part);

// pool_find.c
struct msc_pool_holder *msc_pool__find_holder(struct msc_pool_shard *shard, int32_t number);
struct msc_pool_worker *msc_pool__find_worker(struct msc_pool *pool, int32_t number);
size_t msc_pool__n_ready(const struct msc_pool *pool);

// pool_plan.c
// Sorts the job's trials, makes its shards, and assigns each to a worker.
enum msc_status msc_pool__plan(struct msc_pool *pool);
// The share of a worker's parts that are checked, given its number of parts so far.
double msc_pool__check_share(uint64_t n_parts);
enum msc_status msc_pool__add_shard(struct msc_pool *pool, const struct msc_pool_shard *shard);

// pool_job.c
// Handles a worker's answer.
enum msc_status msc_pool__take_answer(struct msc_pool *pool, struct msc_pool_worker *worker,
                                      const cJSON *answer);
// Gives up the trials of a shard that was in flight when a worker died.
enum msc_status msc_pool__give_up(struct msc_pool *pool, size_t index, bool was_alone,
                                  enum msc_worker_death death, int signal_number);

// pool_send.c
enum msc_status msc_pool__send_init(struct msc_pool *pool, struct msc_pool_worker *worker);
void msc_pool__give(struct msc_pool_holder *holder, struct msc_pool_worker *worker);
// Notes the time of a part when its holder has answered.
void msc_pool__note_time(struct msc_pool *pool, const struct msc_pool_worker *worker,
                         const struct msc_pool_shard *shard, const struct msc_pool_holder *holder);
// Sends assigned shards, assigns unassigned shards, and sends copies of late shards.
enum msc_status msc_pool__send(struct msc_pool *pool);

// pool_work.c
void msc_pool__say_who_joined(struct msc_pool *pool);
// Waits for the next event, handles all events that have arrived, then drops workers that are gone
// or mute.
enum msc_status msc_pool__pump(struct msc_pool *pool, double timeout_s);

#endif

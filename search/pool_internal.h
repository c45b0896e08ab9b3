// The inside of a pool, shared by its files.
#ifndef MSC_SEARCH_POOL_INTERNAL_H
#define MSC_SEARCH_POOL_INTERNAL_H

#include "base/alloc.h"
#include "base/str.h"
#include "search/node_message.h"
#include "search/pool.h"

#define MSC_POOL_NOBODY (-1)

enum msc_pool_worker_state {
    MSC_POOL_ASKED, // init was sent
    MSC_POOL_READY,
};

struct msc_pool_worker {
    int32_t number;
    enum msc_pool_worker_state state;
    char name[160];    // "host 123", "host 123 of job 45"
    bool has_joined;   // was ready once
    bool is_new;       // that is still to be told
    double heard_s;    // its last line
    double busy_s;     // when it last said that it measures
    double answered_s; // its last answer
    size_t n_open;     // parts that it has
    uint64_t n_parts;  // that it was given, copies of others' not counted
    int64_t since;     // the first trial that it may have had a part in
};

// Who has a part.
struct msc_pool_holder {
    int32_t worker; // MSC_POOL_NOBODY: none
    bool is_sent;
    double sent_s;
};

// A part: some batches of some trials.
struct msc_pool_shard {
    uint64_t id;
    struct msc_node_range range;  // n 0: trials as a whole
    size_t first_trial, n_trials; // in the job's order
    bool is_unbounded;
    struct msc_pool_holder holders[2]; // the second has a copy
    int n_lost;
    bool is_done; // answered, or nobody is asked any more
    // What another worker, `checked`, measures first, in the shard `of`, to be compared. Until that is answered it
    // waits, so that what ends its process ends no more than one.
    bool is_check, is_waiting;
    size_t of;
    int32_t checked, checker;
};

// Why somebody did not measure a batch of a trial, nor what comes behind it.
struct msc_pool_stop {
    enum msc_trial_cause cause; // MSC_CAUSE_NONE: its bound
    int32_t by;
    char reason[MSC_REASON_BYTES];
};

// What has come of a trial so far.
struct msc_pool_trial {
    bool is_done;
    int32_t by;       // of a trial as a whole: who measured it
    bool has_rest;    // somebody measures on whatever the bound: who stops there is right, too
    double reuse_sum; // over batches
    uint64_t time_us;
};

// One evaluation.
struct msc_pool_job {
    const struct msc_evaluation *e;
    const struct msc_env_part *part; // NULL: all batches
    struct msc_env_batches batches;
    size_t first, end; // batches; both 0: trials as a whole
    struct msc_arena arena;
    size_t *order;                 // [n] trials by their choices
    struct msc_pool_trial *trials; // [n]
    double **terms;                // [n]
    uint8_t *is_there;             // [n][batches.n]
    int32_t *by;                   // the same: who measured what is there
    // [n][batches.n], NULL: nobody has stopped there. What another one has measured counts instead.
    const struct msc_pool_stop **stops;
    size_t n_open;
    struct msc_pool_shard *shards;
    size_t n_shards, capacity;
};

struct msc_pool {
    struct msc_pool_options options;
    struct msc_env_elsewhere elsewhere;
    char canary[MSC_HASH_TEXT_BYTES]; // "": nobody has said yet
    char identity[MSC_HASH_TEXT_BYTES];
    bool is_begun, has_named_files;
    struct msc_pool_worker *workers;
    size_t n_workers, workers_capacity;
    struct msc_pool_job *job; // NULL: none
    bool has_news;            // a part that nobody was sent, or a worker that may have one
    uint64_t next_shard;
    uint64_t secret;   // nobody is to know what is checked
    double unit_s[64]; // what a trial took on a batch, of the last parts
    size_t n_units;
    struct msc_pool_death *deaths;
    size_t n_deaths, deaths_capacity;
    struct msc_pool_figures figures;
    // Seconds in which what workers say was read, as of the last event: while this process does something else,
    // or is stopped, nobody is late.
    double now_s;
    double clock_s;     // of the clock, then
    double looked_s;    // after workers
    double copied_s;    // when what is late was last looked for
    double said_s;      // when it was last said that nobody is there
    char absence[256];  // why the last worker did not come
    char refusal[1024]; // of the last worker that was refused
    char loss[600];     // of one that was given up, as long as no other came to be ready
    struct msc_str message;
};

// pool.c
// Shards and arena of *job are the caller's to free, also on failure.
enum msc_status msc_pool__open_job(struct msc_pool_job *job, const struct msc_env *env,
                                   const struct msc_evaluation *e, const struct msc_env_part *part);

// pool_plan.c
// Sorts the job's trials and makes its shards, each with the worker that should have it.
enum msc_status msc_pool__plan(struct msc_pool *pool);
// Which share of a worker's parts is checked when it has had so many, that one counted.
double msc_pool__check_share(uint64_t n_parts);
enum msc_status msc_pool__add_shard(struct msc_pool *pool, const struct msc_pool_shard *shard);

// pool_job.c
// An answer of a worker.
enum msc_status msc_pool__take_answer(struct msc_pool *pool, struct msc_pool_worker *worker,
                                      const cJSON *answer);
// Trials of the shard are given up: they were in flight where somebody died.
enum msc_status msc_pool__give_up(struct msc_pool *pool, size_t index, bool was_alone,
                                  enum msc_worker_death death, int signal_number);

// pool_send.c
enum msc_status msc_pool__send_init(struct msc_pool *pool, struct msc_pool_worker *worker);
void msc_pool__give(struct msc_pool_holder *holder, struct msc_pool_worker *worker);
// The holder has answered.
void msc_pool__note_time(struct msc_pool *pool, const struct msc_pool_worker *worker,
                         const struct msc_pool_shard *shard, const struct msc_pool_holder *holder);
// Sends shards that nobody has, and copies of what is late.
enum msc_status msc_pool__send(struct msc_pool *pool);

// pool_work.c
struct msc_pool_holder *msc_pool__find_holder(struct msc_pool_shard *shard, int32_t number);
struct msc_pool_worker *msc_pool__find_worker(struct msc_pool *pool, int32_t number);
size_t msc_pool__n_ready(const struct msc_pool *pool);
void msc_pool__say_who_joined(struct msc_pool *pool);
// Takes what happens next, and all that has happened; looks after workers then.
enum msc_status msc_pool__pump(struct msc_pool *pool, double timeout_s);

#endif

// Internal to serve/: the job in memory, shared by the files jobs*.c.
#ifndef MSC_SERVE_JOBS_INTERNAL_H
#define MSC_SERVE_JOBS_INTERNAL_H

#include "serve/jobs.h"

#include "base/str.h"

#include <pthread.h>
#include <sys/types.h>

#define MSC_JOB_FILE "job.json"
#define MSC_JOB_CONFIG ".search.json" // in the folder `files`
#define MSC_JOB_FIRST ".first.yaml"   // likewise, written by `mscgym init`
#define MSC_JOB_RESULT "result.json"
#define MSC_JOB_LOG "log"

enum msc_job_state {
    MSC_JOB_QUEUED,
    MSC_JOB_RUNNING,
    MSC_JOB_DONE,
    MSC_JOB_FAULTY, // "failed"
    MSC_JOB_CANCELLED,
};

struct msc_follow;

// What changes about a job. It is stored in job.json before anybody can see it.
struct msc_job_now {
    enum msc_job_state state;
    bool is_cancelled; // a running job that was asked to stop
    bool is_removed;   // no longer shown; its folder goes once its process has ended
    char *message;
    double begun_s, ended_s; // wall time; 0: not yet
    struct cJSON *progress;  // what msc_job__progress found last; NULL: nothing
};

struct msc_job {
    // Set once. The thread that steps destroys jobs, so it may read these without a lock.
    char id[MSC_JOB_ID_BYTES];
    char *folder;
    int64_t number; // jobs are started in this order
    char *user, *name;
    char *config, *model, *inputs, *labels, *target, *time; // struct msc_job_wish; may be NULL
    double created_s;
    // Changed with both locks held (struct msc_jobs), so a holder of either may read it.
    struct msc_job_now now;
    pid_t pid;         // 0: no process
    bool is_unwritten; // job.json is older than `now`; it is written again
    double asked_s;    // when a request last asked for the state. Guarded by `lock`
    // Used only by the thread that steps:
    bool is_first_config; // the process is `mscgym init`
    bool is_over_quota;
    int64_t n_deaths;      // consecutive deaths of the process without progress
    uint64_t record_bytes; // at the last start
    double blocked_s;      // since when its start has been put off; 0: it is not
    double not_before_s;   // it is not started before this time
    struct msc_follow *follow;
    char *followed; // path of the record
    double looked_s;
};

// Two locks keep requests for states from waiting for the disk. `changes` is held while a job
// changes, also while its state is written. `lock` is held only for moments, to read or replace
// what is in memory. A thread that wants both takes `changes` first.
struct msc_jobs {
    struct msc_jobs_options o;
    pthread_mutex_t changes, lock;
    int folder_lock;
    struct msc_job **items; // in the order of their numbers. Guarded as msc_job_now is
    size_t n, capacity;
    int64_t next_number;
    // Used only by the thread that steps:
    bool is_stopping;   // no search is started any more
    double weighed_s;   // when the disk was measured last
    double rewritten_s; // when unwritten states were tried last
};

// jobs.c: the user's job, or NULL. The caller holds one of the locks.
struct msc_job *msc_jobs__find(struct msc_jobs *jobs, const char *user, const char *id);

// jobs_file.c: job.json. Writing replaces the file in one step.
struct msc_job *msc_job__create(const char *id, const char *folder); // NULL: out of memory
void msc_job__destroy(struct msc_job *job);                          // accepts NULL
enum msc_status msc_job__read(struct msc_job *job);
enum msc_status msc_job__write(const struct msc_job *job, const struct msc_job_now *now);
const char *msc_job__state_name(enum msc_job_state state);
enum msc_status msc_job__set_text(char **text, const char *value); // NULL removes it

// jobs_change.c: changes of a job. The caller holds `changes`.
// Writes `next`, then shows it. Begin `next` as a copy of job->now; texts and objects in it that
// differ from the job's become the job's. If it cannot be written, it is shown all the same if
// `must` is true, and written later; else it is dropped.
enum msc_status msc_job__change(struct msc_jobs *jobs, struct msc_job *job,
                                struct msc_job_now *next, bool must);
void msc_job__set_pid(struct msc_jobs *jobs, struct msc_job *job, pid_t pid);
bool msc_job__signal(const struct msc_job *job, int signal_number);
// Appends a message without the paths of this machine: `part` is a job's folder, or that of all
// jobs.
void msc_job__append_without(struct msc_str *out, const char *text, const char *part);

// jobs_config.c: writes files/.search.json from the job's configuration `from`, a name in its
// folder `files`, with the job's model, inputs and labels and its workspace. Errors as
// msc_jobs_submit.
enum msc_status msc_job__write_config(const struct msc_job *job,
                                      const struct msc_jobs_options *options, const char *from);
// Checks model, inputs and labels for `mscgym init`.
enum msc_status msc_job__check_files(const struct msc_job *job,
                                     const struct msc_jobs_options *options);

// jobs_run.c: the processes. For the thread that steps, without locks.
void msc_job__look(struct msc_jobs *jobs, struct msc_job *job); // has its process ended?
// Starts a queued job. If it cannot be started for a while, `not_before_s` is set; if it never can,
// it fails.
void msc_job__start(struct msc_jobs *jobs, struct msc_job *job);

// jobs_progress.c: what the newest record of a job shows. For the thread that steps, without locks.
// Looks some times a second at a job that somebody asks for, and less often at others; always if
// `is_last`.
void msc_job__progress(struct msc_jobs *jobs, struct msc_job *job, bool is_last);
// The newest record in a job's folder, in the arena; NULL: none.
const char *msc_job__newest_record(const char *folder, struct msc_arena *arena);
uint64_t msc_job__record_bytes(const struct msc_job *job); // size of the newest record; 0: none

#endif

// Internal to serve/: the job in memory, shared by the files jobs*.c.
#ifndef MSC_SERVE_JOBS_INTERNAL_H
#define MSC_SERVE_JOBS_INTERNAL_H

#include "serve/jobs.h"

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

struct msc_job {
    char id[MSC_JOB_ID_BYTES];
    char *folder;
    // Stored in job.json:
    int64_t number; // jobs are started in this order
    enum msc_job_state state;
    bool is_cancelled; // a running job that was asked to stop
    bool is_removed;   // no longer shown; its folder goes once its process has ended
    char *user, *name, *message;
    char *config, *model, *inputs, *labels, *target, *time; // struct msc_job_wish; may be NULL
    double created_s, begun_s, ended_s;                     // wall time; 0: not yet
    struct cJSON *progress; // what msc_job__progress found last; NULL: nothing
    // Only in memory:
    pid_t pid;            // 0: no process
    bool is_first_config; // the process is `mscgym init`
    bool is_over_quota;
    bool is_unwritten;     // job.json could not be written; it is tried again
    int64_t n_deaths;      // consecutive deaths of the process without progress
    uint64_t record_bytes; // at the last start
    struct msc_follow *follow;
    char *followed; // path of the record
    double looked_s;
};

struct msc_jobs {
    struct msc_jobs_options o;
    pthread_mutex_t lock;
    int folder_lock;
    struct msc_job **items; // in the order of their numbers
    size_t n, capacity;
    int64_t next_number;
    double weighed_s;   // when the disk was measured last
    bool is_stopping;   // no search is started any more
    double rewritten_s; // when unwritten states were tried last
};

// jobs.c: the user's job, or NULL. The caller holds the lock.
struct msc_job *msc_jobs__find(struct msc_jobs *jobs, const char *user, const char *id);

// jobs_file.c: job.json. Writing replaces the file in one step.
struct msc_job *msc_job__create(const char *id, const char *folder); // NULL: out of memory
void msc_job__destroy(struct msc_job *job);                          // accepts NULL
enum msc_status msc_job__read(struct msc_job *job);
enum msc_status msc_job__write(const struct msc_job *job);
const char *msc_job__state_name(enum msc_job_state state);
enum msc_status msc_job__set_text(char **text, const char *value); // NULL removes it

// jobs_config.c: writes files/.search.json from the job's configuration `from`, a name in its folder
// `files`, with the job's model, inputs and labels and its workspace. Errors as msc_jobs_submit.
enum msc_status msc_job__write_config(const struct msc_job *job,
                                      const struct msc_jobs_options *options, const char *from);
// Checks model, inputs and labels for `mscgym init`.
enum msc_status msc_job__check_files(const struct msc_job *job,
                                     const struct msc_jobs_options *options);

// jobs_run.c: the processes. The caller holds the lock.
void msc_job__look(struct msc_jobs *jobs, struct msc_job *job);  // has its process ended?
void msc_job__start(struct msc_jobs *jobs, struct msc_job *job); // a queued job
bool msc_job__signal(struct msc_job *job, int signal_number);

// jobs_progress.c: what the newest record of a job shows, kept in job->progress. Looks at most some
// times a second unless `is_last`.
void msc_job__progress(struct msc_job *job, bool is_last);
// The newest record in a job's folder, in the arena; NULL: none.
const char *msc_job__newest_record(const char *folder, struct msc_arena *arena);
uint64_t msc_job__record_bytes(const struct msc_job *job); // size of the newest record; 0: none

#endif

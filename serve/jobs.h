// The jobs of the service: a folder with a folder for each job, and the processes that run them.
//
//     JOBS/lock           held while a server uses the folder
//     JOBS/ID/job.json    the job: who, what, and its state; replaced in one step
//     JOBS/ID/files/      what was uploaded, and .search.json, the configuration that runs
//     JOBS/ID/work/       the search's workspace: records, plans, models
//     JOBS/ID/log         messages of the search
//     JOBS/ID/result.json what the search printed at its end
//     JOBS/.new-ID, .gone-ID   jobs that are being uploaded or removed
//
// A job is a child process, `mscgym search` under its own supervision. A state is written before it
// shown, and a killed server takes its searches along. So after a restart every job is where it
// was: jobs that ran are queued again, and their searches continue from their records. A request
// for states reads memory only: it waits for no disk.
//
// Functions may be called by any thread, except that one thread opens, steps and closes.
#ifndef MSC_SERVE_JOBS_H
#define MSC_SERVE_JOBS_H

#include "base/log.h"
#include "serve/users.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct msc_jobs;

#define MSC_JOB_ID_BYTES 13                    // 12 hexadecimal digits and NUL
#define MSC_JOB_CONFIG_BYTES ((size_t)1 << 20) // most bytes of a configuration

struct msc_jobs_options {
    const char *folder;
    const char *const *roots; // folders whose files jobs may read
    size_t n_roots;
    const char *cluster; // passed on to searches; NULL: none
    const char *device;  // likewise
    int64_t threads;     // of all searches together; <= 0: all processors
    uint64_t memory_bytes;
    int64_t most_running; // searches at once
    struct msc_users *users;
    bool allow_code; // configurations may name libraries and programs
    const struct msc_log *log;
};

// What a user asks for. Strings are borrowed; NULL: not given. Paths are those of files in the
// job's folder `files`, or of files under a root.
struct msc_job_wish {
    const struct msc_user *user;
    const char *name;   // shown to people
    const char *config; // NULL: `mscgym init` makes one of model and inputs
    const char *model, *inputs, *labels;
    const char *target, *time; // for `mscgym init`
};

// Why a request about a job is refused.
enum msc_job_answer {
    MSC_JOB_OK,
    MSC_JOB_UNKNOWN,  // the user has no such job
    MSC_JOB_REFUSED,  // not in the job's state; the message says why
    MSC_JOB_FAILED,   // the disk; the message says why
    MSC_JOB_TOO_MANY, // the user has as many jobs as allowed
};

// Takes the folder over: finds its jobs, removes what was half made. MSC_E_STATE: another server
// uses the folder. Strings in the options are borrowed until close. *out is owned by the caller.
enum msc_status msc_jobs_open(struct msc_jobs **out, const struct msc_jobs_options *options);
// Notes which searches ended, and starts others. Call it some times a second.
void msc_jobs_step(struct msc_jobs *jobs);
// Asks all searches to stop after their rounds, and starts no other.
void msc_jobs_begin_stop(struct msc_jobs *jobs);
// Then waits until they have ended. Their jobs continue after the next start. If `is_wanted_now`
// becomes true, they do not finish their rounds.
void msc_jobs_stop(struct msc_jobs *jobs, bool (*is_wanted_now)(void));
void msc_jobs_close(struct msc_jobs *jobs); // accepts NULL

// ---- Requests ---------------------------------------------------------------------------------

// Makes JOBS/.new-ID/files for an upload; *folder is JOBS/.new-ID, owned by the caller (msc_free).
enum msc_status msc_jobs_begin(struct msc_jobs *jobs, char **folder);
// Checks the wish and makes the folder a job. On failure, and to give up, call msc_jobs_abandon.
// MSC_E_INVALID, MSC_E_FORMAT: the wish is wrong. MSC_E_STATE: it names code.
enum msc_status msc_jobs_submit(struct msc_jobs *jobs, char id[MSC_JOB_ID_BYTES],
                                enum msc_job_answer *answer, const char *folder,
                                const struct msc_job_wish *wish);
void msc_jobs_abandon(const char *folder);

// The user's jobs, newest first, or one of them, as JSON (docs/serve.md). *out is owned by the
// caller; NULL: the user has no such job.
enum msc_status msc_jobs_list(struct msc_jobs *jobs, struct cJSON **out,
                              const struct msc_user *user);
enum msc_status msc_jobs_describe(struct msc_jobs *jobs, struct cJSON **out,
                                  const struct msc_user *user, const char *id);
// What the service has, and how busy it is with the jobs of all users.
struct msc_jobs_load {
    size_t n_running, n_waiting, most_running;
    int64_t threads; // of all searches together
    uint64_t memory_bytes;
    const char *cluster; // borrowed until msc_jobs_close; NULL: none
};
struct msc_jobs_load msc_jobs_load(struct msc_jobs *jobs);
// The folder of a job, owned by the caller; NULL: the user has no such job, or memory is short.
char *msc_jobs_folder(struct msc_jobs *jobs, const struct msc_user *user, const char *id);
// Bytes on the disk of all jobs of a user. Reads their folders, so it may take long.
uint64_t msc_jobs_disk_bytes(struct msc_jobs *jobs, const struct msc_user *user);
// Stops a job: after the current round; a second time, at once.
enum msc_job_answer msc_jobs_cancel(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id);
// Queues a job again that failed or was cancelled. Its search continues.
enum msc_job_answer msc_jobs_resume(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id);
enum msc_job_answer msc_jobs_remove(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id);

#endif

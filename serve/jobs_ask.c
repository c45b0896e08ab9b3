// Requests about jobs.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <signal.h>
#include <string.h>

// ---- Describing -------------------------------------------------------------------------------

// The number of jobs that are started before this queued one if nothing changes.
static size_t n_before(const struct msc_jobs *jobs, const struct msc_job *job) {
    size_t n = 0;
    for (size_t i = 0; i < jobs->n && jobs->items[i] != job; i++) {
        n += jobs->items[i]->state == MSC_JOB_QUEUED && !jobs->items[i]->is_removed;
    }
    return n;
}

static enum msc_status add_time(cJSON *object, const char *key, double seconds) {
    char text[MSC_CLOCK_TEXT_BYTES];
    return seconds > 0.0 ? msc_json_add_text(object, key, msc_clock_format(text, seconds))
                         : msc_json_add(object, key, cJSON_CreateNull());
}

static enum msc_status describe(cJSON *object, const struct msc_jobs *jobs, struct msc_job *job) {
    bool is_stopping = job->state == MSC_JOB_RUNNING && job->is_cancelled;
    MSC_TRY(msc_json_add_text(object, "id", job->id));
    MSC_TRY(msc_json_add_text(object, "name", job->name));
    MSC_TRY(msc_json_add_text(object, "user", job->user));
    MSC_TRY(msc_json_add_text(object, "state",
                              is_stopping ? "stopping" : msc_job__state_name(job->state)));
    MSC_TRY(add_time(object, "created", job->created_s));
    MSC_TRY(add_time(object, "begun", job->begun_s));
    MSC_TRY(add_time(object, "ended", job->ended_s));
    if (job->state == MSC_JOB_QUEUED) {
        MSC_TRY(msc_json_add_number(object, "jobs_before", (double)n_before(jobs, job)));
    }
    if (job->message) {
        MSC_TRY(msc_json_add_text(object, "message", job->message));
    }
    if (job->state == MSC_JOB_RUNNING) {
        msc_job__progress(job, false);
    }
    return job->progress ? msc_json_add(object, "progress", cJSON_Duplicate(job->progress, true))
                         : MSC_OK;
}

static enum msc_status make(cJSON **out, const struct msc_jobs *jobs, struct msc_job *job) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(object);
    if (status == MSC_OK) {
        status = describe(object, jobs, job);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

enum msc_status msc_jobs_describe(struct msc_jobs *jobs, struct cJSON **out,
                                  const struct msc_user *user, const char *id) {
    *out = NULL;
    pthread_mutex_lock(&jobs->lock);
    struct msc_job *job = msc_jobs__find(jobs, user->name, id);
    enum msc_status status = job ? make(out, jobs, job) : MSC_OK;
    pthread_mutex_unlock(&jobs->lock);
    return status;
}

enum msc_status msc_jobs_list(struct msc_jobs *jobs, struct cJSON **out,
                              const struct msc_user *user) {
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_ALLOCATED(list);
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = jobs->n; status == MSC_OK && i-- > 0;) {
        struct msc_job *job = jobs->items[i];
        cJSON *object = NULL;
        if (!job->is_removed && strcmp(job->user, user->name) == 0) {
            status = make(&object, jobs, job);
            status = status == MSC_OK ? msc_json_push(list, object) : status;
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    if (status != MSC_OK) {
        cJSON_Delete(list);
        return status;
    }
    *out = list;
    return MSC_OK;
}

char *msc_jobs_folder(struct msc_jobs *jobs, const struct msc_user *user, const char *id) {
    pthread_mutex_lock(&jobs->lock);
    const struct msc_job *job = msc_jobs__find(jobs, user->name, id);
    char *folder = job ? msc_strdup(job->folder) : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return folder;
}

uint64_t msc_jobs_disk_bytes(struct msc_jobs *jobs, const struct msc_user *user) {
    uint64_t sum = 0;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < jobs->n; i++) {
        if (strcmp(jobs->items[i]->user, user->name) == 0) {
            sum += msc_file_tree_bytes(jobs->items[i]->folder);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return sum;
}

// ---- Changing ---------------------------------------------------------------------------------

// The states of a job that a request changes, to restore them if they cannot be written.
struct before {
    enum msc_job_state state;
    bool is_cancelled, is_removed;
    double ended_s;
};

// What stops a job is done even if it cannot be written: it is how a full disk gets room again.
static enum msc_job_answer write_or_restore(struct msc_job *job, const struct before *b) {
    bool stops = job->is_cancelled || job->is_removed || job->state == MSC_JOB_CANCELLED;
    bool is_written = msc_job__write(job) == MSC_OK;
    job->is_unwritten = !is_written && stops;
    if (is_written || stops) {
        return MSC_JOB_OK;
    }
    job->state = b->state;
    job->is_cancelled = b->is_cancelled;
    job->is_removed = b->is_removed;
    job->ended_s = b->ended_s;
    return MSC_JOB_FAILED;
}

static enum msc_job_answer refuse(const struct msc_job *job, const char *what) {
    (void)MSC_FAIL(MSC_E_STATE, "job %s is %s and cannot be %s", job->id,
                   msc_job__state_name(job->state), what);
    return MSC_JOB_REFUSED;
}

static enum msc_job_answer cancel(struct msc_job *job) {
    enum msc_job_answer answer = MSC_JOB_OK;
    if (job->state == MSC_JOB_RUNNING) {
        job->is_cancelled = true;
    } else if (job->state == MSC_JOB_QUEUED) {
        job->state = MSC_JOB_CANCELLED;
        job->ended_s = msc_clock_wall_seconds();
    } else {
        answer = refuse(job, "cancelled");
    }
    return answer;
}

static enum msc_job_answer resume(struct msc_job *job) {
    if (job->state != MSC_JOB_FAULTY && job->state != MSC_JOB_CANCELLED) {
        return refuse(job, "resumed");
    }
    job->state = MSC_JOB_QUEUED;
    job->ended_s = 0.0;
    job->n_deaths = 0;
    return msc_job__set_text(&job->message, NULL) == MSC_OK ? MSC_JOB_OK : MSC_JOB_FAILED;
}

static enum msc_job_answer remove_job(struct msc_job *job) {
    job->is_removed = true;
    return MSC_JOB_OK;
}

// Changes a job, writes it, and sends its process the signal; 0: none.
static enum msc_job_answer change(struct msc_jobs *jobs, const struct msc_user *user,
                                  const char *id, int signal_number,
                                  enum msc_job_answer (*how)(struct msc_job *)) {
    enum msc_job_answer answer = MSC_JOB_UNKNOWN;
    pthread_mutex_lock(&jobs->lock);
    struct msc_job *job = msc_jobs__find(jobs, user->name, id);
    if (job) {
        const struct before before = {.state = job->state,
                                      .is_cancelled = job->is_cancelled,
                                      .is_removed = job->is_removed,
                                      .ended_s = job->ended_s};
        answer = how(job);
        answer = answer == MSC_JOB_OK ? write_or_restore(job, &before) : answer;
        if (answer == MSC_JOB_OK && signal_number != 0) {
            (void)msc_job__signal(job, signal_number);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return answer;
}

enum msc_job_answer msc_jobs_cancel(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id) {
    return change(jobs, user, id, SIGTERM, cancel);
}

enum msc_job_answer msc_jobs_resume(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id) {
    return change(jobs, user, id, 0, resume);
}

enum msc_job_answer msc_jobs_remove(struct msc_jobs *jobs, const struct msc_user *user,
                                    const char *id) {
    return change(jobs, user, id, SIGKILL, remove_job);
}

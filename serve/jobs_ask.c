// Requests about jobs.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <signal.h>
#include <string.h>

// ---- Describing -------------------------------------------------------------------------------

static bool is_waiting(const struct msc_job *job) {
    return job->now.state == MSC_JOB_QUEUED && !job->now.is_removed;
}

// The number of queued jobs before this one (NULL: of all).
static size_t n_before(const struct msc_jobs *jobs, const struct msc_job *job) {
    size_t n = 0;
    for (size_t i = 0; i < jobs->n && jobs->items[i] != job; i++) {
        n += is_waiting(jobs->items[i]);
    }
    return n;
}

static enum msc_status add_time(cJSON *object, const char *key, double seconds) {
    char text[MSC_CLOCK_TEXT_BYTES];
    return seconds > 0.0 ? msc_json_add_text(object, key, msc_clock_format(text, seconds))
                         : msc_json_add(object, key, cJSON_CreateNull());
}

static enum msc_status describe(cJSON *object, const struct msc_job *job, size_t jobs_before) {
    const struct msc_job_now *now = &job->now;
    bool is_stopping = now->state == MSC_JOB_RUNNING && now->is_cancelled;
    MSC_TRY(msc_json_add_text(object, "id", job->id));
    MSC_TRY(msc_json_add_text(object, "name", job->name));
    MSC_TRY(msc_json_add_text(object, "user", job->user));
    MSC_TRY(msc_json_add_text(object, "state",
                              is_stopping ? "stopping" : msc_job__state_name(now->state)));
    MSC_TRY(add_time(object, "created", job->created_s));
    MSC_TRY(add_time(object, "begun", now->begun_s));
    MSC_TRY(add_time(object, "ended", now->ended_s));
    if (now->state == MSC_JOB_QUEUED) {
        MSC_TRY(msc_json_add_number(object, "jobs_before", (double)jobs_before));
    }
    if (now->message) {
        MSC_TRY(msc_json_add_text(object, "message", now->message));
    }
    return now->progress ? msc_json_add(object, "progress", cJSON_Duplicate(now->progress, true))
                         : MSC_OK;
}

static enum msc_status make(cJSON **out, struct msc_job *job, size_t jobs_before) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(object);
    job->asked_s = msc_clock_seconds();
    if (status == MSC_OK) {
        status = describe(object, job, jobs_before);
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
    enum msc_status status = job ? make(out, job, n_before(jobs, job)) : MSC_OK;
    pthread_mutex_unlock(&jobs->lock);
    return status;
}

enum msc_status msc_jobs_list(struct msc_jobs *jobs, struct cJSON **out,
                              const struct msc_user *user) {
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_ALLOCATED(list);
    pthread_mutex_lock(&jobs->lock);
    size_t jobs_before = n_before(jobs, NULL);
    for (size_t i = jobs->n; status == MSC_OK && i-- > 0;) {
        struct msc_job *job = jobs->items[i];
        cJSON *object = NULL;
        jobs_before -= is_waiting(job);
        if (!job->now.is_removed && strcmp(job->user, user->name) == 0) {
            status = make(&object, job, jobs_before);
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

struct msc_jobs_load msc_jobs_load(struct msc_jobs *jobs) {
    struct msc_jobs_load load = {.most_running = (size_t)jobs->o.most_running,
                                 .threads = jobs->o.threads,
                                 .memory_bytes = jobs->o.memory_bytes,
                                 .cluster = jobs->o.cluster};
    pthread_mutex_lock(&jobs->lock);
    load.n_waiting = n_before(jobs, NULL);
    for (size_t i = 0; i < jobs->n; i++) {
        load.n_running += jobs->items[i]->now.state == MSC_JOB_RUNNING;
    }
    pthread_mutex_unlock(&jobs->lock);
    return load;
}

char *msc_jobs_folder(struct msc_jobs *jobs, const struct msc_user *user, const char *id) {
    pthread_mutex_lock(&jobs->lock);
    const struct msc_job *job = msc_jobs__find(jobs, user->name, id);
    char *folder = job ? msc_strdup(job->folder) : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return folder;
}

// ---- Changing ---------------------------------------------------------------------------------

static enum msc_job_answer refuse(const struct msc_job *job, const char *what) {
    (void)MSC_FAIL(MSC_E_STATE, "job %s is %s and cannot be %s", job->id,
                   msc_job__state_name(job->now.state), what);
    return MSC_JOB_REFUSED;
}

static enum msc_job_answer cancel(struct msc_job_now *next, const struct msc_job *job) {
    if (next->state == MSC_JOB_RUNNING) {
        next->is_cancelled = true;
    } else if (next->state == MSC_JOB_QUEUED) {
        next->state = MSC_JOB_CANCELLED;
        next->ended_s = msc_clock_wall_seconds();
    } else {
        return refuse(job, "cancelled");
    }
    return MSC_JOB_OK;
}

static enum msc_job_answer resume(struct msc_job_now *next, const struct msc_job *job) {
    if (next->state != MSC_JOB_FAULTY && next->state != MSC_JOB_CANCELLED) {
        return refuse(job, "resumed");
    }
    next->state = MSC_JOB_QUEUED;
    next->ended_s = 0.0;
    next->message = NULL;
    return MSC_JOB_OK;
}

static enum msc_job_answer remove_job(struct msc_job_now *next, const struct msc_job *job) {
    (void)job;
    next->is_removed = true;
    return MSC_JOB_OK;
}

// Changes a job and sends its process the signal; 0: none.
static enum msc_job_answer
change(struct msc_jobs *jobs, const struct msc_user *user, const char *id, int signal_number,
       enum msc_job_answer (*how)(struct msc_job_now *, const struct msc_job *)) {
    enum msc_job_answer answer = MSC_JOB_UNKNOWN;
    pthread_mutex_lock(&jobs->changes);
    struct msc_job *job = msc_jobs__find(jobs, user->name, id);
    if (job) {
        struct msc_job_now next = job->now;
        answer = how(&next, job);
        // What stops a job is done even if it cannot be written: so a full disk gets room again.
        bool stops = next.is_cancelled || next.is_removed || next.state == MSC_JOB_CANCELLED;
        if (answer == MSC_JOB_OK && msc_job__change(jobs, job, &next, stops) != MSC_OK && !stops) {
            answer = MSC_JOB_FAILED;
        }
        if (answer == MSC_JOB_OK && signal_number != 0) {
            (void)msc_job__signal(job, signal_number);
        }
    }
    pthread_mutex_unlock(&jobs->changes);
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

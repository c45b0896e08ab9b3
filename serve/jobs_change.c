// Changes of a job: first on the disk, then in memory.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#include <signal.h>
#include <string.h>

void msc_job__append_without(struct msc_str *out, const char *text, const char *part) {
    const char *found = NULL;
    while (part && part[0] && (found = strstr(text, part)) != NULL) {
        msc_str_append_n(out, text, (size_t)(found - text));
        text = found + strlen(part);
        text += *text == '/';
        text += strncmp(text, "files/", 6) == 0 ? 6 : 0;
    }
    msc_str_append(out, text);
}

static void finish_other(struct msc_job_now *now, const struct msc_job_now *kept) {
    if (now->message != kept->message) {
        msc_free(now->message);
    }
    if (now->progress != kept->progress) {
        cJSON_Delete(now->progress);
    }
}

enum msc_status msc_job__change(struct msc_jobs *jobs, struct msc_job *job,
                                struct msc_job_now *next, bool must) {
    enum msc_status status = msc_job__write(job, next);
    if (status != MSC_OK && !must) {
        finish_other(next, &job->now);
        return status;
    }
    pthread_mutex_lock(&jobs->lock);
    struct msc_job_now old = job->now;
    job->now = *next;
    job->is_unwritten = status != MSC_OK;
    pthread_mutex_unlock(&jobs->lock);
    finish_other(&old, next);
    return status;
}

void msc_job__set_pid(struct msc_jobs *jobs, struct msc_job *job, pid_t pid) {
    pthread_mutex_lock(&jobs->lock);
    job->pid = pid;
    pthread_mutex_unlock(&jobs->lock);
}

bool msc_job__signal(const struct msc_job *job, int signal_number) {
    return job->pid > 0 && kill(job->pid, signal_number) == 0;
}

// What the records of a job show.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "results/follow.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

// Records lie in the workspace or in a folder in it.
#define DEEPEST 2
// The pause between two looks at a record, if somebody has asked for its job within ASKED_S or not.
#define SHORT_PAUSE_S 0.25
#define LONG_PAUSE_S 2.0
#define ASKED_S 5.0

struct newest {
    char *path; // NULL: none
    struct stat info;
};

static bool is_newer(const struct stat *a, const struct stat *b) {
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

static void find_newest(struct newest *out, struct msc_arena *arena, const char *folder,
                        int depth) {
    DIR *list = opendir(folder);
    for (const struct dirent *item; list && (item = readdir(list)) != NULL;) {
        struct stat info;
        char *path = item->d_name[0] != '.' ? msc_path_join(arena, folder, item->d_name) : NULL;
        if (!path || lstat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode) && depth < DEEPEST) {
            find_newest(out, arena, path, depth + 1);
        } else if (S_ISREG(info.st_mode) && msc_path_ends_in(path, ".jsonl") &&
                   (!out->path || is_newer(&info, &out->info))) {
            out->path = path;
            out->info = info;
        }
    }
    if (list) {
        closedir(list);
    }
}

static struct newest newest_of(const char *folder, struct msc_arena *arena) {
    struct newest newest = {0};
    const char *work = msc_path_join(arena, folder, "work");
    if (work) {
        find_newest(&newest, arena, work, 0);
    }
    return newest;
}

const char *msc_job__newest_record(const char *folder, struct msc_arena *arena) {
    return newest_of(folder, arena).path;
}

uint64_t msc_job__record_bytes(const struct msc_job *job) {
    struct msc_arena arena = {0};
    struct newest newest = newest_of(job->folder, &arena);
    uint64_t bytes = newest.path ? (uint64_t)newest.info.st_size : 0;
    msc_arena_finish(&arena);
    return bytes;
}

static void forget(struct msc_job *job) {
    msc_follow_close(job->follow);
    msc_free(job->followed);
    job->follow = NULL;
    job->followed = NULL;
}

static enum msc_status follow(struct msc_job *job, const char *path) {
    if (!job->followed || strcmp(job->followed, path) != 0) {
        forget(job);
        MSC_TRY(msc_follow_open(&job->follow, path, NULL));
        job->followed = msc_strdup(path);
        MSC_TRY(MSC_ALLOCATED(job->followed));
    }
    return msc_follow_read(job->follow);
}

// The state of the record without what only this machine knows.
static enum msc_status describe(cJSON **out, struct msc_job *job) {
    static const char *const local[] = {"record", "running", "workers", "improvements",
                                        "best_over_trials"};
    struct msc_follow_state state;
    cJSON *object = NULL;
    MSC_TRY(msc_follow_now(&state, job->follow));
    MSC_TRY(msc_follow_describe(&object, job->follow, 1));
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, local[i]);
    }
    enum msc_status status = isfinite(state.best)
                                 ? msc_json_add_number(object, "best", state.best)
                                 : msc_json_add(object, "best", cJSON_CreateNull());
    if (status == MSC_OK) {
        status = msc_json_add_text(object, "record", msc_path_name(job->followed));
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

static bool is_due(struct msc_jobs *jobs, const struct msc_job *job, double now_s) {
    pthread_mutex_lock(&jobs->lock);
    bool is_asked = now_s - job->asked_s < ASKED_S;
    pthread_mutex_unlock(&jobs->lock);
    return now_s - job->looked_s >= (is_asked ? SHORT_PAUSE_S : LONG_PAUSE_S);
}

static void show(struct msc_jobs *jobs, struct msc_job *job, cJSON *progress) {
    pthread_mutex_lock(&jobs->changes);
    pthread_mutex_lock(&jobs->lock);
    cJSON *old = job->now.progress;
    job->now.progress = progress;
    pthread_mutex_unlock(&jobs->lock);
    pthread_mutex_unlock(&jobs->changes);
    cJSON_Delete(old);
}

void msc_job__progress(struct msc_jobs *jobs, struct msc_job *job, bool is_last) {
    struct msc_arena arena = {0};
    double now_s = msc_clock_seconds();
    cJSON *progress = NULL;
    if (!is_last && !is_due(jobs, job, now_s)) {
        return;
    }
    job->looked_s = now_s;
    struct newest newest = newest_of(job->folder, &arena);
    // A record that has only begun cannot be read yet; the last progress is kept.
    if (newest.path && follow(job, newest.path) == MSC_OK && describe(&progress, job) == MSC_OK) {
        show(jobs, job, progress);
    }
    if (is_last || !progress) {
        forget(job);
    }
    msc_arena_finish(&arena);
}

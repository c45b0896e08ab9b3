#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NEW ".new-"
#define GONE ".gone-"
// The disk that a user's jobs use is measured this often.
#define WEIGH_S 5.0
#define REWRITE_S 2.0
// Searches that do not end for this long after the request are killed.
#define STOP_S 120.0
// The part of the memory that searches get if no limit is given.
#define MEMORY_PART 0.8

// ---- The list ---------------------------------------------------------------------------------

struct msc_job *msc_jobs__find(struct msc_jobs *jobs, const char *user, const char *id) {
    for (size_t i = 0; i < jobs->n; i++) {
        struct msc_job *job = jobs->items[i];
        if (strcmp(job->id, id) == 0) {
            return !job->is_removed && strcmp(job->user, user) == 0 ? job : NULL;
        }
    }
    return NULL;
}

static size_t count(const struct msc_jobs *jobs, const char *user, bool is_running) {
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct msc_job *job = jobs->items[i];
        n += (is_running ? job->pid > 0 : !job->is_removed) &&
             (!user || strcmp(job->user, user) == 0);
    }
    return n;
}

// Inserts a job by its number, and takes ownership of it.
static enum msc_status insert(struct msc_jobs *jobs, struct msc_job *job) {
    MSC_TRY(msc_grow(&jobs->items, &jobs->capacity, jobs->n + 1, sizeof jobs->items[0]));
    size_t at = jobs->n;
    for (; at > 0 && jobs->items[at - 1]->number > job->number; at--) {
        jobs->items[at] = jobs->items[at - 1];
    }
    jobs->items[at] = job;
    jobs->n++;
    jobs->next_number = job->number >= jobs->next_number ? job->number + 1 : jobs->next_number;
    return MSC_OK;
}

static void drop(struct msc_jobs *jobs, size_t at) {
    msc_job__destroy(jobs->items[at]);
    jobs->n--;
    memmove(&jobs->items[at], &jobs->items[at + 1], (jobs->n - at) * sizeof jobs->items[0]);
}

// ---- Opening ----------------------------------------------------------------------------------

static bool is_id(const char *name) {
    return strlen(name) == MSC_JOB_ID_BYTES - 1 &&
           strspn(name, "0123456789abcdef") == MSC_JOB_ID_BYTES - 1;
}

static enum msc_status load_job(struct msc_jobs *jobs, const char *id, struct msc_arena *arena) {
    const char *folder = msc_path_join(arena, jobs->o.folder, id);
    struct msc_job *job = folder ? msc_job__create(id, folder) : NULL;
    MSC_TRY(MSC_ALLOCATED(job));
    enum msc_status status = msc_job__read(job);
    if (status == MSC_OK && job->state == MSC_JOB_RUNNING) {
        job->state = job->is_cancelled ? MSC_JOB_CANCELLED : MSC_JOB_QUEUED;
        job->is_cancelled = false;
        job->ended_s = job->state == MSC_JOB_CANCELLED ? msc_clock_wall_seconds() : 0.0;
        job->is_unwritten = msc_job__write(job) != MSC_OK; // a full disk: it is tried again
    }
    if (status == MSC_OK) {
        status = insert(jobs, job);
    }
    if (status != MSC_OK) {
        msc_job__destroy(job);
    }
    return status;
}

static enum msc_status load_jobs(struct msc_jobs *jobs) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    DIR *list = opendir(jobs->o.folder);
    if (!list) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot be read: %s", jobs->o.folder, strerror(errno));
    }
    for (const struct dirent *item; status == MSC_OK && (item = readdir(list)) != NULL;) {
        if (strncmp(item->d_name, NEW, strlen(NEW)) == 0 ||
            strncmp(item->d_name, GONE, strlen(GONE)) == 0) {
            msc_file_remove_tree(dirfd(list), item->d_name);
        } else if (is_id(item->d_name)) {
            status = load_job(jobs, item->d_name, &arena);
        }
    }
    closedir(list);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status take_folder(struct msc_jobs *jobs) {
    struct msc_arena arena = {0};
    const char *path = msc_path_join(&arena, jobs->o.folder, "lock");
    enum msc_status status = MSC_ALLOCATED(path);
    if (status == MSC_OK) {
        status = msc_file_make_folders(jobs->o.folder);
    }
    if (status == MSC_OK) {
        jobs->folder_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        status = jobs->folder_lock >= 0
                     ? MSC_OK
                     : MSC_FAIL(MSC_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (status == MSC_OK && flock(jobs->folder_lock, LOCK_EX | LOCK_NB) != 0) {
        status = MSC_FAIL(MSC_E_STATE, "%s: another server uses this folder", jobs->o.folder);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_jobs_open(struct msc_jobs **out, const struct msc_jobs_options *options) {
    struct msc_jobs *jobs = msc_alloc_zero(1, sizeof *jobs);
    MSC_TRY(MSC_ALLOCATED(jobs));
    jobs->o = *options;
    jobs->folder_lock = -1;
    jobs->next_number = 1;
    pthread_mutex_init(&jobs->lock, NULL);
    if (jobs->o.threads <= 0) {
        jobs->o.threads = msc_machine_n_threads();
    }
    if (jobs->o.memory_bytes == 0) {
        jobs->o.memory_bytes = (uint64_t)(MEMORY_PART * (double)msc_machine_limit_bytes());
    }
    enum msc_status status = take_folder(jobs);
    if (status == MSC_OK) {
        status = load_jobs(jobs);
    }
    if (status != MSC_OK) {
        msc_jobs_close(jobs);
        return status;
    }
    *out = jobs;
    return MSC_OK;
}

void msc_jobs_close(struct msc_jobs *jobs) {
    if (!jobs) {
        return;
    }
    while (jobs->n > 0) {
        drop(jobs, jobs->n - 1);
    }
    if (jobs->folder_lock >= 0) {
        close(jobs->folder_lock);
    }
    pthread_mutex_destroy(&jobs->lock);
    msc_free(jobs->items);
    msc_free(jobs);
}

// ---- Running ----------------------------------------------------------------------------------

static const struct msc_user *user_named(const struct msc_jobs *jobs, const char *name) {
    for (size_t i = 0; i < jobs->o.users->n; i++) {
        if (strcmp(jobs->o.users->items[i].name, name) == 0) {
            return &jobs->o.users->items[i];
        }
    }
    return NULL;
}

// When a job of the user was last started.
static double last_begun(const struct msc_jobs *jobs, const char *user) {
    double last = 0.0;
    for (size_t i = 0; i < jobs->n; i++) {
        bool is_later = jobs->items[i]->begun_s > last;
        last = is_later && strcmp(jobs->items[i]->user, user) == 0 ? jobs->items[i]->begun_s : last;
    }
    return last;
}

// The next job to start: the oldest of the user with the fewest running ones; of several such users,
// of the one who has waited longest since a start. NULL: none may start.
static struct msc_job *next_job(const struct msc_jobs *jobs) {
    struct msc_job *best = NULL;
    size_t least = 0;
    double longest = 0.0;
    for (size_t i = 0; i < jobs->n; i++) {
        struct msc_job *job = jobs->items[i];
        if (job->state != MSC_JOB_QUEUED || job->is_removed) {
            continue;
        }
        const struct msc_user *user = user_named(jobs, job->user);
        size_t n = count(jobs, job->user, true);
        bool may = !user || n < (size_t)user->running;
        double begun = last_begun(jobs, job->user);
        if (may && (!best || n < least || (n == least && begun < longest))) {
            best = job;
            least = n;
            longest = begun;
        }
    }
    return best;
}

static void start_jobs(struct msc_jobs *jobs) {
    for (size_t n = count(jobs, NULL, true); n < (size_t)jobs->o.most_running; n++) {
        struct msc_job *job = next_job(jobs);
        if (!job) {
            return;
        }
        msc_job__start(jobs, job);
        if (job->state == MSC_JOB_QUEUED) {
            return; // its last process is still ending
        }
    }
}

static uint64_t weigh(const struct msc_jobs *jobs, const char *user) {
    uint64_t sum = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        if (strcmp(jobs->items[i]->user, user) == 0) {
            sum += msc_file_tree_bytes(jobs->items[i]->folder);
        }
    }
    return sum;
}

// Stops the searches of users whose jobs use more of the disk than they may.
static void check_quotas(struct msc_jobs *jobs) {
    for (size_t i = 0; i < jobs->o.users->n; i++) {
        const struct msc_user *user = &jobs->o.users->items[i];
        if (count(jobs, user->name, true) == 0 || weigh(jobs, user->name) <= user->disk_bytes) {
            continue;
        }
        for (size_t j = 0; j < jobs->n; j++) {
            struct msc_job *job = jobs->items[j];
            if (job->pid > 0 && strcmp(job->user, user->name) == 0 && !job->is_over_quota) {
                job->is_over_quota = msc_job__signal(job, SIGTERM);
            }
        }
    }
}

static void rewrite(struct msc_jobs *jobs) {
    for (size_t i = 0; i < jobs->n; i++) {
        struct msc_job *job = jobs->items[i];
        if (job->is_unwritten) {
            job->is_unwritten = msc_job__write(job) != MSC_OK;
        }
    }
}

// Renames the folders of removed jobs whose processes have ended. The rest needs no lock.
static void hide_removed(struct msc_jobs *jobs) {
    for (size_t i = jobs->n; i-- > 0;) {
        struct msc_job *job = jobs->items[i];
        if (!job->is_removed || job->pid > 0) {
            continue;
        }
        struct msc_arena arena = {0};
        const char *to = msc_arena_printf(&arena, "%s/" GONE "%s", jobs->o.folder, job->id);
        if (to && msc_file_rename(job->folder, to) == MSC_OK) {
            drop(jobs, i);
        }
        msc_arena_finish(&arena);
    }
}

static void sweep(const struct msc_jobs *jobs) {
    DIR *list = opendir(jobs->o.folder);
    for (const struct dirent *item; list && (item = readdir(list)) != NULL;) {
        if (strncmp(item->d_name, GONE, strlen(GONE)) == 0) {
            msc_file_remove_tree(dirfd(list), item->d_name);
        }
    }
    if (list) {
        closedir(list);
    }
}

void msc_jobs_step(struct msc_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    double now_s = msc_clock_seconds();
    size_t n_before = jobs->n;
    for (size_t i = 0; i < jobs->n; i++) {
        msc_job__look(jobs, jobs->items[i]);
    }
    if (now_s - jobs->weighed_s >= WEIGH_S) {
        jobs->weighed_s = now_s;
        check_quotas(jobs);
    }
    if (now_s - jobs->rewritten_s >= REWRITE_S) {
        jobs->rewritten_s = now_s;
        rewrite(jobs);
    }
    hide_removed(jobs);
    if (!jobs->is_stopping) {
        start_jobs(jobs);
    }
    bool is_fewer = jobs->n < n_before;
    pthread_mutex_unlock(&jobs->lock);
    if (is_fewer) {
        sweep(jobs);
    }
}

static void signal_all(struct msc_jobs *jobs, int signal_number) {
    pthread_mutex_lock(&jobs->lock);
    jobs->is_stopping = true;
    for (size_t i = 0; i < jobs->n; i++) {
        (void)msc_job__signal(jobs->items[i], signal_number);
    }
    pthread_mutex_unlock(&jobs->lock);
}

static size_t n_running(struct msc_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    size_t n = count(jobs, NULL, true);
    pthread_mutex_unlock(&jobs->lock);
    return n;
}

void msc_jobs_stop(struct msc_jobs *jobs, bool (*is_wanted_now)(void)) {
    const struct timespec pause = {.tv_nsec = 20000000};
    double begin_s = msc_clock_seconds();
    bool is_urgent = false;
    signal_all(jobs, SIGTERM);
    while (n_running(jobs) > 0) {
        if (!is_urgent && is_wanted_now()) {
            is_urgent = true;
            signal_all(jobs, SIGTERM); // the second request: at once
        }
        if (msc_clock_seconds() - begin_s > STOP_S) {
            signal_all(jobs, SIGKILL);
        }
        nanosleep(&pause, NULL);
        msc_jobs_step(jobs);
    }
}

// ---- Submitting -------------------------------------------------------------------------------

enum msc_status msc_jobs_begin(struct msc_jobs *jobs, char **folder) {
    struct msc_arena arena = {0};
    unsigned char bytes[(MSC_JOB_ID_BYTES - 1) / 2];
    char id[MSC_JOB_ID_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return MSC_FAIL(MSC_E_IO, "cannot make a job: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    }
    const char *path = msc_arena_printf(&arena, "%s/" NEW "%s", jobs->o.folder, id);
    static const char *const inner[] = {"files", "work"};
    enum msc_status status = MSC_ALLOCATED(path);
    for (size_t i = 0; status == MSC_OK && i < 2; i++) {
        const char *sub = msc_path_join(&arena, path, inner[i]);
        status = MSC_ALLOCATED(sub);
        status = status == MSC_OK ? msc_file_make_folders(sub) : status;
    }
    if (status == MSC_OK) {
        *folder = msc_strdup(path);
        status = MSC_ALLOCATED(*folder);
    }
    if (status != MSC_OK && path) {
        msc_file_remove_tree(AT_FDCWD, path);
    }
    msc_arena_finish(&arena);
    return status;
}

void msc_jobs_abandon(const char *folder) {
    msc_file_remove_tree(AT_FDCWD, folder);
}

static enum msc_status fill(struct msc_job *job, const struct msc_job_wish *w) {
    MSC_TRY(msc_job__set_text(&job->user, w->user->name));
    MSC_TRY(msc_job__set_text(&job->name, w->name ? w->name : job->id));
    MSC_TRY(msc_job__set_text(&job->config, w->config));
    MSC_TRY(msc_job__set_text(&job->model, w->model));
    MSC_TRY(msc_job__set_text(&job->inputs, w->inputs));
    MSC_TRY(msc_job__set_text(&job->labels, w->labels));
    MSC_TRY(msc_job__set_text(&job->target, w->target));
    MSC_TRY(msc_job__set_text(&job->time, w->time));
    job->created_s = msc_clock_wall_seconds();
    return MSC_OK;
}

// The folder becomes a job in one step: by its new name.
static enum msc_status publish(struct msc_jobs *jobs, struct msc_job *job,
                               enum msc_job_answer *answer, const struct msc_user *user) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    const char *to = msc_path_join(&arena, jobs->o.folder, job->id);
    char *folder = to ? msc_strdup(to) : NULL;
    MSC_TRY_OUT(MSC_ALLOCATED(folder));
    if (count(jobs, user->name, false) >= (size_t)user->jobs) {
        *answer = MSC_JOB_TOO_MANY;
        status = MSC_FAIL(MSC_E_STATE, "%s has %lld jobs, which is the limit; remove one first",
                          user->name, (long long)user->jobs);
        goto out;
    }
    job->number = jobs->next_number;
    MSC_TRY_OUT(msc_grow(&jobs->items, &jobs->capacity, jobs->n + 1, sizeof jobs->items[0]));
    MSC_TRY_OUT(msc_job__write(job));
    MSC_TRY_OUT(msc_file_rename(job->folder, folder));
    msc_file_sync_folder(folder);
    msc_free(job->folder);
    job->folder = folder;
    folder = NULL;
    status = insert(jobs, job);
out:
    msc_free(folder);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_jobs_submit(struct msc_jobs *jobs, char id[MSC_JOB_ID_BYTES],
                                enum msc_job_answer *answer, const char *folder,
                                const struct msc_job_wish *wish) {
    const char *name = msc_path_name(folder) + strlen(NEW);
    struct msc_job *job = msc_job__create(name, folder);
    enum msc_status status = MSC_OK;
    *answer = MSC_JOB_OK;
    MSC_TRY(MSC_ALLOCATED(job));
    MSC_TRY_OUT(fill(job, wish));
    if (job->config) {
        MSC_TRY_OUT(msc_job__write_config(job, &jobs->o, job->config));
    } else {
        MSC_TRY_OUT(msc_job__check_files(job, &jobs->o));
    }
    snprintf(id, MSC_JOB_ID_BYTES, "%s", job->id);
    pthread_mutex_lock(&jobs->lock);
    status = publish(jobs, job, answer, wish->user);
    pthread_mutex_unlock(&jobs->lock);
out:
    if (status != MSC_OK) {
        msc_job__destroy(job);
    }
    return status;
}

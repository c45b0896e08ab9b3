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
            return !job->now.is_removed && strcmp(job->user, user) == 0 ? job : NULL;
        }
    }
    return NULL;
}

static size_t count(const struct msc_jobs *jobs, const char *user, bool is_running) {
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct msc_job *job = jobs->items[i];
        n += (is_running ? job->pid > 0 : !job->now.is_removed) &&
             (!user || strcmp(job->user, user) == 0);
    }
    return n;
}

static enum msc_status reserve(struct msc_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    enum msc_status status =
        msc_grow(&jobs->items, &jobs->capacity, jobs->n + 1, sizeof jobs->items[0]);
    pthread_mutex_unlock(&jobs->lock);
    return status;
}

// Inserts a job by its number into reserved room, and takes ownership of it.
static void insert(struct msc_jobs *jobs, struct msc_job *job) {
    pthread_mutex_lock(&jobs->lock);
    size_t at = jobs->n;
    for (; at > 0 && jobs->items[at - 1]->number > job->number; at--) {
        jobs->items[at] = jobs->items[at - 1];
    }
    jobs->items[at] = job;
    jobs->n++;
    jobs->next_number = job->number >= jobs->next_number ? job->number + 1 : jobs->next_number;
    pthread_mutex_unlock(&jobs->lock);
}

static void drop(struct msc_jobs *jobs, size_t at) {
    pthread_mutex_lock(&jobs->lock);
    struct msc_job *job = jobs->items[at];
    jobs->n--;
    memmove(&jobs->items[at], &jobs->items[at + 1], (jobs->n - at) * sizeof jobs->items[0]);
    pthread_mutex_unlock(&jobs->lock);
    msc_job__destroy(job);
}

// For the thread that steps: other threads only add jobs, behind the others.
static struct msc_job *job_at(struct msc_jobs *jobs, size_t i) {
    pthread_mutex_lock(&jobs->lock);
    struct msc_job *job = i < jobs->n ? jobs->items[i] : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

// ---- Opening ----------------------------------------------------------------------------------

static bool is_id(const char *name) {
    return strlen(name) == MSC_JOB_ID_BYTES - 1 &&
           strspn(name, "0123456789abcdef") == MSC_JOB_ID_BYTES - 1;
}

// A job that ran when the server ended is queued again.
static void requeue(struct msc_jobs *jobs, struct msc_job *job) {
    struct msc_job_now next = job->now;
    next.state = next.is_cancelled ? MSC_JOB_CANCELLED : MSC_JOB_QUEUED;
    next.is_cancelled = false;
    next.ended_s = next.state == MSC_JOB_CANCELLED ? msc_clock_wall_seconds() : 0.0;
    (void)msc_job__change(jobs, job, &next, true); // a full disk: it is written later
}

// A job that cannot be read is left out, with its files.
static enum msc_status load_job(struct msc_jobs *jobs, const char *id, struct msc_arena *arena) {
    const char *folder = msc_path_join(arena, jobs->o.folder, id);
    struct msc_job *job = folder ? msc_job__create(id, folder) : NULL;
    MSC_TRY(MSC_ALLOCATED(job));
    enum msc_status status = msc_job__read(job);
    bool is_readable = status == MSC_OK;
    if (!is_readable && status != MSC_E_NOMEM) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "job %s is left out: %s", id, msc_status_message());
        status = MSC_OK;
    } else if (is_readable) {
        status = reserve(jobs);
    }
    if (status != MSC_OK || !is_readable) {
        msc_job__destroy(job);
        return status;
    }
    if (job->now.state == MSC_JOB_RUNNING) {
        requeue(jobs, job);
    }
    insert(jobs, job);
    return MSC_OK;
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
    pthread_mutex_init(&jobs->changes, NULL);
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
    pthread_mutex_destroy(&jobs->changes);
    msc_free(jobs->items);
    msc_free(jobs);
}

// ---- Running ----------------------------------------------------------------------------------

// What decides whose job is next.
struct turn {
    struct msc_job *oldest; // queued job that may start; NULL: none
    size_t n_running, most_running;
    double begun_s; // when a job of the user was last started
};

// The index of a user; users that the file no longer has share the last one.
static size_t user_index(const struct msc_users *users, const char *name) {
    size_t i = 0;
    while (i < users->n && strcmp(users->items[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void note_turn(struct turn *t, struct msc_job *job, double now_s) {
    bool may_start = job->now.state == MSC_JOB_QUEUED && !job->now.is_removed && job->pid == 0 &&
                     job->not_before_s <= now_s;
    t->n_running += job->pid > 0;
    t->begun_s = job->now.begun_s > t->begun_s ? job->now.begun_s : t->begun_s;
    t->oldest = may_start && !t->oldest ? job : t->oldest;
}

static bool is_before(const struct turn *a, const struct turn *b) {
    return a->n_running != b->n_running ? a->n_running < b->n_running
           : a->begun_s != b->begun_s   ? a->begun_s < b->begun_s
                                        : a->oldest->number < b->oldest->number;
}

// The next job to start: the oldest of the user with the fewest running ones; of several such
// users, of the one who has waited longest since a start. NULL: none may start.
static struct msc_job *next_job(struct msc_jobs *jobs) {
    const struct msc_users *users = jobs->o.users;
    const struct turn *best = NULL;
    struct msc_job *found = NULL;
    struct turn *turns = msc_alloc_zero(users->n + 1, sizeof *turns);
    if (!turns) {
        return NULL; // it is tried again at the next step
    }
    double now_s = msc_clock_seconds();
    pthread_mutex_lock(&jobs->changes);
    for (size_t i = 0; i < jobs->n; i++) {
        note_turn(&turns[user_index(users, jobs->items[i]->user)], jobs->items[i], now_s);
    }
    pthread_mutex_unlock(&jobs->changes);
    for (size_t i = 0; i <= users->n; i++) {
        const struct turn *t = &turns[i];
        bool may = t->oldest && (i == users->n || t->n_running < (size_t)users->items[i].running);
        best = may && (!best || is_before(t, best)) ? t : best;
    }
    found = best ? best->oldest : NULL;
    msc_free(turns);
    return found;
}

static size_t n_running(struct msc_jobs *jobs, const char *user) {
    pthread_mutex_lock(&jobs->lock);
    size_t n = count(jobs, user, true);
    pthread_mutex_unlock(&jobs->lock);
    return n;
}

// A job that does not start holds up no other: it has failed, or is put off.
static void start_jobs(struct msc_jobs *jobs) {
    struct msc_job *job = NULL;
    while (n_running(jobs, NULL) < (size_t)jobs->o.most_running && (job = next_job(jobs)) != NULL) {
        msc_job__start(jobs, job);
    }
}

uint64_t msc_jobs_disk_bytes(struct msc_jobs *jobs, const struct msc_user *user) {
    struct msc_arena arena = {0};
    size_t n = 0;
    uint64_t sum = 0;
    pthread_mutex_lock(&jobs->lock);
    const char **folders = msc_arena_array(&arena, jobs->n + 1, sizeof *folders);
    for (size_t i = 0; folders && i < jobs->n; i++) {
        const struct msc_job *job = jobs->items[i];
        const char *folder =
            strcmp(job->user, user->name) == 0 ? msc_arena_strdup(&arena, job->folder) : NULL;
        if (folder) {
            folders[n++] = folder;
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < n; i++) {
        sum += msc_file_tree_bytes(folders[i]);
    }
    msc_arena_finish(&arena);
    return sum;
}

static void signal_user(struct msc_jobs *jobs, const struct msc_user *user) {
    pthread_mutex_lock(&jobs->changes);
    for (size_t i = 0; i < jobs->n; i++) {
        struct msc_job *job = jobs->items[i];
        if (strcmp(job->user, user->name) == 0 && msc_job__signal(job, SIGTERM)) {
            job->is_over_quota = true;
        }
    }
    pthread_mutex_unlock(&jobs->changes);
}

// Stops the searches of users whose jobs use more of the disk than they may: first after their
// rounds, and at once if they still run when the disk is measured again.
static void check_quotas(struct msc_jobs *jobs) {
    for (size_t i = 0; i < jobs->o.users->n; i++) {
        const struct msc_user *user = &jobs->o.users->items[i];
        if (n_running(jobs, user->name) > 0 && msc_jobs_disk_bytes(jobs, user) > user->disk_bytes) {
            signal_user(jobs, user);
        }
    }
}

static void rewrite(struct msc_jobs *jobs) {
    pthread_mutex_lock(&jobs->changes);
    for (size_t i = 0; i < jobs->n; i++) {
        if (jobs->items[i]->is_unwritten) {
            struct msc_job_now now = jobs->items[i]->now;
            (void)msc_job__change(jobs, jobs->items[i], &now, true);
        }
    }
    pthread_mutex_unlock(&jobs->changes);
}

// Renames the folders of removed jobs whose processes have ended. True: there are some to remove.
static bool hide_removed(struct msc_jobs *jobs) {
    bool is_any = false;
    pthread_mutex_lock(&jobs->changes);
    for (size_t i = jobs->n; i-- > 0;) {
        struct msc_job *job = jobs->items[i];
        if (!job->now.is_removed || job->pid > 0) {
            continue;
        }
        struct msc_arena arena = {0};
        const char *to = msc_arena_printf(&arena, "%s/" GONE "%s", jobs->o.folder, job->id);
        if (to && msc_file_rename(job->folder, to) == MSC_OK) {
            drop(jobs, i);
            is_any = true;
        }
        msc_arena_finish(&arena);
    }
    pthread_mutex_unlock(&jobs->changes);
    return is_any;
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
    double now_s = msc_clock_seconds();
    struct msc_job *job = NULL;
    for (size_t i = 0; (job = job_at(jobs, i)) != NULL; i++) {
        msc_job__look(jobs, job);
    }
    if (now_s - jobs->weighed_s >= WEIGH_S) {
        check_quotas(jobs);
        jobs->weighed_s = msc_clock_seconds(); // measuring may take long
    }
    if (now_s - jobs->rewritten_s >= REWRITE_S) {
        jobs->rewritten_s = now_s;
        rewrite(jobs);
    }
    if (hide_removed(jobs)) {
        sweep(jobs);
    }
    if (!jobs->is_stopping) {
        start_jobs(jobs);
    }
}

static void signal_all(struct msc_jobs *jobs, int signal_number) {
    pthread_mutex_lock(&jobs->changes);
    for (size_t i = 0; i < jobs->n; i++) {
        (void)msc_job__signal(jobs->items[i], signal_number);
    }
    pthread_mutex_unlock(&jobs->changes);
}

void msc_jobs_begin_stop(struct msc_jobs *jobs) {
    jobs->is_stopping = true;
    signal_all(jobs, SIGTERM);
}

void msc_jobs_stop(struct msc_jobs *jobs, bool (*is_wanted_now)(void)) {
    const struct timespec pause = {.tv_nsec = 20000000};
    double begin_s = msc_clock_seconds();
    bool is_urgent = false;
    while (n_running(jobs, NULL) > 0) {
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
    MSC_TRY_OUT(reserve(jobs));
    MSC_TRY_OUT(msc_job__write(job, &job->now));
    MSC_TRY_OUT(msc_file_rename(job->folder, folder));
    msc_file_sync_folder(folder);
    msc_free(job->folder);
    job->folder = folder;
    folder = NULL;
    insert(jobs, job);
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
    pthread_mutex_lock(&jobs->changes);
    status = publish(jobs, job, answer, wish->user);
    pthread_mutex_unlock(&jobs->changes);
out:
    if (status != MSC_OK) {
        msc_job__destroy(job);
    }
    return status;
}

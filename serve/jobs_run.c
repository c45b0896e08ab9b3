// The process of a job.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "serve/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The same process file, also after an upgrade replaced it.
#define PROGRAM "/proc/self/exe"
#define MOST_WORDS 24
// A job that cannot be started for a while is tried again after this time.
#define RETRY_S 0.25
// A process of the last run ends within this time, or the job fails.
#define MOST_ENDING_S 60.0
// A search whose process dies again and again without progress fails.
#define MOST_DEATHS 4
// The exit code of a search that was stopped on request (cli/cli.h).
#define EXIT_STOPPED 4
#define TAIL_BYTES 4096
#define OVER_QUOTA "the user's disk quota is used up; remove jobs and resume"

// ---- Starting ---------------------------------------------------------------------------------

struct words {
    const char *items[MOST_WORDS];
    size_t n;
    char threads[24], memory[24];
};

static void add(struct words *w, const char *name, const char *value) {
    if (value) {
        w->items[w->n++] = name;
        w->items[w->n++] = value;
    }
}

static void add_resources(struct words *w, const struct msc_jobs_options *o) {
    int64_t threads = o->threads / o->most_running;
    snprintf(w->threads, sizeof w->threads, "%lld", (long long)(threads > 0 ? threads : 1));
    snprintf(w->memory, sizeof w->memory, "%llu",
             (unsigned long long)(o->memory_bytes / (uint64_t)o->most_running));
    add(w, "--threads", w->threads);
    add(w, "--memory", o->memory_bytes > 0 ? w->memory : NULL);
    add(w, "--device", o->device);
    add(w, "--color", "never");
}

static void name_search(struct words *w, const struct msc_jobs_options *o) {
    *w = (struct words){.items = {PROGRAM, "search", "files/" MSC_JOB_CONFIG, "--json"}, .n = 4};
    add_resources(w, o);
    add(w, "--cluster", o->cluster);
}

// A file of the job, or a path under a root.
static const char *input_path(struct msc_arena *arena, const char *path) {
    return path ? msc_path_join(arena, "files", path) : NULL;
}

static enum msc_status name_first(struct words *w, const struct msc_job *job,
                                  const struct msc_jobs_options *o, struct msc_arena *arena) {
    const char *model = input_path(arena, job->model);
    const char *inputs = input_path(arena, job->inputs);
    const char *labels = input_path(arena, job->labels);
    MSC_TRY(MSC_ALLOCATED(model && inputs && (labels || !job->labels)));
    *w = (struct words){.items = {PROGRAM, "init"}, .n = 2};
    add_resources(w, o);
    add(w, "--inputs", inputs);
    add(w, "--labels", labels);
    add(w, "--target", job->target);
    add(w, "--time", job->time);
    add(w, "--output", "files/" MSC_JOB_FIRST);
    add(w, "--", model);
    return MSC_OK;
}

// Opens the job's lock. MSC_E_STATE: a process of the last run is still ending.
static enum msc_status take_lock(int *out, const struct msc_job *job, struct msc_arena *arena) {
    const char *path = msc_path_join(arena, job->folder, "lock");
    MSC_TRY(MSC_ALLOCATED(path));
    *out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*out < 0) {
        return MSC_FAIL(msc_spawn_status(errno), "cannot open the job's file \"lock\": %s",
                        strerror(errno));
    }
    if (flock(*out, LOCK_EX | LOCK_NB) != 0) {
        close(*out);
        return MSC_FAIL(MSC_E_STATE, "a process of the job's last run does not end");
    }
    return MSC_OK;
}

static bool has_file(const struct msc_job *job, const char *name, struct msc_arena *arena) {
    const char *path = msc_path_join(arena, job->folder, name);
    return path && msc_file_exists(path);
}

static enum msc_status spawn_job(pid_t *pid, struct msc_job *job,
                                 const struct msc_jobs_options *o) {
    struct msc_arena arena = {0};
    struct words words;
    int lock = -1;
    enum msc_status status = take_lock(&lock, job, &arena);
    if (status == MSC_OK) {
        job->is_first_config = !has_file(job, "files/" MSC_JOB_CONFIG, &arena);
        if (job->is_first_config) {
            const char *left = msc_path_join(&arena, job->folder, "files/" MSC_JOB_FIRST);
            status = MSC_ALLOCATED(left);
            status = status == MSC_OK ? msc_file_remove(left) : status; // of a killed attempt
            status = status == MSC_OK ? name_first(&words, job, o, &arena) : status;
        } else {
            name_search(&words, o);
        }
        if (status == MSC_OK) {
            status = msc_spawn(pid, &(struct msc_spawn){.argv = words.items,
                                                        .folder = job->folder,
                                                        .output = MSC_JOB_RESULT,
                                                        .log = MSC_JOB_LOG,
                                                        .kept = lock});
        }
        close(lock); // the process holds it now
    }
    msc_arena_finish(&arena);
    return status;
}

// NULL also if memory is short.
static char *shown_message(const struct msc_job *job, const char *message) {
    struct msc_str shown = {0};
    char *text = NULL;
    msc_job__append_without(&shown, message ? message : "", job->folder);
    if (!message || msc_str_take(&text, &shown) != MSC_OK) {
        msc_str_finish(&shown);
    }
    return text;
}

static void end(struct msc_jobs *jobs, struct msc_job *job, enum msc_job_state state,
                const char *message) {
    struct msc_job_now next = job->now;
    next.state = state;
    next.is_cancelled = false;
    next.ended_s = state == MSC_JOB_QUEUED ? 0.0 : msc_clock_wall_seconds();
    next.message = shown_message(job, message);
    job->n_deaths = state == MSC_JOB_QUEUED ? job->n_deaths : 0;
    job->blocked_s = 0.0;
    msc_log(jobs->o.log, MSC_LOG_INFO, "job %s of %s: %s%s%s", job->id, job->user,
            msc_job__state_name(state), next.message ? ": " : "", next.message ? next.message : "");
    if (msc_job__change(jobs, job, &next, true) != MSC_OK) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "%s", msc_status_message());
    }
}

// The job has not started. It is put off if the reason may go away by itself: a process of its last
// run is still ending (MSC_E_STATE), or the machine has no room (MSC_E_NOMEM).
static void put_off(struct msc_jobs *jobs, struct msc_job *job, enum msc_status status) {
    double now_s = msc_clock_seconds();
    // A job may have been cancelled since the last attempt, and resumed.
    bool is_first = job->blocked_s == 0.0 || now_s - job->not_before_s > MOST_ENDING_S;
    job->blocked_s = is_first ? now_s : job->blocked_s;
    bool may_pass =
        status == MSC_E_NOMEM || (status == MSC_E_STATE && now_s - job->blocked_s < MOST_ENDING_S);
    if (!may_pass) {
        end(jobs, job, MSC_JOB_FAULTY, msc_status_message());
        return;
    }
    job->not_before_s = now_s + RETRY_S;
    if (is_first && status == MSC_E_NOMEM) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "job %s of %s waits: %s", job->id, job->user,
                msc_status_message());
    }
}

// The caller holds `changes`.
static void start(struct msc_jobs *jobs, struct msc_job *job, uint64_t bytes) {
    pid_t pid = 0;
    struct msc_job_now next = job->now;
    if (next.state != MSC_JOB_QUEUED || next.is_removed) {
        return; // a request changed it just now
    }
    enum msc_status status = spawn_job(&pid, job, &jobs->o);
    if (status != MSC_OK) {
        put_off(jobs, job, status);
        return;
    }
    msc_job__set_pid(jobs, job, pid);
    job->n_deaths = bytes != job->record_bytes ? 0 : job->n_deaths;
    job->record_bytes = bytes;
    job->is_over_quota = false;
    job->blocked_s = 0.0;
    next.state = MSC_JOB_RUNNING;
    next.begun_s = next.begun_s > 0.0 ? next.begun_s : msc_clock_wall_seconds();
    if (msc_job__change(jobs, job, &next, true) != MSC_OK) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "%s", msc_status_message());
    }
    msc_log(jobs->o.log, MSC_LOG_INFO, "job %s of %s: running, process %ld", job->id, job->user,
            (long)pid);
}

void msc_job__start(struct msc_jobs *jobs, struct msc_job *job) {
    uint64_t bytes = msc_job__record_bytes(job);
    pthread_mutex_lock(&jobs->changes);
    start(jobs, job, bytes);
    pthread_mutex_unlock(&jobs->changes);
}

// ---- Ending -----------------------------------------------------------------------------------

// The last line of the log that is not empty, as a message for people.
static void read_last_line(char line[512], const struct msc_job *job) {
    struct msc_arena arena = {0};
    char tail[TAIL_BYTES + 1];
    struct stat info;
    const char *path = msc_path_join(&arena, job->folder, MSC_JOB_LOG);
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = 0;
    snprintf(line, 512, "the search failed without a message");
    if (descriptor >= 0 && fstat(descriptor, &info) == 0) {
        off_t from = info.st_size > TAIL_BYTES ? info.st_size - TAIL_BYTES : 0;
        n = pread(descriptor, tail, TAIL_BYTES, from);
    }
    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' ')) {
        n--;
    }
    if (n > 0) {
        tail[n] = '\0';
        const char *begin = strrchr(tail, '\n');
        begin = begin ? begin + 1 : tail;
        begin += strncmp(begin, "mscgym: ", 8) == 0 ? 8 : 0;
        snprintf(line, 512, "%s", begin);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    msc_arena_finish(&arena);
}

// How a process ended.
struct ending {
    int signal_number; // 0: by itself
    int code;
    bool is_kept; // what it wrote is on the disk, and is well formed
    uint64_t record_bytes;
    char line[512]; // why it failed; the last line of its log
};

// The result is on the disk before the job is done.
static enum msc_status sync_result(const struct msc_job *job) {
    struct msc_arena arena = {0};
    const char *path = msc_path_join(&arena, job->folder, MSC_JOB_RESULT);
    enum msc_status status = MSC_ALLOCATED(path);
    status = status == MSC_OK ? msc_file_sync(path) : status;
    msc_arena_finish(&arena);
    return status;
}

// Everything that takes time, before the job changes.
static void look_at_files(struct ending *e, const struct msc_jobs *jobs, struct msc_job *job) {
    enum msc_status status = MSC_OK;
    e->record_bytes = msc_job__record_bytes(job);
    if (e->signal_number == 0 && e->code == 0) {
        // `mscgym init` has written a configuration, with which the job's search begins.
        status = job->is_first_config ? msc_job__write_config(job, &jobs->o, MSC_JOB_FIRST)
                                      : sync_result(job);
        snprintf(e->line, sizeof e->line, "%s", status != MSC_OK ? msc_status_message() : "");
    } else {
        read_last_line(e->line, job);
    }
    e->is_kept = status == MSC_OK;
}

static void end_by_signal(struct msc_jobs *jobs, struct msc_job *job, const struct ending *e) {
    char text[96];
    job->n_deaths = e->record_bytes != job->record_bytes ? 1 : job->n_deaths + 1;
    snprintf(text, sizeof text, "the search was ended by signal %d", e->signal_number);
    if (job->now.is_cancelled) {
        end(jobs, job, MSC_JOB_CANCELLED, NULL);
    } else if (job->is_over_quota) {
        end(jobs, job, MSC_JOB_FAULTY, OVER_QUOTA);
    } else if (jobs->is_stopping || job->n_deaths < MOST_DEATHS) {
        end(jobs, job, MSC_JOB_QUEUED, NULL);
    } else {
        end(jobs, job, MSC_JOB_FAULTY, text);
    }
}

static void end_by_exit(struct msc_jobs *jobs, struct msc_job *job, const struct ending *e) {
    if (e->code == 0 && e->is_kept && job->is_first_config) {
        end(jobs, job, job->now.is_cancelled ? MSC_JOB_CANCELLED : MSC_JOB_QUEUED, NULL);
    } else if (e->code == 0 && e->is_kept) {
        end(jobs, job, MSC_JOB_DONE, NULL);
    } else if (job->is_over_quota) {
        end(jobs, job, MSC_JOB_FAULTY, OVER_QUOTA);
    } else if (job->now.is_cancelled) {
        end(jobs, job, MSC_JOB_CANCELLED, NULL);
    } else if (e->code == EXIT_STOPPED) {
        end(jobs, job, jobs->is_stopping ? MSC_JOB_QUEUED : MSC_JOB_CANCELLED, NULL);
    } else {
        end(jobs, job, MSC_JOB_FAULTY, e->line);
    }
}

// The process stays until it is waited for, so that its number cannot become another's while a
// request sends it a signal.
static bool has_ended(pid_t pid, struct ending *e) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid) {
        return false;
    }
    bool is_exit = info.si_code == CLD_EXITED;
    *e = (struct ending){.signal_number = is_exit ? 0 : info.si_status,
                         .code = is_exit ? info.si_status : 0};
    return true;
}

void msc_job__look(struct msc_jobs *jobs, struct msc_job *job) {
    struct ending e;
    if (job->pid <= 0) {
        return;
    }
    bool is_over = has_ended(job->pid, &e);
    msc_job__progress(jobs, job, is_over);
    if (!is_over) {
        return;
    }
    look_at_files(&e, jobs, job);
    pthread_mutex_lock(&jobs->changes);
    (void)waitpid(job->pid, NULL, 0);
    msc_job__set_pid(jobs, job, 0);
    if (job->now.is_removed) {
        // the next step removes its folder
    } else if (e.signal_number != 0) {
        end_by_signal(jobs, job, &e);
    } else {
        end_by_exit(jobs, job, &e);
    }
    pthread_mutex_unlock(&jobs->changes);
}

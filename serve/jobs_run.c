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
// A search whose process dies again and again without progress fails.
#define MOST_DEATHS 4
// The exit code of a search that was stopped on request (cli/cli.h).
#define EXIT_STOPPED 4
#define TAIL_BYTES 4096

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
        return MSC_FAIL(MSC_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (flock(*out, LOCK_EX | LOCK_NB) != 0) {
        close(*out);
        return MSC_FAIL(MSC_E_STATE, "%s: in use", path);
    }
    return MSC_OK;
}

static bool has_file(const struct msc_job *job, const char *name, struct msc_arena *arena) {
    const char *path = msc_path_join(arena, job->folder, name);
    return path && msc_file_exists(path);
}

static enum msc_status spawn_job(struct msc_job *job, const struct msc_jobs_options *o) {
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
            status = msc_spawn(&job->pid, &(struct msc_spawn){.argv = words.items,
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

static void keep(struct msc_jobs *jobs, struct msc_job *job) {
    job->is_unwritten = msc_job__write(job) != MSC_OK;
    if (job->is_unwritten) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "%s", msc_status_message());
    }
}

static void end(struct msc_jobs *jobs, struct msc_job *job, enum msc_job_state state,
                const char *message) {
    job->state = state;
    job->is_cancelled = false;
    job->ended_s = state == MSC_JOB_QUEUED ? 0.0 : msc_clock_wall_seconds();
    if (msc_job__set_text(&job->message, message) != MSC_OK) {
        msc_log(jobs->o.log, MSC_LOG_WARNING, "job %s: %s", job->id, msc_status_message());
    }
    keep(jobs, job);
    msc_log(jobs->o.log, MSC_LOG_INFO, "job %s of %s: %s%s%s", job->id, job->user,
            msc_job__state_name(state), message ? ": " : "", message ? message : "");
}

void msc_job__start(struct msc_jobs *jobs, struct msc_job *job) {
    uint64_t bytes = msc_job__record_bytes(job);
    enum msc_status status = spawn_job(job, &jobs->o);
    if (status == MSC_E_STATE) {
        return; // tried again at the next step
    }
    if (status != MSC_OK) {
        job->pid = 0;
        end(jobs, job, MSC_JOB_FAULTY, msc_status_message());
        return;
    }
    job->n_deaths = bytes != job->record_bytes ? 0 : job->n_deaths;
    job->record_bytes = bytes;
    job->state = MSC_JOB_RUNNING;
    job->is_over_quota = false;
    job->begun_s = job->begun_s > 0.0 ? job->begun_s : msc_clock_wall_seconds();
    keep(jobs, job);
    msc_log(jobs->o.log, MSC_LOG_INFO, "job %s of %s: running, process %ld", job->id, job->user,
            (long)job->pid);
}

bool msc_job__signal(struct msc_job *job, int signal_number) {
    return job->pid > 0 && kill(job->pid, signal_number) == 0;
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

static void end_by_signal(struct msc_jobs *jobs, struct msc_job *job, int signal_number) {
    char text[96];
    job->n_deaths = msc_job__record_bytes(job) != job->record_bytes ? 1 : job->n_deaths + 1;
    snprintf(text, sizeof text, "the search was ended by signal %d", signal_number);
    if (job->is_cancelled) {
        end(jobs, job, MSC_JOB_CANCELLED, NULL);
    } else if (jobs->is_stopping || job->n_deaths < MOST_DEATHS) {
        end(jobs, job, MSC_JOB_QUEUED, NULL);
    } else {
        end(jobs, job, MSC_JOB_FAULTY, text);
    }
}

// `mscgym init` has written a configuration, with which the job's search begins.
static void end_first_config(struct msc_jobs *jobs, struct msc_job *job) {
    if (msc_job__write_config(job, &jobs->o, MSC_JOB_FIRST) != MSC_OK) {
        end(jobs, job, MSC_JOB_FAULTY, msc_status_message());
    } else {
        end(jobs, job, job->is_cancelled ? MSC_JOB_CANCELLED : MSC_JOB_QUEUED, NULL);
    }
}

static void end_by_exit(struct msc_jobs *jobs, struct msc_job *job, int code) {
    char line[512];
    if (code == 0 && job->is_first_config) {
        end_first_config(jobs, job);
    } else if (code == 0) {
        end(jobs, job, MSC_JOB_DONE, NULL);
    } else if (job->is_over_quota) {
        end(jobs, job, MSC_JOB_FAULTY, "the user's disk quota is used up; remove jobs and resume");
    } else if (job->is_cancelled) {
        end(jobs, job, MSC_JOB_CANCELLED, NULL);
    } else if (code == EXIT_STOPPED) {
        end(jobs, job, jobs->is_stopping ? MSC_JOB_QUEUED : MSC_JOB_CANCELLED, NULL);
    } else {
        read_last_line(line, job);
        end(jobs, job, MSC_JOB_FAULTY, line);
    }
}

void msc_job__look(struct msc_jobs *jobs, struct msc_job *job) {
    int status = 0;
    if (job->pid <= 0 || waitpid(job->pid, &status, WNOHANG) != job->pid) {
        return;
    }
    job->pid = 0;
    msc_job__progress(job, true);
    if (job->is_removed) {
        return; // the next step removes its folder
    }
    if (WIFSIGNALED(status)) {
        end_by_signal(jobs, job, WTERMSIG(status));
    } else {
        end_by_exit(jobs, job, WEXITSTATUS(status));
    }
}

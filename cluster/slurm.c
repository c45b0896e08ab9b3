#include "cluster/slurm.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/scratch.h"
#include "base/str.h"
#include "cluster/slurm_copy.h"
#include "cluster/bridge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SINFO_S 60.0

// The prefix of job names for this record, made from the record's path and the name of this host. A
// record has only one search at a time.
static enum msc_status name_jobs(const char **out, const struct msc_slurm_options *o) {
    char host[256] = "", text[MSC_HASH_TEXT_BYTES];
    char *record;
    MSC_TRY(msc_path_planned(&record, o->arena, o->record));
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    msc_hash_format(text, msc_hash_add_text(msc_hash_bytes(record, strlen(record)), host));
    *out = msc_arena_printf(o->arena, "mscgym-%.8s-", text);
    return MSC_ALLOCATED(*out);
}

static const char *const end_slurm_jobs[] = {"sh", "-c", msc_slurm_script, "sh", "end", NULL};

// The end of the error message if a program of Slurm is not found.
static const char no_slurm[] =
    ": workers under Slurm need srun on this machine, and with --copy-to also salloc and sbcast: "
    "install them (Debian: slurm-client), or search on a machine that has them; --cluster local:N "
    "needs none of them";

// Number of nodes that may run a job.
static enum msc_status count_nodes(int64_t *out, const struct msc_slurm_options *o) {
    const char *partition = o->partition;
    const char *const argv[] = {
        "sh", "-c", msc_slurm_script, "sh", "count", partition ? partition : "", NULL};
    struct msc_str last = {0};
    enum msc_status status = msc_process_run(&last, argv, NULL, SINFO_S, o->cancel, 1);
    bool is_good = status == MSC_OK && msc_parse_i64(out, msc_str_text(&last)) && *out > 0;
    bool is_missing = status == MSC_OK && strcmp(msc_str_text(&last), "missing") == 0;
    bool has_failed = status == MSC_OK && strcmp(msc_str_text(&last), "failed") == 0;
    msc_str_finish(&last);
    MSC_TRY(status);
    if (is_missing) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "--cluster slurm: sinfo is not found%s", no_slurm);
    }
    if (has_failed) {
        return MSC_FAIL(MSC_E_STATE, "--cluster slurm: sinfo has failed, so the nodes are unknown; "
                                     "check that Slurm's controller runs (scontrol ping)");
    }
    return is_good ? MSC_OK
                   : MSC_FAIL(MSC_E_STATE,
                              "--cluster slurm: %s%s has no node that is up (sinfo); to wait for "
                              "nodes, give the number of workers, slurm:N",
                              partition ? "partition " : "the default partition",
                              partition ? partition : "");
}

// The archive of the search's files, used with --copy-to.
struct copied {
    const struct msc_slurm_options *options;
    struct msc_scratch scratch;
    const char **archive; // the word of the jobs' command that names the archive
};

static enum msc_status pack(void *payload) {
    struct copied *copied = payload;
    struct msc_arena *arena = copied->options->arena;
    MSC_TRY(msc_scratch_make(&copied->scratch, arena));
    *copied->archive = msc_arena_printf(arena, "%s/files.tar", copied->scratch.path);
    enum msc_status status = *copied->archive
                                 ? msc_slurm_pack_files(copied->options, *copied->archive)
                                 : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        msc_scratch_remove(&copied->scratch);
    }
    return status;
}

static void forget(void *payload) {
    struct copied *copied = payload;
    msc_scratch_remove(&copied->scratch);
}

// Writes the command that requests a job; returns its number of words. *cpus is the command's
// option for CPUs, or "". A step inside an allocation needs this option again.
static size_t add_request(const char **argv, const char **cpus, const struct msc_slurm_options *o,
                          const char *name) {
    size_t n = 0;
    *cpus = o->n_threads > 0 ? msc_arena_printf(o->arena, "--cpus-per-task=%d", o->n_threads) : "";
    argv[n++] = o->copy_to ? "salloc" : "srun";
    argv[n++] = "--quiet";
    argv[n++] = msc_arena_printf(o->arena, "--job-name=%s", name);
    argv[n++] = "--nodes=1";
    argv[n++] = "--ntasks=1";
    argv[n++] = o->n_threads > 0 ? *cpus : "--exclusive";
    if (o->needs_gpu) {
        argv[n++] = "--gres=gpu:1";
    }
    if (o->memory_bytes > 0) {
        argv[n++] = msc_arena_printf(o->arena, "--mem=%lluK",
                                     (unsigned long long)(o->memory_bytes / 1024 + 1));
    }
    if (o->partition) {
        argv[n++] = msc_arena_printf(o->arena, "--partition=%s", o->partition);
    }
    return n;
}

static int64_t number_of(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    int64_t n = otherwise;
    return text && msc_parse_i64(&n, text) && n > 0 ? n : otherwise;
}

// Logs how many workers can run at a time if this process runs inside a job of Slurm: srun then
// starts the workers as steps of that job, and the steps share the job's CPUs.
static void tell_allocation(const struct msc_slurm_options *o, int64_t n_workers) {
    const char *job = getenv("SLURM_JOB_ID");
    int64_t n_cpus = number_of("SLURM_CPUS_ON_NODE", 0);
    int64_t n_nodes = number_of("SLURM_JOB_NUM_NODES", 1);
    int64_t n_own = o->n_threads > 0 ? o->n_threads : 1;
    if (!job || n_cpus == 0 || o->copy_to) { // with --copy-to, salloc requests separate jobs
        return;
    }
    int64_t n_beside = n_nodes * (n_cpus / n_own);
    msc_log(o->log, n_beside < n_workers ? MSC_LOG_WARNING : MSC_LOG_INFO,
            "--cluster slurm: this is job %s, so workers are its steps, on %lld node%s with %lld "
            "CPU%s each: at most %lld of %lld run at a time, the others wait (docs/cluster.md)",
            job, (long long)n_nodes, n_nodes == 1 ? "" : "s", (long long)n_cpus,
            n_cpus == 1 ? "" : "s", (long long)(n_beside < n_workers ? n_beside : n_workers),
            (long long)n_workers);
}

// Each worker is a job on one node. A job that waits in the queue is not dropped, so it keeps its
// place.
enum msc_status msc_slurm_open(struct msc_bridge **out, const struct msc_slurm_options *o) {
    const char **argv = msc_arena_array(o->arena, 32, sizeof *argv);
    struct copied *copied = msc_arena_array(o->arena, 1, sizeof *copied);
    const char *name, *cpus;
    int64_t n_workers = o->n_workers;
    MSC_TRY(MSC_ALLOCATED(argv && copied));
    MSC_TRY(name_jobs(&name, o));
    MSC_TRY(n_workers > 0 ? MSC_OK : count_nodes(&n_workers, o));
    tell_allocation(o, n_workers);
    size_t n = add_request(argv, &cpus, o, name);
    if (o->copy_to) {
        const char *const words[] = {
            "sh", "-c", msc_slurm_script, "sh", "copy", msc_slurm_script, "", o->copy_to,
            name, cpus};
        *copied = (struct copied){.options = o, .archive = &argv[n + 6]};
        memcpy(argv + n, words, sizeof words);
        n += sizeof words / sizeof words[0];
    }
    argv[n++] = o->program;
    argv[n++] = "worker";
    argv[n++] = "--quiet";
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(MSC_ALLOCATED(argv[i]));
    }
    const struct msc_bridge_local_options local = {.argv = argv,
                                                   .n_workers = (size_t)n_workers,
                                                   .are_jobs = true,
                                                   .name_at = 2,
                                                   .job_name = name,
                                                   .begin = o->copy_to ? pack : NULL,
                                                   .end = o->copy_to ? forget : NULL,
                                                   .payload = copied,
                                                   .end_jobs = end_slurm_jobs,
                                                   .hint = no_slurm};
    return msc_bridge_open_local(out, &local);
}

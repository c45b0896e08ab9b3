#include "pipeline/session_pool.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "model/program_id.h"
#include "cluster/slurm.h"
#include "pipeline/trial_numerics.h"
#include "pipeline/worker_code.h"
#include "pipeline/worker_files.h"
#include "cluster/bridge.h"
#include "cluster/pool.h"

#include <stdlib.h>
#include <string.h>

// Adds a member, unless `text` is NULL.
static void write_text(struct msc_str *out, const char *key, const char *text) {
    if (text) {
        msc_str_printf(out, ",\"%s\":", key);
        msc_json_write_text(out, text);
    }
}

// The device for workers on other machines; NULL: the configuration's. Names of this machine's GPUs
// do not apply there, and trials that the CPU computes here must not use a GPU there.
static const char *device_elsewhere(const struct msc_session *s) {
    const char *device = s->setup->config->device;
    const char *numerics = msc_trial_numerics(s->setup);
    if (!s->setup->model) {
        return NULL;
    }
    if (strncmp(numerics, "cpu/", strlen("cpu/")) == 0) {
        return "cpu";
    }
    bool is_kept = strncmp(device, "vulkan", strlen("vulkan")) == 0 && !strchr(device, '=');
    bool is_software = strncmp(numerics, "vulkan/", strlen("vulkan/")) == 0 &&
                       !msc_trial_numerics_is_gpu(numerics);
    return is_kept                               ? device
           : msc_trial_numerics_is_gpu(numerics) ? "auto"
           : is_software                         ? "vulkan"
                                                 : NULL;
}

// ---- Environments that are code ----------------------------------------------------------------

static enum msc_status check_absolute(const char *option, const char *path) {
    return !path || path[0] == '/'
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s is \"%s\", expected an absolute path", option, path);
}

enum msc_status msc_session_check_cluster(const struct msc_session *s) {
    const struct msc_processor_options *o = &s->setup->options;
    struct msc_cluster c = {.kind = MSC_CLUSTER_LOCAL};
    if (o->cluster) {
        MSC_TRY(msc_cluster_read(&c, &s->setup->arena, o->cluster));
    }
    MSC_TRY(check_absolute("--node-path", o->node_path));
    MSC_TRY(check_absolute("--copy-to", o->copy_to));
    if (o->copy_to && c.kind != MSC_CLUSTER_SLURM) {
        return MSC_FAIL(MSC_E_INVALID,
                        "--copy-to works only with --cluster slurm; other workers get "
                        "their files without it");
    }
    return o->node_path || c.kind == MSC_CLUSTER_LOCAL || !msc_worker_code_is_needed(s->entry)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: its environment is a library or program, which workers on other "
                          "machines need too; name its folder on all nodes with --node-path",
                          s->entry->name);
}

// Adds the folder of the environment's code and the library's hash. For workers on this machine,
// the folder is the entry's.
static enum msc_status write_code(struct msc_str *init, struct msc_session *s, bool is_elsewhere) {
    const char *library;
    char *folder;
    if (!msc_worker_code_is_needed(s->entry)) {
        return MSC_OK;
    }
    MSC_TRY(msc_path_absolute(&folder, &s->setup->arena, s->entry->folder));
    MSC_TRY(msc_worker_code_hash(&library, &s->setup->arena, s->entry));
    write_text(init, "node_path", is_elsewhere ? s->setup->options.node_path : folder);
    write_text(init, "library", library);
    return MSC_OK;
}

// ---- Messages to workers -----------------------------------------------------------------------

// Writes the first message to a worker: the path of the record, whose header has everything else,
// and the worker's share of the machine (0: all of it).
static enum msc_status write_init(char **out, struct msc_session *s, int n_threads,
                                  uint64_t n_bytes, bool is_elsewhere) {
    struct msc_str init = {0};
    char *record;
    MSC_TRY(msc_path_absolute(&record, &s->setup->arena, s->entry->record));
    msc_str_append(&init, "\"record\":");
    msc_json_write_text(&init, record);
    msc_str_printf(&init, ",\"threads\":%d", n_threads);
    if (n_bytes > 0) {
        msc_str_printf(&init, ",\"memory\":\"%llu\"", (unsigned long long)n_bytes);
    }
    write_text(&init, "device", is_elsewhere ? device_elsewhere(s) : s->setup->options.device);
    msc_str_append(&init, is_elsewhere ? ",\"given_gpu\":true" : "");
    write_text(&init, "isa", s->setup->options.isa);
    MSC_TRY(write_code(&init, s, is_elsewhere));
    *out = msc_str_keep(&init, &s->setup->arena);
    return MSC_ALLOCATED(*out);
}

// Makes the first message for local workers, which share this machine.
static enum msc_status make_local_init(char **out, struct msc_session *s, int64_t n_workers) {
    const struct msc_model *m = s->setup->model;
    int n_threads = m ? m->n_threads / (int)n_workers : 1;
    return write_init(out, s, n_threads > 0 ? n_threads : 1,
                      m ? m->memory_bytes / (uint64_t)n_workers : 0, false);
}

// Makes the first message for workers on nodes. By default, each worker uses everything that its
// job has on a node.
static enum msc_status make_node_init(char **out, struct msc_session *s) {
    return write_init(out, s, s->setup->options.n_threads, s->setup->options.memory_bytes, true);
}

static enum msc_status open_local(struct msc_bridge **out, struct msc_session *s,
                                  const struct msc_cluster *c) {
    const char **argv = msc_arena_array(&s->setup->arena, 5, sizeof *argv);
    MSC_TRY(MSC_ALLOCATED(argv));
    argv[0] = s->setup->options.worker_program;
    argv[1] = "worker";
    argv[2] = "--quiet";
    argv[3] = "--place";
    const struct msc_bridge_local_options o = {
        .argv = argv, .n_workers = (size_t)c->n, .place_at = 4};
    return msc_bridge_open_local(out, &o);
}

static enum msc_status name_files(void *payload, struct msc_bridge *bridge) {
    return msc_worker_files_name(payload, bridge);
}

// Path of the program on the nodes.
static const char *node_program(const struct msc_session *s) {
    const char *program = s->setup->options.node_program;
    return program ? program : "mscgym";
}

static enum msc_status open_slurm(struct msc_bridge **out, struct msc_session *s,
                                  const struct msc_cluster *c) {
    const struct msc_processor_options *o = &s->setup->options;
    struct msc_slurm_options *slurm = msc_arena_array(&s->setup->arena, 1, sizeof *slurm);
    MSC_TRY(msc_arena_status(&s->setup->arena));
    *slurm = (struct msc_slurm_options){
        .record = s->entry->record,
        .program = node_program(s),
        .partition = c->partition,
        .n_workers = c->n,
        .n_threads = o->n_threads,
        .memory_bytes = o->memory_bytes,
        .needs_gpu = msc_trial_numerics_need_gpu(s->setup),
        .copy_to = o->copy_to,
        .name_files = name_files,
        .payload = s,
        .arena = &s->setup->arena,
        .log = s->setup->log,
        .cancel = o->cancel,
    };
    return msc_slurm_open(out, slurm);
}

// Writes the first message to the program that connects to Ray. Threads and memory default to those
// of a node.
static enum msc_status make_start(char **out, struct msc_session *s, const struct msc_cluster *c) {
    const struct msc_processor_options *o = &s->setup->options;
    struct msc_str start = {0};
    msc_str_append(&start, "{\"start\":{\"argv\":[");
    msc_json_write_text(&start, node_program(s));
    msc_str_printf(&start,
                   ",\"worker\",\"--quiet\"],\"max\":%d,\"threads\":%d,\"memory\":%llu,"
                   "\"gpus\":%d}}",
                   (int)c->n, s->setup->model ? o->n_threads : 1,
                   (unsigned long long)o->memory_bytes, msc_trial_numerics_need_gpu(s->setup));
    *out = msc_str_keep(&start, &s->setup->arena);
    return MSC_ALLOCATED(*out);
}

static enum msc_status open_ray(struct msc_bridge **out, struct msc_session *s,
                                const struct msc_cluster *c) {
    static const char hint[] = ": is the Python package mscgym_ray installed (docs/cluster.md)?";
    // Names the Python that has the package. The script `mscgym` in a Python wheel sets
    // MSCGYM_PYTHON.
    const char *python = getenv("MSCGYM_PYTHON");
    const char **argv = msc_arena_array(&s->setup->arena, 5, sizeof *argv);
    char *start;
    MSC_TRY(MSC_ALLOCATED(argv));
    MSC_TRY(make_start(&start, s, c));
    argv[0] = python && python[0] ? python : "python3";
    argv[1] = "-m";
    argv[2] = "mscgym_ray";
    argv[3] = c->address;
    const char *const requests[] = {start, NULL};
    return msc_bridge_open_program(out, argv, requests, "--cluster ray", hint);
}

// ---- The pool ----------------------------------------------------------------------------------

enum msc_status msc_session_open_pool(struct msc_pool **out, struct msc_session *s) {
    const struct msc_processor_options *o = &s->setup->options;
    struct msc_cluster c;
    char *init;
    const char *build;
    if (!o->cluster) {
        return MSC_OK;
    }
    MSC_TRY(msc_cluster_read(&c, &s->setup->arena, o->cluster));
    MSC_TRY(c.kind == MSC_CLUSTER_LOCAL ? make_local_init(&init, s, c.n)
                                        : make_node_init(&init, s));
    MSC_TRY(msc_program_build(&build, &s->setup->arena));
    struct msc_pool_options pool = {
        .env = s->env,
        .init = init,
        .program = msc_program_name(),
        .build = build,
        .numerics = msc_trial_numerics(s->setup),
        .is_foreign = msc_trial_numerics_are_foreign(s->setup),
        .log = s->setup->log,
        .cancel = o->cancel,
        .name_files = c.kind == MSC_CLUSTER_RAY ? name_files : NULL,
        .payload = s,
    };
    MSC_TRY(c.kind == MSC_CLUSTER_RAY     ? open_ray(&pool.bridge, s, &c)
            : c.kind == MSC_CLUSTER_SLURM ? open_slurm(&pool.bridge, s, &c)
                                          : open_local(&pool.bridge, s, &c));
    return msc_pool_open(out, &pool);
}

// Workers for a search: --cluster.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "base/file_set.h"
#include "base/str.h"
#include "pipeline/cluster.h"
#include "search/bridge.h"
#include "search/pool.h"

#include <stdlib.h>
#include <string.h>

// `text` NULL: nothing.
static void write_text(struct msc_str *out, const char *key, const char *text) {
    if (text) {
        msc_str_printf(out, ",\"%s\":", key);
        msc_json_write_text(out, text);
    }
}

// Does a numerics id stand for a GPU? Drivers that compute on the processor have these names.
static bool is_gpu(const char *numerics) {
    return strncmp(numerics, "vulkan/", strlen("vulkan/")) == 0 && !strstr(numerics, "llvmpipe") &&
           !strstr(numerics, "SwiftShader");
}

// What workers on other machines open: what names a GPU of this one is nothing to them, and where the processor
// computes they leave theirs alone. NULL: as the configuration says.
static const char *device_elsewhere(const struct msc_processor *p) {
    const char *device = p->config->device;
    const char *numerics = msc_processor__trial_numerics(p);
    if (!p->model) {
        return NULL;
    }
    if (strncmp(numerics, "cpu/", strlen("cpu/")) == 0) {
        return "cpu";
    }
    bool is_kept = strncmp(device, "vulkan", strlen("vulkan")) == 0 && !strchr(device, '=');
    bool is_software = strncmp(numerics, "vulkan/", strlen("vulkan/")) == 0 && !is_gpu(numerics);
    return is_kept ? device : is_gpu(numerics) ? "auto" : is_software ? "vulkan" : NULL;
}

// ---- Environments that are code ----------------------------------------------------------------

static bool is_code(const struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    return e->library || e->env_def == msc_env_find("process");
}

static enum msc_status check_absolute(const char *option, const char *path) {
    return !path || path[0] == '/'
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s is \"%s\", expected an absolute path", option, path);
}

enum msc_status msc_processor__check_cluster(struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    struct msc_cluster c = {.kind = MSC_CLUSTER_LOCAL};
    if (o->cluster) {
        MSC_TRY(msc_cluster_read(&c, &p->arena, o->cluster));
    }
    MSC_TRY(check_absolute("--node-path", o->node_path));
    MSC_TRY(check_absolute("--copy-to", o->copy_to));
    if (o->copy_to && c.kind != MSC_CLUSTER_SLURM) {
        return MSC_FAIL(MSC_E_INVALID, "--copy-to is for --cluster slurm: workers of other kinds "
                                       "have their files without");
    }
    return o->node_path || c.kind == MSC_CLUSTER_LOCAL || !is_code(p)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: its environment is code, which workers elsewhere need, too: "
                          "--node-path names the folder in which all nodes have it",
                          msc_processor__entry(p)->name);
}

enum msc_status msc_processor__hash_library(const char **out, struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(e->env, "type");
    char text[MSC_HASH_TEXT_BYTES];
    const void *bytes;
    size_t n_bytes;
    *out = NULL;
    if (!e->library) {
        return MSC_OK;
    }
    const char *path = msc_path_join(&p->arena, e->folder, type->valuestring);
    MSC_TRY(path ? MSC_OK : msc_processor__no_memory());
    MSC_TRY(msc_file_map(&bytes, &n_bytes, path));
    msc_hash_format(text, msc_hash_bytes(bytes, n_bytes));
    msc_file_unmap(bytes, n_bytes);
    *out = msc_arena_strdup(&p->arena, text);
    return *out ? MSC_OK : msc_processor__no_memory();
}

// Where a worker has the code: on this machine where it is.
static enum msc_status write_code(struct msc_str *init, struct msc_processor *p,
                                  bool is_elsewhere) {
    const char *library;
    char *folder;
    if (!is_code(p)) {
        return MSC_OK;
    }
    MSC_TRY(msc_path_absolute(&folder, &p->arena, msc_processor__entry(p)->folder));
    MSC_TRY(msc_processor__hash_library(&library, p));
    write_text(init, "node_path", is_elsewhere ? p->options.node_path : folder);
    write_text(init, "library", library);
    return MSC_OK;
}

// ---- What a worker is told ---------------------------------------------------------------------

// What a worker is told of the search: where its record is, which says the rest, and its share of the
// machine (0: all of it).
static enum msc_status write_init(char **out, struct msc_processor *p, int n_threads,
                                  uint64_t n_bytes, bool is_elsewhere) {
    struct msc_str init = {0};
    char *record;
    MSC_TRY(msc_path_absolute(&record, &p->arena, msc_processor__entry(p)->record));
    msc_str_append(&init, "\"record\":");
    msc_json_write_text(&init, record);
    msc_str_printf(&init, ",\"threads\":%d", n_threads);
    if (n_bytes > 0) {
        msc_str_printf(&init, ",\"memory\":\"%llu\"", (unsigned long long)n_bytes);
    }
    write_text(&init, "device", is_elsewhere ? device_elsewhere(p) : p->options.device);
    msc_str_append(&init, is_elsewhere ? ",\"given_gpu\":true" : "");
    write_text(&init, "isa", p->options.isa);
    MSC_TRY(write_code(&init, p, is_elsewhere));
    *out = msc_str_keep(&init, &p->arena);
    return *out ? MSC_OK : msc_processor__no_memory();
}

// So many share this machine.
static enum msc_status make_local_init(char **out, struct msc_processor *p, int64_t n_workers) {
    const struct msc_model *m = p->model;
    int n_threads = m ? m->n_threads / (int)n_workers : 1;
    return write_init(out, p, n_threads > 0 ? n_threads : 1,
                      m ? m->memory_bytes / (uint64_t)n_workers : 0, false);
}

// Each has what its job has of a node, unless it is said.
static enum msc_status make_node_init(char **out, struct msc_processor *p) {
    return write_init(out, p, p->options.n_threads, p->options.memory_bytes, true);
}

static enum msc_status open_local(struct msc_bridge **out, struct msc_processor *p,
                                  const struct msc_cluster *c) {
    const char **argv = msc_arena_array(&p->arena, 4, sizeof *argv);
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    argv[0] = p->options.worker_program;
    argv[1] = "worker";
    argv[2] = "--quiet";
    const struct msc_bridge_local_options o = {.argv = argv, .n_workers = (size_t)c->n};
    return msc_bridge_open_local(out, &o);
}

// What the program that reaches Ray is told first. Threads and memory that are not asked for are what a
// node has.
static enum msc_status make_start(char **out, struct msc_processor *p,
                                  const struct msc_cluster *c) {
    const struct msc_processor_options *o = &p->options;
    struct msc_str start = {0};
    msc_str_append(&start, "{\"start\":{\"argv\":[");
    msc_json_write_text(&start, o->node_program ? o->node_program : "mscgym");
    msc_str_printf(&start,
                   ",\"worker\",\"--quiet\"],\"max\":%d,\"threads\":%d,\"memory\":%llu,"
                   "\"gpus\":%d}}",
                   (int)c->n, p->model ? o->n_threads : 1, (unsigned long long)o->memory_bytes,
                   msc_processor__needs_gpu(p));
    *out = msc_str_keep(&start, &p->arena);
    return *out ? MSC_OK : msc_processor__no_memory();
}

static enum msc_status open_ray(struct msc_bridge **out, struct msc_processor *p,
                                const struct msc_cluster *c) {
    static const char hint[] = ": is Python's package mscgym_ray installed (docs/cluster.md)?";
    // The Python that has the package; the script `mscgym` of a wheel sets it.
    const char *python = getenv("MSCGYM_PYTHON");
    const char **argv = msc_arena_array(&p->arena, 5, sizeof *argv);
    char *start;
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    MSC_TRY(make_start(&start, p, c));
    argv[0] = python && python[0] ? python : "python3";
    argv[1] = "-m";
    argv[2] = "mscgym_ray";
    argv[3] = c->address;
    const char *const requests[] = {start, NULL};
    return msc_bridge_open_program(out, argv, requests, "--cluster ray", hint);
}

// ---- Files of workers elsewhere ----------------------------------------------------------------

static enum msc_status name_set(struct msc_bridge *bridge, const struct msc_file_set *files) {
    const char *path;
    for (size_t i = 0; (path = msc_file_set_path(files, i)) != NULL; i++) {
        if (msc_file_exists(path)) {
            MSC_TRY(msc_bridge_file(bridge, path, false));
        }
    }
    return MSC_OK;
}

// They are named as the record's header has them, since that is what workers go by.
enum msc_status msc_processor__name_files(struct msc_processor *p, struct msc_bridge *bridge) {
    struct msc_processor *own = NULL;
    const struct msc_processor_options o = {.log = p->log, .allow_plugins = true};
    struct msc_file_set files = {0};
    char *record;
    MSC_TRY(msc_path_absolute(&record, &p->arena, msc_processor__entry(p)->record));
    MSC_TRY(msc_processor_open_record(&own, record, &o));
    enum msc_status status = msc_processor__measured_files(&files, own);
    if (status == MSC_OK) {
        status = msc_bridge_file(bridge, record, true);
    }
    if (status == MSC_OK) {
        status = name_set(bridge, &files);
    }
    msc_file_set_finish(&files);
    msc_processor_close(own);
    return status;
}

static enum msc_status name_files(void *payload, struct msc_bridge *bridge) {
    return msc_processor__name_files(payload, bridge);
}

// ---- Numerics ----------------------------------------------------------------------------------

const char *msc_processor__trial_numerics(const struct msc_processor *p) {
    return p->options.numerics ? p->options.numerics : msc_processor_numerics(p);
}

bool msc_processor__needs_gpu(const struct msc_processor *p) {
    return is_gpu(msc_processor__trial_numerics(p));
}

static bool is_foreign(const struct msc_processor *p) {
    return strcmp(msc_processor__trial_numerics(p), msc_processor_numerics(p)) != 0;
}

enum msc_status msc_processor__check_numerics(const struct msc_processor *p) {
    return p->options.cluster || !is_foreign(p)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "--numerics is \"%s\", this machine computes by \"%s\": others need "
                          "workers (--cluster)",
                          p->options.numerics, msc_processor_numerics(p));
}

// ---- The pool ----------------------------------------------------------------------------------

enum msc_status msc_processor__open_pool(struct msc_pool **out, struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    struct msc_cluster c;
    char *init;
    const char *build;
    if (!o->cluster) {
        return MSC_OK;
    }
    MSC_TRY(msc_cluster_read(&c, &p->arena, o->cluster));
    MSC_TRY(c.kind == MSC_CLUSTER_LOCAL ? make_local_init(&init, p, c.n)
                                        : make_node_init(&init, p));
    MSC_TRY(msc_program_build(&build, &p->arena));
    struct msc_pool_options pool = {
        .env = p->env,
        .init = init,
        .program = msc_program_name(),
        .build = build,
        .numerics = msc_processor__trial_numerics(p),
        .is_foreign = is_foreign(p),
        .log = p->log,
        .cancel = o->cancel,
        .name_files = c.kind == MSC_CLUSTER_RAY ? name_files : NULL,
        .payload = p,
    };
    MSC_TRY(c.kind == MSC_CLUSTER_RAY     ? open_ray(&pool.bridge, p, &c)
            : c.kind == MSC_CLUSTER_SLURM ? msc_processor__open_slurm(&pool.bridge, p, &c)
                                          : open_local(&pool.bridge, p, &c));
    return msc_pool_open(out, &pool);
}

// Workers for a search: --cluster.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "base/str.h"
#include "pipeline/node.h"
#include "search/bridge.h"
#include "search/pool.h"

#include <string.h>

#define MAX_WORKERS 4096

static enum msc_status fail_cluster(const char *text) {
    return MSC_FAIL(
        MSC_E_INVALID,
        "--cluster is \"%s\", expected local:N, ray:HOST:PORT or ray:auto, the latter two "
        "with :N where not all workers are to be used, N being 1 to %d",
        text, MAX_WORKERS);
}

// --cluster, read.
struct cluster {
    const char *address; // of Ray; NULL: local
    int64_t n;           // workers; 0: all there are
};

static bool read_count(int64_t *n, const char *text) {
    return msc_parse_i64(n, text) && *n >= 1 && *n <= MAX_WORKERS;
}

// HOST:PORT or auto, and :N.
static bool read_ray(struct cluster *c, char *text) {
    char *rest = strchr(text, ':');
    bool is_auto = strncmp(text, "auto", 4) == 0 && (text[4] == '\0' || text[4] == ':');
    if (!is_auto) {
        bool has_port = rest && rest > text && rest[1] >= '0' && rest[1] <= '9';
        rest = has_port ? strchr(rest + 1, ':') : NULL;
        if (!has_port) {
            return false;
        }
    }
    c->address = text;
    if (!rest) {
        return true;
    }
    *rest = '\0';
    return read_count(&c->n, rest + 1);
}

static enum msc_status read_cluster(struct cluster *c, struct msc_arena *arena, const char *text) {
    static const char local[] = "local:", ray[] = "ray:";
    char *copy = msc_arena_strdup(arena, text);
    bool is_good = false;
    *c = (struct cluster){0};
    MSC_TRY(copy ? MSC_OK : msc_processor__no_memory());
    if (strncmp(copy, local, sizeof local - 1) == 0) {
        is_good = read_count(&c->n, copy + sizeof local - 1);
    } else if (strncmp(copy, ray, sizeof ray - 1) == 0) {
        is_good = read_ray(c, copy + sizeof ray - 1);
    }
    return is_good ? MSC_OK : fail_cluster(text);
}

// What a worker is told of the search: where its record is, which says the rest, and its share of the
// machine.
static enum msc_status make_init(char **out, struct msc_processor *p, int64_t n_workers) {
    struct msc_str init = {0};
    const struct msc_model *m = p->model;
    char *record;
    int n_threads = m ? m->n_threads / (int)n_workers : 1;
    MSC_TRY(msc_path_absolute(&record, &p->arena, msc_processor__entry(p)->record));
    msc_str_append(&init, "\"record\":");
    msc_json_write_text(&init, record);
    msc_str_printf(&init, ",\"threads\":%d", n_threads > 0 ? n_threads : 1);
    if (m) {
        msc_str_printf(&init, ",\"memory\":\"%llu\"",
                       (unsigned long long)(m->memory_bytes / (uint64_t)n_workers));
    }
    if (p->options.device) {
        msc_str_append(&init, ",\"device\":");
        msc_json_write_text(&init, p->options.device);
    }
    *out = msc_str_keep(&init, &p->arena);
    return *out ? MSC_OK : msc_processor__no_memory();
}

static enum msc_status open_local(struct msc_bridge **out, struct msc_processor *p,
                                  const struct cluster *c) {
    const char **argv = msc_arena_array(&p->arena, 4, sizeof *argv);
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    argv[0] = p->options.worker_program;
    argv[1] = "worker";
    argv[2] = "--quiet";
    return msc_bridge_open_local(out, argv, (size_t)c->n);
}

// What the program that reaches Ray is told first. Threads and memory that are not asked for are what a
// node has.
static enum msc_status make_start(char **out, struct msc_processor *p, const struct cluster *c) {
    const struct msc_processor_options *o = &p->options;
    struct msc_str start = {0};
    msc_str_append(&start, "{\"start\":{\"argv\":[");
    msc_json_write_text(&start, o->node_program ? o->node_program : "mscgym");
    msc_str_printf(&start, ",\"worker\",\"--quiet\"],\"max\":%d,\"threads\":%d,\"memory\":%llu}}",
                   (int)c->n, p->model ? o->n_threads : 1, (unsigned long long)o->memory_bytes);
    *out = msc_str_keep(&start, &p->arena);
    return *out ? MSC_OK : msc_processor__no_memory();
}

static enum msc_status open_ray(struct msc_bridge **out, struct msc_processor *p,
                                const struct cluster *c) {
    static const char hint[] = ": is Python's package mscgym_ray installed (docs/cluster.md)?";
    const char **argv = msc_arena_array(&p->arena, 5, sizeof *argv);
    char *start;
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    MSC_TRY(make_start(&start, p, c));
    argv[0] = "python3";
    argv[1] = "-m";
    argv[2] = "mscgym_ray";
    argv[3] = c->address;
    const char *const requests[] = {start, NULL};
    return msc_bridge_open_program(out, argv, requests, "--cluster ray", hint);
}

enum msc_status msc_processor__open_pool(struct msc_pool **out, struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    struct cluster cluster;
    char *init;
    const char *build;
    if (!o->cluster) {
        return MSC_OK;
    }
    MSC_TRY(read_cluster(&cluster, &p->arena, o->cluster));
    MSC_TRY(make_init(&init, p, cluster.address ? 1 : cluster.n));
    MSC_TRY(msc_node_build(&build, &p->arena));
    struct msc_pool_options pool = {
        .env = p->env,
        .init = init,
        .program = msc_program_name(),
        .build = build,
        .numerics = msc_processor_numerics(p),
        .log = p->log,
        .cancel = o->cancel,
    };
    MSC_TRY(cluster.address ? open_ray(&pool.bridge, p, &cluster)
                            : open_local(&pool.bridge, p, &cluster));
    return msc_pool_open(out, &pool);
}

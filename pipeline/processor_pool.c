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
        "--cluster is \"%s\", expected local:N, N being a number of workers from 1 to %d", text,
        MAX_WORKERS);
}

static enum msc_status read_local(int64_t *n, const char *text) {
    static const char local[] = "local:";
    bool is_good = strncmp(text, local, sizeof local - 1) == 0 &&
                   msc_parse_i64(n, text + sizeof local - 1) && *n >= 1 && *n <= MAX_WORKERS;
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

enum msc_status msc_processor__open_pool(struct msc_pool **out, struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    int64_t n_workers;
    char *init;
    if (!o->cluster) {
        return MSC_OK;
    }
    MSC_TRY(read_local(&n_workers, o->cluster));
    MSC_TRY(make_init(&init, p, n_workers));
    const char **argv = msc_arena_array(&p->arena, 4, sizeof *argv);
    const char *build;
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    MSC_TRY(msc_node_build(&build, &p->arena));
    argv[0] = o->worker_program;
    argv[1] = "worker";
    argv[2] = "--quiet";
    struct msc_pool_options pool = {
        .env = p->env,
        .init = init,
        .program = msc_program_name(),
        .build = build,
        .numerics = msc_processor_numerics(p),
        .log = p->log,
        .cancel = o->cancel,
    };
    MSC_TRY(msc_bridge_open_local(&pool.bridge, argv, (size_t)n_workers));
    return msc_pool_open(out, &pool);
}

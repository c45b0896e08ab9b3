#include "env/placement/whole.h"

#include "base/file.h"
#include "base/scratch.h"
#include "env/placement/runs.h"
#include "graph/onnx/load.h"
#include "graph/passes/bind.h"

#include <math.h>

struct msc_place_bench {
    struct msc_arena arena;
    const struct msc_place_table *table;
    struct msc_graph *graphs[MSC_PLACE_MOST_VARIANTS]; // without fused joints
    struct msc_place_network networks[MSC_PLACE_MOST_VARIANTS];
    struct msc_scratch scratch;
    struct msc_runtime *runtime;
    struct msc_place_runs runs;
    const char **backends; // [n_backends] names
    // [n_variants, n_groups, n_groups] models written so far
    struct msc_runtime_piece *pieces;
    struct msc_runtime_piece *singles; // [n_groups] each group alone
    size_t reference;                  // backend of the whole network; n_backends: none runs it
};

static enum msc_status load_graph(struct msc_graph **out, const char *model) {
    struct msc_graph *g = NULL;
    bool is_bound = false;
    MSC_TRY(msc_graph_load_bound(&g, &is_bound, model, NULL, 0, NULL));
    enum msc_status status = msc_graph_split(out, g);
    msc_graph_destroy(g);
    return status;
}

static enum msc_status load_graphs(struct msc_place_bench *b, const char *path) {
    const struct msc_place_table *p = b->table;
    const char *models[MSC_PLACE_MOST_VARIANTS];
    const char *folder = msc_path_folder(&b->arena, path);
    MSC_TRY(MSC_ALLOCATED(folder));
    for (size_t v = 0; v < p->n_variants; v++) {
        models[v] = msc_path_join(&b->arena, folder, p->variants[v].model);
        MSC_TRY(MSC_ALLOCATED(models[v]));
        MSC_TRY(msc_place_table_check(p, v, models[v], path));
        MSC_TRY(load_graph(&b->graphs[v], models[v]));
        b->networks[v].g = b->graphs[v];
    }
    int32_t *groups =
        msc_arena_array(&b->arena, (size_t)msc_graph_n_joints(b->graphs[0]) + 1, sizeof *groups);
    MSC_TRY(MSC_ALLOCATED(groups));
    MSC_TRY(msc_place_groups(groups, b->graphs[0], p));
    b->networks[0].groups = groups;
    b->runs = (struct msc_place_runs){b->networks, b->scratch.path};
    return msc_place_align(b->networks, models, p->n_variants, p->n_groups, &b->arena);
}

// The model of a run, which is written when it is first used.
static enum msc_status get_run(struct msc_runtime_piece *out, struct msc_place_bench *b,
                               size_t first, size_t last, size_t backend) {
    size_t n = b->table->n_groups, variant = b->table->backends[backend].variant;
    struct msc_runtime_piece *run = &b->pieces[(variant * n + first) * n + last];
    if (!run->model) {
        MSC_TRY(msc_place_write_run(run, &b->runs, variant, first, last, "run", &b->arena));
    }
    *out = *run;
    out->backend = b->backends[backend];
    return MSC_OK;
}

// The first backend whose latency of the whole network is in the table.
static size_t find_reference(const struct msc_place_table *p) {
    size_t b = 0;
    while (b < p->n_backends && isnan(*msc_place_table_us(p, 0, p->n_groups - 1, b))) {
        b++;
    }
    return b;
}

static enum msc_status bench_init(struct msc_place_bench *b, const char *path) {
    const struct msc_place_table *p = b->table;
    size_t n = p->n_groups;
    b->backends = msc_arena_array(&b->arena, p->n_backends, sizeof b->backends[0]);
    b->pieces = msc_arena_array(&b->arena, p->n_variants * n * n, sizeof b->pieces[0]);
    b->singles = msc_arena_array(&b->arena, n, sizeof b->singles[0]);
    MSC_TRY(MSC_ALLOCATED(b->backends && b->pieces && b->singles));
    for (size_t i = 0; i < p->n_variants * n * n; i++) {
        b->pieces[i] = (struct msc_runtime_piece){0};
    }
    for (size_t i = 0; i < p->n_backends; i++) {
        b->backends[i] = p->backends[i].name;
    }
    b->reference = find_reference(p);
    MSC_TRY(msc_scratch_make(&b->scratch, &b->arena));
    MSC_TRY(load_graphs(b, path));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(get_run(&b->singles[i], b, i, i, 0));
    }
    return MSC_OK;
}

enum msc_status msc_place_bench_open(struct msc_place_bench **out, const struct msc_place_table *p,
                                     const char *path, const struct msc_cancel *cancel) {
    struct msc_place_bench *b = msc_alloc_zero(1, sizeof *b);
    struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
    MSC_TRY(MSC_ALLOCATED(b));
    b->table = p;
    options.cancel = cancel;
    enum msc_status status = bench_init(b, path);
    status = status == MSC_OK ? msc_runtime_start(&b->runtime, &options) : status;
    if (status != MSC_OK) {
        msc_place_bench_close(b);
        return status;
    }
    *out = b;
    return MSC_OK;
}

void msc_place_bench_close(struct msc_place_bench *b) {
    if (b) {
        msc_runtime_stop(b->runtime);
        msc_scratch_remove(&b->scratch);
        for (size_t v = 0; v < b->table->n_variants; v++) {
            msc_graph_destroy(b->graphs[v]);
        }
        msc_arena_finish(&b->arena);
        msc_free(b);
    }
}

// ---- Points -----------------------------------------------------------------------------------

// The pieces of a point; `pieces` [n_groups].
static enum msc_status list_pieces(struct msc_runtime_piece pieces[], size_t *n,
                                   struct msc_place_bench *b, const uint32_t choices[]) {
    *n = 0;
    for (size_t first = 0, last; first < b->table->n_groups; first = last + 1) {
        last = msc_place_table_end(b->table, choices, first);
        MSC_TRY(get_run(&pieces[(*n)++], b, first, last, choices[first]));
    }
    return MSC_OK;
}

// The median latency, relative to that of the reference in the same round.
static enum msc_status sum_up(double *us, const struct msc_place_bench *b,
                              const struct msc_latency *l) {
    struct msc_quartiles q;
    size_t last = b->table->n_groups - 1;
    bool has_reference = b->reference < b->table->n_backends;
    MSC_TRY(has_reference ? msc_latency_ratios(&q, l, 0, 1) : msc_latency_quartiles(&q, l, 0));
    *us = q.median * (has_reference ? *msc_place_table_us(b->table, 0, last, b->reference) : 1.0);
    return MSC_OK;
}

enum msc_status msc_place_bench_run(double *us, const char **why, struct msc_place_bench *b,
                                    const uint32_t choices[]) {
    const struct msc_place_table *p = b->table;
    struct msc_runtime_piece pieces[MSC_PLACE_MOST_GROUPS], whole;
    struct msc_runtime_chain chains[2] = {{.pieces = pieces}, {.pieces = &whole, .n_pieces = 1}};
    struct msc_runtime_chains job = MSC_RUNTIME_CHAINS_INIT;
    struct msc_latency l = {0};
    *us = NAN;
    MSC_TRY(list_pieces(pieces, &chains[0].n_pieces, b, choices));
    job.n_chains = 1;
    if (b->reference < p->n_backends) {
        MSC_TRY(get_run(&whole, b, 0, p->n_groups - 1, b->reference));
        job.n_chains = 2;
    }
    job.values = b->singles;
    job.n_values = p->n_groups;
    job.others = b->backends;
    job.n_others = p->n_backends;
    job.chains = chains;
    job.batch = p->batch;
    job.n_threads = (int)p->n_threads;
    job.n_rounds = p->n_rounds;
    job.arena = &b->arena;
    MSC_TRY(msc_runtime_chains(&l, b->runtime, &job));
    *why = chains[0].missing ? chains[0].missing : chains[1].missing;
    enum msc_status status = *why ? MSC_OK : sum_up(us, b, &l);
    msc_latency_finish(&l);
    return status;
}

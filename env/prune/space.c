// The space of the `prune` environment: a task for each included group of channels and for each
// weight that may be sparse, with its cuts as choices; exact costs; uniform plans as baselines.
#include "base/alloc.h"
#include "env/prune/internal.h"

#include <math.h>
#include <stdlib.h>

enum { N_FEATURES = 4 };

static const char *const feature_names[N_FEATURES] = {"position", "log2_units", "size_share",
                                                      "macs_share"};

static const char *const choice_feature_names[] = {"density"};

struct builder {
    struct msc_prune_space *out;
    const struct msc_prune_inputs *in;
    const struct msc_channels *channels;
    struct msc_arena *arena;
    int32_t *whole; // [n_groups] units
};

// ---- Tasks ------------------------------------------------------------------------------------

struct rank {
    int32_t n_kept;
    uint32_t cut;
};

static int compare_ranks(const void *a, const void *b) {
    const struct rank *x = a, *y = b;
    return x->n_kept != y->n_kept ? (x->n_kept > y->n_kept ? -1 : 1)
                                  : (x->cut > y->cut) - (x->cut < y->cut);
}

static enum msc_status fill_choices(struct builder *b, struct msc_task *task, int32_t part) {
    const struct msc_pruner *pruner = b->in->pruner;
    size_t n = msc_pruner_n_cuts(pruner, part);
    struct rank *ranks = msc_arena_array(b->arena, n, sizeof(ranks[0]));
    const char **labels = msc_arena_array(b->arena, n, sizeof(labels[0]));
    uint32_t *order = msc_arena_array(b->arena, n, sizeof(order[0]));
    double *densities = msc_arena_array(b->arena, n, sizeof(densities[0]));
    MSC_TRY(MSC_ALLOCATED(ranks && labels && order && densities));
    double whole = msc_pruner_cut(pruner, part, n)->n_kept;
    for (size_t i = 0; i < n; i++) {
        const struct msc_prune_cut *cut = msc_pruner_cut(pruner, part, i);
        labels[i] = b->in->options->choices[cut->choice].label;
        ranks[i] = (struct rank){cut->n_kept, (uint32_t)i};
        densities[i] = cut->n_kept / whole;
    }
    qsort(ranks, n, sizeof(ranks[0]), compare_ranks);
    for (size_t i = 0; i < n; i++) {
        order[i] = ranks[i].cut;
    }
    task->n_choices = (uint32_t)n;
    task->labels = labels;
    task->most_expensive_first = order;
    task->choice_features = densities;
    return MSC_OK;
}

// The fraction of an amount that would disappear if all units of a group were removed.
static double share_of(const struct builder *b, const struct msc_prune_amount *a, int32_t group) {
    double all = msc_prune_env__amount(a, b->whole);
    int32_t n_units = b->whole[group];
    b->whole[group] = 0;
    double without = msc_prune_env__amount(a, b->whole);
    b->whole[group] = n_units;
    return all > 0 ? (all - without) / all : 0;
}

static enum msc_status fill_features(struct builder *b, struct msc_task *task, int32_t part) {
    double *f = msc_arena_array(b->arena, N_FEATURES, sizeof(f[0]));
    int32_t n_groups = b->channels->n_groups, n_parts = msc_pruner_n_parts(b->in->pruner);
    MSC_TRY(MSC_ALLOCATED(f));
    task->features = f;
    if (part < n_groups) {
        f[0] = (double)part / n_groups;
        f[1] = log2(b->whole[part]);
        f[2] = share_of(b, &b->out->n_bytes, part);
        f[3] = share_of(b, &b->out->macs, part);
        return MSC_OK;
    }
    size_t all = msc_pruner_n_cuts(b->in->pruner, part);
    double n = msc_pruner_cut(b->in->pruner, part, all)->n_kept;
    double n_bytes = msc_prune_env__amount(&b->out->n_bytes, b->whole);
    f[0] = (double)(part - n_groups) / (n_parts - n_groups);
    f[1] = log2(n);
    f[2] = n_bytes > 0 ? msc_pruner_element_bytes(b->in->pruner, part) * n / n_bytes : 0;
    f[3] = 0; // sparsity saves no multiplications
    return MSC_OK;
}

static enum msc_status name_task(struct builder *b, struct msc_task *task, int32_t part) {
    int32_t n_groups = b->channels->n_groups;
    if (part < n_groups) {
        task->name = b->channels->groups[part].name;
        return MSC_OK;
    }
    int32_t tensor = msc_pruner_part_tensor(b->in->pruner, part);
    task->name =
        msc_arena_printf(b->arena, "%s sparsity", msc_graph_tensor(b->in->graph, tensor)->name);
    return MSC_ALLOCATED(task->name);
}

static enum msc_status build_tasks(struct builder *b) {
    struct msc_space *space = &b->out->space;
    int32_t n_parts = msc_pruner_n_parts(b->in->pruner);
    size_t n = (size_t)n_parts + 1;
    struct msc_task *tasks = msc_arena_array(b->arena, n, sizeof(tasks[0]));
    b->out->part_of_task = msc_arena_array(b->arena, n, sizeof(b->out->part_of_task[0]));
    b->whole = msc_arena_array(b->arena, n, sizeof(b->whole[0]));
    MSC_TRY(MSC_ALLOCATED(tasks && b->out->part_of_task && b->whole));
    for (int32_t g = 0; g < b->channels->n_groups; g++) {
        b->whole[g] = b->channels->groups[g].n_units;
    }
    for (int32_t i = 0; i < n_parts; i++) {
        if (msc_pruner_is_included(b->in->pruner, i)) {
            struct msc_task *task = &tasks[space->n_tasks];
            MSC_TRY(name_task(b, task, i));
            MSC_TRY(fill_choices(b, task, i));
            MSC_TRY(fill_features(b, task, i));
            b->out->part_of_task[space->n_tasks++] = i;
        }
    }
    space->tasks = tasks;
    space->n_features = N_FEATURES;
    space->feature_names = feature_names;
    space->n_choice_features = 1;
    space->choice_feature_names = choice_feature_names;
    return MSC_OK;
}

// ---- Baselines --------------------------------------------------------------------------------

static enum msc_status build_baselines(struct builder *b) {
    struct msc_space *space = &b->out->space;
    const struct msc_pruner_options *o = b->in->options;
    struct msc_baseline *baselines = msc_arena_array(b->arena, o->n_choices, sizeof(baselines[0]));
    uint32_t *points = msc_arena_array(b->arena, o->n_choices * space->n_tasks, sizeof(points[0]));
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (size_t c = 0; c < o->n_choices; c++) {
        uint32_t *point = points + c * space->n_tasks;
        for (size_t t = 0; t < space->n_tasks; t++) {
            point[t] = (uint32_t)msc_pruner_cut_of(b->in->pruner, b->out->part_of_task[t], c);
        }
        baselines[c] = (struct msc_baseline){o->choices[c].label, point};
    }
    space->baselines = baselines;
    space->n_baselines = o->n_choices;
    return MSC_OK;
}

enum msc_status msc_prune_env__build_space(struct msc_prune_space *out,
                                           const struct msc_prune_inputs *in,
                                           struct msc_arena *arena) {
    struct builder b = {
        .out = out, .in = in, .channels = msc_pruner_channels(in->pruner), .arena = arena};
    struct msc_prune_costing costing = {.pruner = in->pruner, .space = out, .whole = in->whole};
    *out = (struct msc_prune_space){0};
    MSC_TRY(msc_prune_env__count(&out->n_bytes, &out->macs, in, arena));
    MSC_TRY(msc_prune_env__counter(&costing.counter, in, arena));
    MSC_TRY(build_tasks(&b));
    MSC_TRY(build_baselines(&b));
    return msc_metrics_build(&out->space, out->references, in->metrics, &costing, arena);
}

void msc_prune_env__cuts(uint32_t cuts[], const struct msc_prune_env *z, const uint32_t choices[]) {
    for (int32_t i = 0; i < msc_pruner_n_parts(z->pruner); i++) {
        cuts[i] = (uint32_t)msc_pruner_fixed_cut(z->pruner, i); // excluded parts keep everything
    }
    for (size_t t = 0; t < z->space.space.n_tasks; t++) {
        cuts[z->space.part_of_task[t]] = choices[t];
    }
}

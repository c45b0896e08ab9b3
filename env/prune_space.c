// The space of the prune environment: a task for each group of channels that is included, its choices
// the cuts; exact costs; uniform plans as baselines.
#include "base/alloc.h"
#include "env/prune_internal.h"

#include <math.h>
#include <stdlib.h>

enum { N_FEATURES = 4 };

static const char *const feature_names[N_FEATURES] = {"position", "log2_units", "size_share",
                                                      "macs_share"};

struct builder {
    struct msc_prune_space *out;
    const struct msc_prune_inputs *in;
    const struct msc_channels *channels;
    struct msc_arena *arena;
    int32_t *whole; // [n_groups] units
};

static enum msc_status no_space_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the search space");
}

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

static enum msc_status fill_choices(struct builder *b, struct msc_task *task, int32_t group) {
    const struct msc_pruner *pruner = b->in->pruner;
    size_t n = msc_pruner_n_cuts(pruner, group);
    struct rank *ranks = msc_arena_array(b->arena, n, sizeof(ranks[0]));
    const char **labels = msc_arena_array(b->arena, n, sizeof(labels[0]));
    uint32_t *order = msc_arena_array(b->arena, n, sizeof(order[0]));
    if (!ranks || !labels || !order) {
        return no_space_memory();
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_prune_cut *cut = msc_pruner_cut(pruner, group, i);
        labels[i] = b->in->options->choices[cut->choice].label;
        ranks[i] = (struct rank){cut->n_kept, (uint32_t)i};
    }
    qsort(ranks, n, sizeof(ranks[0]), compare_ranks);
    for (size_t i = 0; i < n; i++) {
        order[i] = ranks[i].cut;
    }
    task->n_choices = (uint32_t)n;
    task->labels = labels;
    task->most_expensive_first = order;
    return MSC_OK;
}

// What of an amount goes with all units of a group.
static double share_of(const struct builder *b, const struct msc_prune_amount *a, int32_t group) {
    double all = msc_prune_env__amount(a, b->whole);
    int32_t n_units = b->whole[group];
    b->whole[group] = 0;
    double without = msc_prune_env__amount(a, b->whole);
    b->whole[group] = n_units;
    return all > 0 ? (all - without) / all : 0;
}

static enum msc_status fill_features(struct builder *b, struct msc_task *task, int32_t group) {
    double *f = msc_arena_array(b->arena, N_FEATURES, sizeof(f[0]));
    if (!f) {
        return no_space_memory();
    }
    f[0] = (double)group / b->channels->n_groups;
    f[1] = log2(b->whole[group]);
    f[2] = share_of(b, &b->out->n_bytes, group);
    f[3] = share_of(b, &b->out->macs, group);
    task->features = f;
    return MSC_OK;
}

static enum msc_status build_tasks(struct builder *b) {
    struct msc_space *space = &b->out->space;
    size_t n_groups = (size_t)b->channels->n_groups;
    struct msc_task *tasks = msc_arena_array(b->arena, n_groups, sizeof(tasks[0]));
    b->out->group_of_task = msc_arena_array(b->arena, n_groups, sizeof(b->out->group_of_task[0]));
    b->whole = msc_arena_array(b->arena, n_groups, sizeof(b->whole[0]));
    if (!tasks || !b->out->group_of_task || !b->whole) {
        return no_space_memory();
    }
    for (int32_t g = 0; g < b->channels->n_groups; g++) {
        b->whole[g] = b->channels->groups[g].n_units;
    }
    for (int32_t g = 0; g < b->channels->n_groups; g++) {
        if (msc_pruner_is_included(b->in->pruner, g)) {
            struct msc_task *task = &tasks[space->n_tasks];
            task->name = b->channels->groups[g].name;
            MSC_TRY(fill_choices(b, task, g));
            MSC_TRY(fill_features(b, task, g));
            b->out->group_of_task[space->n_tasks++] = g;
        }
    }
    space->tasks = tasks;
    space->n_features = N_FEATURES;
    space->feature_names = feature_names;
    return MSC_OK;
}

// ---- Baselines --------------------------------------------------------------------------------

static enum msc_status build_baselines(struct builder *b) {
    struct msc_space *space = &b->out->space;
    const struct msc_pruner_options *o = b->in->options;
    struct msc_baseline *baselines = msc_arena_array(b->arena, o->n_choices, sizeof(baselines[0]));
    uint32_t *points = msc_arena_array(b->arena, o->n_choices * space->n_tasks, sizeof(points[0]));
    if (!baselines || !points) {
        return no_space_memory();
    }
    for (size_t c = 0; c < o->n_choices; c++) {
        uint32_t *point = points + c * space->n_tasks;
        for (size_t t = 0; t < space->n_tasks; t++) {
            point[t] = (uint32_t)msc_pruner_cut_of(b->in->pruner, b->out->group_of_task[t], c);
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
    const struct msc_prune_costing costing = {in->pruner, out, in->whole};
    *out = (struct msc_prune_space){0};
    MSC_TRY(msc_prune_env__count(&out->n_bytes, &out->macs, in, arena));
    MSC_TRY(build_tasks(&b));
    MSC_TRY(build_baselines(&b));
    return msc_metrics_build(&out->space, out->references, in->metrics, &costing, arena);
}

void msc_prune_env__cuts(uint32_t cuts[], const struct msc_prune_env *z, const uint32_t choices[]) {
    const struct msc_channels *channels = msc_pruner_channels(z->pruner);
    for (int32_t g = 0; g < channels->n_groups; g++) {
        cuts[g] = (uint32_t)msc_pruner_n_cuts(z->pruner, g); // of those left out: the whole
    }
    for (size_t t = 0; t < z->space.space.n_tasks; t++) {
        cuts[z->space.group_of_task[t]] = choices[t];
    }
}

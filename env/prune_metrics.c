// What the prune environment can measure.
#include "env/prune_internal.h"

#include "base/alloc.h"

static enum msc_status no_cost_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the costs of a search");
}

// An amount as terms of tasks: groups that are left out keep what they have.
struct costing {
    const struct msc_prune_costing *of;
    const int32_t *task_of_group; // [n_groups] or MSC_NO_ID
    const double **n_kept;        // [n_groups] of the cuts of those with a task, and their squares
    const double **squares;
};

static enum msc_status costing_init(struct costing *c, int32_t **task_of_group,
                                    const struct msc_prune_costing *of, struct msc_arena *arena) {
    size_t n = (size_t)msc_pruner_channels(of->pruner)->n_groups + 1;
    *task_of_group = msc_arena_array(arena, n, sizeof((*task_of_group)[0]));
    c->of = of;
    c->task_of_group = *task_of_group;
    c->n_kept = msc_arena_array(arena, n, sizeof(c->n_kept[0]));
    c->squares = msc_arena_array(arena, n, sizeof(c->squares[0]));
    if (!*task_of_group || !c->n_kept || !c->squares) {
        return no_cost_memory();
    }
    for (size_t g = 0; g < n; g++) {
        (*task_of_group)[g] = MSC_NO_ID;
    }
    for (size_t t = 0; t < of->space->space.n_tasks; t++) {
        int32_t group = of->space->group_of_task[t];
        size_t n_cuts = msc_pruner_n_cuts(of->pruner, group);
        double *kept = msc_arena_array(arena, n_cuts, sizeof(kept[0]));
        double *squares = msc_arena_array(arena, n_cuts, sizeof(squares[0]));
        if (!kept || !squares) {
            return no_cost_memory();
        }
        for (size_t i = 0; i < n_cuts; i++) {
            kept[i] = msc_pruner_cut(of->pruner, group, i)->n_kept;
            squares[i] = kept[i] * kept[i];
        }
        (*task_of_group)[group] = (int32_t)t;
        c->n_kept[group] = kept;
        c->squares[group] = squares;
    }
    return MSC_OK;
}

// Units of a group that no task decides about.
static double fixed_units(const struct costing *c, int32_t group) {
    return msc_pruner_channels(c->of->pruner)->groups[group].n_units;
}

// scale * the units of two groups, which may be the same.
static enum msc_status add_pair(struct msc_metric_cost *out, const struct costing *c, double scale,
                                int32_t a, int32_t b) {
    uint32_t tasks[2];
    const double *by_choice[2];
    size_t n = 0;
    const int32_t groups[2] = {a, b};
    if (scale == 0) {
        return MSC_OK;
    }
    if (a == b && c->task_of_group[a] != MSC_NO_ID) {
        tasks[0] = (uint32_t)c->task_of_group[a];
        return msc_metric_add_term(out, scale, 1, tasks, &c->squares[a]);
    }
    for (int i = 0; i < 2; i++) {
        if (c->task_of_group[groups[i]] == MSC_NO_ID) {
            scale *= fixed_units(c, groups[i]);
        } else {
            tasks[n] = (uint32_t)c->task_of_group[groups[i]];
            by_choice[n++] = c->n_kept[groups[i]];
        }
    }
    out->constant += n == 0 ? scale : 0;
    return n > 0 ? msc_metric_add_term(out, scale, n, tasks, by_choice) : MSC_OK;
}

static enum msc_status add_linear(struct msc_metric_cost *out, const struct costing *c,
                                  double scale, int32_t group) {
    uint32_t task = (uint32_t)c->task_of_group[group];
    if (c->task_of_group[group] == MSC_NO_ID) {
        out->constant += scale * fixed_units(c, group);
        return MSC_OK;
    }
    return scale == 0 ? MSC_OK : msc_metric_add_term(out, scale, 1, &task, &c->n_kept[group]);
}

static enum msc_status add_amount(struct msc_metric_cost *out, const struct msc_prune_costing *of,
                                  const struct msc_prune_amount *a) {
    struct costing c;
    int32_t *task_of_group;
    MSC_TRY(costing_init(&c, &task_of_group, of, out->arena));
    const struct msc_channels *channels = msc_pruner_channels(of->pruner);
    int32_t *whole = msc_arena_array(out->arena, (size_t)a->n + 1, sizeof(whole[0]));
    if (!whole) {
        return no_cost_memory();
    }
    out->constant += a->constant;
    for (int32_t i = 0; i < a->n; i++) {
        whole[i] = channels->groups[i].n_units;
        MSC_TRY(add_linear(out, &c, a->linear[i], i));
        for (int32_t k = i; k < a->n; k++) {
            MSC_TRY(add_pair(out, &c, a->square[(int64_t)i * a->n + k], i, k));
        }
    }
    out->reference = msc_prune_env__amount(a, whole);
    return MSC_OK;
}

static enum msc_status cost_size(struct msc_metric_cost *out, const void *of) {
    const struct msc_prune_costing *c = of;
    MSC_TRY(add_amount(out, c, &c->space->n_bytes));
    out->reference = c->whole ? c->whole->n_model_bytes : out->reference;
    return MSC_OK;
}

static enum msc_status cost_macs(struct msc_metric_cost *out, const void *of) {
    const struct msc_prune_costing *c = of;
    MSC_TRY(add_amount(out, c, &c->space->macs));
    out->reference = c->whole ? c->whole->macs : out->reference;
    return MSC_OK;
}

// In the order of the space. The first is the objective where none is given.
const struct msc_metric_row msc_prune_metric_rows[] = {
    {.metric = {.name = "distill_loss", .unit = "", .help = "how far the outputs move, by `loss`"},
     .is_distance = true,
     .of_run = msc_metric_loss},
    {.metric = {.name = "accuracy",
                .unit = "",
                .help = "share of samples whose greatest class score is the label; with labels",
                .is_maximised = true},
     .needs = MSC_METRIC_NEEDS_LABELS,
     .sample = msc_metric_is_correct},
    {.metric = {.name = "size_bytes",
                .unit = "bytes",
                .help = "all weights that are left",
                .is_exact = true},
     .cost = cost_size},
    {.metric = {.name = "size_ratio",
                .unit = "",
                .help = "size_bytes over that of the whole model",
                .is_exact = true},
     .ratio_of = "size_bytes"},
    {.metric = {.name = "macs",
                .unit = "",
                .help = "multiply-accumulates for one sample",
                .is_exact = true},
     .cost = cost_macs},
    {.metric = {.name = "macs_ratio",
                .unit = "",
                .help = "macs over that of the whole model",
                .is_exact = true},
     .ratio_of = "macs"},
    {.metric = {.name = NULL}},
};

enum { N_ROWS = sizeof(msc_prune_metric_rows) / sizeof(msc_prune_metric_rows[0]) - 1 };

_Static_assert(N_ROWS <= MSC_MAX_METRICS, "a space has no room for as many metrics");

const struct msc_metric *msc_prune_env__metric(size_t index) {
    return index < N_ROWS ? &msc_prune_metric_rows[index].metric : NULL;
}

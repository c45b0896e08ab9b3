// The metrics that the `prune` environment computes itself, and the factors of their exact costs.
#include "env/prune/internal.h"

#include "base/alloc.h"

enum msc_status msc_prune_env__factors(struct msc_prune_factors *out,
                                       const struct msc_prune_costing *of,
                                       struct msc_arena *arena) {
    size_t n = (size_t)msc_pruner_n_parts(of->pruner) + 1;
    int32_t *task_of_group = msc_arena_array(arena, n, sizeof(task_of_group[0]));
    *out = (struct msc_prune_factors){.pruner = of->pruner, .task_of_group = task_of_group};
    out->n_kept = msc_arena_array(arena, n, sizeof(out->n_kept[0]));
    out->squares = msc_arena_array(arena, n, sizeof(out->squares[0]));
    double *fixed = msc_arena_array(arena, n, sizeof(fixed[0]));
    out->fixed = fixed;
    MSC_TRY(MSC_ALLOCATED(task_of_group && out->n_kept && out->squares && fixed));
    for (size_t g = 0; g < n; g++) {
        task_of_group[g] = MSC_NO_ID;
    }
    for (int32_t g = 0; g < msc_pruner_channels(of->pruner)->n_groups; g++) {
        size_t cut = msc_pruner_fixed_cut(of->pruner, g);
        fixed[g] = msc_pruner_cut(of->pruner, g, cut)->n_kept;
    }
    for (size_t t = 0; t < of->space->space.n_tasks; t++) {
        int32_t group = of->space->part_of_task[t];
        size_t n_cuts = msc_pruner_n_cuts(of->pruner, group);
        double *kept = msc_arena_array(arena, n_cuts, sizeof(kept[0]));
        double *squares = msc_arena_array(arena, n_cuts, sizeof(squares[0]));
        MSC_TRY(MSC_ALLOCATED(kept && squares));
        for (size_t i = 0; i < n_cuts; i++) {
            kept[i] = msc_pruner_cut(of->pruner, group, i)->n_kept;
            squares[i] = kept[i] * kept[i];
        }
        task_of_group[group] = (int32_t)t;
        out->n_kept[group] = kept;
        out->squares[group] = squares;
    }
    return MSC_OK;
}

size_t msc_prune_env__factors_of(double *scale, uint32_t tasks[], const double *by_choice[],
                                 const struct msc_prune_factors *f,
                                 const struct msc_prune_monomial *m) {
    size_t n = 0;
    if (m->n == 2 && m->groups[0] == m->groups[1] && f->task_of_group[m->groups[0]] != MSC_NO_ID) {
        tasks[0] = (uint32_t)f->task_of_group[m->groups[0]];
        by_choice[0] = f->squares[m->groups[0]];
        return 1;
    }
    for (int i = 0; i < m->n; i++) {
        int32_t group = m->groups[i];
        if (f->task_of_group[group] == MSC_NO_ID) {
            *scale *= f->fixed[group];
        } else {
            tasks[n] = (uint32_t)f->task_of_group[group];
            by_choice[n++] = f->n_kept[group];
        }
    }
    return n;
}

static enum msc_status add_term(struct msc_metric_cost *out, const struct msc_prune_factors *f,
                                const struct msc_prune_monomial *m) {
    uint32_t tasks[2];
    const double *by_choice[2];
    double scale = m->scale;
    size_t n = msc_prune_env__factors_of(&scale, tasks, by_choice, f, m);
    out->constant += n == 0 ? scale : 0;
    return n > 0 && scale != 0 ? msc_metric_add_term(out, scale, n, tasks, by_choice) : MSC_OK;
}

enum msc_status msc_prune_env__add_amount(struct msc_metric_cost *out,
                                          const struct msc_prune_costing *of,
                                          const struct msc_prune_amount *a) {
    struct msc_prune_factors f;
    MSC_TRY(msc_prune_env__factors(&f, of, out->arena));
    const struct msc_channels *channels = msc_pruner_channels(of->pruner);
    int32_t *whole = msc_arena_array(out->arena, (size_t)a->n + 1, sizeof(whole[0]));
    MSC_TRY(MSC_ALLOCATED(whole));
    out->constant += a->constant;
    for (int32_t i = 0; i < a->n; i++) {
        const struct msc_prune_monomial one = {a->linear[i], 1, {i, MSC_NO_ID}};
        whole[i] = channels->groups[i].n_units;
        MSC_TRY(add_term(out, &f, &one));
        for (int32_t k = i; k < a->n; k++) {
            const struct msc_prune_monomial two = {a->square[(int64_t)i * a->n + k], 2, {i, k}};
            MSC_TRY(add_term(out, &f, &two));
        }
    }
    out->reference = msc_prune_env__amount(a, whole);
    return MSC_OK;
}

// ---- Sparse weights ---------------------------------------------------------------------------

// The change of a weight's size per element, for each choice of its task.
struct saving {
    struct msc_metric_cost *out;
    const struct msc_prune_factors *factors;
    int32_t task;        // MSC_NO_ID: the weight is fixed and `bytes` has one entry
    const double *bytes; // [n_choices], bytes per element minus those of a dense element
};

static enum msc_status add_saved(void *payload, const struct msc_prune_monomial *m) {
    const struct saving *s = payload;
    uint32_t tasks[3];
    const double *by_choice[3];
    double scale = m->scale;
    size_t n = msc_prune_env__factors_of(&scale, tasks, by_choice, s->factors, m);
    if (s->task == MSC_NO_ID) {
        scale *= s->bytes[0];
        s->out->constant += n == 0 ? scale : 0;
        return n > 0 ? msc_metric_add_term(s->out, scale, n, tasks, by_choice) : MSC_OK;
    }
    tasks[n] = (uint32_t)s->task;
    by_choice[n++] = s->bytes;
    return msc_metric_add_term(s->out, scale, n, tasks, by_choice);
}

static double more_bytes(const struct msc_pruner *p, int32_t part, size_t cut) {
    return msc_pruner_element_bytes(p, part) * (msc_pruner_cut(p, part, cut)->stored - 1);
}

// Adds the change in size of weights that become sparse. The change is exact if all channels are
// kept. Otherwise a weight's saving is in proportion to its remaining elements.
static enum msc_status add_sparse(struct msc_metric_cost *out, const struct msc_prune_costing *of) {
    const struct msc_pruner *p = of->pruner;
    struct msc_prune_factors f;
    MSC_TRY(msc_prune_env__factors(&f, of, out->arena));
    for (int32_t i = msc_pruner_channels(p)->n_groups; i < msc_pruner_n_parts(p); i++) {
        size_t n_cuts = msc_pruner_n_cuts(p, i);
        double *bytes = msc_arena_array(out->arena, n_cuts + 1, sizeof(bytes[0]));
        MSC_TRY(MSC_ALLOCATED(bytes));
        bytes[0] = more_bytes(p, i, msc_pruner_fixed_cut(p, i));
        for (size_t k = 0; k < n_cuts && f.task_of_group[i] != MSC_NO_ID; k++) {
            bytes[k] = more_bytes(p, i, k);
        }
        const struct msc_prune_counted elements = {.tensor = msc_pruner_part_tensor(p, i)};
        struct saving saving = {out, &f, f.task_of_group[i], bytes};
        MSC_TRY(msc_prune_env__each_monomial(of->counter, &elements, add_saved, &saving));
    }
    return MSC_OK;
}

// ---- The list ---------------------------------------------------------------------------------

static enum msc_status cost_size(struct msc_metric_cost *out, const void *of) {
    const struct msc_prune_costing *c = of;
    MSC_TRY(msc_prune_env__add_amount(out, c, &c->space->n_bytes));
    MSC_TRY(add_sparse(out, c));
    out->reference = c->whole ? c->whole->n_bytes : out->reference;
    return MSC_OK;
}

static enum msc_status cost_macs(struct msc_metric_cost *out, const void *of) {
    const struct msc_prune_costing *c = of;
    MSC_TRY(msc_prune_env__add_amount(out, c, &c->space->macs));
    out->reference = c->whole ? c->whole->macs : out->reference;
    return MSC_OK;
}

const struct msc_env_metric msc_prune_metrics[] = {
    {.name = "size_bytes", .cost = cost_size},
    {.name = "size_ratio"},
    {.name = "macs", .cost = cost_macs},
    {.name = "macs_ratio"},
    {.name = "command", .measure = msc_prune_env__run_command},
    {.name = NULL},
};

const struct msc_metric *msc_prune_env__metric(size_t index) {
    return msc_metric_at(msc_prune_metrics, index);
}

#include "env/prune/definition.h"

#include "base/alloc.h"
#include "data/dataset.h"
#include "env/env.h"
#include "env/prune/internal.h"
#include "env/whole.h"
#include "graph/passes/prune.h"
#include "tools/strategy.h"

#include <string.h>

// ---- Edits ------------------------------------------------------------------------------------

static size_t count_parts(const struct msc_prune_env *z) {
    return (size_t)msc_pruner_n_parts(z->pruner);
}

// Makes the repaired weights of several points at once.
static enum msc_status begin_points(void *payload, const uint32_t *const points[], size_t n) {
    struct msc_prune_env *z = payload;
    size_t n_parts = count_parts(z);
    if (msc_pruner_is_full(z->pruner)) {
        msc_pruner_forget(z->pruner);
    }
    if (n == 0) {
        return MSC_OK;
    }
    uint32_t *cuts = msc_alloc_zero(n * n_parts + 1, sizeof(cuts[0]));
    const uint32_t **of_points = msc_alloc_zero(n, sizeof(of_points[0]));
    enum msc_status status = MSC_ALLOCATED(cuts && of_points);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        of_points[i] = cuts + i * n_parts;
        msc_prune_env__cuts(cuts + i * n_parts, z, points[i]);
    }
    if (status == MSC_OK) {
        status = msc_pruner_make(z->pruner, of_points, n, z->n_threads);
    }
    msc_free(of_points);
    msc_free(cuts);
    return status;
}

static enum msc_status fill_cuts(struct msc_prune_env *z, const uint32_t cuts[],
                                 const struct msc_edit *edits[]) {
    MSC_TRY(msc_pruner_make(z->pruner, &cuts, 1, 1));
    msc_pruner_fill(z->pruner, cuts, edits);
    return MSC_OK;
}

static enum msc_status fill_edits(void *payload, const uint32_t choices[],
                                  const struct msc_edit *edits[]) {
    struct msc_prune_env *z = payload;
    uint32_t *cuts = msc_alloc_zero(count_parts(z) + 1, sizeof(cuts[0]));
    MSC_TRY(MSC_ALLOCATED(cuts));
    msc_prune_env__cuts(cuts, z, choices);
    enum msc_status status = fill_cuts(z, cuts, edits);
    msc_free(cuts);
    return status;
}

static enum msc_status fill_alone(void *payload, const uint32_t choices[], size_t task,
                                  const struct msc_edit *edits[]) {
    struct msc_prune_env *z = payload;
    uint32_t *cuts = msc_alloc_zero(count_parts(z) + 1, sizeof(cuts[0]));
    MSC_TRY(MSC_ALLOCATED(cuts));
    for (size_t i = 0; i < count_parts(z); i++) {
        cuts[i] = (uint32_t)msc_pruner_n_cuts(z->pruner, (int32_t)i);
    }
    cuts[z->space.part_of_task[task]] = choices[task];
    enum msc_status status = fill_cuts(z, cuts, edits);
    msc_free(cuts);
    return status;
}

// ---- The environment's functions --------------------------------------------------------------

// Refuses a quantised base, because repaired weights are computed in floats.
enum msc_status msc_prune_env__check_base(const struct msc_env_host *host) {
    return !host->base || msc_strategy_n_edits(host->base) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED,
                          "the strategy that the search starts from quantises the model, so its "
                          "channels cannot be pruned: prune first, then quantise");
}

enum msc_status msc_prune_env__read_options(struct msc_prune_env *z, const cJSON *config,
                                            struct msc_arena *arena) {
    z->options = (struct msc_pruner_options){
        .round_to = z->round_to, .repairs = z->repairs, .ridge = z->ridge, .n_rows = z->n_rows};
    return msc_pruner_read_options(&z->options, config, arena);
}

static enum msc_status prune_init(struct msc_env *env) {
    struct msc_prune_env *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_arena *arena = msc_env_arena(env);
    struct msc_distill_options o;
    MSC_TRY(msc_prune_env__check_base(host));
    MSC_TRY(msc_loss_options_read(&o, &z->loss, arena));
    MSC_TRY(msc_prune_env__read_options(z, msc_env_config(env), arena));
    if (z->asked_command) {
        MSC_TRY(msc_command_read(&z->command, z->asked_command, "env.command", arena));
    }
    MSC_TRY(msc_trial_runs_choose(&z->runs, &o, msc_prune_metrics, env));
    z->n_threads = host->n_threads;
    // The pruner may use a quarter of the memory, in addition to the evaluator's share.
    MSC_TRY(msc_pruner_create(&z->pruner, host->graph, &z->options, host->memory_bytes / 4));
    MSC_TRY(msc_distill_create(&z->runs.distill, host, host->dataset, &o));
    MSC_TRY(msc_prune_env__keep_compared(z, host->graph));
    msc_pruner_tell_rounded(z->pruner, host->log);
    z->runs.n_slots = (size_t)msc_pruner_sites(z->pruner)->n_slots;
    MSC_TRY(msc_prune_env__get_parameters(env, z));
    struct msc_outline outline;
    MSC_TRY(msc_evaluator_outline(&outline, msc_distill_evaluator(z->runs.distill)));
    struct msc_whole_cost whole;
    bool is_more = msc_whole_is_more(env);
    MSC_TRY(is_more ? msc_whole_measure_cost(&whole, z->runs.distill, env) : MSC_OK);
    const struct msc_prune_inputs inputs = {
        .graph = host->graph,
        .pruner = z->pruner,
        .options = &z->options,
        .plan = outline.plan,
        .n_samples = outline.n_samples,
        .metrics = &z->runs.metrics,
        .whole = is_more ? &whole : NULL,
    };
    MSC_TRY(msc_prune_env__build_space(&z->space, &inputs, arena));
    z->runs.space = &z->space.space;
    z->runs.references = z->space.references;
    z->runs.begin = begin_points;
    z->runs.fill = fill_edits;
    z->runs.fill_alone = fill_alone;
    z->runs.payload = z;
    return MSC_OK;
}

static struct msc_trial_runs *prune_runs(const struct msc_env *env) {
    struct msc_prune_env *z = msc_env_state(env);
    return &z->runs;
}

// ---- Strategies -------------------------------------------------------------------------------

struct giving {
    struct msc_strategy *strategy;
    const struct msc_prune_env *z;
    const struct msc_graph *graph;
    const bool *is_gone; // [n_units]
};

static enum msc_status give_elements(void *payload, int32_t tensor,
                                     const struct msc_array *elements) {
    const struct giving *g = payload;
    struct msc_array *left = NULL;
    MSC_TRY(msc_graph_prune_array(&left, elements, msc_pruner_channels(g->z->pruner), tensor,
                                  g->is_gone));
    enum msc_status status =
        msc_strategy_replace(g->strategy, msc_graph_tensor(g->graph, tensor)->name, left);
    msc_array_release(left);
    return status;
}

static bool is_replaced(const struct msc_strategy *s, const char *tensor) {
    size_t i = 0, n = msc_strategy_n_replaced(s);
    while (i < n && strcmp(msc_strategy_replaced(s, i), tensor) != 0) {
        i++;
    }
    return i < n;
}

// Adds the weights that the base has replaced, without the channels that are removed now.
static enum msc_status add_base(struct msc_strategy *s, const struct msc_prune_env *z,
                                const struct msc_env_host *host, const bool is_gone[]) {
    struct giving giving = {s, z, host->graph, is_gone};
    for (size_t i = 0; i < msc_strategy_n_replaced(host->base); i++) {
        const char *name = msc_strategy_replaced(host->base, i);
        int32_t tensor = msc_graph_find_tensor(host->graph, name);
        if (!is_replaced(s, name)) {
            MSC_TRY(give_elements(&giving, tensor, msc_graph_tensor(host->graph, tensor)->data));
        }
    }
    return msc_strategy_prune_after(s, host->base);
}

enum msc_status msc_prune_env__fill_strategy(struct msc_strategy *s, const struct msc_prune_env *z,
                                             const struct msc_env_host *host, const uint32_t cuts[],
                                             const uint32_t choices[], bool is_gone[]) {
    const struct msc_channels *channels = msc_pruner_channels(z->pruner);
    const struct giving giving = {s, z, host->graph, is_gone};
    msc_pruner_mark(z->pruner, cuts, is_gone);
    for (int32_t i = 0, t = 0; i < channels->n_groups; i++) {
        const struct msc_channel_group *group = &channels->groups[i];
        bool is_task = msc_pruner_is_included(z->pruner, i);
        const char *label =
            is_task ? z->space.space.tasks[t].labels[choices[t]]
                    : z->options.choices[msc_pruner_cut(z->pruner, i, cuts[i])->choice].label;
        if (is_task || msc_pruner_is_cut(z->pruner, i)) {
            MSC_TRY(msc_strategy_prune_group(s, group, label, is_gone + group->first_unit));
        }
        t += is_task;
    }
    MSC_TRY(msc_pruner_each_replaced(z->pruner, cuts, give_elements, (void *)&giving));
    return host->base ? add_base(s, z, host, is_gone) : MSC_OK;
}

static enum msc_status prune_edits(struct msc_env *env, const uint32_t choices[], cJSON **out) {
    struct msc_prune_env *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_strategy *s = NULL;
    uint32_t *cuts = msc_alloc_zero(count_parts(z) + 1, sizeof(cuts[0]));
    bool *is_gone =
        msc_alloc_zero((size_t)msc_pruner_channels(z->pruner)->n_units + 1, sizeof(is_gone[0]));
    enum msc_status status = MSC_ALLOCATED(cuts && is_gone);
    MSC_TRY_OUT(status);
    msc_prune_env__cuts(cuts, z, choices);
    MSC_TRY_OUT(msc_strategy_create(&s, NULL));
    MSC_TRY_OUT(msc_pruner_make(z->pruner, (const uint32_t *const[]){cuts}, 1, z->n_threads));
    MSC_TRY_OUT(msc_prune_env__fill_strategy(s, z, host, cuts, choices, is_gone));
    status = msc_strategy_to_json(s, msc_env_whole_host(env)->graph, out);
out:
    msc_strategy_destroy(s);
    msc_free(is_gone);
    msc_free(cuts);
    return status;
}

// ---- Identity ---------------------------------------------------------------------------------

static struct msc_hash prune_identity(const struct msc_env *env) {
    const struct msc_prune_env *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_hash h = msc_trial_runs_hash_inputs(env);
    h = host->base ? msc_hash_combine(h, msc_strategy_hash(host->base)) : h;
    return msc_hash_combine(h, z->parameters);
}

static enum msc_status prune_describe(const struct msc_env *env, cJSON *object) {
    const struct msc_prune_env *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    char text[MSC_HASH_TEXT_BYTES];
    MSC_TRY(msc_trial_runs_describe_inputs(env, object));
    if (host->base) {
        MSC_TRY(msc_json_add_text(object, "base_strategy",
                                  msc_hash_format(text, msc_strategy_hash(host->base))));
    }
    return msc_json_add_text(object, "params_hash", msc_hash_format(text, z->parameters));
}

static void prune_finish(struct msc_env *env) {
    struct msc_prune_env *z = msc_env_state(env);
    msc_trial_runs_finish(&z->runs);
    msc_command_finish(&z->command);
    msc_pruner_destroy(z->pruner);
}

const struct msc_env_def msc_env_prune = {
    MSC_TRIAL_RUNS_DEFINITION,
    .name = "prune",
    .summary = "channels to keep in each group, and weights to keep in each tensor, measured by "
               "distill loss",
    .version = 1,
    .decides = MSC_ENV_DECIDES_CHANNELS,
    .state_size = sizeof(struct msc_prune_env),
    .params = msc_prune_env__params,
    .complete = msc_prune_env__complete,
    .metric = msc_prune_env__metric,
    .init = prune_init,
    .runs = prune_runs,
    .edits = prune_edits,
    .identity = prune_identity,
    .describe = prune_describe,
    .finish = prune_finish,
};

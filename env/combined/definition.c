#include "env/combined/definition.h"

#include "base/alloc.h"
#include "data/dataset.h"
#include "env/env.h"
#include "env/combined/internal.h"
#include "env/whole.h"
#include "tools/strategy.h"

#include <string.h>

#define FIELD(member) offsetof(struct msc_combined, member)

// ---- Parameters -------------------------------------------------------------------------------

static const struct msc_param combined_params[] = {
    MSC_LOSS_PARAMS(FIELD(bits.loss)),
    {.name = "prune",
     .help = "how channels are pruned: an object with choices, round_to, repair, ridge, rows, "
             "include and exclude as in environment prune",
     .offset = FIELD(prune),
     .type = MSC_PARAM_OBJECT},
    MSC_QUANTIZE_PARAMS(FIELD(bits)),
    {0},
};

static const struct msc_param channel_params[] = {MSC_PRUNE_PARAMS(0), {0}};

static enum msc_status read_channels(struct msc_prune_env *out, const cJSON *object,
                                     struct msc_arena *arena) {
    msc_param_defaults(channel_params, out);
    return msc_param_read(channel_params, out, object, "env.prune", NULL, arena);
}

// Removes members whose value is null: these are lists and objects that the configuration lacks.
static void drop_nulls(cJSON *object) {
    for (cJSON *item = object->child, *next = NULL; item; item = next) {
        next = item->next;
        if (cJSON_IsNull(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
        }
    }
}

static enum msc_status complete_channels(cJSON *config, struct msc_arena *arena) {
    const cJSON *given = msc_json_get(config, "prune");
    struct msc_prune_env *z = msc_arena_alloc(arena, sizeof(*z));
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(z && object);
    if (status == MSC_OK) {
        status = read_channels(z, given, arena);
    }
    if (status == MSC_OK) {
        status = msc_param_write(channel_params, z, object);
    }
    if (status == MSC_OK) {
        drop_nulls(object);
        status = msc_prune_env__complete_choices(object);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(config, "prune");
    return msc_json_add(config, "prune", object);
}

static enum msc_status combined_complete(cJSON *config) {
    struct msc_arena arena = {0};
    enum msc_status status = msc_quantize__complete(config);
    if (status == MSC_OK) {
        status = complete_channels(config, &arena);
    }
    msc_arena_finish(&arena);
    return status;
}

// ---- Points -----------------------------------------------------------------------------------

static size_t count_groups(const struct msc_combined *j) {
    return (size_t)msc_pruner_channels(j->channels.pruner)->n_groups;
}

static size_t count_sites(const struct msc_combined *j) {
    return (size_t)msc_quantizer_sites(j->bits.quantizer)->n_sites;
}

// Allocates n points in the arena and fills them with the cuts and choices of `points`.
static enum msc_status points_init(struct msc_pruned_point **out, const struct msc_combined *j,
                                   const uint32_t *const points[], size_t n,
                                   struct msc_arena *arena) {
    size_t n_groups = count_groups(j), n_sites = count_sites(j);
    uint32_t *cuts = msc_arena_array(arena, n * n_groups + 1, sizeof(cuts[0]));
    int32_t *choices = msc_arena_array(arena, n * n_sites + 1, sizeof(choices[0]));
    *out = msc_arena_array(arena, n + 1, sizeof((*out)[0]));
    MSC_TRY(MSC_ALLOCATED(cuts && choices && *out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = (struct msc_pruned_point){cuts + i * n_groups, choices + i * n_sites};
        msc_prune_env__cuts(cuts + i * n_groups, &j->channels, points[i]);
        for (size_t s = 0; s < n_sites; s++) {
            choices[i * n_sites + s] =
                msc_quantize__choice_of_site(&j->bits, (int32_t)s, points[i] + j->n_channel_tasks);
        }
    }
    return MSC_OK;
}

// All edits are freed at the same time, because edits of biases refer to edits of weights by
// address.
static enum msc_status forget_edits(struct msc_env *env, struct msc_combined *j) {
    msc_pruned_edits_forget(j->edits);
    return msc_quantize__make_bias_edits(env, &j->bits);
}

static enum msc_status make_points(struct msc_env *env, struct msc_combined *j,
                                   const struct msc_pruned_point points[], size_t n) {
    enum msc_status status = msc_pruned_edits_make(j->edits, points, n, j->channels.n_threads);
    if (status != MSC_OK) {
        (void)forget_edits(env, j);
    }
    return status;
}

static enum msc_status begin_points(void *payload, const uint32_t *const points[], size_t n) {
    struct msc_env *env = payload;
    struct msc_combined *j = msc_env_state(env);
    struct msc_arena arena = {0};
    struct msc_pruned_point *list;
    if (msc_pruned_edits_are_full(j->edits)) {
        MSC_TRY(forget_edits(env, j));
    }
    if (n == 0) {
        return MSC_OK;
    }
    enum msc_status status = points_init(&list, j, points, n, &arena);
    if (status == MSC_OK) {
        status = make_points(env, j, list, n);
    }
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status fill_point(struct msc_env *env, struct msc_combined *j,
                                  const struct msc_pruned_point *point,
                                  const struct msc_edit *edits[]) {
    MSC_TRY(make_points(env, j, point, 1));
    MSC_TRY(msc_pruned_edits_fill(j->edits, point, edits));
    return msc_bias_edits_fill(j->bits.bias_edits, edits);
}

static enum msc_status fill_edits(void *payload, const uint32_t choices[],
                                  const struct msc_edit *edits[]) {
    struct msc_env *env = payload;
    struct msc_combined *j = msc_env_state(env);
    struct msc_arena arena = {0};
    struct msc_pruned_point *point;
    enum msc_status status = points_init(&point, j, &choices, 1, &arena);
    if (status == MSC_OK) {
        msc_quantize__fill_sites(&j->bits, choices + j->n_channel_tasks, edits);
        status = fill_point(env, j, point, edits);
    }
    msc_arena_finish(&arena);
    return status;
}

// Edits of one choice in isolation: all other groups keep all channels and all other sites stay
// float.
static enum msc_status fill_alone(void *payload, const uint32_t choices[], size_t task,
                                  const struct msc_edit *edits[]) {
    struct msc_env *env = payload;
    struct msc_combined *j = msc_env_state(env);
    if (task >= j->n_channel_tasks) {
        return msc_quantize__fill_alone(&j->bits, choices + j->n_channel_tasks,
                                        task - j->n_channel_tasks, edits);
    }
    struct msc_arena arena = {0};
    uint32_t *cuts = msc_arena_array(&arena, count_groups(j) + 1, sizeof(cuts[0]));
    int32_t *sites = msc_arena_array(&arena, count_sites(j) + 1, sizeof(sites[0]));
    enum msc_status status = MSC_ALLOCATED(cuts && sites);
    for (size_t g = 0; status == MSC_OK && g < count_groups(j); g++) {
        cuts[g] = (uint32_t)msc_pruner_n_cuts(j->channels.pruner, (int32_t)g);
    }
    for (size_t s = 0; status == MSC_OK && s < count_sites(j); s++) {
        sites[s] = MSC_NO_ID;
    }
    if (status == MSC_OK) {
        const struct msc_pruned_point point = {cuts, sites};
        cuts[j->channels.space.part_of_task[task]] = choices[task];
        memset(edits, 0, j->bits.runs.n_slots * sizeof(edits[0]));
        status = fill_point(env, j, &point, edits);
    }
    msc_arena_finish(&arena);
    return status;
}

// ---- The environment's functions --------------------------------------------------------------

// Refuses choices that cannot be combined: sparse weights, and scales shared by groups of elements,
// because removing channels would change these groups.
static enum msc_status check_choices(const struct msc_quantizer_options *o,
                                     const struct msc_pruner_options *channels) {
    for (size_t i = 0; i < channels->n_choices; i++) {
        if (channels->choices[i].is_sparse) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "env.prune.choices: \"%s\" prunes single weights, which environment "
                            "joint cannot do; prune first (environment prune), then quantise",
                            channels->choices[i].label);
        }
    }
    for (size_t i = 0; i < o->n_choices; i++) {
        if (o->choices[i].group_size > 0) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "env.choices: \"%s\" has groups or blocks, which cannot be combined "
                            "with pruning of channels; remove it, or prune first, then quantise",
                            o->choices[i].label);
        }
    }
    return MSC_OK;
}

static enum msc_status read_options(struct msc_env *env, struct msc_combined *j) {
    struct msc_arena *arena = msc_env_arena(env);
    struct msc_quantize *z = &j->bits;
    MSC_TRY(msc_prune_env__check_base(msc_env_host(env)));
    MSC_TRY(msc_quantize__read_options(env, z));
    MSC_TRY(read_channels(&j->channels, j->prune, arena));
    MSC_TRY(msc_prune_env__read_options(&j->channels, j->prune, arena));
    MSC_TRY(check_choices(&z->quantizer_options, &j->channels.options));
    MSC_TRY(msc_trial_runs_choose(&z->runs, &z->distill_options, msc_combined_metrics, env));
    z->distill_options.target = z->quantizer_options.all_sites ? z->quantizer_options.target : NULL;
    return MSC_OK;
}

static enum msc_status prepare_channels(struct msc_env *env, void *payload) {
    return msc_prune_env__prepare(env, payload);
}

static enum msc_status save_channels(const void *payload, struct msc_array_list *list) {
    const struct msc_prune_env *channels = payload;
    return msc_pruner_save(channels->pruner, list);
}

static enum msc_status load_channels(void *payload, const struct msc_array_list *list) {
    struct msc_prune_env *channels = payload;
    return msc_pruner_load(channels->pruner, list);
}

// Creates quantizer, loss and pruner, all with the quantizer's sites, and then the edits.
static enum msc_status make_tools(struct msc_env *env, struct msc_combined *j) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_quantize *z = &j->bits;
    MSC_TRY(msc_quantizer_create(&z->quantizer, host->graph, &z->quantizer_options));
    msc_quantize__tell_dominated(z, host->log);
    MSC_TRY(msc_distill_create(&z->runs.distill, host, host->dataset, &z->distill_options));
    MSC_TRY(msc_quantize__leave_constants(z, host));
    j->channels.options.keeps_moments = msc_quantizer_has_rounding(z->quantizer);
    j->channels.options.scheme = &msc_quantizer_sites(z->quantizer)->scheme;
    // The pruner may use a quarter of the memory. The quantizer uses the same quarter for its
    // second moments, at another time.
    MSC_TRY(msc_pruner_create(&j->channels.pruner, host->graph, &j->channels.options,
                              host->memory_bytes / 4));
    j->channels.n_threads = host->n_threads;
    j->channels.runs.distill = z->runs.distill;
    MSC_TRY(msc_prune_env__keep_compared(&j->channels, host->graph));
    msc_pruner_tell_rounded(j->channels.pruner, host->log);
    j->more =
        (struct msc_quantize_more){prepare_channels, save_channels, load_channels, &j->channels};
    z->more = &j->more;
    MSC_TRY(msc_quantize__get_parameters(env, z));
    MSC_TRY(msc_quantize__keep_parameters(env, z));
    return msc_pruned_edits_create(&j->edits, j->channels.pruner, z->quantizer);
}

static enum msc_status make_spaces(struct msc_env *env, struct msc_combined *j) {
    static const struct msc_metrics none;
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_arena *arena = msc_env_arena(env);
    struct msc_quantize *z = &j->bits;
    struct msc_outline outline;
    MSC_TRY(msc_evaluator_outline(&outline, msc_distill_evaluator(z->runs.distill)));
    struct msc_whole_cost whole;
    bool is_more = msc_whole_is_more(env);
    MSC_TRY(is_more ? msc_whole_measure_cost(&whole, z->runs.distill, env) : MSC_OK);
    const struct msc_prune_inputs of_channels = {
        .graph = host->graph,
        .pruner = j->channels.pruner,
        .options = &j->channels.options,
        .plan = outline.plan,
        .n_samples = outline.n_samples,
        .metrics = &none,
    };
    const struct msc_quantize_inputs of_bits = {
        .host = host,
        .quantizer = z->quantizer,
        .plan = outline.plan,
        .n_samples = outline.n_samples,
        .fixed = z->fixed,
        .metrics = &none,
        .whole = is_more ? &whole : NULL,
    };
    MSC_TRY(msc_prune_env__build_space(&j->channels.space, &of_channels, arena));
    MSC_TRY(msc_quantize_space_build(&z->space, &of_bits, arena));
    return msc_combined__build_space(j, &of_bits, &of_channels, arena);
}

static enum msc_status combined_init(struct msc_env *env) {
    struct msc_combined *j = msc_env_state(env);
    struct msc_trial_runs *runs = &j->bits.runs;
    MSC_TRY(read_options(env, j));
    MSC_TRY(make_tools(env, j));
    MSC_TRY(make_spaces(env, j));
    runs->space = &j->space;
    runs->references = j->references;
    runs->begin = begin_points;
    runs->fill = fill_edits;
    runs->fill_alone = fill_alone;
    runs->payload = env;
    return MSC_OK;
}

static struct msc_trial_runs *combined_runs(const struct msc_env *env) {
    struct msc_combined *j = msc_env_state(env);
    return &j->bits.runs;
}

// ---- Strategies -------------------------------------------------------------------------------

// Adds a site's choice to the strategy, with its parameters reduced to the remaining channels.
static enum msc_status give_site(struct msc_strategy *s, const struct msc_env *env,
                                 const struct msc_pruned_point *point, int32_t site,
                                 const bool is_gone[], struct msc_arena *arena) {
    const struct msc_combined *j = msc_env_state(env);
    const struct msc_quantizer *q = j->bits.quantizer;
    const struct msc_sites *sites = msc_quantizer_sites(q);
    struct msc_strategy_origin origin;
    int32_t choice = point->choices[site];
    const struct msc_quant *quant = msc_pruned_edits_quant(j->edits, point, site);
    struct msc_strategy_choice made = {.label = ""};
    struct msc_quant left;
    if (!msc_quantizer_is_included(q, site) || !quant) {
        return MSC_OK;
    }
    MSC_TRY(msc_pruned_quant(&left, quant, msc_pruner_channels(j->channels.pruner),
                             &sites->sites[site], is_gone, arena));
    made.quant = &left;
    made.label = msc_quantizer_choice(q, (size_t)choice)->label;
    made.origin = msc_quantizer_origin(&origin, q, site, choice) ? &origin : NULL;
    enum msc_status status = msc_strategy_set(s, msc_env_host(env)->graph, sites, site, &made);
    msc_array_release((struct msc_array *)left.integers);
    msc_array_release((struct msc_array *)left.shifts);
    return status;
}

static enum msc_status fill_strategy(struct msc_strategy *s, struct msc_env *env,
                                     const uint32_t choices[], struct msc_arena *arena) {
    struct msc_combined *j = msc_env_state(env);
    const struct msc_channels *channels = msc_pruner_channels(j->channels.pruner);
    bool *is_gone = msc_arena_array(arena, (size_t)channels->n_units + 1, sizeof(is_gone[0]));
    struct msc_pruned_point *point;
    MSC_TRY(MSC_ALLOCATED(is_gone));
    MSC_TRY(points_init(&point, j, &choices, 1, arena));
    MSC_TRY(make_points(env, j, point, 1));
    MSC_TRY(msc_prune_env__fill_strategy(s, &j->channels, msc_env_host(env), point->cuts, choices,
                                         is_gone));
    for (int32_t i = 0; i < (int32_t)count_sites(j); i++) {
        MSC_TRY(give_site(s, env, point, i, is_gone, arena));
    }
    return MSC_OK;
}

static enum msc_status combined_edits(struct msc_env *env, const uint32_t choices[], cJSON **out) {
    struct msc_combined *j = msc_env_state(env);
    struct msc_arena arena = {0};
    struct msc_strategy *s;
    MSC_TRY(msc_strategy_create(&s, &msc_quantizer_sites(j->bits.quantizer)->scheme));
    enum msc_status status = fill_strategy(s, env, choices, &arena);
    if (status == MSC_OK) {
        status = msc_strategy_to_json(s, msc_env_whole_host(env)->graph, out);
    }
    msc_strategy_destroy(s);
    msc_arena_finish(&arena);
    return status;
}

static void combined_finish(struct msc_env *env) {
    struct msc_combined *j = msc_env_state(env);
    msc_pruned_edits_destroy(j->edits);
    msc_pruner_destroy(j->channels.pruner);
    msc_quantize__finish(env);
}

const struct msc_env_def msc_env_combined = {
    MSC_TRIAL_RUNS_DEFINITION,
    .name = "joint",
    .summary = "channels to keep, and bits of the remaining weights and activations, in one space",
    .version = 2,
    .decides = MSC_ENV_DECIDES_CHANNELS | MSC_ENV_DECIDES_BITS,
    .state_size = sizeof(struct msc_combined),
    .params = combined_params,
    .complete = combined_complete,
    .metric = msc_combined__metric,
    .init = combined_init,
    .runs = combined_runs,
    .edits = combined_edits,
    .identity = msc_quantize__identity,
    .describe = msc_quantize__describe,
    .finish = combined_finish,
};

#include "env/quantize/definition.h"

#include "base/alloc.h"
#include "base/str.h"
#include "env/quantize/alone.h"
#include "env/whole.h"
#include "tools/strategy.h"

#include <string.h>

// ---- The environment's functions --------------------------------------------------------------

// If tensors before an output are compared instead of the output, keeps float the sites that the
// loss does not depend on.
static enum msc_status keep_part(struct msc_quantize *z) {
    const struct msc_distill *d = z->runs.distill;
    size_t n = msc_distill_n_compared(d);
    if (!msc_distill_is_part(d)) {
        return MSC_OK;
    }
    const char **names = msc_alloc_zero(n, sizeof(names[0]));
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < n; i++) {
        names[i] = msc_distill_compared_name(d, i);
    }
    enum msc_status status = msc_quantizer_keep_part(z->quantizer, names, n);
    msc_free(names);
    return status;
}

enum msc_status msc_quantize__leave_constants(struct msc_quantize *z,
                                              const struct msc_env_host *host) {
    int32_t n_left;
    MSC_TRY(keep_part(z));
    MSC_TRY(msc_quantizer_leave_constants(z->quantizer, msc_distill_evaluator(z->runs.distill),
                                          &n_left));
    if (n_left > 0) {
        msc_log(host->log, MSC_LOG_INFO,
                "sites left float because they are constant on this dataset: %d", (int)n_left);
    }
    return MSC_OK;
}

// Another choice that takes the same number of bits in the target's file and has more precision, or
// MSC_NO_ID.
static int32_t find_dominating(const struct msc_quantizer *q, size_t choice, bool is_weight) {
    const struct msc_choice *c = msc_quantizer_choice(q, choice);
    double bits = msc_quantize_bits(q, choice, is_weight);
    for (size_t i = 0; i < msc_quantizer_n_choices(q); i++) {
        const struct msc_choice *other = msc_quantizer_choice(q, i);
        if (!c->is_float && !other->is_float && other->type == c->type && other->bits > c->bits &&
            other->group_size == c->group_size && msc_quantize_bits(q, i, is_weight) == bits) {
            return (int32_t)i;
        }
    }
    return MSC_NO_ID;
}

// Whether rules allow the choice for at least one searched tensor of that kind.
static bool is_open(const struct msc_quantizer *q, size_t choice, bool is_weight) {
    const struct msc_sites *sites = msc_quantizer_sites(q);
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if ((sites->sites[i].kind == MSC_SITE_WEIGHT) == is_weight &&
            msc_quantizer_is_included(q, i) && msc_quantizer_allowed(q, i) >> choice & 1) {
            return true;
        }
    }
    return false;
}

// Proposes a rule that gives activations only the choices that are useful for activations.
static void tell_rule(const struct msc_quantizer *q, const struct msc_log *log) {
    struct msc_str labels = {0};
    for (size_t i = 0; i < msc_quantizer_n_choices(q); i++) {
        if (find_dominating(q, i, false) == MSC_NO_ID) {
            msc_str_printf(&labels, "%s\"%s\"", labels.length > 0 ? ", " : "",
                           msc_quantizer_choice(q, i)->label);
        }
    }
    msc_log(log, MSC_LOG_WARNING,
            "use such choices for weights only: \"rules\": [{\"kind\": \"activation\", "
            "\"choices\": [%s]}]",
            msc_str_text(&labels));
    msc_str_finish(&labels);
}

void msc_quantize__tell_dominated(const struct msc_quantize *z, const struct msc_log *log) {
    const struct msc_quantizer *q = z->quantizer;
    const struct msc_target *target = msc_quantizer_sites(q)->scheme.target;
    bool is_of_activations = false;
    for (size_t i = 0; target && i < msc_quantizer_n_choices(q); i++) {
        int32_t of_weights = is_open(q, i, true) ? find_dominating(q, i, true) : MSC_NO_ID;
        int32_t of_activations = is_open(q, i, false) ? find_dominating(q, i, false) : MSC_NO_ID;
        int32_t other = of_weights != MSC_NO_ID ? of_weights : of_activations;
        if (other != MSC_NO_ID) {
            msc_log(
                log, MSC_LOG_WARNING,
                "choice \"%s\" takes %g bits for target %s, as many as \"%s\"%s, and only loses "
                "precision",
                msc_quantizer_choice(q, i)->label, msc_quantize_bits(q, i, of_weights != MSC_NO_ID),
                target->name, msc_quantizer_choice(q, (size_t)other)->label,
                of_weights == MSC_NO_ID ? " for activations" : "");
            is_of_activations = is_of_activations || of_weights == MSC_NO_ID;
        }
    }
    if (is_of_activations && msc_quantizer_group(q) != MSC_GROUP_JOINT) {
        tell_rule(q, log);
    }
}

static enum msc_status fill_edits(void *payload, const uint32_t choices[],
                                  const struct msc_edit *edits[]) {
    return msc_quantize__fill(payload, choices, edits);
}

static enum msc_status fill_alone(void *payload, const uint32_t choices[], size_t task,
                                  const struct msc_edit *edits[]) {
    return msc_quantize__fill_alone(payload, choices, task, edits);
}

static enum msc_status quantize_init(struct msc_env *env) {
    struct msc_quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    MSC_TRY(msc_quantize__read_options(env, z));
    MSC_TRY(msc_trial_runs_choose(&z->runs, &z->distill_options, msc_quantize_metrics, env));
    z->asks_for_latency = msc_metrics_has(&z->runs.metrics, MSC_METRIC_LATENCY);
    z->distill_options.target = z->quantizer_options.all_sites ? z->quantizer_options.target : NULL;
    MSC_TRY(msc_quantizer_create(&z->quantizer, host->graph, &z->quantizer_options));
    msc_quantize__tell_dominated(z, host->log);
    MSC_TRY(msc_distill_create(&z->runs.distill, host, host->dataset, &z->distill_options));
    MSC_TRY(msc_quantize__leave_constants(z, host));
    MSC_TRY(msc_quantize__get_parameters(env, z));
    struct msc_outline outline;
    MSC_TRY(msc_evaluator_outline(&outline, msc_distill_evaluator(z->runs.distill)));
    struct msc_whole_cost whole;
    bool is_more = msc_whole_is_more(env);
    MSC_TRY(is_more ? msc_whole_measure_cost(&whole, z->runs.distill, env) : MSC_OK);
    const struct msc_quantize_inputs inputs = {
        .host = host,
        .quantizer = z->quantizer,
        .plan = outline.plan,
        .n_samples = outline.n_samples,
        .fixed = z->fixed,
        .metrics = &z->runs.metrics,
        .latency = z->asks_for_latency ? &z->latency : NULL,
        .whole = is_more ? &whole : NULL,
    };
    MSC_TRY(msc_quantize_space_build(&z->space, &inputs, msc_env_arena(env)));
    z->runs.space = &z->space.space;
    z->runs.references = z->space.references;
    z->runs.fill = fill_edits;
    z->runs.fill_alone = fill_alone;
    z->runs.payload = z;
    MSC_TRY(msc_quantize__set_alone(env, z));
    return msc_quantize__keep_parameters(env, z);
}

static struct msc_trial_runs *quantize_runs(const struct msc_env *env) {
    struct msc_quantize *z = msc_env_state(env);
    return &z->runs;
}

static enum msc_status fill_strategy(struct msc_strategy *s, const struct msc_env *env,
                                     const uint32_t choices[]) {
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    if (host->base) {
        MSC_TRY(msc_strategy_merge(s, host->base));
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int32_t choice = msc_quantize__choice_of_site(z, i, choices);
        if (!msc_quantizer_is_included(z->quantizer, i) || choice == MSC_NO_ID) {
            continue;
        }
        // If the choice is float, `made` stays empty, which removes the edits of earlier
        // strategies.
        struct msc_strategy_choice made = {.label = ""};
        struct msc_strategy_origin origin;
        made.quant = msc_quantizer_quant(z->quantizer, i, choice);
        if (made.quant) {
            made.label = msc_quantizer_choice(z->quantizer, (size_t)choice)->label;
            made.origin = msc_quantizer_origin(&origin, z->quantizer, i, choice) ? &origin : NULL;
        }
        MSC_TRY(msc_strategy_set(s, host->graph, sites, i, &made));
    }
    return MSC_OK;
}

enum msc_status msc_quantize__make_strategy(struct msc_strategy **out, const struct msc_env *env,
                                            const uint32_t choices[]) {
    const struct msc_quantize *z = msc_env_state(env);
    struct msc_strategy *s;
    MSC_TRY(msc_strategy_create(&s, &msc_quantizer_sites(z->quantizer)->scheme));
    enum msc_status status = fill_strategy(s, env, choices);
    if (status != MSC_OK) {
        msc_strategy_destroy(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

static enum msc_status quantize_edits(struct msc_env *env, const uint32_t choices[], cJSON **out) {
    struct msc_strategy *s;
    MSC_TRY(msc_quantize__make_strategy(&s, env, choices));
    enum msc_status status = msc_strategy_to_json(s, msc_env_whole_host(env)->graph, out);
    msc_strategy_destroy(s);
    return status;
}

// ---- Identity ---------------------------------------------------------------------------------

static struct msc_hash base_hash(const struct msc_env_host *host) {
    return host->base ? msc_strategy_hash(host->base) : (struct msc_hash){0, 0};
}

struct msc_hash msc_quantize__identity(const struct msc_env *env) {
    const struct msc_quantize *z = msc_env_state(env);
    struct msc_hash h = msc_trial_runs_hash_inputs(env);
    h = msc_hash_combine(h, base_hash(msc_env_host(env)));
    return msc_hash_combine(h, z->parameters);
}

enum msc_status msc_quantize__describe(const struct msc_env *env, cJSON *object) {
    const struct msc_quantize *z = msc_env_state(env);
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash base = base_hash(msc_env_host(env));
    MSC_TRY(msc_trial_runs_describe_inputs(env, object));
    MSC_TRY(msc_json_add_text(object, "base_strategy", msc_hash_format(text, base)));
    if (z->asks_for_latency) {
        MSC_TRY(msc_json_add_text(object, "latency_of", z->latency.table.of));
    }
    return msc_json_add_text(object, "params_hash", msc_hash_format(text, z->parameters));
}

void msc_quantize__finish(struct msc_env *env) {
    struct msc_quantize *z = msc_env_state(env);
    msc_trial_runs_finish(&z->runs);
    msc_command_finish(&z->command);
    msc_bias_edits_destroy(z->bias_edits);
    msc_array_release(z->alone);
    msc_quantizer_destroy(z->quantizer);
}

const struct msc_env_def msc_env_quantize = {
    MSC_TRIAL_RUNS_DEFINITION,
    .name = "quantize",
    .summary = "bits and ranges of weights and activations, measured by distill loss",
    .version = 2,
    .decides = MSC_ENV_DECIDES_BITS,
    .state_size = sizeof(struct msc_quantize),
    .params = msc_quantize__params,
    .complete = msc_quantize__complete,
    .metric = msc_quantize_metric,
    .init = quantize_init,
    .runs = quantize_runs,
    .edits = quantize_edits,
    .identity = msc_quantize__identity,
    .describe = msc_quantize__describe,
    .finish = msc_quantize__finish,
};

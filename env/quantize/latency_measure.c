// Measures the table of latencies: profiles several plans of the network and fits the table to the
// times of their kernels.
#include "env/quantize/latency.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/scratch.h"
#include "env/quantize/latency_internal.h"
#include "graph/onnx/onnx.h"
#include "tools/bias_edits.h"
#include "tools/runtime.h"

#include <math.h>
#include <string.h>

// ---- Plans ------------------------------------------------------------------------------------

// The first choice that gives bytes for a weight or activation; MSC_NO_ID if there is none.
static int32_t find_bytes(const struct msc_quantizer *q, bool is_weight) {
    for (size_t i = 0; i < msc_quantizer_n_choices(q); i++) {
        const struct msc_choice *c = msc_quantizer_choice(q, i);
        if (!c->is_float && c->type == MSC_DTYPE_NONE && c->bits <= 8 &&
            (is_weight ? c->group_size == 0 : !c->is_dynamic)) {
            return (int32_t)msc_quantizer_first_choice(
                q, is_weight ? MSC_SITE_WEIGHT : MSC_SITE_ACTIVATION, i);
        }
    }
    return MSC_NO_ID;
}

// The first dynamic choice; MSC_NO_ID if there is none.
static int32_t find_dynamic(const struct msc_quantizer *q) {
    for (size_t i = 0; i < msc_quantizer_n_choices(q); i++) {
        if (msc_quantizer_choice(q, i)->is_dynamic) {
            return (int32_t)i;
        }
    }
    return MSC_NO_ID;
}

static bool is_open(const struct msc_quantizer *q, int32_t site) {
    return msc_quantizer_is_included(q, site) && msc_quantizer_fixed_choice(q, site) == MSC_NO_ID;
}

static bool needs_weight(const struct msc_latency_network *net, int32_t group) {
    const struct msc_site_set *set = &net->needed[group];
    for (int32_t i = 0; i < set->n; i++) {
        if (net->sites->sites[set->sites[i]].kind == MSC_SITE_WEIGHT) {
            return true;
        }
    }
    return false;
}

// Whether the plan quantises the site to bytes.
static bool is_on(const struct msc_latency_network *net, enum msc_latency_plan plan, int32_t site,
                  int32_t n_weights_before) {
    bool is_weight = net->sites->sites[site].kind == MSC_SITE_WEIGHT;
    int32_t maker = is_weight ? MSC_NO_ID : net->maker[site];
    switch (plan) {
    case MSC_LATENCY_FLOAT:
        return false;
    case MSC_LATENCY_UNIFORM:
        return true;
    case MSC_LATENCY_EVEN:
    case MSC_LATENCY_ODD:
        return !is_weight || n_weights_before % 2 == (plan == MSC_LATENCY_EVEN);
    case MSC_LATENCY_DYNAMIC:
        return is_weight;
    default:
        return maker == MSC_NO_ID || net->needed[maker].is_never || needs_weight(net, maker);
    }
}

static enum msc_status make_plan(struct msc_latency_plans *p, const struct msc_latency_job *job,
                                 enum msc_latency_plan plan) {
    const struct msc_latency_network *net = p->net;
    const struct msc_sites *sites = net->sites;
    int32_t choices[2] = {find_bytes(job->quantizer, true), find_bytes(job->quantizer, false)};
    int32_t dynamic = find_dynamic(job->quantizer), n_weights = 0;
    if (plan == MSC_LATENCY_FLOAT) {
        return MSC_OK; // no edits, not even fixed ones
    }
    for (int32_t i = 0; i < sites->n_slots; i++) {
        p->edits[plan][i] = job->fixed[i];
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_site *s = &sites->sites[i];
        bool is_weight = s->kind == MSC_SITE_WEIGHT;
        bool is_bytes = is_on(net, plan, i, n_weights);
        n_weights += is_weight;
        bool is_dynamic = plan == MSC_LATENCY_DYNAMIC && s->takes_dynamic;
        int32_t choice = is_dynamic ? dynamic : is_bytes ? choices[!is_weight] : MSC_NO_ID;
        const struct msc_edit *edit = msc_quantizer_edit(job->quantizer, i, choice);
        for (int32_t k = 0; is_open(job->quantizer, i) && k < s->n_slots; k++) {
            p->edits[plan][s->slots[k]] = msc_edit_at_slot(edit, &sites->slots[s->slots[k]]);
        }
        const struct msc_quant *quant = msc_latency_fixed_quant(s, p->edits[plan]);
        p->is_bytes[plan][i] = msc_latency_is_bytes(quant);
        if (plan == MSC_LATENCY_DYNAMIC) {
            p->is_dynamic[i] = quant && quant->is_dynamic;
        }
    }
    return msc_bias_edits_fill(job->bias_edits, p->edits[plan]);
}

static enum msc_status make_plans(struct msc_latency_plans *p, const struct msc_latency_job *job,
                                  struct msc_arena *arena) {
    size_t n_slots = (size_t)p->net->sites->n_slots + 1;
    size_t n_sites = (size_t)p->net->sites->n_sites + 1;
    if (find_bytes(job->quantizer, true) == MSC_NO_ID ||
        find_bytes(job->quantizer, false) == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "env.choices: latency_us needs a choice of at most 8 bits "
                                       "without group_size; add one");
    }
    p->n = find_dynamic(job->quantizer) == MSC_NO_ID ? MSC_LATENCY_DYNAMIC : MSC_LATENCY_PLANS;
    p->is_dynamic = msc_arena_array(arena, n_sites, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(p->is_dynamic));
    for (int plan = 0; plan < p->n; plan++) {
        p->edits[plan] = msc_arena_array(arena, n_slots, sizeof(p->edits[0][0]));
        p->is_bytes[plan] = msc_arena_array(arena, n_sites, sizeof(bool));
        MSC_TRY(MSC_ALLOCATED(p->edits[plan] && p->is_bytes[plan]));
        MSC_TRY(make_plan(p, job, (enum msc_latency_plan)plan));
    }
    return MSC_OK;
}

// ---- In a runtime -----------------------------------------------------------------------------

static enum msc_status write_files(const char *paths[], const char *inputs,
                                   const struct msc_latency_plans *p,
                                   const struct msc_latency_job *job) {
    struct msc_array_list sample = {0};
    enum msc_status status = msc_latency__sample(&sample, job->host);
    if (status == MSC_OK) {
        status = msc_npz_save(inputs, &sample);
    }
    msc_array_list_finish(&sample);
    for (int plan = 0; status == MSC_OK && plan < p->n; plan++) {
        const struct msc_onnx_export_options o = {
            .sites = p->net->sites,
            .slot_edits = plan == MSC_LATENCY_FLOAT ? NULL : p->edits[plan]};
        status = msc_onnx_save(job->host->graph, paths[plan], &o);
    }
    return status;
}

static enum msc_status profile_files(struct msc_profile profiles[], struct msc_runtime *runtime,
                                     const char *name, const char *folder,
                                     const struct msc_latency_plans *p,
                                     const struct msc_latency_job *job, struct msc_arena *arena) {
    struct msc_runtime_job run = MSC_RUNTIME_JOB_INIT;
    const char *paths[MSC_LATENCY_PLANS];
    const char *inputs = msc_path_join(arena, folder, "inputs.npz");
    bool has_room = inputs != NULL;
    for (int plan = 0; plan < p->n; plan++) {
        paths[plan] = msc_arena_printf(arena, "%s/%d.onnx", folder, plan);
        has_room = has_room && paths[plan];
    }
    MSC_TRY(MSC_ALLOCATED(has_room));
    MSC_TRY(write_files(paths, inputs, p, job));
    run.runtime = name;
    run.models = paths;
    run.n_models = (size_t)p->n;
    run.inputs = inputs;
    run.n_threads = MSC_LATENCY_THREADS;
    run.n_rounds = MSC_LATENCY_ROUNDS;
    return msc_runtime_profile(runtime, &run, profiles, arena);
}

// Profiles in the target's runtime. If the runtime is not installed, logs the reason and leaves
// *is_there false.
static enum msc_status profile_in_runtime(bool *is_there, struct msc_profile profiles[],
                                          struct msc_latency_source *source,
                                          const struct msc_latency_plans *p,
                                          const struct msc_latency_job *job,
                                          struct msc_arena *arena) {
    struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found = NULL;
    struct msc_runtime *runtime = NULL;
    struct msc_scratch scratch = {0};
    const char *name = job->target && job->target->has_kernel_times ? job->target->runtime : NULL;
    if (!name) {
        return MSC_OK;
    }
    options.cancel = job->host->cancel;
    enum msc_status status = msc_runtime_start(&runtime, &options);
    if (status == MSC_OK) {
        status = msc_runtime_find(&found, runtime, name);
    }
    if (status == MSC_E_NOT_FOUND || status == MSC_E_DEVICE) {
        msc_log(job->host->log, MSC_LOG_WARNING,
                "latency_us is measured with mscgym's cpu kernels instead of %s: %s", name,
                msc_status_message());
        status = MSC_OK;
        goto out;
    }
    MSC_TRY_OUT(status);
    *is_there = true;
    source->runtime = name;
    source->version = msc_arena_strdup(arena, found->version);
    source->processor = msc_arena_strdup(arena, msc_runtime_host(runtime)->processor);
    MSC_TRY_OUT(MSC_ALLOCATED(source->version && source->processor));
    MSC_TRY_OUT(msc_scratch_make(&scratch, arena));
    status = profile_files(profiles, runtime, name, scratch.path, p, job, arena);
out:
    msc_scratch_remove(&scratch);
    msc_runtime_stop(runtime);
    return status;
}

// ---- The table --------------------------------------------------------------------------------

enum msc_status msc_latency_table_measure(struct msc_latency_table *out,
                                          const struct msc_latency_network *net,
                                          const struct msc_latency_job *job,
                                          struct msc_arena *arena) {
    struct msc_latency_plans plans = {.net = net};
    struct msc_profile profiles[MSC_LATENCY_PLANS];
    struct msc_profile_times times[MSC_LATENCY_PLANS];
    struct msc_latency_source source;
    struct msc_str text = {0};
    bool is_there = false;
    enum msc_status status = MSC_OK;
    MSC_TRY(make_plans(&plans, job, arena));
    msc_log(job->host->log, MSC_LOG_INFO, "measuring latencies, joint by joint");
    MSC_TRY(profile_in_runtime(&is_there, profiles, &source, &plans, job, arena));
    if (!is_there) {
        MSC_TRY(msc_latency__profile_own(profiles, &source, &plans, job, arena));
    }
    for (int plan = 0; plan < plans.n; plan++) {
        MSC_TRY(msc_profile_attribute(&times[plan], net->graph, &profiles[plan], arena));
    }
    MSC_TRY_OUT(msc_latency__fit(&text, &source, &plans, times, job, arena));
    status = msc_latency_table_read(out, net, msc_str_text(&text), text.length, arena);
out:
    msc_str_finish(&text);
    return status;
}

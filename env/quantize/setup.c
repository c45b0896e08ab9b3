// Prepares trials: computes scales, reference outputs and latencies once, and later reads them from
// RECORD.params.
#include "env/quantize/kept.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "data/safetensors.h"
#include "env/whole.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 4 }; // tensors named in a message

// ---- Progress ---------------------------------------------------------------------------------

struct progress {
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    const struct msc_env_host *host;
    enum msc_quantizer_stage stage; // MSC_N_STAGES: none yet
    double stage_s[MSC_N_STAGES];   // seconds that each stage has taken
    double now_s, told_s;           // time of the last call, and of the last line logged
    double host_told_s;             // time of the last call of the host's `preparing`
};

#define SECONDS_BETWEEN_LINES 5.0
#define SECONDS_BETWEEN_CALLS 1.0

// Tells the host what is prepared. The stages' shares of the time are estimates.
static void tell_host(struct progress *p, enum msc_quantizer_stage stage, size_t done, size_t all) {
    static const struct {
        const char *what;
        double begin, end; // parts of the whole preparation
    } rows[MSC_N_STAGES] = {[MSC_STAGE_PASSES] = {"values of tensors", 0.0, 0.3},
                            [MSC_STAGE_RANGES] = {"ranges", 0.3, 0.4},
                            [MSC_STAGE_MOMENTS] = {"second moments of inputs", 0.4, 0.7},
                            [MSC_STAGE_INTEGERS] = {"rounded weights", 0.7, 1.0}};
    char what[80];
    bool is_due = stage != p->stage || p->now_s - p->host_told_s >= SECONDS_BETWEEN_CALLS;
    if (!p->host->preparing || !is_due || all == 0) {
        return;
    }
    p->host_told_s = p->now_s;
    snprintf(what, sizeof what, "%s, %zu of %zu", rows[stage].what, done, all);
    p->host->preparing(p->host->preparing_payload, what,
                       rows[stage].begin +
                           (rows[stage].end - rows[stage].begin) * (double)done / (double)all);
}

static void tell_stage(void *payload, enum msc_quantizer_stage stage, size_t done, size_t all) {
    static const char *const names[MSC_N_STAGES] = {
        [MSC_STAGE_PASSES] = "calibrating: %zu of %zu tensors of batches observed",
        [MSC_STAGE_RANGES] = "finding ranges: %zu of %zu sites",
        [MSC_STAGE_MOMENTS] = "measuring second moments of inputs: %zu of %zu weights",
        [MSC_STAGE_INTEGERS] = "finding integers: %zu of %zu weights"};
    struct progress *p = payload;
    double now_s = msc_clock_seconds();
    p->stage_s[stage] += stage == p->stage ? now_s - p->now_s : 0;
    p->now_s = now_s;
    tell_host(p, stage, done, all);
    p->stage = stage;
    msc_cancel_beat(p->cancel); // a large weight takes long, so signal progress
    if (now_s - p->told_s < SECONDS_BETWEEN_LINES || done == 0) {
        return;
    }
    struct msc_str line = {0};
    p->told_s = now_s;
    msc_str_printf(&line, names[stage], done, all);
    if (done < all) {
        msc_str_append(&line, ", time left about ");
        msc_str_append_duration(&line, p->stage_s[stage] / (double)done * (double)(all - done));
    }
    if (msc_str_status(&line) == MSC_OK) {
        msc_log(p->log, MSC_LOG_INFO, "%s", msc_str_text(&line));
    }
    msc_str_finish(&line);
}

// ---- Latencies --------------------------------------------------------------------------------

#define LATENCY_NAME "latency" // name of the array that contains the table as text

static enum msc_status save_latency(const struct msc_quantize *z, struct msc_array_list *list) {
    const char *text = z->latency.table.text;
    int64_t length = (int64_t)strlen(text);
    struct msc_array *bytes;
    MSC_TRY(msc_array_create_from(&bytes, MSC_DTYPE_U8, 1, &length, text));
    enum msc_status status = msc_array_list_add(list, LATENCY_NAME, bytes);
    msc_array_release(bytes);
    return status;
}

static enum msc_status measure_latency(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_latency_job job = {
        .host = msc_env_host(env),
        .quantizer = z->quantizer,
        .target = z->quantizer_options.target,
        .fixed = z->fixed,
        .bias_edits = z->bias_edits,
        .plan = msc_evaluator_plan(msc_distill_evaluator(z->runs.distill), 0),
    };
    return msc_latency_table_measure(&z->latency.table, &z->latency.network, &job,
                                     msc_env_arena(env));
}

// Takes the table of latencies from `found`, the arrays of a file. Measures it if `found` is NULL.
static enum msc_status get_latency(struct msc_env *env, struct msc_quantize *z,
                                   const struct msc_array_list *found) {
    struct msc_arena *arena = msc_env_arena(env);
    const struct msc_array *text = found ? msc_array_list_find(found, LATENCY_NAME) : NULL;
    if (!z->asks_for_latency) {
        return MSC_OK;
    }
    MSC_TRY(msc_latency_network_find(&z->latency.network, msc_env_host(env)->graph, z->quantizer,
                                     arena));
    if (!found) {
        return measure_latency(env, z);
    }
    if (!text || msc_array_dtype(text) != MSC_DTYPE_U8) {
        return MSC_FAIL(MSC_E_STATE, "the file lacks the table of latencies");
    }
    return msc_latency_table_read(&z->latency.table, &z->latency.network, msc_array_data(text),
                                  (size_t)msc_array_n_elements(text), arena);
}

// ---- All of it --------------------------------------------------------------------------------

static enum msc_status list_parameters(const struct msc_quantize *z, struct msc_array_list *list) {
    MSC_TRY(msc_quantize_kept_list(z, list));
    return z->asks_for_latency ? save_latency(z, list) : MSC_OK;
}

// Builds the edits that depend only on scales.
static enum msc_status build_edits(struct msc_env *env, struct msc_quantize *z) {
    MSC_TRY(msc_quantize__build_fixed(env, z));
    return msc_quantize__make_bias_edits(env, z);
}

static enum msc_status observe(struct msc_env *env, struct msc_quantize *z,
                               struct msc_array_log **kept, struct progress *progress) {
    bool is_there;
    MSC_TRY(msc_quantize_kept_take(&is_there, *kept, env, z));
    if (is_there) {
        return MSC_OK;
    }
    MSC_TRY(msc_quantizer_observe(z->quantizer, msc_distill_evaluator(z->runs.distill), tell_stage,
                                  progress));
    MSC_TRY(msc_whole_compute_reference(z->runs.distill, env));
    return msc_quantize_kept_add(kept, env, z);
}

// Second moments get a quarter of the memory, in addition to the evaluator's share.
static enum msc_status calibrate(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_array_log *kept = NULL;
    double now_s = msc_clock_seconds();
    struct progress progress = {.log = host->log,
                                .cancel = host->cancel,
                                .host = host,
                                .stage = MSC_N_STAGES,
                                .told_s = now_s};
    MSC_TRY(msc_quantize_kept_open(&kept, env, z));
    enum msc_status status = observe(env, z, &kept, &progress);
    const struct msc_quantizer_rounding rounding = {.memory_bytes = host->memory_bytes / 4,
                                                    .kept = kept,
                                                    .log = host->log,
                                                    .cancel = host->cancel,
                                                    .progress = tell_stage,
                                                    .payload = &progress};
    if (status == MSC_OK) {
        status =
            msc_quantizer_round(z->quantizer, msc_distill_evaluator(z->runs.distill), &rounding);
    }
    msc_array_log_close(kept);
    // Trials read few of the float values that the passes kept.
    msc_evaluator_drop_cache(msc_distill_evaluator(z->runs.distill));
    return status;
}

static enum msc_status compute_parameters(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE, "%s is missing: it contains this record's %s; put it back",
                        host->parameters_path,
                        z->asks_for_latency ? "latencies, which would differ if measured again"
                                            : "scales, which cannot be computed again under "
                                              "other numerics");
    }
    bool is_there;
    MSC_TRY(msc_quantize_kept_take_prepared(&is_there, env, z));
    MSC_TRY(is_there ? MSC_OK : calibrate(env, z));
    MSC_TRY(!is_there && z->more ? z->more->prepare(env, z->more->payload) : MSC_OK);
    MSC_TRY(build_edits(env, z));
    z->is_new = true;
    return get_latency(env, z, NULL);
}

static enum msc_status take_parameters(struct msc_env *env, struct msc_quantize *z,
                                       const struct msc_array_list *found) {
    MSC_TRY(msc_quantize_kept_load(z, found));
    MSC_TRY(build_edits(env, z));
    return get_latency(env, z, found);
}

static enum msc_status load_parameters(struct msc_env *env, struct msc_quantize *z,
                                       const char *path, struct msc_array_list *list) {
    MSC_TRY(msc_safetensors_load(list, path));
    enum msc_status status = take_parameters(env, z, list);
    return status == MSC_OK
               ? MSC_OK
               : msc_status_prefix(status, "%s does not belong to this configuration", path);
}

static void tell_left(const struct msc_quantize *z, const struct msc_log *log) {
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    struct msc_str names = {0};
    int n_left = 0;
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if (msc_quantizer_is_left(z->quantizer, i) && n_left++ < MOST_NAMES) {
            msc_str_item(&names, sites->sites[i].name);
        }
    }
    if (n_left > 0) {
        msc_log(log, MSC_LOG_WARNING,
                "tensors left float, because in the float model they have NaN, infinity or no "
                "elements: %d (%s%s)",
                n_left, msc_str_text(&names), n_left > MOST_NAMES ? ", …" : "");
    }
    msc_str_finish(&names);
}

// Tells of choices that were judged on held-back inputs, because samples are few.
static void tell_held(const struct msc_quantize *z, const struct msc_log *log) {
    static const char *const whats[MSC_N_FALLBACKS] = {
        [MSC_FALLBACK_NEAREST] = "rounded to nearest",
        [MSC_FALLBACK_SHIFT] = "rounded to nearest, usual scales",
        [MSC_FALLBACK_ALL] = "rounded to nearest, usual scales, no correction"};
    const struct msc_quantizer *q = z->quantizer;
    const struct msc_sites *sites = msc_quantizer_sites(q);
    struct msc_str names = {0};
    int n_held = 0, n_simpler = 0;
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int n_of_site = 0;
        for (size_t c = 0; c < msc_quantizer_n_choices(q); c++) {
            struct msc_quantizer_held held = msc_quantizer_held(q, i, (int32_t)c);
            n_of_site += held.n_held > 0;
            if (held.fallback != MSC_FALLBACK_NONE && n_simpler++ < MOST_NAMES) {
                msc_str_printf(&names, "%s%s (%s: %s)", n_simpler > 1 ? ", " : "",
                               sites->sites[i].name, msc_quantizer_choice(q, c)->label,
                               whats[held.fallback]);
            }
        }
        n_held += n_of_site > 0;
    }
    if (n_held > 0 && msc_str_status(&names) == MSC_OK) {
        char count[32] = "none";
        if (n_simpler > 0) {
            snprintf(count, sizeof count, "%d", n_simpler);
        }
        msc_log(
            log, MSC_LOG_INFO,
            "few samples: choices of %d weight%s were compared with simpler ones on inputs that "
            "were held back; %s became simpler%s%s%s",
            n_held, n_held == 1 ? "" : "s", count, n_simpler > 0 ? ": " : "",
            n_simpler > 0 ? msc_str_text(&names) : "", n_simpler > MOST_NAMES ? ", …" : "");
    }
    msc_str_finish(&names);
}

enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_array_list found = {0};
    struct msc_array_list own = {0};
    enum msc_status status;
    if (host->parameters_path && msc_file_exists(host->parameters_path)) {
        MSC_TRY_OUT(load_parameters(env, z, host->parameters_path, &found));
    } else {
        MSC_TRY_OUT(compute_parameters(env, z));
    }
    tell_left(z, host->log);
    if (z->is_new) {
        tell_held(z, host->log);
    }
    // The hash covers the parameters in the order of list_parameters, independently of other arrays
    // in the file.
    MSC_TRY_OUT(list_parameters(z, &own));
    z->parameters = msc_preparation_hash(&own);
    status = MSC_OK;
out:
    msc_array_list_finish(&found);
    msc_array_list_finish(&own);
    return status;
}

enum msc_status msc_quantize__keep_parameters(struct msc_env *env, const struct msc_quantize *z) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    if (z->is_new && msc_env_host(env)->parameters_path) {
        MSC_TRY_OUT(list_parameters(z, &list));
        MSC_TRY_OUT(z->alone ? msc_array_list_add(&list, MSC_QUANTIZE_ALONE, z->alone) : MSC_OK);
        MSC_TRY_OUT(msc_quantize_kept_save(&list, env, z));
    }
    msc_preparation_remove(env);
out:
    msc_array_list_finish(&list);
    return status;
}

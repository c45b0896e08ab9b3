// Prepares trials: computes orders of channels, second moments and reference outputs once, and
// later reads them from RECORD.params.
#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "env/preparation.h"
#include "env/prune/internal.h"
#include "env/whole.h"

#include <string.h>

enum { RUNS_AT_ONCE = 64 };

// ---- Loss with one unit masked ----------------------------------------------------------------

// For each unit i of first ... first + n - 1, measures the loss of the network without this unit.
static enum msc_status run_units(double losses[], struct msc_env *env, struct msc_prune_env *z,
                                 int32_t first, size_t n) {
    const struct msc_channels *channels = msc_pruner_channels(z->pruner);
    struct msc_channel_masks *masks = msc_alloc_zero(n, sizeof(masks[0]));
    struct msc_distill_run *runs = msc_alloc_zero(n, sizeof(runs[0]));
    bool *is_gone = msc_alloc_zero((size_t)channels->n_units, sizeof(is_gone[0]));
    enum msc_status status = MSC_ALLOCATED(masks && runs && is_gone);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        is_gone[first + (int32_t)i] = true;
        status = msc_channels_mask(&masks[i], channels, msc_env_host(env)->graph,
                                   msc_pruner_sites(z->pruner), is_gone);
        is_gone[first + (int32_t)i] = false;
        runs[i].edits = masks[i].edits;
    }
    if (status == MSC_OK) {
        status = msc_distill_run(z->runs.distill, runs, n, NULL, NULL);
    }
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status =
            runs[i].status == MSC_OK ? MSC_OK : msc_status_restore(runs[i].status, runs[i].message);
        losses[i] = runs[i].loss;
    }
    for (size_t i = 0; masks && i < n; i++) {
        msc_channel_masks_finish(&masks[i]);
    }
    msc_free(is_gone);
    msc_free(runs);
    msc_free(masks);
    return status;
}

static enum msc_status rank_by_loss(struct msc_env *env, struct msc_prune_env *z, int32_t group) {
    const struct msc_channel_group *of = &msc_pruner_channels(z->pruner)->groups[group];
    double *losses = msc_alloc_zero((size_t)of->n_units, sizeof(losses[0]));
    enum msc_status status = MSC_ALLOCATED(losses);
    // A group of one unit needs no order, and masking the unit would remove the whole group.
    for (int32_t i = 0; status == MSC_OK && of->n_units > 1 && i < of->n_units; i += RUNS_AT_ONCE) {
        int32_t n = of->n_units - i < RUNS_AT_ONCE ? of->n_units - i : RUNS_AT_ONCE;
        status = run_units(losses + i, env, z, of->first_unit + i, (size_t)n);
    }
    if (status == MSC_OK) {
        status = msc_pruner_rank(z->pruner, group, MSC_CRITERION_LOSS, losses);
    }
    msc_free(losses);
    return status;
}

static enum msc_status rank_or_recall(struct msc_env *env, struct msc_prune_env *z, int32_t group,
                                      struct msc_pruner_kept *k) {
    bool is_there;
    MSC_TRY(msc_pruner_recall_order(&is_there, z->pruner, group, MSC_CRITERION_LOSS, k));
    if (is_there) {
        return MSC_OK;
    }
    msc_log(msc_env_host(env)->log, MSC_LOG_INFO,
            "measuring losses without one channel: group %d of %d", (int)group + 1,
            (int)msc_pruner_channels(z->pruner)->n_groups);
    MSC_TRY(rank_by_loss(env, z, group));
    return msc_pruner_keep_order(k, z->pruner, group, MSC_CRITERION_LOSS);
}

static enum msc_status measure_losses(struct msc_env *env, struct msc_prune_env *z,
                                      struct msc_pruner_kept *k) {
    int32_t n = msc_pruner_channels(z->pruner)->n_groups;
    for (int32_t g = 0; g < n && msc_pruner_uses(z->pruner, MSC_CRITERION_LOSS); g++) {
        MSC_TRY(msc_pruner_is_cut(z->pruner, g) ? rank_or_recall(env, z, g, k) : MSC_OK);
    }
    return MSC_OK;
}

// ---- All of it --------------------------------------------------------------------------------

static enum msc_status list_parameters(const struct msc_prune_env *z, struct msc_array_list *list) {
    MSC_TRY(msc_pruner_save(z->pruner, list));
    return msc_distill_save_reference(z->runs.distill, list);
}

enum msc_status msc_prune_env__keep_compared(struct msc_prune_env *z, const struct msc_graph *g) {
    for (size_t i = 0; i < msc_distill_n_compared(z->runs.distill); i++) {
        const char *name = msc_distill_compared_name(z->runs.distill, i);
        MSC_TRY(msc_pruner_keep_whole(z->pruner, msc_graph_find_tensor(g, name)));
    }
    return MSC_OK;
}

static enum msc_status prepare(struct msc_env *env, struct msc_prune_env *z,
                               struct msc_pruner_kept *k) {
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_pruner_preparation how = {
        .n_threads = host->n_threads, .log = host->log, .cancel = host->cancel, .kept = k};
    MSC_TRY(msc_pruner_prepare(z->pruner, msc_distill_evaluator(z->runs.distill), &how));
    return measure_losses(env, z, k);
}

enum msc_status msc_prune_env__prepare(struct msc_env *env, struct msc_prune_env *z) {
    struct msc_pruner_kept kept = {.log = msc_env_host(env)->log};
    struct msc_array_log *file;
    MSC_TRY(msc_preparation_open(&file, env));
    kept.kept = file;
    enum msc_status status = prepare(env, z, &kept);
    msc_array_log_close(file);
    return status;
}

static enum msc_status compute_parameters(struct msc_env *env, struct msc_prune_env *z) {
    const struct msc_env_host *host = msc_env_host(env);
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s is missing: it contains this record's order of channels, which cannot "
                        "be computed again under other numerics; put it back",
                        host->parameters_path);
    }
    MSC_TRY(msc_whole_compute_reference(z->runs.distill, env));
    return msc_prune_env__prepare(env, z);
}

static enum msc_status load_parameters(struct msc_prune_env *z, const char *path) {
    struct msc_array_list found = {0};
    MSC_TRY(msc_safetensors_load(&found, path));
    enum msc_status status = msc_pruner_load(z->pruner, &found);
    if (status == MSC_OK) {
        status = msc_distill_load_reference(z->runs.distill, &found);
    }
    msc_array_list_finish(&found);
    return status == MSC_OK
               ? MSC_OK
               : msc_status_prefix(status, "%s does not belong to this configuration", path);
}

enum msc_status msc_prune_env__get_parameters(struct msc_env *env, struct msc_prune_env *z) {
    const char *path = msc_env_host(env)->parameters_path;
    bool is_there = path && msc_file_exists(path);
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(is_there ? load_parameters(z, path) : compute_parameters(env, z));
    MSC_TRY_OUT(list_parameters(z, &list));
    if (path && !is_there) {
        MSC_TRY_OUT(msc_safetensors_save(path, &list, NULL, 0));
    }
    msc_preparation_remove(env);
    z->parameters = msc_preparation_hash(&list);
out:
    msc_array_list_finish(&list);
    return status;
}

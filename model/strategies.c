#include "model/strategies.h"

#include "base/alloc.h"
#include "env/distill.h"
#include "env/metrics.h"
#include "tools/bias_edits.h"

#include <math.h>

static enum msc_status measure_strategy(double *out, struct msc_distill *d,
                                        const struct msc_strategy *s, const struct msc_graph *g) {
    struct msc_sites sites = {0};
    struct msc_bias_edits *bias_edits = NULL;
    const struct msc_edit **edits = NULL;
    enum msc_status status = MSC_OK;
    struct msc_site_scheme scheme = msc_strategy_scheme(s);
    MSC_TRY(msc_sites_find(&sites, g, &scheme));
    edits = msc_alloc_zero((size_t)sites.n_slots + 1, sizeof edits[0]);
    struct msc_distill_run run = {.edits = edits};
    MSC_TRY_OUT(MSC_ALLOCATED(edits));
    MSC_TRY_OUT(msc_strategy_apply_to_any(s, g, &sites, edits));
    MSC_TRY_OUT(msc_bias_edits_create(&bias_edits, g, &sites));
    MSC_TRY_OUT(msc_bias_edits_fill(bias_edits, edits));
    MSC_TRY_OUT(msc_distill_run(d, &run, 1, NULL, NULL));
    *out = run.loss;
    status = run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
out:
    msc_bias_edits_destroy(bias_edits);
    msc_free(edits);
    msc_sites_finish(&sites);
    return status;
}

enum msc_status msc_strategy_refit(struct msc_recalibration *out, struct msc_strategy *strategy,
                                   struct msc_model *model) {
    const struct msc_distill_options o = {.kind = MSC_LOSS_MSE,
                                          .target = msc_strategy_scheme(strategy).target};
    const struct msc_env_host host = {
        .abi = MSC_ENV_ABI,
        .graph = model->graph,
        .dataset = model->dataset,
        .backend = model->backend,
        .n_threads = model->n_threads,
        .memory_bytes = model->memory_bytes,
        .log = model->log,
        .cancel = model->cancel,
    };
    struct msc_distill *d = NULL;
    enum msc_status status = MSC_OK;
    if (msc_strategy_prunes(strategy)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "the strategy removes channels, so it fits only the weights that it was "
                        "found with: search again");
    }
    MSC_TRY(msc_distill_create(&d, &host, model->dataset, &o));
    MSC_TRY_OUT(msc_distill_compute_reference(d));
    out->loss_before = NAN;
    status = measure_strategy(&out->loss_before, d, strategy, model->graph);
    MSC_TRY_OUT(status == MSC_E_STATE ? MSC_OK : status); // the old scales do not fit
    MSC_TRY_OUT(msc_strategy_recalibrate(strategy, model->graph, msc_distill_evaluator(d)));
    status = measure_strategy(&out->loss_after, d, strategy, model->graph);
out:
    msc_distill_destroy(d);
    return status;
}

// ---- Measuring a strategy ---------------------------------------------------------------------

static struct msc_env_host host_of(const struct msc_model *m, const struct msc_graph *g) {
    return (struct msc_env_host){.abi = MSC_ENV_ABI,
                                 .graph = g,
                                 .backend = m->backend,
                                 .n_threads = m->n_threads,
                                 .memory_bytes = m->memory_bytes,
                                 .cancel = m->cancel};
}

static enum msc_status run_whole(double *accuracy, struct msc_distill *d) {
    struct msc_distill_run run = {.edits = NULL};
    MSC_TRY(msc_distill_run(d, &run, 1, NULL, NULL));
    *accuracy = run.metrics[0];
    return run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
}

static enum msc_status run_edits(struct msc_strategy_measured *out, struct msc_distill *d,
                                 const struct msc_strategy *s, const struct msc_graph *g) {
    const struct msc_sites *sites = msc_evaluator_sites(msc_distill_evaluator(d));
    struct msc_bias_edits *bias_edits = NULL;
    const struct msc_edit **edits = msc_alloc_zero((size_t)sites->n_slots + 1, sizeof edits[0]);
    struct msc_distill_run run = {.edits = edits};
    enum msc_status status = MSC_ALLOCATED(edits);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_strategy_apply_to_any(s, g, sites, edits));
    MSC_TRY_OUT(msc_bias_edits_create(&bias_edits, g, sites));
    MSC_TRY_OUT(msc_bias_edits_fill(bias_edits, edits));
    MSC_TRY_OUT(msc_distill_run(d, &run, 1, NULL, NULL));
    out->loss = run.loss;
    out->accuracy = run.metrics[0];
    status = run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
out:
    msc_bias_edits_destroy(bias_edits);
    msc_free(edits);
    return status;
}

enum msc_status msc_strategy_measure(struct msc_strategy_measured *out,
                                     const struct msc_strategy *strategy,
                                     const struct msc_model *model,
                                     const struct msc_dataset *samples, const char *const tensors[],
                                     size_t n_tensors) {
    static const struct msc_sample_metric accuracy = {.sample = msc_metric_is_correct,
                                                      .needs_labels = true};
    const struct msc_distill_options o = {.kind = MSC_LOSS_MSE,
                                          .tensors = tensors,
                                          .n_tensors = n_tensors,
                                          .metrics = &accuracy,
                                          .n_metrics = 1,
                                          .target = msc_strategy_scheme(strategy).target};
    struct msc_env_host whole_host = host_of(model, model->graph), host;
    struct msc_distill *whole = NULL, *d = NULL;
    struct msc_graph *pruned = NULL;
    struct msc_array_list reference = {0};
    enum msc_status status = MSC_OK;
    whole_host.log = model->log;
    whole_host.memory_bytes /= 2; // shared by two evaluators, each with one half
    MSC_TRY_OUT(msc_strategy_check_weights(strategy, model->graph));
    if (msc_strategy_prunes(strategy)) {
        MSC_TRY_OUT(msc_strategy_prune(&pruned, strategy, model->graph));
    }
    host = host_of(model, pruned ? pruned : model->graph);
    host.memory_bytes /= 2;
    MSC_TRY_OUT(msc_distill_create(&whole, &whole_host, samples, &o));
    MSC_TRY_OUT(msc_distill_compute_reference(whole));
    MSC_TRY_OUT(run_whole(&out->float_accuracy, whole));
    MSC_TRY_OUT(msc_distill_save_reference(whole, &reference));
    MSC_TRY_OUT(msc_distill_create(&d, &host, samples, &o));
    MSC_TRY_OUT(msc_distill_load_reference(d, &reference));
    status = run_edits(out, d, strategy, host.graph);
out:
    msc_array_list_finish(&reference);
    msc_distill_destroy(d);
    msc_distill_destroy(whole);
    msc_graph_destroy(pruned);
    return status;
}

#include "env/whole.h"

#include "env/distill_internal.h"
#include "env/env.h"
#include "graph/cost.h"
#include "graph/wide.h"

bool msc_whole_is_more(const struct msc_env *env) {
    return msc_env_whole_host(env)->graph != msc_env_host(env)->graph;
}

// The environment's loss, but on the whole model, for the duration of a call. This loss does not
// log, because the environment's own loss has already logged the same warnings.
struct whole {
    struct msc_env_host host;
    struct msc_distill *distill;
};

static enum msc_status whole_open(struct whole *w, const struct msc_distill *d,
                                  const struct msc_env *env) {
    w->host = *msc_env_whole_host(env);
    w->host.log = NULL;
    w->host.memory_bytes /= 2; // shared with the evaluator of the environment's loss
    return msc_distill_create(&w->distill, &w->host, d->dataset, &d->options);
}

// Copies the reference between two losses that compare the same tensors.
static enum msc_status copy_reference(struct msc_distill *to, const struct msc_distill *from) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_distill_save_reference(from, &list);
    if (status == MSC_OK) {
        status = msc_distill_load_reference(to, &list);
    }
    msc_array_list_finish(&list);
    return status == MSC_E_STATE
               ? MSC_FAIL(MSC_E_INVALID,
                          "env.loss_tensors: the strategy that the search starts from removes "
                          "channels of one of these tensors, so it cannot be compared with the "
                          "whole model; choose other tensors")
               : status;
}

enum msc_status msc_whole_compute_reference(struct msc_distill *d, const struct msc_env *env) {
    struct whole w;
    if (!msc_whole_is_more(env)) {
        return msc_distill_compute_reference(d);
    }
    MSC_TRY(whole_open(&w, d, env));
    enum msc_status status = msc_distill_compute_reference(w.distill);
    if (status == MSC_OK) {
        status = copy_reference(d, w.distill);
    }
    msc_distill_destroy(w.distill);
    return status;
}

enum msc_status msc_whole_run(struct msc_distill_run *run, struct msc_distill *d,
                              const struct msc_env *env) {
    struct whole w;
    *run = (struct msc_distill_run){.edits = NULL};
    if (!msc_whole_is_more(env)) {
        return msc_distill_run(d, run, 1, NULL, NULL);
    }
    MSC_TRY(whole_open(&w, d, env));
    enum msc_status status = copy_reference(w.distill, d);
    if (status == MSC_OK) {
        status = msc_distill_run(w.distill, run, 1, NULL, NULL);
    }
    msc_distill_destroy(w.distill);
    return status;
}

static double model_bytes(const struct msc_graph *g) {
    double n_bytes = 0;
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        double bytes = (double)msc_graph_own_bytes(g, i);
        n_bytes += t->data ? bytes * (double)msc_array_n_elements(t->data) : 0;
    }
    return n_bytes;
}

static double sample_macs(const struct msc_outline *outline) {
    const struct msc_plan *plan = outline->plan;
    double macs = 0;
    // The chunks of a sequence are equal, so the first one is counted for all of them.
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        double own =
            plan->parts[i] > 0 ? 0 : msc_joint_macs(plan->graph, msc_graph_joint(plan->graph, i));
        macs += own * plan->n_parts / outline->n_samples;
    }
    return macs;
}

enum msc_status msc_whole_measure_cost(struct msc_whole_cost *out, const struct msc_distill *d,
                                       const struct msc_env *env) {
    struct msc_outline outline;
    struct whole w;
    *out = (struct msc_whole_cost){.n_bytes = model_bytes(msc_env_whole_host(env)->graph)};
    MSC_TRY(whole_open(&w, d, env));
    enum msc_status status = msc_evaluator_outline(&outline, w.distill->evaluator);
    if (status == MSC_OK) {
        out->macs = sample_macs(&outline);
    }
    msc_distill_destroy(w.distill);
    return status;
}

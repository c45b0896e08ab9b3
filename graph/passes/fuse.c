#include "graph/passes/fuse_internal.h"

#include "graph/passes/fold_internal.h"

static const struct {
    const char *name; // the name in docs/graph.md
    msc_fuse_fn fuse; // visits one joint; NULL: `fold` visits the whole graph
    enum msc_status (*fold)(struct msc_graph *g);
} passes[] = {
    {"identities", NULL, msc_fold_identities},
    {"einsum", msc_fuse_einsum, NULL},
    {"pad", msc_fuse_pad, NULL},
    {"bias", msc_fuse_bias, NULL},
    {"batch_norm", NULL, msc_fold_batch_norms},
    {"hard_swish", msc_fuse_hard_swish, NULL},
    {"gelu", msc_fuse_gelu, NULL},
    {"layer_norm", msc_fuse_layer_norm, NULL},
    {"layouts", NULL, msc_fold_layouts},
    {"attention", msc_fuse_attention, NULL},
};

// Repeats the pass until it changes nothing, because a pattern may match the result of an earlier
// fusion.
static enum msc_status run_pass(struct msc_graph *g, msc_fuse_fn fuse) {
    bool again = true;
    while (again) {
        struct msc_fuse f = {.graph = g, .n_old = g->n_joints};
        again = false;
        for (int32_t i = 0; i < f.n_old; i++) {
            bool done = false;
            if (!g->joints[i]->is_dead && g->joints[i]->joint.n_outputs == 1) {
                MSC_TRY(fuse(&done, &f, i));
            }
            again = again || done;
        }
        if (again) {
            MSC_TRY(msc_graph_finalize(g));
        }
    }
    return MSC_OK;
}

enum msc_status msc_fuse_all(struct msc_graph *g, const struct msc_fuse_options *options) {
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        if (passes[i].fuse != NULL) {
            MSC_TRY(run_pass(g, passes[i].fuse));
        } else if (passes[i].fold != msc_fold_batch_norms || !options->keep_batch_norm) {
            MSC_TRY(passes[i].fold(g));
        }
    }
    return MSC_OK;
}

#include "graph/passes/fuse_internal.h"

#include "graph/passes/fold_internal.h"

static const struct {
    const char *name; // as in docs/graph.md
    msc_fuse_fn fuse; // or
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

bool msc_fuse__find(struct msc_match *m, const struct msc_fuse *f, const char *const patterns[],
                    size_t n, int32_t joint) {
    for (size_t i = 0; i < n; i++) {
        if (msc_match(m, f->graph, f->n_old, patterns[i], f->graph->joints[joint]->outputs[0])) {
            return true;
        }
    }
    return false;
}

bool msc_fuse__same_shape(const struct msc_fuse *f, int32_t tensor, int32_t joint) {
    const struct msc_tensor *a = &f->graph->tensors[tensor]->tensor;
    const struct msc_tensor *b = &f->graph->tensors[f->graph->joints[joint]->outputs[0]]->tensor;
    bool fits = a->producer != MSC_NO_ID && msc_dtype_is_float(a->dtype) && a->dtype == b->dtype &&
                a->n_dims == b->n_dims;
    for (int i = 0; fits && i < a->n_dims; i++) {
        fits = a->dims[i] == b->dims[i] && a->prims[i] == b->prims[i];
    }
    return fits;
}

enum msc_status msc_fuse__replace(struct msc_fuse *f, const struct msc_match *m, int32_t place,
                                  struct msc_joint_spec *spec) {
    struct msc_graph *g = f->graph;
    int32_t result = g->joints[m->joints[0]]->outputs[0], joint;
    const char *alias = g->tensors[result]->tensor.alias;
    spec->name = g->joints[place]->joint.name;
    spec->scope = g->joints[place]->joint.scope;
    spec->aliases = &alias;
    for (int i = 0; i < m->n_joints; i++) {
        MSC_TRY(msc_graph_remove_joint(g, m->joints[i]));
    }
    MSC_TRY(msc_graph_add_joint(&joint, g, spec));
    return msc_graph_replace_tensor(g, result, g->joints[joint]->outputs[0]);
}

// Repeats the pass, because a pattern may contain the result of another.
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

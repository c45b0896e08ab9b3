// Functions shared by the passes: find patterns and replace their joints.
#include "graph/passes/fuse_internal.h"

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

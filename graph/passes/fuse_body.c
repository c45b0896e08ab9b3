// Moves joints to the body of a new joint. The body is a graph of copies of the joints.
#include "graph/passes/fuse_internal.h"

#include <stdlib.h>
#include <string.h>

struct body {
    const struct msc_graph *from;
    struct msc_graph *graph; // the new graph
    struct msc_arena arena;
    int n_joints;
    int32_t joints[MSC_MATCH_MOST]; // ids in `from`, in topological order
    int32_t *copies;                // [n_tensors] copy of each tensor of `from`, or MSC_NO_ID
    int32_t *operands;              // tensors of `from` that the body reads
    int n_operands;
};

static int compare_ids(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static enum msc_status fuse_body_start(struct body *b, const struct msc_graph *g,
                                       const struct msc_match *m, int n_inputs) {
    size_t n_tensors = (size_t)g->n_tensors, n_operands = (size_t)n_inputs;
    *b = (struct body){.from = g, .n_joints = m->n_joints};
    memcpy(b->joints, m->joints, (size_t)m->n_joints * sizeof(b->joints[0]));
    qsort(b->joints, (size_t)b->n_joints, sizeof(b->joints[0]), compare_ids);
    for (int i = 0; i < b->n_joints; i++) {
        n_operands += (size_t)g->joints[b->joints[i]]->joint.n_operands;
    }
    b->copies = msc_arena_array(&b->arena, n_tensors, sizeof(b->copies[0]));
    b->operands = msc_arena_array(&b->arena, n_operands, sizeof(b->operands[0]));
    MSC_TRY(MSC_ALLOCATED(b->copies && b->operands));
    memset(b->copies, 0xff, n_tensors * sizeof(b->copies[0]));
    MSC_TRY(msc_graph_create(&b->graph, m->graph->name));
    b->graph->notes.keeps_attr_order = g->notes.keeps_attr_order;
    return MSC_OK;
}

static void fuse_body_finish(struct body *b) {
    msc_graph_destroy(b->graph);
    msc_arena_finish(&b->arena);
}

// Adds an operand as an input of the body. Appends '_' to its name until no joint has the name.
static enum msc_status add_operand(struct body *b, const char *name, int32_t tensor) {
    const struct msc_tensor *t = &b->from->tensors[tensor]->tensor;
    int32_t prims[MSC_MAX_DIMS], input;
    while (name != NULL && msc_graph__live_joint(b->from, name) != MSC_NO_ID) {
        name = msc_arena_printf(&b->arena, "%s_", name);
    }
    MSC_TRY(MSC_ALLOCATED(name));
    for (int d = 0; d < t->n_dims; d++) {
        prims[d] = MSC_NO_ID;
        if (t->prims[d] != MSC_NO_ID) {
            MSC_TRY(msc_graph_add_symbol(&prims[d], b->graph, b->from->prims[t->prims[d]]->name));
        }
    }
    MSC_TRY(msc_graph_add_symbolic_input(&input, b->graph, name, t->alias[0] ? t->alias : name,
                                         t->dtype, t->layout, t->n_dims, t->dims, prims));
    b->operands[b->n_operands++] = tensor;
    if (b->copies[tensor] == MSC_NO_ID) {
        b->copies[tensor] = input;
    }
    return MSC_OK;
}

static bool is_inside(const struct body *b, int32_t joint) {
    return bsearch(&joint, b->joints, (size_t)b->n_joints, sizeof(joint), compare_ids) != NULL;
}

static enum msc_status add_operands(struct body *b, const struct msc_fuse_input inputs[], int n) {
    for (int i = 0; i < n; i++) {
        MSC_TRY(add_operand(b, inputs[i].name, inputs[i].tensor));
    }
    for (int i = 0; i < b->n_joints; i++) {
        const struct msc_joint *j = &b->from->joints[b->joints[i]]->joint;
        for (int32_t k = 0; k < j->n_operands; k++) {
            int32_t tensor = j->operands[k];
            if (b->copies[tensor] != MSC_NO_ID ||
                is_inside(b, b->from->tensors[tensor]->tensor.producer)) {
                continue;
            }
            const char *name = msc_arena_printf(&b->arena, "input_%d", b->n_operands);
            MSC_TRY(add_operand(b, name, tensor));
        }
    }
    return MSC_OK;
}

static enum msc_status copy_joint(struct body *b, const struct msc_joint *j) {
    const struct msc_tensor *t = &b->from->tensors[j->outputs[0]]->tensor;
    int32_t *inputs = msc_arena_array(&b->arena, (size_t)j->n_operands, sizeof(inputs[0]));
    int32_t joint;
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (int32_t i = 0; i < j->n_operands; i++) {
        inputs[i] = b->copies[j->operands[i]];
    }
    struct msc_joint_spec spec = {.op = j->op,
                                  .name = j->name,
                                  .scope = j->scope,
                                  .n_inputs = j->n_operands,
                                  .inputs = inputs,
                                  .n_attrs = j->n_attrs,
                                  .attrs = j->attrs,
                                  .aliases = &t->alias};
    MSC_TRY(msc_graph_add_joint(&joint, b->graph, &spec));
    b->copies[j->outputs[0]] = b->graph->joints[joint]->outputs[0];
    struct msc_tensor *copy = &b->graph->tensors[b->copies[j->outputs[0]]]->tensor;
    copy->layout = msc_arena_strdup(&b->graph->arena, t->layout);
    return MSC_ALLOCATED(copy->layout);
}

static enum msc_status fuse_body_fill(struct body *b, const struct msc_fuse_input inputs[], int n,
                                      int32_t result) {
    MSC_TRY(add_operands(b, inputs, n));
    for (int i = 0; i < b->n_joints; i++) {
        MSC_TRY(copy_joint(b, &b->from->joints[b->joints[i]]->joint));
    }
    MSC_TRY(msc_graph__set_outputs(b->graph, 1, &b->copies[result]));
    return msc_graph_finalize(b->graph);
}

// True if the body's output has the same shape as in the whole graph. Inference within the body may
// know less about a length.
static bool fuse_body_has_shape_of(const struct body *b, int32_t result) {
    const struct msc_graph *g = b->graph;
    const struct msc_tensor *t = &b->from->tensors[result]->tensor;
    const struct msc_tensor *copy = msc_graph_tensor(g, msc_graph_output(g, 0));
    for (int d = 0; d < t->n_dims; d++) {
        bool is_number = t->prims[d] == MSC_NO_ID;
        if (copy->dims[d] != t->dims[d] || is_number != (copy->prims[d] == MSC_NO_ID) ||
            (!is_number &&
             strcmp(g->prims[copy->prims[d]]->name, b->from->prims[t->prims[d]]->name) != 0)) {
            return false;
        }
    }
    return true;
}

// True if a body can hold the joints of the match: all operands are activations, and each joint has
// one output, which is not an input of the body.
static bool can_hold(const struct msc_graph *g, const struct msc_match *m,
                     const struct msc_fuse_input inputs[], int n) {
    for (int i = 0; i < m->n_joints; i++) {
        const struct msc_joint *j = &g->joints[m->joints[i]]->joint;
        bool fits = j->n_outputs == 1 && j->n_inputs == j->n_operands && j->n_graphs == 0;
        for (int k = 0; fits && k < n; k++) {
            fits = inputs[k].tensor != j->outputs[0];
        }
        if (!fits) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_fuse__hold(bool *done, struct msc_fuse *f, const struct msc_match *m,
                               const struct msc_fuse_input inputs[], int n,
                               struct msc_joint_spec *spec) {
    struct body b = {0};
    int32_t result = f->graph->joints[m->joints[0]]->outputs[0];
    enum msc_status status = MSC_OK;
    if (!can_hold(f->graph, m, inputs, n)) {
        return MSC_OK;
    }
    MSC_TRY_OUT(fuse_body_start(&b, f->graph, m, n));
    MSC_TRY_OUT(fuse_body_fill(&b, inputs, n, result));
    if (!fuse_body_has_shape_of(&b, result)) {
        goto out;
    }
    const struct msc_graph *graph = b.graph;
    spec->n_inputs = b.n_operands;
    spec->inputs = b.operands;
    spec->n_graphs = 1;
    spec->graphs = &graph;
    *done = true;
    status = msc_fuse__replace(f, m, m->joints[0], spec);
out:
    fuse_body_finish(&b);
    return status;
}

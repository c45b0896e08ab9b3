#include "graph/passes/extract.h"

#include "graph/builder_internal.h"
#include "graph/infer.h"

#include <string.h>

bool msc_graph_is_shared(const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = msc_graph_joint(g, joint);
    return j->op == MSC_OP_INPUT ||
           (j->op == MSC_OP_CONSTANT && !msc_graph_is_output(g, j->outputs[0]));
}

// ---- Partition --------------------------------------------------------------------------------

struct partition {
    const struct msc_graph *g;
    const int32_t *colors;
    int32_t *group; // [n_joints] smallest joint of the joint's group, so far
    int32_t n;      // joints
    // For the search for a path. A group is visited if visits[group] is the number of the search.
    int32_t *visits, *stack, n_searches;
    // Members of each group: first joint, and the next joint of each joint; -1 ends the list.
    int32_t *next, *last;
};

static enum msc_status partition_init(struct partition *p, struct msc_arena *arena) {
    size_t n = (size_t)p->n + 1;
    p->group = msc_arena_array(arena, n, sizeof(int32_t));
    p->visits = msc_arena_array(arena, n, sizeof(int32_t));
    p->stack = msc_arena_array(arena, n, sizeof(int32_t));
    p->next = msc_arena_array(arena, n, sizeof(int32_t));
    p->last = msc_arena_array(arena, n, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(p->group && p->visits && p->stack && p->next && p->last));
    for (int32_t i = 0; i < p->n; i++) {
        p->group[i] = p->last[i] = i;
        p->next[i] = -1;
    }
    return MSC_OK;
}

static void visit(struct partition *p, int32_t *depth, int32_t group) {
    if (p->visits[group] != p->n_searches) {
        p->visits[group] = p->n_searches;
        p->stack[(*depth)++] = group;
    }
}

// True if a path leads from group `from` through a third group to group `to`. Joining the two
// groups would then make a cycle.
static bool has_detour(struct partition *p, int32_t from, int32_t to) {
    int32_t depth = 0;
    p->n_searches++;
    for (int32_t group = from; group >= 0; group = depth > 0 ? p->stack[--depth] : -1) {
        for (int32_t m = group; m >= 0; m = p->next[m]) {
            const struct msc_joint *j = msc_graph_joint(p->g, m);
            for (int32_t i = 0; i < j->n_children; i++) {
                int32_t child = p->group[j->children[i]];
                if (child == to && group != from) {
                    return true;
                }
                if (child != to && child != from) {
                    visit(p, &depth, child);
                }
            }
        }
    }
    return false;
}

static void join(struct partition *p, int32_t a, int32_t b) {
    int32_t kept = a < b ? a : b, other = a < b ? b : a;
    for (int32_t m = other; m >= 0; m = p->next[m]) {
        p->group[m] = kept;
    }
    p->next[p->last[kept]] = other;
    p->last[kept] = p->last[other];
}

// Joins the groups of a joint and its child if they may be joined. True if they were.
static bool try_join(struct partition *p, int32_t joint, int32_t child) {
    int32_t a = p->group[joint], b = p->group[child];
    if (a == b || p->colors[joint] != p->colors[child] || msc_graph_is_shared(p->g, joint) ||
        msc_graph_is_shared(p->g, child) || has_detour(p, a, b)) {
        return false;
    }
    join(p, a, b);
    return true;
}

// A join may remove the detour of another pair, so pairs are tried until nothing changes.
static void join_all(struct partition *p) {
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (int32_t i = 0; i < p->n; i++) {
            const struct msc_joint *j = msc_graph_joint(p->g, i);
            for (int32_t k = 0; k < j->n_children; k++) {
                is_changed = try_join(p, i, j->children[k]) || is_changed;
            }
        }
    }
}

// True if everything that the group reads from other groups is already numbered.
static bool is_ready(const struct partition *p, int32_t group, const int32_t pieces[]) {
    for (int32_t m = group; m >= 0; m = p->next[m]) {
        const struct msc_joint *j = msc_graph_joint(p->g, m);
        for (int32_t i = 0; i < j->n_parents; i++) {
            int32_t parent = j->parents[i];
            if (!msc_graph_is_shared(p->g, parent) && p->group[parent] != group &&
                pieces[parent] < 0) {
                return false;
            }
        }
    }
    return true;
}

// Numbers the groups in an order in which they can run; of those that are ready, the one with the
// smallest joint comes first.
static int32_t number(int32_t pieces[], const struct partition *p) {
    int32_t n = 0;
    for (int32_t i = 0; i < p->n; i++) {
        pieces[i] = -1;
    }
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (int32_t i = 0; i < p->n && !is_changed; i++) {
            bool is_group = p->group[i] == i && pieces[i] < 0 && !msc_graph_is_shared(p->g, i);
            if (is_group && is_ready(p, i, pieces)) {
                for (int32_t m = i; m >= 0; m = p->next[m]) {
                    pieces[m] = n;
                }
                n++;
                is_changed = true;
            }
        }
    }
    return n;
}

enum msc_status msc_graph_partition(int32_t pieces[], int32_t *n_pieces, const struct msc_graph *g,
                                    const int32_t colors[]) {
    struct msc_arena arena = {0};
    struct partition p = {.g = g, .colors = colors, .n = msc_graph_n_joints(g)};
    enum msc_status status = partition_init(&p, &arena);
    if (status == MSC_OK) {
        join_all(&p);
        *n_pieces = number(pieces, &p);
    }
    msc_arena_finish(&arena);
    return status;
}

// ---- Samples ----------------------------------------------------------------------------------

// The length of one sample is 1 for the symbol that counts samples, and -1 for others.
void msc_graph_sample_lengths(int64_t lengths[], const struct msc_graph *g) {
    int32_t symbol = msc_graph_sample_symbol(g);
    for (int32_t i = 0; i < msc_graph_n_prims(g); i++) {
        lengths[i] = i == symbol ? 1 : -1;
    }
}

bool msc_graph_counts_samples(const struct msc_graph *g, int32_t tensor, const int64_t lengths[]) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    int32_t symbol = msc_graph_sample_symbol(g);
    if (symbol == MSC_NO_ID) {
        return true;
    }
    for (int i = 1; i < t->n_dims; i++) {
        if (t->dims[i] < 0 && t->prims[i] == symbol) {
            return t->dims[0] < 0 && t->prims[0] == symbol;
        }
    }
    int64_t first = t->n_dims == 0
                        ? 0
                        : msc_dim_evaluate(g, (struct msc_dim){t->dims[0], t->prims[0]}, lengths);
    return first < 0 || first == 1;
}

// ---- Extraction -------------------------------------------------------------------------------

struct extract {
    const struct msc_graph *from;
    const int32_t *pieces;
    int32_t piece;
    struct msc_builder builder;
    struct msc_value **values; // [n_tensors] of `from`
};

// Adds an input for a tensor of another piece or an input of the graph.
static enum msc_status add_input(struct extract *x, int32_t tensor) {
    const struct msc_tensor *t = &x->from->tensors[tensor]->tensor;
    const char *label = msc_tensor_label(t);
    struct msc_graph *g = x->builder.graph;
    int32_t prims[MSC_MAX_DIMS], added;
    for (int d = 0; d < t->n_dims; d++) {
        prims[d] = MSC_NO_ID;
        if (t->prims[d] != MSC_NO_ID) {
            MSC_TRY(msc_graph_add_symbol(&prims[d], g, x->from->prims[t->prims[d]]->name));
        }
    }
    MSC_TRY(msc_graph_add_symbolic_input(&added, g, label, label, t->dtype, t->layout, t->n_dims,
                                         t->dims, prims));
    return msc_builder_activation(&x->values[tensor], &x->builder, label, added);
}

static enum msc_status add_constant(struct extract *x, int32_t tensor, int32_t weight) {
    const struct msc_tensor *w = &x->from->tensors[weight]->tensor;
    struct msc_value **out = &x->values[tensor];
    if (w->data == NULL) {
        return MSC_FAIL(MSC_E_INVALID,
                        "weight '%s' has no elements: the model was loaded without "
                        "weights",
                        w->name);
    }
    MSC_TRY(msc_builder_constant(out, &x->builder, w->name, w->data));
    (*out)->layout = w->layout;
    if (tensor != weight) {
        const struct msc_tensor *t = &x->from->tensors[tensor]->tensor;
        (*out)->joint_name = x->from->joints[t->producer]->joint.name;
        (*out)->alias = t->alias;
    }
    return MSC_OK;
}

static enum msc_status take_value(struct msc_value **out, struct extract *x, int32_t tensor) {
    if (x->values[tensor] == NULL) {
        const struct msc_tensor *t = &x->from->tensors[tensor]->tensor;
        int32_t weight = msc_graph_weight_of(x->from, tensor);
        bool is_own = t->producer != MSC_NO_ID && x->pieces[t->producer] == x->piece;
        bool is_constant = weight != MSC_NO_ID && !is_own &&
                           (t->producer == MSC_NO_ID || x->pieces[t->producer] < 0);
        MSC_TRY(is_constant ? add_constant(x, tensor, weight) : add_input(x, tensor));
    }
    *out = x->values[tensor];
    return MSC_OK;
}

static enum msc_status extract_joint(struct extract *x, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    if (j->op == MSC_OP_CONSTANT) {
        return add_constant(x, j->outputs[0], j->operands[0]);
    }
    MSC_TRY(msc_builder_copy_joint(&copy, &x->builder, j));
    copy.joint.stays = true;
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(take_value(&copy.operands[i], x, j->operands[i]));
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        copy.aliases[i] = msc_tensor_label(&x->from->tensors[j->outputs[i]]->tensor);
    }
    MSC_TRY(msc_builder_add(copy.outputs, &x->builder, &copy.joint));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        x->values[j->outputs[i]] = copy.outputs[i];
    }
    return MSC_OK;
}

// True if the tensor is an output of the graph, or another piece reads it.
static bool leaves(const struct extract *x, int32_t tensor) {
    const int32_t *joints;
    bool does = msc_graph_is_output(x->from, tensor);
    int32_t n = msc_graph_consumers(x->from, tensor, &joints);
    for (int32_t i = 0; i < n; i++) {
        does = does || x->pieces[joints[i]] != x->piece;
    }
    return does;
}

static enum msc_status set_outputs(struct extract *x) {
    const struct msc_graph *g = x->from;
    int32_t *outputs = msc_arena_array(&x->builder.arena, (size_t)g->n_tensors, sizeof(*outputs));
    int32_t n = 0;
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (int32_t i = 0; i < g->n_tensors; i++) {
        int32_t producer = g->tensors[i]->tensor.producer;
        if (producer != MSC_NO_ID && x->pieces[producer] == x->piece && leaves(x, i)) {
            MSC_TRY(msc_builder_tensor(&outputs[n++], &x->builder, x->values[i]));
        }
    }
    MSC_TRY(msc_graph__set_outputs(x->builder.graph, n, outputs));
    return msc_graph_finalize(x->builder.graph);
}

static enum msc_status extract_all(struct extract *x, const char *name) {
    const struct msc_graph *g = x->from;
    MSC_TRY(msc_graph__create_like(&x->builder.graph, name, g));
    MSC_TRY(
        msc_graph_set_notes(x->builder.graph, &(struct msc_graph_notes){.opset = g->notes.opset}));
    x->values = msc_arena_array(&x->builder.arena, (size_t)g->n_tensors + 1, sizeof(x->values[0]));
    MSC_TRY(MSC_ALLOCATED(x->values));
    for (int32_t i = 0; i < g->n_joints; i++) {
        if (x->pieces[i] == x->piece) {
            MSC_TRY(msc_builder_reserve(&x->builder, g->joints[i]->joint.name));
        }
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        if (x->pieces[i] == x->piece) {
            MSC_TRY(extract_joint(x, &g->joints[i]->joint));
        }
    }
    return set_outputs(x);
}

enum msc_status msc_graph_extract(struct msc_graph **out, const struct msc_graph *g,
                                  const int32_t pieces[], int32_t piece, const char *name) {
    struct extract x = {.from = g, .pieces = pieces, .piece = piece};
    enum msc_status status = extract_all(&x, name);
    if (status == MSC_OK) {
        *out = x.builder.graph;
    } else {
        msc_graph_destroy(x.builder.graph);
    }
    msc_builder_finish(&x.builder);
    return status;
}

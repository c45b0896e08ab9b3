// Finalizes a graph: removes dead joints, tensors and prims, sorts and renumbers the others, and
// links each joint to its parents and children.
//
// Tensors are numbered joint by joint: first the joint's weights that no earlier joint has, then
// its outputs. So ids depend only on the structure, and finalizing a graph twice changes nothing.
#include "graph/graph_internal.h"

#include <string.h>

enum visit { VISIT_NOT, VISIT_OPEN, VISIT_DONE };

// Working memory while a graph is finalized. All arrays are in `arena`.
struct finalize {
    struct msc_graph *g;
    struct msc_arena arena;
    unsigned char *visits; // [n_joints]
    bool *is_needed;       // [n_joints]
    int32_t *stack;        // [n_joints]
    int32_t *positions;    // [n_joints] next operand to look at
    int32_t *order;        // [n_joints] old ids in the new order
    int32_t n_order;
    int32_t *tensor_order; // [n_tensors] old ids in the new order
    int32_t n_tensor_order;
    int32_t *new_tensor; // [n_tensors] new id of each old id, or MSC_NO_ID
    int32_t *new_joint;  // [n_joints]
    int32_t *new_prim;   // [n_prims]
    // [max(n_joints, n_tensors)] for each joint or tensor: the joint for which it was last listed
    int32_t *seen;
    int32_t *list; // [n_joints]
};

static enum msc_status make_scratch(struct finalize *f) {
    size_t n_joints = (size_t)f->g->n_joints;
    size_t n_tensors = (size_t)f->g->n_tensors;
    size_t n_prims = (size_t)f->g->n_prims;
    size_t most = n_joints > n_tensors ? n_joints : n_tensors;
    f->visits = msc_arena_array(&f->arena, n_joints, sizeof(f->visits[0]));
    f->is_needed = msc_arena_array(&f->arena, n_joints, sizeof(f->is_needed[0]));
    int32_t **lists[] = {&f->stack,        &f->positions,  &f->order,    &f->new_joint, &f->list,
                         &f->tensor_order, &f->new_tensor, &f->new_prim, &f->seen};
    size_t sizes[] = {n_joints,  n_joints,  n_joints, n_joints, n_joints,
                      n_tensors, n_tensors, n_prims,  most};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        *lists[i] = msc_arena_array(&f->arena, sizes[i], sizeof(int32_t));
        MSC_TRY(MSC_ALLOCATED(*lists[i]));
        memset(*lists[i], 0xff, sizes[i] * sizeof(int32_t));
    }
    return f->visits == NULL || f->is_needed == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                                     : MSC_OK;
}

// Looks at the joint's next operand. *next is the operand's producer if it must be visited first,
// else MSC_NO_ID.
static enum msc_status look_at_operand(int32_t *next, struct finalize *f, int32_t joint) {
    const struct msc_graph *g = f->g;
    const struct msc_graph_joint *j = g->joints[joint];
    int32_t tensor = j->operands[f->positions[joint]++];
    *next = MSC_NO_ID;
    if (tensor == MSC_NO_ID || g->tensors[tensor]->tensor.producer == MSC_NO_ID) {
        return MSC_OK;
    }
    if (g->tensors[tensor]->is_dead) {
        return MSC_FAIL(MSC_E_INVALID,
                        "graph '%s': joint '%s' reads '%s', whose producer was removed", g->name,
                        j->joint.name, g->tensors[tensor]->tensor.name);
    }
    int32_t producer = g->tensors[tensor]->tensor.producer;
    if (f->visits[producer] == VISIT_OPEN) {
        return MSC_FAIL(MSC_E_INVALID,
                        "graph '%s': joint '%s' depends on its own result through '%s'", g->name,
                        g->joints[producer]->joint.name, j->joint.name);
    }
    if (f->visits[producer] == VISIT_NOT) {
        *next = producer;
    }
    return MSC_OK;
}

// Appends `root` and all joints upstream of it to f->order, producers before consumers, by
// depth-first search.
static enum msc_status graph_finalize_visit(struct finalize *f, int32_t root) {
    int32_t depth = 0;
    if (f->visits[root] != VISIT_NOT) {
        return MSC_OK;
    }
    f->stack[depth++] = root;
    f->visits[root] = VISIT_OPEN;
    f->positions[root] = 0;
    while (depth > 0) {
        int32_t joint = f->stack[depth - 1];
        if (f->positions[joint] == f->g->joints[joint]->joint.n_operands) {
            f->visits[joint] = VISIT_DONE;
            f->order[f->n_order++] = joint;
            depth--;
            continue;
        }
        int32_t next;
        MSC_TRY(look_at_operand(&next, f, joint));
        if (next != MSC_NO_ID) {
            f->stack[depth++] = next;
            f->visits[next] = VISIT_OPEN;
            f->positions[next] = 0;
        }
    }
    return MSC_OK;
}

// First walks upstream from the outputs to find the joints that are needed. Then visits these
// joints in their present order, so that an order that is already topological does not change.
static enum msc_status order_joints(struct finalize *f) {
    struct msc_graph *g = f->g;
    if (g->n_outputs == 0) {
        return MSC_FAIL(MSC_E_STATE, "graph '%s' has no outputs", g->name);
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const struct msc_graph_tensor *t = g->tensors[g->outputs[i]];
        if (t->is_dead) {
            return MSC_FAIL(MSC_E_INVALID, "graph '%s': output '%s' belongs to a removed joint",
                            g->name, t->tensor.name);
        }
        MSC_TRY(graph_finalize_visit(f, t->tensor.producer));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        bool is_input = g->joints[i]->joint.op == MSC_OP_INPUT && !g->joints[i]->is_dead;
        f->is_needed[i] = f->visits[i] == VISIT_DONE || is_input;
        f->visits[i] = VISIT_NOT;
    }
    f->n_order = 0;
    for (int32_t i = 0; i < g->n_joints; i++) {
        if (f->is_needed[i]) {
            MSC_TRY(graph_finalize_visit(f, i));
        }
    }
    return MSC_OK;
}

static void order_tensor(struct finalize *f, int32_t tensor) {
    if (f->new_tensor[tensor] == MSC_NO_ID) {
        f->new_tensor[tensor] = f->n_tensor_order;
        f->tensor_order[f->n_tensor_order++] = tensor;
    }
}

static void order_tensors(struct finalize *f) {
    for (int32_t i = 0; i < f->n_order; i++) {
        const struct msc_joint *j = &f->g->joints[f->order[i]]->joint;
        f->new_joint[f->order[i]] = i;
        for (int32_t k = 0; k < j->n_weights; k++) {
            order_tensor(f, j->weights[k].tensor);
        }
        for (int32_t k = 0; k < j->n_outputs; k++) {
            order_tensor(f, j->outputs[k]);
        }
    }
}

// Renumbers the prims that are used, in their present order. Parents come before children, so one
// backward pass finds all used prims.
static void renumber_prims(struct finalize *f) {
    struct msc_graph *g = f->g;
    for (int32_t i = 0; i < f->n_tensor_order; i++) {
        const struct msc_tensor *t = &g->tensors[f->tensor_order[i]]->tensor;
        for (int d = 0; d < t->n_dims; d++) {
            if (t->prims[d] != MSC_NO_ID) {
                f->new_prim[t->prims[d]] = 0;
            }
        }
    }
    for (int32_t i = g->n_prims - 1; i >= 0; i--) {
        for (int32_t k = 0; f->new_prim[i] == 0 && k < g->prims[i]->n_parents; k++) {
            f->new_prim[g->prims[i]->parents[k]] = 0;
        }
    }
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_prims; i++) {
        if (f->new_prim[i] == MSC_NO_ID) {
            continue;
        }
        struct msc_prim *p = g->prims[i];
        for (int32_t k = 0; k < p->n_parents; k++) {
            p->parents[k] = f->new_prim[p->parents[k]];
        }
        f->new_prim[i] = n;
        g->prims[n++] = p;
    }
    g->n_prims = n;
}

static void renumber_values(const struct finalize *f, struct msc_graph_tensor *t) {
    for (int32_t i = 0; i < t->n_values; i++) {
        if (t->values[i].prim != MSC_NO_ID) {
            t->values[i].prim = f->new_prim[t->values[i].prim];
            if (t->values[i].prim == MSC_NO_ID) {
                t->n_values = -1;
            }
        }
    }
}

// Frees the elements of weights that have no consumer left.
static enum msc_status renumber_tensors(struct finalize *f) {
    struct msc_graph *g = f->g;
    size_t n = (size_t)f->n_tensor_order;
    struct msc_graph_tensor **kept = msc_arena_array(&f->arena, n, sizeof(kept[0]));
    MSC_TRY(MSC_ALLOCATED(kept));
    for (size_t i = 0; i < n; i++) {
        kept[i] = g->tensors[f->tensor_order[i]];
        struct msc_tensor *t = &kept[i]->tensor;
        for (int d = 0; d < t->n_dims; d++) {
            t->prims[d] = t->prims[d] == MSC_NO_ID ? MSC_NO_ID : f->new_prim[t->prims[d]];
        }
        t->producer = t->producer == MSC_NO_ID ? MSC_NO_ID : f->new_joint[t->producer];
        renumber_values(f, kept[i]);
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        if (f->new_tensor[i] == MSC_NO_ID) {
            msc_array_release((struct msc_array *)g->tensors[i]->tensor.data);
        }
    }
    memcpy(g->tensors, kept, n * sizeof(kept[0]));
    g->n_tensors = f->n_tensor_order;
    return MSC_OK;
}

static void renumber_ids(const struct finalize *f, int32_t ids[], int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        ids[i] = ids[i] == MSC_NO_ID ? MSC_NO_ID : f->new_tensor[ids[i]];
    }
}

static enum msc_status renumber_joints(struct finalize *f) {
    struct msc_graph *g = f->g;
    size_t n = (size_t)f->n_order;
    struct msc_graph_joint **kept = msc_arena_array(&f->arena, n, sizeof(kept[0]));
    MSC_TRY(MSC_ALLOCATED(kept));
    for (size_t i = 0; i < n; i++) {
        kept[i] = g->joints[f->order[i]];
        kept[i]->joint.id = (int32_t)i;
        renumber_ids(f, kept[i]->operands, kept[i]->joint.n_operands);
        renumber_ids(f, kept[i]->outputs, kept[i]->joint.n_outputs);
        msc_graph__refresh_joint(g, kept[i]);
    }
    memcpy(g->joints, kept, n * sizeof(kept[0]));
    g->n_joints = f->n_order;
    renumber_ids(f, g->inputs, g->n_inputs);
    renumber_ids(f, g->outputs, g->n_outputs);
    return MSC_OK;
}

// Allocates an array of `n` ids in the graph's arena, NULL if n is 0.
static enum msc_status new_ids(int32_t **out, struct msc_graph *g, int32_t n) {
    *out = n == 0 ? NULL : msc_arena_array(&g->arena, (size_t)n, sizeof(int32_t));
    return n > 0 && *out == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory") : MSC_OK;
}

static enum msc_status link_consumers(struct finalize *f) {
    struct msc_graph *g = f->g;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < g->n_tensors; i++) {
            if (pass == 1) {
                MSC_TRY(new_ids(&g->tensors[i]->consumers, g, g->tensors[i]->n_consumers));
            }
            g->tensors[i]->n_consumers = 0;
            f->seen[i] = MSC_NO_ID;
        }
        for (int32_t i = 0; i < g->n_joints; i++) {
            const struct msc_joint *j = &g->joints[i]->joint;
            for (int32_t k = 0; k < j->n_operands; k++) {
                int32_t tensor = j->operands[k];
                if (tensor == MSC_NO_ID || f->seen[tensor] == i) {
                    continue;
                }
                f->seen[tensor] = i;
                struct msc_graph_tensor *t = g->tensors[tensor];
                if (pass == 1) {
                    t->consumers[t->n_consumers] = i;
                }
                t->n_consumers++;
            }
        }
    }
    return MSC_OK;
}

// Adds `joint` to f->list unless it was already added for the joint `by`.
static void list_once(struct finalize *f, int32_t *n, int32_t joint, int32_t by) {
    if (f->seen[joint] != by) {
        f->seen[joint] = by;
        f->list[(*n)++] = joint;
    }
}

static enum msc_status graph_finalize_copy_list(const struct finalize *f, const int32_t **out,
                                                int32_t *n_out, int32_t n) {
    int32_t *ids;
    MSC_TRY(new_ids(&ids, f->g, n));
    for (int32_t i = 0; i < n; i++) {
        ids[i] = f->list[i];
    }
    *out = ids;
    *n_out = n;
    return MSC_OK;
}

static void forget_seen(struct finalize *f) {
    for (int32_t i = 0; i < f->g->n_joints; i++) {
        f->seen[i] = MSC_NO_ID;
    }
}

static enum msc_status link_parents(struct finalize *f) {
    struct msc_graph *g = f->g;
    forget_seen(f);
    for (int32_t i = 0; i < g->n_joints; i++) {
        struct msc_joint *j = &g->joints[i]->joint;
        int32_t n = 0;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            list_once(f, &n, g->tensors[j->inputs[k]]->tensor.producer, i);
        }
        MSC_TRY(graph_finalize_copy_list(f, &j->parents, &j->n_parents, n));
    }
    return MSC_OK;
}

// Lists the children of each joint in topological order: the consumers of all its outputs.
static enum msc_status link_children(struct finalize *f) {
    struct msc_graph *g = f->g;
    int32_t *next_slot = f->positions;
    for (int32_t i = 0; i < g->n_joints; i++) {
        g->joints[i]->joint.n_children = 0;
        next_slot[i] = 0;
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_parents; k++) {
            g->joints[j->parents[k]]->joint.n_children++;
        }
    }
    int32_t **children = msc_arena_array(&f->arena, (size_t)g->n_joints, sizeof(children[0]));
    MSC_TRY(MSC_ALLOCATED(children));
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(new_ids(&children[i], g, g->joints[i]->joint.n_children));
        g->joints[i]->joint.children = children[i];
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_parents; k++) {
            int32_t parent = j->parents[k];
            children[parent][next_slot[parent]++] = i;
        }
    }
    return MSC_OK;
}

static enum msc_status link_ends(struct finalize *f) {
    struct msc_graph *g = f->g;
    int32_t *const ids[] = {g->inputs, g->outputs};
    const int32_t n_ids[] = {g->n_inputs, g->n_outputs};
    const int32_t *lists[2];
    int32_t n_lists[2];
    for (int e = 0; e < 2; e++) {
        int32_t n = 0;
        forget_seen(f);
        for (int32_t i = 0; i < n_ids[e]; i++) {
            list_once(f, &n, g->tensors[ids[e][i]]->tensor.producer, 0);
        }
        MSC_TRY(graph_finalize_copy_list(f, &lists[e], &n_lists[e], n));
    }
    g->entries = lists[0];
    g->n_entries = n_lists[0];
    g->exits = lists[1];
    g->n_exits = n_lists[1];
    return MSC_OK;
}

static void link_shared(struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        struct msc_joint *j = &g->joints[i]->joint;
        j->shared_ref = "";
        for (int32_t k = 0; k < j->n_weights && j->shared_ref[0] == '\0'; k++) {
            int32_t first = g->tensors[j->weights[k].tensor]->consumers[0];
            if (first < i) {
                j->shared_ref = g->joints[first]->joint.name;
            }
        }
    }
}

static enum msc_status rebuild_names(struct msc_graph *g) {
    struct msc_graph_names *tables[] = {&g->joint_names, &g->tensor_names, &g->aliases,
                                        &g->prim_names};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        msc_graph__names_finish(tables[i]);
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(msc_graph__names_put(&g->joint_names, g->joints[i]->joint.name, i));
    }
    for (int32_t i = 0; i < g->n_prims; i++) {
        MSC_TRY(msc_graph__names_put(&g->prim_names, g->prims[i]->name, i));
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        const struct msc_tensor *t = &g->tensors[i]->tensor;
        MSC_TRY(msc_graph__names_put(&g->tensor_names, t->name, i));
        if (t->alias[0] != '\0' && msc_graph__names_find(&g->aliases, t->alias) == MSC_NO_ID) {
            MSC_TRY(msc_graph__names_put(&g->aliases, t->alias, i));
        }
    }
    return MSC_OK;
}

static enum msc_status finalize(struct finalize *f) {
    MSC_TRY(make_scratch(f));
    MSC_TRY(order_joints(f));
    order_tensors(f);
    renumber_prims(f);
    MSC_TRY(renumber_tensors(f));
    MSC_TRY(renumber_joints(f));
    MSC_TRY(link_consumers(f));
    MSC_TRY(link_parents(f));
    MSC_TRY(link_children(f));
    MSC_TRY(link_ends(f));
    link_shared(f->g);
    return rebuild_names(f->g);
}

enum msc_status msc_graph_finalize(struct msc_graph *g) {
    struct finalize f = {.g = g};
    g->is_final = false;
    enum msc_status status = finalize(&f);
    msc_arena_finish(&f.arena);
    g->is_final = status == MSC_OK;
    return status;
}

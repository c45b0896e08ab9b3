#include "graph/weight_graph.h"

#include "base/alloc.h"

#include <string.h>

struct builder {
    const struct msc_graph *g;
    struct msc_weight_graph *out;
    struct msc_arena *arena;
    int32_t *node_of_weight; // [n_tensors] node of each weight, or MSC_NO_ID
    int32_t *made_by;        // [n_joints] node of the joint's output; MSC_NO_ID if it has none
    bool *is_seen;           // [n_joints] joints that the current walk has visited
    int32_t *waiting;        // [n_joints] joints whose parents are still to be visited
    int32_t *leader;         // [n_nodes] union-find: the node that leads each node's friends
};

// ---- Kinds of joints --------------------------------------------------------------------------

// True if the operator's weight is a main node, which produces channels.
static bool is_main(enum msc_op op) {
    return msc_op_is_conv(op) || op == MSC_OP_CONV1D_TRANSPOSE || op == MSC_OP_CONV2D_TRANSPOSE ||
           op == MSC_OP_LINEAR || op == MSC_OP_LINEAR_BIAS || op == MSC_OP_CONSTANT;
}

// The strategy of the node made for the operator's output; NULL if its output is not a node.
static const char *relation_of(enum msc_op op) {
    switch (op) {
    case MSC_OP_CONCAT:
        return "multi_inputs";
    case MSC_OP_RESHAPE:
    case MSC_OP_ADD:
    case MSC_OP_SUBTRACT:
    case MSC_OP_MULTIPLY:
    case MSC_OP_DIVIDE:
        return "passby";
    default:
        return NULL;
    }
}

static bool is_main_role(const char *role) {
    return strcmp(role, "weight") == 0 || strcmp(role, "const") == 0;
}

// ---- Nodes ------------------------------------------------------------------------------------

static int32_t find_leader(const struct builder *b, int32_t node) {
    while (b->leader[node] != node) {
        node = b->leader[node];
    }
    return node;
}

static enum msc_status copy_parents(struct msc_weight_node *node, struct builder *b,
                                    const int32_t parents[], int32_t n) {
    node->parents = msc_arena_array(b->arena, (size_t)n + 1, sizeof(node->parents[0]));
    MSC_TRY(MSC_ALLOCATED(node->parents));
    if (n > 0) {
        memcpy(node->parents, parents, (size_t)n * sizeof(parents[0]));
    }
    node->n_parents = n;
    return MSC_OK;
}

static enum msc_status add_node(int32_t *index, struct builder *b,
                                const struct msc_weight_node *model, const int32_t parents[],
                                int32_t n_parents) {
    struct msc_weight_node *node = &b->out->nodes[b->out->n];
    *index = b->out->n++;
    *node = *model;
    b->leader[*index] = *index;
    return copy_parents(node, b, parents, n_parents);
}

static void add_sorted(int32_t list[], int32_t *n, int32_t node) {
    int32_t i = *n;
    for (int32_t k = 0; k < *n; k++) {
        if (list[k] == node) {
            return;
        }
    }
    while (i > 0 && list[i - 1] > node) {
        list[i] = list[i - 1];
        i--;
    }
    list[i] = node;
    (*n)++;
}

// Lists the nearest nodes upstream of a joint.
static void walk_up(int32_t parents[], int32_t *n, struct builder *b, const struct msc_joint *j) {
    int32_t n_waiting = 0;
    for (;;) {
        for (int32_t i = 0; i < j->n_parents; i++) {
            int32_t parent = j->parents[i];
            if (!b->is_seen[parent] && b->made_by[parent] != MSC_NO_ID) {
                add_sorted(parents, n, b->made_by[parent]);
            } else if (!b->is_seen[parent]) {
                b->waiting[n_waiting++] = parent;
            }
            b->is_seen[parent] = true;
        }
        if (n_waiting == 0) {
            return;
        }
        j = msc_graph_joint(b->g, b->waiting[--n_waiting]);
    }
}

static enum msc_status add_weights(struct builder *b, const struct msc_joint *j,
                                   const int32_t parents[], int32_t n_parents) {
    int32_t main = MSC_NO_ID;
    for (int32_t i = 0; i < j->n_weights; i++) {
        const struct msc_weight *w = &j->weights[i];
        if (is_main(j->op) && is_main_role(w->role) && b->node_of_weight[w->tensor] == MSC_NO_ID) {
            const struct msc_weight_node model = {.tensor = w->tensor,
                                                  .type = w->role,
                                                  .producer = msc_op_info(j->op)->name,
                                                  .strategy = "main"};
            MSC_TRY(add_node(&main, b, &model, parents, n_parents));
            b->node_of_weight[w->tensor] = main;
            b->made_by[j->id] = main;
        }
    }
    for (int32_t i = 0; i < j->n_weights; i++) {
        const struct msc_weight *w = &j->weights[i];
        if (b->node_of_weight[w->tensor] == MSC_NO_ID) {
            const struct msc_weight_node model = {
                .tensor = w->tensor, .type = w->role, .strategy = "follow"};
            int32_t node;
            MSC_TRY(main == MSC_NO_ID ? add_node(&node, b, &model, parents, n_parents)
                                      : add_node(&node, b, &model, &main, 1));
            b->node_of_weight[w->tensor] = node;
        }
    }
    return MSC_OK;
}

static enum msc_status add_joint(struct builder *b, const struct msc_joint *j, int32_t parents[]) {
    const char *relation = relation_of(j->op);
    int32_t n_parents = 0;
    if (!relation && j->n_weights == 0) {
        return MSC_OK;
    }
    memset(b->is_seen, 0, (size_t)msc_graph_n_joints(b->g) * sizeof(b->is_seen[0]));
    walk_up(parents, &n_parents, b, j);
    bool joins = relation && strcmp(relation, "multi_inputs") == 0;
    for (int32_t i = 1; !joins && i < n_parents; i++) {
        int32_t x = find_leader(b, parents[0]), y = find_leader(b, parents[i]);
        b->leader[x > y ? x : y] = x > y ? y : x;
    }
    MSC_TRY(add_weights(b, j, parents, n_parents));
    if (!relation) {
        return MSC_OK;
    }
    const struct msc_weight_node model = {
        .tensor = j->outputs[0], .type = "output", .strategy = relation};
    MSC_TRY(add_node(&b->made_by[j->id], b, &model, parents, n_parents));
    if (!joins && n_parents > 1) {
        // the output has the channels of its parents
        b->leader[b->made_by[j->id]] = find_leader(b, parents[0]);
    }
    return MSC_OK;
}

// Lists the friends of every node that has any.
static enum msc_status list_friends(struct builder *b) {
    for (int32_t i = 0; i < b->out->n; i++) {
        struct msc_weight_node *node = &b->out->nodes[i];
        int32_t leader = find_leader(b, i), n = 0;
        for (int32_t k = leader; k < b->out->n; k++) {
            n += find_leader(b, k) == leader;
        }
        node->friends = msc_arena_array(b->arena, (size_t)n, sizeof(node->friends[0]));
        MSC_TRY(MSC_ALLOCATED(node->friends));
        for (int32_t k = leader; n > 1 && k < b->out->n; k++) {
            if (find_leader(b, k) == leader) {
                node->friends[node->n_friends++] = k;
            }
        }
    }
    return MSC_OK;
}

static enum msc_status build(struct builder *b, struct msc_arena *work) {
    size_t n_tensors = (size_t)msc_graph_n_tensors(b->g);
    size_t n_joints = (size_t)msc_graph_n_joints(b->g), capacity = n_tensors + n_joints + 1;
    int32_t *parents = msc_arena_array(work, capacity, sizeof(parents[0]));
    b->out->nodes = msc_arena_array(b->arena, capacity, sizeof(b->out->nodes[0]));
    b->node_of_weight = msc_arena_array(work, n_tensors + 1, sizeof(b->node_of_weight[0]));
    b->made_by = msc_arena_array(work, n_joints + 1, sizeof(b->made_by[0]));
    b->is_seen = msc_arena_array(work, n_joints + 1, sizeof(b->is_seen[0]));
    b->waiting = msc_arena_array(work, n_joints + 1, sizeof(b->waiting[0]));
    b->leader = msc_arena_array(work, capacity, sizeof(b->leader[0]));
    MSC_TRY(MSC_ALLOCATED(parents && b->out->nodes && b->node_of_weight && b->made_by &&
                          b->is_seen && b->waiting && b->leader));
    for (size_t i = 0; i < n_tensors; i++) {
        b->node_of_weight[i] = MSC_NO_ID;
    }
    for (size_t i = 0; i < n_joints; i++) {
        b->made_by[i] = MSC_NO_ID;
    }
    for (size_t i = 0; i < n_joints; i++) {
        const struct msc_joint *j = msc_graph_joint(b->g, (int32_t)i);
        MSC_TRY(add_joint(b, j, parents));
        // A weight shared with an earlier joint also produces the channels of this joint.
        for (int32_t k = 0; is_main(j->op) && k < j->n_weights; k++) {
            if (is_main_role(j->weights[k].role)) {
                b->made_by[i] = b->node_of_weight[j->weights[k].tensor];
            }
        }
    }
    return list_friends(b);
}

enum msc_status msc_weight_graph_build(struct msc_weight_graph *out, const struct msc_graph *g) {
    struct msc_arena work = {0};
    *out = (struct msc_weight_graph){.storage = msc_alloc_zero(1, sizeof(struct msc_arena))};
    MSC_TRY(MSC_ALLOCATED(out->storage));
    struct builder b = {.g = g, .out = out, .arena = out->storage};
    enum msc_status status = build(&b, &work);
    msc_arena_finish(&work);
    if (status != MSC_OK) {
        msc_weight_graph_finish(out);
    }
    return status;
}

void msc_weight_graph_finish(struct msc_weight_graph *w) {
    if (w->storage) {
        msc_arena_finish(w->storage);
        msc_free(w->storage);
    }
    *w = (struct msc_weight_graph){0};
}

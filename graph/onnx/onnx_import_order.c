// Sorts the nodes of a model's graph so that each is after those whose outputs it reads. ONNX requires
// this order. ONNX Runtime requires it only in bodies, and its tools write other orders.
#include "graph/onnx/onnx_import_internal.h"

struct order {
    const Onnx__GraphProto *graph;
    struct msc_graph_names producers; // maps an output's name to the index of its node
    bool *is_begun;                   // [n_node]
    size_t *stack, depth;             // [n_node] nodes that wait for what they read
    Onnx__NodeProto **sorted;         // [n_node]
    size_t n_sorted;
};

static enum msc_status find_producers(struct order *o) {
    for (size_t i = o->graph->n_node; i-- > 0;) {
        const Onnx__NodeProto *node = o->graph->node[i];
        for (size_t k = 0; k < node->n_output; k++) {
            if (node->output[k][0] != '\0') {
                MSC_TRY(msc_graph__names_put(&o->producers, node->output[k], (int32_t)i));
            }
        }
    }
    return MSC_OK;
}

// The greatest index of a node that this node, or a node in its bodies, reads from, among nodes that
// are not begun if `is_new`; -1: none.
static int64_t last_read(const struct order *o, const Onnx__NodeProto *node, bool is_new) {
    int64_t last = -1;
    for (size_t k = 0; k < node->n_input; k++) {
        int32_t i = msc_graph__names_find(&o->producers, node->input[k]);
        last = i != MSC_NO_ID && i > last && !(is_new && o->is_begun[i]) ? i : last;
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__GraphProto *body = node->attribute[a]->g;
        for (size_t i = 0; body != NULL && i < body->n_node; i++) {
            int64_t inner = last_read(o, body->node[i], is_new);
            last = inner > last ? inner : last;
        }
    }
    return last;
}

static bool is_sorted(const struct order *o) {
    bool all = true;
    for (size_t i = 0; all && i < o->graph->n_node; i++) {
        all = last_read(o, o->graph->node[i], false) < (int64_t)i;
    }
    return all;
}

// Places a node after all nodes that it reads from. Nodes of a cycle keep an order that the import
// refuses.
static void place(struct order *o, size_t node) {
    o->is_begun[node] = true;
    o->stack[o->depth++] = node;
    while (o->depth > 0) {
        size_t top = o->stack[o->depth - 1];
        int64_t read = last_read(o, o->graph->node[top], true);
        if (read >= 0) {
            o->is_begun[read] = true;
            o->stack[o->depth++] = (size_t)read;
        } else {
            o->sorted[o->n_sorted++] = o->graph->node[top];
            o->depth--;
        }
    }
}

static enum msc_status sort(struct order *o, Onnx__GraphProto *graph) {
    size_t n = graph->n_node;
    MSC_TRY(find_producers(o));
    o->is_begun = msc_alloc_zero(n + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(o->is_begun));
    if (is_sorted(o)) {
        return MSC_OK;
    }
    o->stack = msc_alloc_zero(n + 1, sizeof(size_t));
    o->sorted = msc_alloc_zero(n + 1, sizeof(o->sorted[0]));
    MSC_TRY(MSC_ALLOCATED(o->stack && o->sorted));
    for (size_t i = 0; i < n; i++) {
        if (!o->is_begun[i]) {
            place(o, i);
        }
    }
    for (size_t i = 0; i < n; i++) {
        graph->node[i] = o->sorted[i];
    }
    return MSC_OK;
}

enum msc_status msc_onnx__sort_nodes(Onnx__GraphProto *graph) {
    struct order o = {.graph = graph};
    enum msc_status status = sort(&o, graph);
    msc_graph__names_finish(&o.producers);
    msc_free(o.is_begun);
    msc_free(o.stack);
    msc_free(o.sorted);
    return status;
}

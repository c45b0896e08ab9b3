// Sorts the nodes of a model's graph so that each is after those whose outputs it reads. ONNX
// requires this order. ONNX Runtime requires it only in bodies, and its tools write other orders.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

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

// A body of control flow and the body around it. Names that a body defines hide those of the graph.
struct body {
    const Onnx__GraphProto *graph;
    const struct body *around; // NULL: the model's graph
};

static bool is_name(const char *value, const char *name) {
    return value != NULL && strcmp(value, name) == 0;
}

static bool is_hidden(const struct body *body, const char *name) {
    bool is_found = false;
    for (const struct body *b = body; b != NULL && !is_found; b = b->around) {
        for (size_t i = 0; i < b->graph->n_initializer && !is_found; i++) {
            is_found = is_name(b->graph->initializer[i]->name, name);
        }
        for (size_t i = 0; i < b->graph->n_input && !is_found; i++) {
            is_found = is_name(b->graph->input[i]->name, name);
        }
        for (size_t i = 0; i < b->graph->n_node && !is_found; i++) {
            for (size_t k = 0; k < b->graph->node[i]->n_output && !is_found; k++) {
                is_found = is_name(b->graph->node[i]->output[k], name);
            }
        }
    }
    return is_found;
}

// The greatest index, from `least` on, of a node that is not begun and that this node, or a node in
// its bodies, reads from; -1: none.
static int64_t last_read(const struct order *o, const Onnx__NodeProto *node, int64_t least,
                         const struct body *around) {
    int64_t last = -1;
    for (size_t k = 0; k < node->n_input; k++) {
        int32_t i = msc_graph__names_find(&o->producers, node->input[k]);
        bool is_new = i != MSC_NO_ID && i >= least && i > last && !o->is_begun[i];
        last = is_new && !is_hidden(around, node->input[k]) ? i : last;
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        struct body body = {node->attribute[a]->g, around};
        for (size_t i = 0; body.graph != NULL && i < body.graph->n_node; i++) {
            int64_t inner = last_read(o, body.graph->node[i], least, &body);
            last = inner > last ? inner : last;
        }
    }
    return last;
}

static bool is_sorted(const struct order *o) {
    bool all = true;
    for (size_t i = 0; all && i < o->graph->n_node; i++) {
        all = last_read(o, o->graph->node[i], (int64_t)i, NULL) < 0;
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
        int64_t read = last_read(o, o->graph->node[top], 0, NULL);
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

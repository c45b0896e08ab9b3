// Writes a Euclidean norm, sqrt(sum(x * x)), as one ReduceL2 in place of three nodes.
#include "graph/onnx/onnx_export_form.h"
#include "graph/onnx/onnx_export_internal.h"

#include <string.h>

struct norm_search {
    struct msc_onnx_export *e;
    struct msc_graph_names producers; // maps an output to the index of its node
    struct msc_graph_names readers;   // maps a value to its number of readers
};

static enum msc_status count_reader(struct norm_search *s, const char *name) {
    int32_t n = msc_graph__names_find(&s->readers, name);
    return name[0] == '\0' ? MSC_OK
                           : msc_graph__names_put(&s->readers, name, n == MSC_NO_ID ? 1 : n + 1);
}

static enum msc_status count_readers(struct norm_search *s, Onnx__NodeProto *const nodes[],
                                     size_t n_nodes) {
    for (size_t i = 0; i < n_nodes; i++) {
        for (size_t k = 0; k < nodes[i]->n_input; k++) {
            MSC_TRY(count_reader(s, nodes[i]->input[k]));
        }
        for (size_t a = 0; a < nodes[i]->n_attribute; a++) {
            const Onnx__GraphProto *body = nodes[i]->attribute[a]->g;
            MSC_TRY(body == NULL ? MSC_OK : count_readers(s, body->node, body->n_node));
        }
    }
    return MSC_OK;
}

static enum msc_status find_names(struct norm_search *s) {
    const struct msc_onnx_export *e = s->e;
    MSC_TRY(count_readers(s, e->nodes, e->n_nodes));
    for (size_t i = 0; i < e->n_nodes; i++) {
        for (size_t k = 0; k < e->nodes[i]->n_output; k++) {
            MSC_TRY(msc_graph__names_put(&s->producers, e->nodes[i]->output[k], (int32_t)i));
        }
    }
    for (int32_t i = 0; i < msc_graph_n_outputs(e->graph); i++) {
        int32_t t = msc_graph_output(e->graph, i);
        MSC_TRY(count_reader(s, e->outputs_seen[t] == NULL ? e->names[t] : e->outputs_seen[t]));
    }
    return MSC_OK;
}

// The node that produces a value, if it has this operator and the value has one reader; or NULL.
static Onnx__NodeProto *maker_of(const struct norm_search *s, const char *value, const char *op) {
    int32_t i = msc_graph__names_find(&s->producers, value);
    Onnx__NodeProto *node = i == MSC_NO_ID ? NULL : s->e->nodes[i];
    bool fits = node != NULL && strcmp(node->op_type, op) == 0 &&
                msc_graph__names_find(&s->readers, value) == 1;
    return fits ? node : NULL;
}

// Turns the sum of a norm into the norm; the square and the root become NULL in `nodes`.
static void fuse_norm(const struct norm_search *s, size_t root) {
    Onnx__NodeProto **nodes = s->e->nodes;
    Onnx__NodeProto *sum = maker_of(s, nodes[root]->input[0], "ReduceSum");
    Onnx__NodeProto *square = sum == NULL ? NULL : maker_of(s, sum->input[0], "Mul");
    if (square == NULL || strcmp(square->input[0], square->input[1]) != 0) {
        return;
    }
    nodes[msc_graph__names_find(&s->producers, sum->input[0])] = NULL;
    sum->op_type = (char *)"ReduceL2";
    sum->input[0] = square->input[0];
    sum->output[0] = nodes[root]->output[0];
    nodes[root] = NULL;
}

enum msc_status msc_onnx__fuse_norms(struct msc_onnx_export *e) {
    struct norm_search s = {.e = e};
    size_t n = 0;
    if (!msc_onnx__has_forms(e)) {
        return MSC_OK;
    }
    enum msc_status status = find_names(&s);
    for (size_t i = 0; status == MSC_OK && i < e->n_nodes; i++) {
        if (e->nodes[i] != NULL && strcmp(e->nodes[i]->op_type, "Sqrt") == 0) {
            fuse_norm(&s, i);
        }
    }
    for (size_t i = 0; status == MSC_OK && i < e->n_nodes; i++) {
        e->nodes[n] = e->nodes[i];
        n += e->nodes[i] != NULL;
    }
    e->n_nodes = status == MSC_OK ? n : e->n_nodes;
    msc_graph__names_finish(&s.producers);
    msc_graph__names_finish(&s.readers);
    return status;
}

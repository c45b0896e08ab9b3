// Exports bodies. For control flow, each becomes a graph in an attribute of its node, and reads
// values of the enclosing graph by name.
#include "graph/onnx/onnx_export_internal.h"

#include <string.h>

// The part of the exporter's state that each body has for itself, indexed by the body's tensors and
// joints. The rest is shared with the enclosing graph.
struct own {
    const struct msc_graph *graph;
    struct msc_onnx_wide *wide;
    const char **names, **outputs_seen;
    struct msc_onnx_moved **moved;
    bool *is_unread, *is_written;
    Onnx__NodeProto **nodes;
    size_t n_nodes, nodes_capacity;
    Onnx__TensorProto **initializers;
    size_t n_initializers, initializers_capacity;
    struct msc_onnx_pair *pairs;
    size_t n_pairs, pairs_capacity;
    const struct msc_onnx_export_options *options;
};

static struct own take_own(const struct msc_onnx_export *e) {
    return (struct own){
        .graph = e->graph,
        .wide = e->wide,
        .names = e->names,
        .outputs_seen = e->outputs_seen,
        .moved = e->moved,
        .is_unread = e->is_unread,
        .is_written = e->is_written,
        .nodes = e->nodes,
        .n_nodes = e->n_nodes,
        .nodes_capacity = e->nodes_capacity,
        .initializers = e->initializers,
        .n_initializers = e->n_initializers,
        .initializers_capacity = e->initializers_capacity,
        .pairs = e->pairs,
        .n_pairs = e->n_pairs,
        .pairs_capacity = e->pairs_capacity,
        .options = e->options,
    };
}

static void give_own(struct msc_onnx_export *e, const struct own *o) {
    e->graph = o->graph;
    e->wide = o->wide;
    e->names = o->names;
    e->outputs_seen = o->outputs_seen;
    e->moved = o->moved;
    e->is_unread = o->is_unread;
    e->is_written = o->is_written;
    e->nodes = o->nodes;
    e->n_nodes = o->n_nodes;
    e->nodes_capacity = o->nodes_capacity;
    e->initializers = o->initializers;
    e->n_initializers = o->n_initializers;
    e->initializers_capacity = o->initializers_capacity;
    e->pairs = o->pairs;
    e->n_pairs = o->n_pairs;
    e->pairs_capacity = o->pairs_capacity;
    e->options = o->options;
}

static void *copy_pointers(struct msc_onnx_export *e, const void *from, size_t n) {
    void *copy = msc_arena_array(&e->arena, n + 1, sizeof(void *));
    if (copy != NULL && n > 0) {
        memcpy(copy, from, n * sizeof(void *));
    }
    return copy;
}

// Writes the current body as a message. The inputs from index `n_own` on are values of the
// enclosing graph, with the names in `outer`.
static enum msc_status write_graph(Onnx__GraphProto *out, struct msc_onnx_export *e, int32_t n_own,
                                   const char *const outer[]) {
    const struct msc_graph *g = e->graph;
    for (int32_t i = n_own; i < g->n_inputs; i++) {
        e->names[g->inputs[i]] = outer[i - n_own];
    }
    MSC_TRY(msc_onnx__name_tensors(e));
    MSC_TRY(msc_onnx__write_joints(e));
    onnx__graph_proto__init(out);
    out->name = (char *)g->name;
    MSC_TRY(msc_onnx__describe_all(&out->input, &out->n_input, e, g->inputs, n_own));
    MSC_TRY(msc_onnx__describe_all(&out->output, &out->n_output, e, g->outputs, g->n_outputs));
    MSC_TRY(msc_onnx__describe_external(&out->value_info, &out->n_value_info, e));
    out->n_node = e->n_nodes;
    out->node = copy_pointers(e, e->nodes, e->n_nodes);
    out->n_initializer = e->n_initializers;
    out->initializer = copy_pointers(e, e->initializers, e->n_initializers);
    return out->node == NULL || out->initializer == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                                         : MSC_OK;
}

static enum msc_status write_body(Onnx__GraphProto **out, struct msc_onnx_joint *j, int32_t which,
                                  int32_t n_own, int32_t first_outer) {
    static const struct msc_onnx_export_options plain = {0};
    struct msc_onnx_export *e = j->e;
    const struct msc_graph *body = j->joint->graphs[which];
    struct own around = take_own(e);
    struct own inside = {.graph = body, .options = &plain};
    size_t n = (size_t)body->n_tensors + 1;
    *out = msc_arena_alloc(&e->arena, sizeof(**out));
    inside.names = msc_arena_array(&e->arena, n, sizeof(inside.names[0]));
    inside.is_written = msc_arena_array(&e->arena, n, sizeof(inside.is_written[0]));
    MSC_TRY(MSC_ALLOCATED(*out && inside.names && inside.is_written));
    if (body->n_inputs - n_own > j->joint->n_operands - first_outer) {
        return MSC_FAIL(MSC_E_INVALID, "the body has %d inputs, but the joint has fewer operands",
                        (int)body->n_inputs);
    }
    give_own(e, &inside);
    enum msc_status status =
        write_graph(*out, e, n_own, (const char *const *)j->inputs + first_outer);
    msc_free(e->nodes);
    msc_free(e->initializers);
    msc_free(e->pairs);
    give_own(e, &around);
    return status;
}

enum msc_status msc_onnx__write_held(Onnx__GraphProto **out, struct msc_onnx_joint *j) {
    return write_body(out, j, 0, j->joint->n_operands, j->joint->n_operands);
}

static enum msc_status put_bodies(struct msc_onnx_joint *j, const char *const names[], int32_t n,
                                  int32_t n_own, int32_t first_outer) {
    for (int32_t i = 0; i < n; i++) {
        Onnx__GraphProto *graph;
        Onnx__NodeProto *node = j->node;
        MSC_TRY(write_body(&graph, j, i, n_own, first_outer));
        MSC_TRY(msc_onnx__put_graph(j->e, node, names[i], graph));
    }
    return MSC_OK;
}

static enum msc_status count_states(int64_t *out, const struct msc_onnx_joint *j, const char *key) {
    return msc_joint_attr_i64(j->joint, key, out) && *out >= 0 && *out <= j->joint->n_operands
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "attribute %s is missing or out of range", key);
}

static enum msc_status put_list(struct msc_onnx_joint *j, const char *key) {
    int64_t values[64];
    int n = msc_joint_attr_list(j->joint, key, values, 64);
    return n > 0 && n <= 64 ? msc_onnx__put_ints(j->e, j->node, key, values, (size_t)n) : MSC_OK;
}

enum msc_status msc_onnx__write_if(struct msc_onnx_joint *j) {
    static const char *const names[] = {"then_branch", "else_branch"};
    MSC_TRY(msc_onnx__add_own(j, j->inputs, 1));
    return put_bodies(j, names, 2, 0, 1);
}

enum msc_status msc_onnx__write_loop(struct msc_onnx_joint *j) {
    static const char *const names[] = {"body"};
    int64_t n_states;
    MSC_TRY(count_states(&n_states, j, "n_states"));
    MSC_TRY(msc_onnx__add_own(j, j->inputs, (size_t)n_states + 2));
    return put_bodies(j, names, 1, (int32_t)n_states + 2, (int32_t)n_states + 2);
}

enum msc_status msc_onnx__write_scan(struct msc_onnx_joint *j) {
    static const char *const names[] = {"body"};
    static const char *const lists[] = {"scan_input_axes", "scan_input_directions",
                                        "scan_output_axes", "scan_output_directions"};
    int64_t n_states, n_scans;
    bool has_batch;
    if (!msc_joint_attr_bool(j->joint, "has_batch", &has_batch) || has_batch) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "since opset 9, ONNX has no Scan with a batch axis");
    }
    MSC_TRY(count_states(&n_states, j, "n_states"));
    MSC_TRY(count_states(&n_scans, j, "n_scans"));
    MSC_TRY(msc_onnx__add_own(j, j->inputs, (size_t)(n_states + n_scans)));
    MSC_TRY(msc_onnx__put_int(j->e, j->node, "num_scan_inputs", n_scans));
    for (int i = 0; i < 4; i++) {
        MSC_TRY(put_list(j, lists[i]));
    }
    return put_bodies(j, names, 1, (int32_t)(n_states + n_scans), (int32_t)(n_states + n_scans));
}

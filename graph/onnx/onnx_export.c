// Exports MSCGraph to ONNX: first names the values, then adds one or more nodes for every joint in
// topological order. Finally the protobuf message is written (onnx_export_file.c).
#include "graph/onnx/onnx_export_form.h"
#include "graph/onnx/onnx_export_internal.h"

#include "graph/passes/bind.h"

#include <string.h>

static const char *onnx_export_wanted_name(const struct msc_tensor *t) {
    return t->producer == MSC_NO_ID || t->alias[0] == '\0' ? t->name : t->alias;
}

static enum msc_status name_tensor(struct msc_onnx_export *e, int32_t tensor) {
    if (e->names[tensor] == NULL) {
        const char *wanted = onnx_export_wanted_name(&e->graph->tensors[tensor]->tensor);
        e->names[tensor] = msc_onnx__free_name(e, &e->value_names, wanted);
    }
    return MSC_ALLOCATED(e->names[tensor]);
}

// An output of the model may be an Identity of an input or constant that has the same name. It then
// needs no node, and both tensors keep this name.
static enum msc_status name_repeated(struct msc_onnx_export *e, int32_t output) {
    const struct msc_graph *g = e->graph;
    const struct msc_tensor *t = &g->tensors[output]->tensor;
    const struct msc_joint *j = &g->joints[t->producer]->joint;
    if (j->op != MSC_OP_IDENTITY) {
        return MSC_OK;
    }
    int32_t source = j->operands[0], weight = msc_graph_weight_of(g, source);
    const struct msc_tensor *s = &g->tensors[weight == MSC_NO_ID ? source : weight]->tensor;
    bool is_input = s->producer != MSC_NO_ID && g->joints[s->producer]->joint.op == MSC_OP_INPUT;
    if (strcmp(onnx_export_wanted_name(s), onnx_export_wanted_name(t)) != 0 ||
        (weight == MSC_NO_ID && !is_input)) {
        return MSC_OK;
    }
    MSC_TRY(name_tensor(e, weight == MSC_NO_ID ? source : weight));
    e->names[source] = e->names[weight == MSC_NO_ID ? source : weight];
    e->names[output] = e->names[source];
    return MSC_OK;
}

// Assigns public names first, then names of weights, then internal ones. The output of a constant
// joint gets the name of its weight, unless it is also an output of the model. Names of values in
// the graphs of external operators are taken, because such graphs read values by name.
enum msc_status msc_onnx__name_tensors(struct msc_onnx_export *e) {
    const struct msc_graph *g = e->graph;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        MSC_TRY(name_tensor(e, g->inputs[i]));
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        MSC_TRY(name_repeated(e, g->outputs[i]));
        MSC_TRY(name_tensor(e, g->outputs[i]));
    }
    MSC_TRY(msc_onnx__keep_names_free(e, g));
    for (int32_t i = 0; i < g->n_tensors; i++) {
        if (g->tensors[i]->tensor.producer == MSC_NO_ID) {
            MSC_TRY(name_tensor(e, i));
        }
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        int32_t weight = msc_graph_weight_of(g, i);
        if (weight != MSC_NO_ID && e->names[i] == NULL) {
            e->names[i] = e->names[weight];
        }
        MSC_TRY(name_tensor(e, i));
    }
    return MSC_OK;
}

// Stores in e->outputs_seen the public names of edited outputs. The value after the edit gets the
// public name, so the value before the edit gets another name.
static enum msc_status name_outputs_seen(struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    for (int32_t i = 0; e->options->slot_edits != NULL && i < sites->n_site_slots; i++) {
        int32_t tensor = sites->slots[i].tensor;
        if (sites->slots[i].joint != MSC_NO_ID || e->options->slot_edits[i] == NULL ||
            e->outputs_seen[tensor] != NULL) {
            continue;
        }
        const char *wanted = msc_arena_printf(&e->arena, "%s_float", e->names[tensor]);
        e->outputs_seen[tensor] = e->names[tensor];
        e->names[tensor] = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
        MSC_TRY(MSC_ALLOCATED(e->names[tensor]));
    }
    return MSC_OK;
}

static enum msc_status write_constant_output(struct msc_onnx_export *e, const struct msc_joint *j) {
    const char *input;
    if (!msc_graph_is_output(e->graph, j->outputs[0])) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__value(&input, e, j->operands[0]));
    Onnx__NodeProto *node;
    return msc_onnx__add_node(&node, e, "Identity", j->name, &input, 1, &e->names[j->outputs[0]],
                              1);
}

static enum msc_status onnx_export_write_joint(struct msc_onnx_export *e,
                                               const struct msc_joint *joint) {
    if (joint->op == MSC_OP_INPUT) {
        return MSC_OK;
    }
    if (joint->op == MSC_OP_CONSTANT) {
        return write_constant_output(e, joint);
    }
    msc_onnx__require_types(e, joint);
    msc_onnx_writer writer = msc_onnx__find_writer(joint->op);
    if (writer == NULL) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "operator %s cannot be exported to ONNX",
                        msc_op_info(joint->op)->name);
    }
    struct msc_onnx_joint j = {.e = e, .joint = joint};
    bool is_written = false;
    MSC_TRY(msc_onnx__write_form(&is_written, &j));
    if (is_written) {
        return MSC_OK;
    }
    j.n_inputs = (size_t)joint->n_operands;
    j.inputs = msc_arena_array(&e->arena, j.n_inputs + 1, sizeof(j.inputs[0]));
    MSC_TRY(MSC_ALLOCATED(j.inputs));
    MSC_TRY(msc_onnx__move_integers(&j));
    MSC_TRY(msc_onnx__store_codes(&j));
    for (int32_t i = 0; i < joint->n_operands; i++) {
        if (j.inputs[i] == NULL) {
            MSC_TRY(msc_onnx__operand(&j.inputs[i], e, joint, i));
        }
    }
    MSC_TRY(msc_onnx__shift_bias(&j));
    MSC_TRY(msc_onnx__shield_input(&j));
    MSC_TRY(writer(&j));
    return msc_onnx__shield_output(&j);
}

enum msc_status msc_onnx__write_joints(struct msc_onnx_export *e) {
    const struct msc_graph *own = msc_onnx__widen_types(e);
    MSC_TRY(msc_onnx__find_unread(e));
    e->graph = own;
    for (int32_t i = 0; i < e->graph->n_joints; i++) {
        const struct msc_joint *j = msc_onnx__take_types(e, i);
        enum msc_status status = onnx_export_write_joint(e, j);
        status = status == MSC_OK ? msc_onnx__cast_outputs(e, j) : status;
        if (status != MSC_OK) {
            return msc_status_prefix(status, "joint '%s'", j->name);
        }
    }
    e->graph = own;
    return MSC_OK;
}

// A symbolic dim keeps the name of its symbol; a dim with any other expression is left unknown.
static enum msc_status describe_dim(Onnx__TensorShapeProto__Dimension **out,
                                    struct msc_onnx_export *e, const struct msc_tensor *t, int i) {
    Onnx__TensorShapeProto__Dimension *d = msc_arena_alloc(&e->arena, sizeof(*d));
    MSC_TRY(MSC_ALLOCATED(d));
    onnx__tensor_shape_proto__dimension__init(d);
    if (t->prims[i] == MSC_NO_ID) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = t->dims[i];
    } else if (strcmp(e->graph->prims[t->prims[i]]->optype, "shape") == 0) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = (char *)e->graph->prims[t->prims[i]]->name;
    }
    *out = d;
    return MSC_OK;
}

static enum msc_status onnx_export_describe(Onnx__ValueInfoProto **out, struct msc_onnx_export *e,
                                            int32_t tensor) {
    const struct msc_tensor *t = &e->graph->tensors[tensor]->tensor;
    Onnx__ValueInfoProto *info = msc_arena_alloc(&e->arena, sizeof(*info));
    Onnx__TypeProto *type = msc_arena_alloc(&e->arena, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor_type = msc_arena_alloc(&e->arena, sizeof(*tensor_type));
    Onnx__TensorShapeProto *shape = msc_arena_alloc(&e->arena, sizeof(*shape));
    MSC_TRY(MSC_ALLOCATED(info && type && tensor_type && shape));
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor_type);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = (size_t)t->n_dims;
    shape->dim = msc_arena_array(&e->arena, shape->n_dim, sizeof(shape->dim[0]));
    MSC_TRY(MSC_ALLOCATED(shape->dim));
    for (int i = 0; i < t->n_dims; i++) {
        MSC_TRY(describe_dim(&shape->dim[i], e, t, i));
    }
    tensor_type->has_elem_type = true;
    tensor_type->elem_type = msc_onnx_type(t->dtype);
    tensor_type->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor_type;
    bool is_behind = e->outputs_seen != NULL && e->outputs_seen[tensor] != NULL;
    info->name = (char *)(is_behind ? e->outputs_seen : e->names)[tensor];
    info->type = type;
    *out = info;
    return MSC_OK;
}

enum msc_status msc_onnx__describe_all(Onnx__ValueInfoProto ***out, size_t *n_out,
                                       struct msc_onnx_export *e, const int32_t tensors[],
                                       int32_t n) {
    *n_out = (size_t)n;
    *out = msc_arena_array(&e->arena, (size_t)n, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (int32_t i = 0; i < n; i++) {
        MSC_TRY(onnx_export_describe(&(*out)[i], e, tensors[i]));
    }
    return MSC_OK;
}

static enum msc_status write_model(struct msc_onnx_export *e, const char *path, uint64_t *size) {
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    msc_onnx__begin_opset(e);
    MSC_TRY(msc_onnx__find_wide(e));
    MSC_TRY(msc_onnx__name_tensors(e));
    MSC_TRY(name_outputs_seen(e));
    MSC_TRY(msc_onnx__name_wide_outputs(e));
    MSC_TRY(msc_onnx__write_joints(e));
    MSC_TRY(msc_onnx__edit_outputs(e));
    MSC_TRY(msc_onnx__fuse_norms(e));
    MSC_TRY(msc_onnx__drop_unread_pairs(e));
    MSC_TRY(msc_onnx__settle_opset(e));
    MSC_TRY(msc_onnx__describe_all(&graph.input, &graph.n_input, e, e->graph->inputs,
                                   e->graph->n_inputs));
    MSC_TRY(msc_onnx__describe_all(&graph.output, &graph.n_output, e, e->graph->outputs,
                                   e->graph->n_outputs));
    MSC_TRY(msc_onnx__describe_external(&graph.value_info, &graph.n_value_info, e));
    graph.name = (char *)e->graph->name;
    graph.n_node = e->n_nodes;
    graph.node = e->nodes;
    graph.n_initializer = e->n_initializers;
    graph.initializer = e->initializers;
    opset.domain = (char *)"";
    opset.has_version = true;
    opset.version = e->opset;
    model.has_ir_version = true;
    model.ir_version = msc_onnx__ir_version(e->opset);
    model.producer_name = (char *)"mscgym";
    model.n_opset_import = e->n_domains + 1;
    model.opset_import =
        msc_arena_array(&e->arena, e->n_domains + 1, sizeof(Onnx__OperatorSetIdProto *));
    MSC_TRY(MSC_ALLOCATED(model.opset_import));
    model.opset_import[0] = &opset;
    for (size_t i = 0; i < e->n_domains; i++) {
        model.opset_import[i + 1] = e->domains[i];
    }
    model.graph = &graph;
    MSC_TRY(msc_onnx__put_functions(&model, e, &model.opset_import[0]));
    if (path != NULL) {
        MSC_TRY(msc_onnx__write_notes(&model, e));
    }
    *size = onnx__model_proto__get_packed_size(&model);
    return path == NULL ? MSC_OK : msc_onnx__write_file(e, &model, path, *size);
}

static enum msc_status export_split(const struct msc_graph *g, const char *path, uint64_t *size,
                                    const struct msc_onnx_export_options *options) {
    static const struct msc_onnx_export_options defaults = {0};
    struct msc_onnx_export e = {.graph = g, .options = options == NULL ? &defaults : options};
    size_t n = (size_t)g->n_tensors;
    e.names = msc_arena_array(&e.arena, n, sizeof(e.names[0]));
    e.outputs_seen = msc_arena_array(&e.arena, n, sizeof(e.outputs_seen[0]));
    e.is_written = msc_arena_array(&e.arena, n, sizeof(e.is_written[0]));
    e.moved = msc_arena_array(&e.arena, n, sizeof(e.moved[0]));
    bool has_room =
        e.names != NULL && e.outputs_seen != NULL && e.is_written != NULL && e.moved != NULL;
    enum msc_status status =
        has_room ? write_model(&e, path, size) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; i < e.n_arrays; i++) {
        msc_array_release(e.arrays[i]);
    }
    msc_free(e.arrays);
    msc_free(e.nodes);
    msc_free(e.initializers);
    msc_free(e.pairs);
    msc_free(e.domains);
    msc_free(e.functions);
    msc_graph__names_finish(&e.value_names);
    msc_graph__names_finish(&e.node_names);
    msc_arena_finish(&e.arena);
    return status;
}

static enum msc_status export_model(const struct msc_graph *g, const char *path, uint64_t *size,
                                    const struct msc_onnx_export_options *options) {
    struct msc_graph *split = NULL;
    MSC_TRY(msc_graph_split(&split, g));
    enum msc_status status = MSC_OK;
    if (split != g && options != NULL && options->slot_edits != NULL) {
        status =
            MSC_FAIL(MSC_E_STATE, "graph '%s' has edits and fused joints: split it first", g->name);
    } else {
        status = export_split(split, path, size, options);
    }
    msc_graph_destroy(split);
    return status;
}

enum msc_status msc_onnx_save(const struct msc_graph *g, const char *path,
                              const struct msc_onnx_export_options *options) {
    uint64_t size;
    enum msc_status status = export_model(g, path, &size, options);
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, "%s", path);
}

enum msc_status msc_onnx_measure(uint64_t *n_bytes, const struct msc_graph *g,
                                 const struct msc_onnx_export_options *options) {
    return export_model(g, NULL, n_bytes, options);
}

// Writes wide graphs (graph/wide.h): models of float16 or bfloat16 with edits.
//
// A joint is written in float32 if an edit applies to one of its operands, or if a consumer reads
// its output under an edit. All other joints are written in the model's own types. However,
// element-wise joints and moves that have only float32 joints around them are float32 too, because
// they would need a Cast before and after. Casts connect joints of different types. Weights without
// an edit are stored in their own type.
//
// While a joint is written, e->graph is the wide graph if the joint is written in float32, else the
// graph in the model's own types. Both graphs have the same ids.
#include "graph/onnx/onnx_export_internal.h"

#include "data/array_codes.h"
#include "graph/wide.h"

struct msc_onnx_wide {
    const struct msc_graph *own, *wide;
    bool *is_wide;      // [n_joints] written in float32
    const char **casts; // [n_tensors] the value in the other type; NULL until it is written
};

static bool has_edit(const struct msc_onnx_export *e, int32_t slot) {
    return e->options->slot_edits[slot] != NULL;
}

// Marks the joints that read an edited operand, or whose output is read under an edit. Bodies have
// no edits, so control flow keeps its own types; so do external joints, whose nodes stay as they
// are.
static void mark_edited(struct msc_onnx_wide *w, const struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    for (int32_t i = 0; i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (!has_edit(e, i)) {
            continue;
        }
        if (slot->joint != MSC_NO_ID) {
            w->is_wide[slot->joint] = true;
        }
        int32_t producer = w->wide->tensors[slot->tensor]->tensor.producer;
        if (producer != MSC_NO_ID) {
            w->is_wide[producer] = true;
        }
    }
    for (int32_t i = 0; i < w->wide->n_joints; i++) {
        const struct msc_joint *j = &w->wide->joints[i]->joint;
        bool has_source = j->op != MSC_OP_INPUT && j->op != MSC_OP_CONSTANT;
        w->is_wide[i] = w->is_wide[i] && has_source && j->n_graphs == 0 && j->op != MSC_OP_EXTERNAL;
    }
}

static bool is_light(const struct msc_joint *j) {
    return msc_op_is_elementwise(j->op) || j->op == MSC_OP_IDENTITY ||
           msc_op_has_trait(j->op, MSC_TRAIT_PART);
}

// True if all producers of the joint's operands and all consumers of its outputs are written in
// float32 or are candidates for float32.
static bool is_enclosed(const struct msc_onnx_wide *w, const bool is_candidate[],
                        const struct msc_joint *j) {
    const struct msc_graph *g = w->wide;
    for (int32_t k = 0; k < j->n_operands; k++) {
        int32_t t = j->operands[k];
        if (t == MSC_NO_ID || msc_graph_weight_of(g, t) != MSC_NO_ID ||
            !msc_graph_is_widened(g, t)) {
            continue;
        }
        int32_t producer = g->tensors[t]->tensor.producer;
        if (!w->is_wide[producer] && !is_candidate[producer]) {
            return false;
        }
    }
    for (int32_t k = 0; k < j->n_outputs; k++) {
        const struct msc_graph_tensor *t = g->tensors[j->outputs[k]];
        bool is_widened = msc_graph_is_widened(g, j->outputs[k]);
        if (is_widened && msc_graph_is_output(g, j->outputs[k])) {
            return false;
        }
        for (int32_t c = 0; c < t->n_consumers && is_widened; c++) {
            const struct msc_joint *reader = &g->joints[t->consumers[c]]->joint;
            if (!w->is_wide[reader->id] && !is_candidate[reader->id] &&
                !msc_op_has_trait(reader->op, MSC_TRAIT_SHAPE)) {
                return false;
            }
        }
    }
    return true;
}

// Also writes in float32 the element-wise joints and moves that have only float32 joints around
// them (is_enclosed). Starts with all of them as candidates, and drops candidates until nothing
// changes.
static void add_light(struct msc_onnx_wide *w, bool is_candidate[]) {
    int32_t n = w->wide->n_joints;
    bool is_changed = true;
    for (int32_t i = 0; i < n; i++) {
        is_candidate[i] = !w->is_wide[i] && is_light(&w->wide->joints[i]->joint);
    }
    while (is_changed) {
        is_changed = false;
        for (int32_t i = 0; i < n; i++) {
            if (is_candidate[i] && !is_enclosed(w, is_candidate, &w->wide->joints[i]->joint)) {
                is_candidate[i] = false;
                is_changed = true;
            }
        }
    }
    for (int32_t i = 0; i < n; i++) {
        w->is_wide[i] = w->is_wide[i] || is_candidate[i];
    }
}

// True if the value that the tensor's producer writes is float32.
static bool is_written_wide(const struct msc_onnx_wide *w, int32_t tensor) {
    int32_t producer = w->wide->tensors[tensor]->tensor.producer;
    return producer != MSC_NO_ID && w->is_wide[producer];
}

// A tensor has the same shape in both types. So a joint that reads a shape reads the value that the
// tensor's producer writes, and needs no Cast.
static void follow_shapes(struct msc_onnx_wide *w) {
    for (int32_t i = 0; i < w->wide->n_joints; i++) {
        const struct msc_joint *j = &w->wide->joints[i]->joint;
        if (msc_op_has_trait(j->op, MSC_TRAIT_SHAPE)) {
            w->is_wide[i] = is_written_wide(w, j->operands[0]);
        }
    }
}

enum msc_status msc_onnx__find_wide(struct msc_onnx_export *e) {
    const struct msc_graph *own = msc_graph_own(e->graph);
    size_t n_joints = (size_t)own->n_joints + 1, n_tensors = (size_t)own->n_tensors + 1;
    if (own == e->graph) {
        return MSC_OK;
    }
    const struct msc_graph *wide = e->graph;
    e->graph = own;
    if (e->options->slot_edits == NULL) {
        return MSC_OK;
    }
    struct msc_onnx_wide *w = msc_arena_alloc(&e->arena, sizeof(*w));
    bool *is_candidate = msc_arena_array(&e->arena, n_joints, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(w && is_candidate));
    *w = (struct msc_onnx_wide){
        .own = own,
        .wide = wide,
        .is_wide = msc_arena_array(&e->arena, n_joints, sizeof(bool)),
        .casts = msc_arena_array(&e->arena, n_tensors, sizeof(w->casts[0])),
    };
    MSC_TRY(MSC_ALLOCATED(w->is_wide && w->casts));
    mark_edited(w, e);
    add_light(w, is_candidate);
    follow_shapes(w);
    e->wide = w;
    return MSC_OK;
}

// ---- Types ------------------------------------------------------------------------------------

const struct msc_joint *msc_onnx__take_types(struct msc_onnx_export *e, int32_t joint) {
    if (e->wide != NULL) {
        e->graph = e->wide->is_wide[joint] ? e->wide->wide : e->wide->own;
    }
    return &e->graph->joints[joint]->joint;
}

bool msc_onnx__is_narrow(const struct msc_onnx_export *e) {
    return e->wide != NULL && e->graph == e->wide->own;
}

const struct msc_graph *msc_onnx__widen_types(struct msc_onnx_export *e) {
    const struct msc_graph *before = e->graph;
    e->graph = e->wide != NULL ? e->wide->wide : e->graph;
    return before;
}

static enum msc_status add_cast(struct msc_onnx_export *e, const char *from, const char *to,
                                enum msc_dtype dtype) {
    Onnx__NodeProto *node;
    MSC_TRY(msc_onnx__add_node(&node, e, "Cast", to, &from, 1, &to, 1));
    return msc_onnx__put_int(e, node, "to", msc_onnx_type(dtype));
}

// A Cast of the tensor's value to the type that e->graph has.
static enum msc_status add_typed(const char **value, struct msc_onnx_export *e, int32_t tensor) {
    enum msc_dtype dtype = e->graph->tensors[tensor]->tensor.dtype;
    const char *from = *value;
    const char *wanted =
        msc_arena_printf(&e->arena, "%s_%s", e->names[tensor], msc_dtype_name(dtype));
    *value = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    MSC_TRY(MSC_ALLOCATED(*value));
    return add_cast(e, from, *value, dtype);
}

enum msc_status msc_onnx__typed(const char **value, struct msc_onnx_export *e, int32_t tensor) {
    struct msc_onnx_wide *w = e->wide;
    if (w == NULL || !msc_graph_is_widened(w->wide, tensor) ||
        is_written_wide(w, tensor) == (e->graph == w->wide)) {
        return MSC_OK;
    }
    if (w->casts[tensor] == NULL) {
        MSC_TRY(add_typed(value, e, tensor));
        w->casts[tensor] = *value;
    }
    *value = w->casts[tensor];
    return MSC_OK;
}

enum msc_status msc_onnx__typed_edit(const char **value, struct msc_onnx_export *e,
                                     int32_t tensor) {
    struct msc_onnx_wide *w = e->wide;
    bool is_other = msc_onnx__is_narrow(e) && msc_graph_is_widened(w->wide, tensor);
    return is_other ? add_typed(value, e, tensor) : MSC_OK;
}

const struct msc_array *msc_onnx__stored(const struct msc_onnx_export *e, int32_t weight) {
    const struct msc_graph *g = e->wide != NULL ? e->wide->own : e->graph;
    return g->tensors[weight]->tensor.data;
}

// ---- Outputs ----------------------------------------------------------------------------------

enum msc_status msc_onnx__name_wide_outputs(struct msc_onnx_export *e) {
    struct msc_onnx_wide *w = e->wide;
    for (int32_t i = 0; w != NULL && i < w->own->n_outputs; i++) {
        int32_t tensor = w->own->outputs[i];
        if (!msc_graph_is_widened(w->wide, tensor) || !is_written_wide(w, tensor) ||
            e->outputs_seen[tensor] != NULL) {
            continue;
        }
        const char *wanted = msc_arena_printf(&e->arena, "%s_float32", e->names[tensor]);
        e->outputs_seen[tensor] = e->names[tensor];
        e->names[tensor] = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
        MSC_TRY(MSC_ALLOCATED(e->names[tensor]));
        w->casts[tensor] = e->outputs_seen[tensor];
    }
    return MSC_OK;
}

enum msc_status msc_onnx__cast_outputs(struct msc_onnx_export *e, const struct msc_joint *j) {
    struct msc_onnx_wide *w = e->wide;
    for (int32_t i = 0; w != NULL && w->is_wide[j->id] && i < j->n_outputs; i++) {
        int32_t tensor = j->outputs[i];
        if (w->casts[tensor] != NULL && w->casts[tensor] == e->outputs_seen[tensor]) {
            MSC_TRY(add_cast(e, e->names[tensor], w->casts[tensor],
                             w->own->tensors[tensor]->tensor.dtype));
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__cast_edited_output(bool *is_cast, struct msc_onnx_export *e,
                                             int32_t tensor, const char *value) {
    struct msc_onnx_wide *w = e->wide;
    *is_cast = w != NULL && msc_graph_is_widened(w->wide, tensor);
    return *is_cast
               ? add_cast(e, value, e->outputs_seen[tensor], w->own->tensors[tensor]->tensor.dtype)
               : MSC_OK;
}

enum msc_status msc_onnx__value(const char **out, struct msc_onnx_export *e, int32_t tensor) {
    int32_t weight = msc_graph_weight_of(e->graph, tensor);
    *out = e->names[weight == MSC_NO_ID ? tensor : weight];
    if (weight == MSC_NO_ID || e->is_written[weight]) {
        return msc_onnx__typed(out, e, weight == MSC_NO_ID ? tensor : weight);
    }
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    const struct msc_array *data = msc_onnx__stored(e, weight);
    if (data == NULL) {
        return MSC_FAIL(MSC_E_STATE, "weight '%s' has no elements", t->name);
    }
    if (e->options->keeps_codes && msc_array_codes_of(data) != NULL) {
        e->is_written[weight] = true;
        return msc_onnx__write_codes(*out, e, weight, data);
    }
    MSC_TRY(msc_onnx__put_initializer(e, *out, msc_onnx_type(msc_array_dtype(data)), t->n_dims,
                                      t->dims, msc_array_data(data), msc_array_n_bytes(data)));
    msc_onnx__initializer(e->initializers[e->n_initializers - 1])->source = data;
    e->is_written[weight] = true;
    return msc_onnx__typed(out, e, weight);
}

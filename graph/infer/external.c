// Outputs of external joints: by the plug-in that computes the joint, or else by the joint's body
// or its signature.
#include "graph/infer/infer_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "graph/external_internal.h"
#include "graph/graph_internal.h"
#include "graph/operators_internal.h"

#include <string.h>

// ---- By the signature -------------------------------------------------------------------------

#define MOST_NAMES 64

// The lengths that names of the signature stand for.
struct lengths {
    const struct msc_infer *call;
    int n;
    char names[MOST_NAMES][MSC_EXTERNAL_NAME_BYTES];
    struct msc_dim dims[MOST_NAMES];
};

static const struct msc_dim *find_length(const struct lengths *l, const char *name) {
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->names[i], name) == 0) {
            return &l->dims[i];
        }
    }
    return NULL;
}

static enum msc_status add_length(struct lengths *l, const char *name, struct msc_dim dim) {
    if (l->n == MOST_NAMES) {
        return msc_infer__fail(l->call, "the signature has more than %d names", MOST_NAMES);
    }
    memcpy(l->names[l->n], name, strlen(name) + 1);
    l->dims[l->n++] = dim;
    return MSC_OK;
}

static enum msc_status fail_operand(const struct msc_infer *call, int operand,
                                    const struct msc_external_type *type) {
    const struct msc_infer_tensor *t = call->operands[operand];
    char found[MSC_INFER_TEXT_BYTES];
    struct msc_str expected = {0};
    msc_external__write_type(&expected, type);
    enum msc_status status = msc_infer__fail(
        call, "operand %d is %s%s, but its signature says %s", operand,
        t == NULL ? "absent" : msc_dtype_name(t->dtype),
        t == NULL ? "" : msc_infer__shape_text(found, call, t), msc_str_text(&expected));
    msc_str_finish(&expected);
    return status;
}

// Compares an operand with its type, and takes the lengths of names that occur for the first time.
static enum msc_status take_operand(struct lengths *l, int operand,
                                    const struct msc_external_type *type) {
    const struct msc_infer_tensor *t = l->call->operands[operand];
    bool is_absent = type->dtype == MSC_DTYPE_NONE;
    bool fits =
        is_absent ? t == NULL : t != NULL && t->dtype == type->dtype && t->n_dims == type->n_dims;
    for (int i = 0; fits && !is_absent && i < type->n_dims; i++) {
        if (type->dims[i] >= 0) {
            fits = msc_infer__agree(t->dims[i], msc_infer__number(type->dims[i]));
            continue;
        }
        const struct msc_dim *known = find_length(l, type->names[i]);
        if (known == NULL) {
            MSC_TRY(add_length(l, type->names[i], t->dims[i]));
        } else {
            fits = msc_infer__agree(*known, t->dims[i]);
        }
    }
    return fits ? MSC_OK : fail_operand(l->call, operand, type);
}

// The length of a name that no operand has: a symbol of the graph.
static enum msc_status take_unknown(struct msc_dim *out, struct lengths *l, const char *name) {
    struct msc_graph *g = l->call->graph;
    const char *kept = msc_arena_strdup(&g->arena, name);
    MSC_TRY(MSC_ALLOCATED(kept));
    out->value = -1;
    out->prim = msc_graph_find_prim(g, name);
    if (out->prim == MSC_NO_ID) {
        MSC_TRY(msc_graph_add_symbol(&out->prim, g, kept));
    }
    return add_length(l, name, *out);
}

static enum msc_status set_output(struct lengths *l, int output,
                                  const struct msc_external_type *type) {
    struct msc_infer_tensor *t = &l->call->outputs[output];
    t->dtype = type->dtype;
    t->n_dims = type->n_dims;
    for (int i = 0; i < type->n_dims; i++) {
        const struct msc_dim *known = find_length(l, type->names[i]);
        if (type->dims[i] >= 0) {
            t->dims[i] = msc_infer__number(type->dims[i]);
        } else if (known != NULL) {
            t->dims[i] = *known;
        } else {
            MSC_TRY(take_unknown(&t->dims[i], l, type->names[i]));
        }
    }
    return MSC_OK;
}

static enum msc_status infer_by_signature(struct lengths *l) {
    const struct msc_infer *call = l->call;
    const char *text = msc_infer__text(call, "signature");
    struct msc_external_type type;
    int n = 0;
    bool is_valid;
    while (msc_external__next_type(&type, &text, &is_valid)) {
        if (n == call->n_operands) {
            return msc_infer__fail(call, "the signature has more than the %d operands", n);
        }
        MSC_TRY(take_operand(l, n++, &type));
    }
    for (; is_valid && n < call->n_operands && call->operands[n] == NULL; n++) {}
    if (is_valid && n != call->n_operands) {
        return msc_infer__fail(call, "the signature has %d operands, expected %d", n,
                               call->n_operands);
    }
    n = 0;
    while (is_valid && msc_external__next_type(&type, &text, &is_valid)) {
        if (n == call->n_outputs || type.dtype == MSC_DTYPE_NONE) {
            return msc_infer__fail(call, "the signature must have exactly %d outputs",
                                   call->n_outputs);
        }
        MSC_TRY(set_output(l, n++, &type));
    }
    if (!is_valid || n != call->n_outputs) {
        return msc_infer__fail(
            call,
            "signature '%s' is invalid or lacks outputs, expected a form such as "
            "'float32[N,3] -> float32[N]' with %d outputs",
            msc_infer__text(call, "signature"), call->n_outputs);
    }
    return MSC_OK;
}

// ---- By a plug-in -----------------------------------------------------------------------------

// An unknown length is passed as -2 - prim, so that the plug-in can copy it.
static int64_t length_to_plugin(struct msc_dim dim) {
    return dim.prim == MSC_NO_ID ? dim.value : -2 - (int64_t)dim.prim;
}

static enum msc_status take_type(const struct msc_infer *call, int output,
                                 const struct msc_operator_tensor *from) {
    struct msc_infer_tensor *t = &call->outputs[output];
    if ((unsigned)from->dtype >= MSC_DTYPE_COUNT || from->dtype == MSC_DTYPE_NONE ||
        from->n_dims < 0 || from->n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the plug-in gave output %d an invalid type or rank", output);
    }
    t->dtype = from->dtype;
    t->n_dims = from->n_dims;
    for (int i = 0; i < t->n_dims; i++) {
        int64_t length = from->dims[i];
        if (length >= 0) {
            t->dims[i] = msc_infer__number(length);
        } else if (length == -1) {
            MSC_TRY(msc_infer__fresh(&t->dims[i], call, output, i));
        } else if (-2 - length < msc_graph_n_prims(call->graph)) {
            t->dims[i] = (struct msc_dim){-1, (int32_t)(-2 - length)};
        } else {
            return msc_infer__fail(call, "the plug-in gave output %d an unknown length", output);
        }
    }
    return MSC_OK;
}

static enum msc_status infer_by_plugin(const struct msc_infer *call,
                                       const struct msc_operators_entry *entry,
                                       struct msc_arena *arena) {
    size_t n_inputs = (size_t)call->n_operands, n_outputs = (size_t)call->n_outputs;
    struct msc_operator_tensor *inputs = msc_arena_array(arena, n_inputs + 1, sizeof inputs[0]);
    struct msc_operator_tensor *outputs = msc_arena_array(arena, n_outputs, sizeof outputs[0]);
    MSC_TRY(MSC_ALLOCATED(inputs && outputs));
    for (size_t i = 0; i < n_inputs; i++) {
        const struct msc_infer_tensor *t = call->operands[i];
        inputs[i].dtype = t == NULL ? MSC_DTYPE_NONE : t->dtype;
        inputs[i].n_dims = t == NULL ? 0 : t->n_dims;
        for (int k = 0; k < inputs[i].n_dims; k++) {
            inputs[i].dims[k] = length_to_plugin(t->dims[k]);
        }
    }
    struct msc_operator_call request = {.n_inputs = call->n_operands,
                                        .inputs = inputs,
                                        .n_outputs = call->n_outputs,
                                        .outputs = outputs};
    MSC_TRY(msc_operators__call(entry, true, &request, call->joint));
    for (int i = 0; i < call->n_outputs; i++) {
        MSC_TRY(take_type(call, i, &outputs[i]));
    }
    return MSC_OK;
}

enum msc_status msc_infer__external(const struct msc_infer *call) {
    const struct msc_operators_entry *entry =
        msc_operators__find_joint(call->graph->operators, call->joint);
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    if (call->joint->n_graphs > 0) {
        MSC_TRY(msc_infer__held(call));
    }
    if (entry != NULL && entry->infers) {
        status = infer_by_plugin(call, entry, &arena);
    } else if (call->joint->n_graphs == 0) {
        struct lengths *l = msc_arena_alloc(&arena, sizeof *l);
        status = MSC_ALLOCATED(l);
        if (status == MSC_OK) {
            l->call = call;
            status = infer_by_signature(l);
        }
    }
    msc_arena_finish(&arena);
    return status;
}

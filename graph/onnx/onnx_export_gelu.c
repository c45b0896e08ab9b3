// Writes Gelu for opsets before 20, which do not have the operator: x * (1 + erf(x / sqrt(2))) / 2,
// or its tanh approximation.
#include "graph/onnx/onnx_export_form.h"
#include "graph/onnx/onnx_export_internal.h"

#include <string.h>

enum { GELU_OPSET = 20 };

static bool has_edits(const struct msc_onnx_export *e) {
    const struct msc_onnx_export_options *o = e->options;
    for (int32_t i = 0; o->slot_edits != NULL && i < o->sites->n_slots; i++) {
        if (o->slot_edits[i] != NULL) {
            return true;
        }
    }
    return false;
}

// Replaces *value by op_type(*value, number).
static enum msc_status with_number(const char **value, struct msc_onnx_joint *j,
                                   const char *op_type, const char *what, float number) {
    struct msc_onnx_export *e = j->e;
    const char *inputs[2] = {*value};
    const char *name = msc_arena_printf(&e->arena, "%s.%s", j->joint->name, what);
    float *copy = msc_arena_alloc(&e->arena, sizeof(*copy));
    MSC_TRY(MSC_ALLOCATED(name && copy));
    *copy = number;
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, name, MSC_ONNX_FLOAT, 0, NULL, copy,
                                      sizeof(*copy)));
    return msc_onnx__add_step(value, e, op_type, name, inputs, 2);
}

static enum msc_status with_value(const char **value, struct msc_onnx_joint *j, const char *op_type,
                                  const char *what, const char *other) {
    const char *inputs[2] = {*value, other};
    const char *name = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, what);
    return msc_onnx__add_step(value, j->e, op_type, name, inputs, other == NULL ? 1 : 2);
}

// erf(x / sqrt(2))
static enum msc_status write_erf(const char **value, struct msc_onnx_joint *j) {
    MSC_TRY(with_number(value, j, "Div", "scaled", 1.41421356f));
    return with_value(value, j, "Erf", "erf", NULL);
}

// tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))
static enum msc_status write_tanh(const char **value, struct msc_onnx_joint *j) {
    MSC_TRY(with_number(value, j, "Pow", "cube", 3.0f));
    MSC_TRY(with_number(value, j, "Mul", "part", 0.044715f));
    MSC_TRY(with_value(value, j, "Add", "sum", j->inputs[0]));
    MSC_TRY(with_number(value, j, "Mul", "scaled", 0.797884561f));
    return with_value(value, j, "Tanh", "tanh", NULL);
}

enum msc_status msc_onnx__write_gelu(struct msc_onnx_joint *j) {
    const struct msc_graph *g = j->e->graph;
    const char *approximate = msc_joint_attr(j->joint, "approximate");
    const char *value = j->inputs[0], *output = j->e->names[j->joint->outputs[0]];
    bool is_float = msc_graph_tensor(g, j->joint->operands[0])->dtype == MSC_DTYPE_F32;
    if (!is_float || j->e->opset >= GELU_OPSET || has_edits(j->e)) {
        return msc_onnx__write_direct(j);
    }
    bool is_exact = approximate == NULL || strcmp(approximate, "tanh") != 0;
    MSC_TRY(is_exact ? write_erf(&value, j) : write_tanh(&value, j));
    MSC_TRY(with_number(&value, j, "Add", "plus_one", 1.0f));
    MSC_TRY(with_value(&value, j, "Mul", "product", j->inputs[0]));
    const char *inputs[2] = {value};
    const char *name = msc_arena_printf(&j->e->arena, "%s.half", j->joint->name);
    static const float half = 0.5f;
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, &half,
                                      sizeof(half)));
    return msc_onnx__add_node(&j->node, j->e, "Mul", j->joint->name, inputs, 2, &output, 1);
}

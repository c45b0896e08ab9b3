#include "kernels/lowering/ewise_build.h"

#include "kernels/lowering/lowering.h"

#include <assert.h>
#include <string.h>

// Checks that every code has a row, by counting the rows. A duplicate code fails to compile in
// msc_ewise_n_operands.
#define EWISE(code, name, operands, expression) +1
#define EWISE_LOOP(code, name, operands, loop, expression) +1
#define EWISE_SUMS(code, name, operands, loop) +1
_Static_assert(0
#include "kernels/lowering/ewise.def"
                   == MSC_EWISE_OP_COUNT,
               "ewise.def: a code is missing, or the last row does not have the highest");

int msc_ewise_n_operands(enum msc_ewise_op op) {
    static const int counts[MSC_EWISE_OP_COUNT] = {
#define EWISE(code, name, operands, expression) [code] = (operands),
#define EWISE_LOOP(code, name, operands, loop, expression) [code] = (operands),
#define EWISE_SUMS(code, name, operands, loop) [code] = (operands),
#include "kernels/lowering/ewise.def"
    };
    return counts[op];
}

void msc_ewise__strides(const struct msc_ewise_builder *b, int64_t strides[MSC_MAX_DIMS],
                        int n_dims, const int64_t dims[], enum msc_layout layout) {
    int64_t own[MSC_MAX_DIMS];
    int positions[MSC_MAX_DIMS];
    msc_lowering_strides(own, n_dims, dims, layout);
    msc_lowering_positions(positions, b->out->n_dims, b->out->layout);
    memset(strides, 0, sizeof(strides[0]) * MSC_MAX_DIMS);
    for (int axis = 0; axis < n_dims; axis++) {
        int at = positions[b->out->n_dims - n_dims + axis];
        strides[at] = dims[axis] == 1 ? 0 : own[axis];
    }
}

int32_t msc_ewise__add_operand(struct msc_ewise_builder *b,
                               const struct msc_ewise_operand *operand) {
    struct msc_ewise *e = b->e;
    for (int32_t i = 0; i < e->n_operands; i++) {
        const struct msc_ewise_operand *o = &e->operands[i];
        if (o->source == operand->source && o->input == operand->input &&
            o->memory == operand->memory &&
            memcmp(o->strides, operand->strides, sizeof(o->strides)) == 0) {
            return i;
        }
    }
    assert(e->n_operands < b->max_operands);
    e->operands[e->n_operands] = *operand;
    return e->n_operands++;
}

// Copies a constant into the output's memory order, without the axes along which it is broadcast. A
// constant that already has this order is not copied.
static enum msc_status arrange_constant(struct msc_ewise_builder *b, struct msc_ewise_operand *o) {
    int64_t dense[MSC_MAX_DIMS] = {0};
    int64_t n = 1;
    for (int d = b->out->n_dims - 1; d >= 0; d--) {
        if (o->strides[d] != 0) {
            dense[d] = n;
            n *= b->dims[d];
        }
    }
    if (memcmp(dense, o->strides, sizeof(dense)) == 0) {
        return MSC_OK;
    }
    float *copy = msc_arena_array(&b->e->arena, (size_t)n, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(copy));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int d = 0; d < b->out->n_dims; d++) {
            at += dense[d] == 0 ? 0 : i / dense[d] % b->dims[d] * o->strides[d];
        }
        copy[i] = o->memory[at];
    }
    o->memory = copy;
    memcpy(o->strides, dense, sizeof(dense));
    return MSC_OK;
}

enum msc_status msc_ewise__add_constant(struct msc_ewise_builder *b, const float *elements,
                                        int n_dims, const int64_t dims[], int32_t *ref) {
    struct msc_ewise_operand o = {
        .source = MSC_EWISE_FROM_MEMORY, .input = MSC_NO_ID, .memory = elements};
    msc_ewise__strides(b, o.strides, n_dims, dims, MSC_LAYOUT_NCHW);
    MSC_TRY(arrange_constant(b, &o));
    *ref = msc_ewise__add_operand(b, &o);
    return MSC_OK;
}

enum msc_status msc_ewise__operand(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                   int position, int32_t *ref) {
    const struct msc_operand *from = &j->operands[position];
    struct msc_ewise_operand o = {.input = MSC_NO_ID};
    const struct msc_tensor *t;
    const struct msc_value *v;
    switch (from->kind) {
    case MSC_OPERAND_INNER:
        assert(from->index >= b->first - 1);
        *ref = b->results[from->index];
        return MSC_OK;
    case MSC_OPERAND_WEIGHT:
        t = msc_graph_tensor(b->plan->graph, from->index);
        return msc_ewise__add_constant(b, msc_array_data(t->data), t->n_dims, t->dims, ref);
    case MSC_OPERAND_INPUT:
        v = &b->plan->values[b->step->inputs[from->index]];
        o.source = MSC_EWISE_FROM_INPUT;
        o.input = from->index;
        msc_ewise__strides(b, o.strides, v->n_dims, v->dims, v->layout);
        *ref = msc_ewise__add_operand(b, &o);
        return MSC_OK;
    case MSC_OPERAND_NONE:
        break;
    }
    return MSC_FAIL(MSC_E_INVALID, "joint %s: operand %d is missing", j->joint->name, position);
}

int32_t msc_ewise__add_instr(struct msc_ewise_builder *b, const struct msc_ewise_instr *instr) {
    struct msc_ewise *e = b->e;
    assert(e->n_instrs < b->max_instrs);
    int32_t out = MSC_EWISE_VALUE + e->n_instrs;
    e->instrs[e->n_instrs] = *instr;
    e->instrs[e->n_instrs].out = out;
    e->n_instrs++;
    return out;
}

int32_t msc_ewise__emit(struct msc_ewise_builder *b, enum msc_ewise_op op, int32_t x, int32_t y,
                        float p0, float p1) {
    assert(msc_ewise_n_operands(op) == (y < 0 ? 1 : 2));
    return msc_ewise__add_instr(
        b, &(struct msc_ewise_instr){.op = op, .x = {x, y, -1, -1}, .p = {p0, p1}});
}

#include "kernels/lowering/ewise_build.h"
#include "kernels/lowering/lowering.h"

#include <assert.h>
#include <string.h>

// Codes must be complete: if one is missing, the number of rows is too small. A duplicate code
// fails to compile in msc_ewise_n_operands.
#define EWISE(code, name, operands, expression) +1
#define EWISE_LOOP(code, name, operands, loop, expression) +1
#define EWISE_SUMS(code, name, operands, loop) +1
_Static_assert(0
#include "kernels/lowering/ewise.def"
                   == MSC_EWISE_OP_COUNT,
               "ewise.def: a code is missing, or the last row does not have the highest");

// ---- Operands ---------------------------------------------------------------------------------

// The strides of an operand along the output's dims in memory order; 0 if it is broadcast.
static void broadcast_strides(const struct msc_ewise_builder *b, int64_t strides[MSC_MAX_DIMS],
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

static int32_t add_operand(struct msc_ewise_builder *b, const struct msc_ewise_operand *operand) {
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

// Copies a constant in the output's memory order, without the axes along which it is broadcast. A
// constant in that order is used as it is.
static enum msc_status ewise_compile_arrange(struct msc_ewise_builder *b,
                                             struct msc_ewise_operand *o) {
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
    broadcast_strides(b, o.strides, n_dims, dims, MSC_LAYOUT_NCHW);
    MSC_TRY(ewise_compile_arrange(b, &o));
    *ref = add_operand(b, &o);
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
        broadcast_strides(b, o.strides, v->n_dims, v->dims, v->layout);
        *ref = add_operand(b, &o);
        return MSC_OK;
    case MSC_OPERAND_NONE:
        break;
    }
    return MSC_FAIL(MSC_E_INVALID, "joint %s: operand %d is missing", j->joint->name, position);
}

static int32_t ewise_add_instr(struct msc_ewise_builder *b, const struct msc_ewise_instr *instr) {
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
    return ewise_add_instr(b,
                           &(struct msc_ewise_instr){.op = op, .x = {x, y, -1, -1}, .p = {p0, p1}});
}

// ---- Index space ------------------------------------------------------------------------------

static bool can_join(const struct msc_ewise *e, int d) {
    for (int32_t i = 0; i < e->n_operands; i++) {
        const int64_t *s = e->operands[i].strides;
        if (s[d] != s[d + 1] * e->dims[d + 1]) {
            return false;
        }
    }
    return true;
}

static void remove_dim(struct msc_ewise *e, int d) {
    size_t n = (size_t)(e->n_dims - d - 1) * sizeof(e->dims[0]);
    memmove(&e->dims[d], &e->dims[d + 1], n);
    for (int32_t i = 0; i < e->n_operands; i++) {
        memmove(&e->operands[i].strides[d], &e->operands[i].strides[d + 1], n);
    }
    e->n_dims--;
}

static void join_dims(struct msc_ewise *e) {
    for (int d = e->n_dims - 1; d >= 0; d--) {
        if (e->dims[d] == 1) {
            remove_dim(e, d);
        }
    }
    if (e->n_dims == 0) {
        e->n_dims = 1;
        e->dims[0] = 1;
    }
    for (int d = e->n_dims - 2; d >= 0; d--) {
        if (can_join(e, d)) {
            e->dims[d + 1] *= e->dims[d];
            remove_dim(e, d);
        }
    }
}

// ---- Registers --------------------------------------------------------------------------------

// Gives each value a register until its last use; the last value is written to the output.
static enum msc_status allocate_registers(struct msc_ewise *e) {
    size_t n = (size_t)e->n_instrs;
    int32_t *last_use = msc_arena_array(&e->arena, n, sizeof(int32_t));
    int32_t *free_at = msc_arena_array(&e->arena, n, sizeof(int32_t)); // per register: when it is
                                                                       // free again
    e->registers = msc_arena_array(&e->arena, n, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(last_use && free_at && e->registers));
    for (int32_t i = 0; i < e->n_instrs; i++) {
        for (int k = 0; k < MSC_EWISE_MAX_X; k++) {
            int32_t ref = e->instrs[i].x[k];
            if (ref >= MSC_EWISE_VALUE) {
                last_use[ref - MSC_EWISE_VALUE] = i;
            }
        }
    }
    for (int32_t i = 0; i + 1 < e->n_instrs; i++) {
        int32_t r = 0;
        while (r < e->n_registers && free_at[r] > i) {
            r++;
        }
        e->n_registers = r == e->n_registers ? r + 1 : e->n_registers;
        free_at[r] = last_use[i];
        e->registers[i] = r;
    }
    e->registers[e->n_instrs - 1] = e->n_registers;
    return MSC_OK;
}

// ---- Programs ---------------------------------------------------------------------------------

static int32_t add_anchor(struct msc_ewise_builder *b) {
    struct msc_ewise_operand o = {.source = MSC_EWISE_FROM_ANCHOR, .input = MSC_NO_ID};
    broadcast_strides(b, o.strides, b->out->n_dims, b->out->dims, b->out->layout);
    return add_operand(b, &o);
}

// An operand with one number per channel, or one for all.
static int32_t add_channels(struct msc_ewise_builder *b, enum msc_ewise_source source,
                            const float *memory, const struct msc_ewise_options *options) {
    struct msc_ewise_operand o = {.source = source, .input = MSC_NO_ID, .memory = memory};
    int positions[MSC_MAX_DIMS];
    msc_lowering_positions(positions, b->out->n_dims, b->out->layout);
    bool is_one = (source == MSC_EWISE_FROM_SCALES && options->is_scalar_scale) ||
                  b->out->dims[options->channel_axis] == 1;
    o.strides[positions[options->channel_axis]] = is_one ? 0 : 1;
    return add_operand(b, &o);
}

// Emits what precedes the first joint: the anchor's result, or the scaling of its sums.
static enum msc_status emit_start(struct msc_ewise_builder *b,
                                  const struct msc_ewise_options *options) {
    static const float zero[1] = {-0.0f}; // neutral for addition: x + -0 is x for any x
    struct msc_ewise_instr finish = {
        .op = MSC_EWISE_FINISH_F32, .x = {-1, -1, -1, -1}, .p = {options->low, options->high}};
    int32_t *x = finish.x; // sum, scale, bias, offset
    if (options->start == MSC_EWISE_CHAIN) {
        return MSC_OK;
    }
    x[0] = add_anchor(b);
    if (options->start == MSC_EWISE_FLOAT) {
        b->results[options->first - 1] = x[0];
        return MSC_OK;
    }
    x[1] = add_channels(b, MSC_EWISE_FROM_SCALES, NULL, options);
    if (options->bias) {
        x[2] = add_channels(b, MSC_EWISE_FROM_BIAS, options->bias, options);
    } else {
        MSC_TRY(msc_ewise__add_constant(b, zero, 0, NULL, &x[2]));
    }
    if (options->start == MSC_EWISE_SUM_I32) {
        finish.op = MSC_EWISE_FINISH_I32;
        x[3] = add_channels(b, MSC_EWISE_FROM_OFFSETS, NULL, options);
    }
    b->results[options->first - 1] = ewise_add_instr(b, &finish);
    return MSC_OK;
}

static enum msc_status compile(struct msc_ewise_builder *b,
                               const struct msc_ewise_options *options) {
    struct msc_ewise *e = b->e;
    int axes[MSC_MAX_DIMS];
    struct msc_view view = msc_plan_view(b->plan, b->step->outputs[0], NULL);
    msc_view_physical(&view, b->dims, axes);
    e->n_dims = b->out->n_dims;
    memcpy(e->dims, b->dims, sizeof(e->dims));
    MSC_TRY(emit_start(b, options));
    for (int32_t k = options->first; k < b->step->n_joints; k++) {
        MSC_TRY(msc_ewise__emit_joint(b, &b->step->joints[k], &b->results[k]));
    }
    if (e->n_instrs == 0) {
        return MSC_OK;
    }
    join_dims(e);
    return allocate_registers(e);
}

void msc_ewise_destroy(struct msc_ewise *e) {
    if (e) {
        msc_arena_finish(&e->arena);
        msc_free(e);
    }
}

enum msc_status msc_ewise_create(struct msc_ewise **out, const struct msc_plan *plan,
                                 const struct msc_step *step,
                                 const struct msc_ewise_options *options) {
    struct msc_ewise *e = msc_alloc_zero(1, sizeof(*e));
    MSC_TRY(MSC_ALLOCATED(e));
    struct msc_ewise_builder b = {.e = e,
                                  .plan = plan,
                                  .step = step,
                                  .out = &plan->values[step->outputs[0]],
                                  .first = options->first,
                                  .max_operands = 4,
                                  .max_instrs = 4};
    for (int32_t k = options->first; k < step->n_joints; k++) {
        b.max_operands += step->joints[k].n_operands + 1;
        b.max_instrs += step->joints[k].n_operands + 3;
    }
    e->operands = msc_arena_array(&e->arena, (size_t)b.max_operands, sizeof(e->operands[0]));
    e->instrs = msc_arena_array(&e->arena, (size_t)b.max_instrs, sizeof(e->instrs[0]));
    b.results = msc_arena_array(&e->arena, (size_t)step->n_joints + 1, sizeof(b.results[0]));
    enum msc_status status =
        e->operands && e->instrs && b.results
            ? compile(&b, options)
            : MSC_FAIL(MSC_E_NOMEM, "out of memory for an element-wise program");
    if (status != MSC_OK || e->n_instrs == 0) {
        msc_ewise_destroy(e);
        e = NULL;
    }
    *out = e;
    return status;
}

// ---- Questions --------------------------------------------------------------------------------

bool msc_ewise_is_constant(const struct msc_ewise_operand *o, int n) {
    for (int d = 0; d < n; d++) {
        if (o->strides[d] != 0) {
            return false;
        }
    }
    return true;
}

bool msc_ewise_lies_as_output(const struct msc_ewise *e, const struct msc_ewise_operand *o) {
    int64_t stride = 1;
    for (int d = e->n_dims - 1; d >= 0; d--) {
        if (o->strides[d] != stride) {
            return false;
        }
        stride *= e->dims[d];
    }
    return true;
}

int msc_ewise_n_operands(enum msc_ewise_op op) {
    static const int counts[MSC_EWISE_OP_COUNT] = {
#define EWISE(code, name, operands, expression) [code] = (operands),
#define EWISE_LOOP(code, name, operands, loop, expression) [code] = (operands),
#define EWISE_SUMS(code, name, operands, loop) [code] = (operands),
#include "kernels/lowering/ewise.def"
    };
    return counts[op];
}

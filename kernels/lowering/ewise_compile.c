#include "kernels/lowering/ewise_build.h"
#include "kernels/lowering/lowering.h"

#include <string.h>

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

// Assigns a register to each value until its last use. The last value is written to the output.
static enum msc_status allocate_registers(struct msc_ewise *e) {
    size_t n = (size_t)e->n_instrs;
    int32_t *last_use = msc_arena_array(&e->arena, n, sizeof(int32_t));
    // [register] the last instruction that uses the register's value.
    int32_t *free_at = msc_arena_array(&e->arena, n, sizeof(int32_t));
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
    msc_ewise__strides(b, o.strides, b->out->n_dims, b->out->dims, b->out->layout);
    return msc_ewise__add_operand(b, &o);
}

// Adds an operand with one number per channel or one number for all channels.
static int32_t add_channels(struct msc_ewise_builder *b, enum msc_ewise_source source,
                            const float *memory, const struct msc_ewise_options *options) {
    struct msc_ewise_operand o = {.source = source, .input = MSC_NO_ID, .memory = memory};
    int positions[MSC_MAX_DIMS];
    msc_lowering_positions(positions, b->out->n_dims, b->out->layout);
    bool is_one = (source == MSC_EWISE_FROM_SCALES && options->is_scalar_scale) ||
                  b->out->dims[options->channel_axis] == 1;
    o.strides[positions[options->channel_axis]] = is_one ? 0 : 1;
    return msc_ewise__add_operand(b, &o);
}

// Adds the result of the anchor (the step's first joint) as an operand. If the result is integer
// sums, also adds an instruction that scales the sums.
static enum msc_status emit_start(struct msc_ewise_builder *b,
                                  const struct msc_ewise_options *options) {
    static const float zero[1] = {-0.0f}; // neutral for addition: x + -0 is x for any x
    struct msc_ewise_instr finish = {
        .op = MSC_EWISE_FINISH_F32, .x = {-1, -1, -1, -1}, .p = {options->low, options->high}};
    int32_t *x = finish.x; // operands: sum, scale, bias, offset
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
    b->results[options->first - 1] = msc_ewise__add_instr(b, &finish);
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
    enum msc_status status = e->operands && e->instrs && b.results
                                 ? compile(&b, options)
                                 : MSC_FAIL(MSC_E_NOMEM, "out of memory");
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

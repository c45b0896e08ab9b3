// Prepares element-wise programs: chooses the size of blocks, and how operands are read.
#include "kernels/cpu/ewise_internal.h"

#include <string.h>

static float *allocate_block(struct msc_cpu_ewise *e) {
    size_t n_bytes =
        (size_t)e->block_elements * sizeof(float) + MSC_CPU_EWISE_LINE + MSC_CPU_EWISE_SKEW;
    char *memory = msc_arena_alloc(&e->arena, n_bytes);
    size_t past = (size_t)((uintptr_t)memory % MSC_CPU_EWISE_LINE);
    return memory ? (float *)(void *)(memory + (MSC_CPU_EWISE_LINE - past) % MSC_CPU_EWISE_LINE)
                  : NULL;
}

static enum msc_status choose_mode(struct msc_cpu_ewise *e, int32_t operand) {
    const struct msc_ewise *p = e->program;
    const struct msc_ewise_operand *from = &p->operands[operand];
    struct msc_cpu_ewise_operand *o = &e->operands[operand];
    bool by_rows = e->block_rows > 0;
    int64_t inner = p->dims[p->n_dims - 1];
    int64_t stride = from->strides[p->n_dims - 1];
    int64_t row_stride = by_rows ? from->strides[p->n_dims - 2] : 0;
    bool is_run = stride == 1 && (!by_rows || e->block_rows == 1 || row_stride == inner);
    *o = (struct msc_cpu_ewise_operand){.mode = MSC_CPU_EWISE_DIRECT, .memory = from->memory};
    if (is_run || e->block_elements == 1 || from->source == MSC_EWISE_FROM_ANCHOR) {
        o->buffer = from->source == MSC_EWISE_FROM_INPUT ? e->n_buffers++ : 0;
        return MSC_OK;
    }
    bool repeats = by_rows ? row_stride == 0 : stride == 0;
    bool is_bias = from->source == MSC_EWISE_FROM_BIAS;
    bool is_ready = (from->source == MSC_EWISE_FROM_MEMORY || is_bias) && repeats &&
                    msc_ewise_is_constant(from, p->n_dims - 1);
    // A bias always gets a buffer, because a call may provide another bias.
    if (!is_ready || is_bias) {
        o->mode = MSC_CPU_EWISE_BROADCAST;
        o->buffer = e->n_buffers++;
    }
    if (!is_ready) {
        return MSC_OK;
    }
    float *block = allocate_block(e);
    MSC_TRY(MSC_ALLOCATED(block));
    int64_t rows = by_rows ? e->block_rows : 1;
    msc_cpu_ewise__broadcast(block, from->memory, rows, 0, by_rows ? inner : e->block_elements,
                             stride);
    o->memory = block;
    o->mode = MSC_CPU_EWISE_READY;
    return MSC_OK;
}

static enum msc_status divide_into_blocks(struct msc_cpu_ewise *e) {
    const struct msc_ewise *p = e->program;
    int64_t inner = p->dims[p->n_dims - 1];
    e->block_rows = 0;
    e->block_elements = inner < MSC_CPU_EWISE_BLOCK ? inner : MSC_CPU_EWISE_BLOCK;
    if (p->n_dims > 1 && inner <= MSC_CPU_EWISE_BLOCK && inner > 0) {
        int64_t rows = p->dims[p->n_dims - 2];
        e->block_rows = MSC_CPU_EWISE_BLOCK / inner < rows ? MSC_CPU_EWISE_BLOCK / inner : rows;
        e->block_elements = e->block_rows * inner;
    }
    for (int32_t i = 0; i < p->n_operands; i++) {
        MSC_TRY(choose_mode(e, i));
    }
    return MSC_OK;
}

static enum msc_status cpu_ewise_init(struct msc_cpu_ewise *e) {
    const struct msc_ewise *p = e->program;
    e->operands = msc_arena_array(&e->arena, (size_t)p->n_operands, sizeof(e->operands[0]));
    e->instrs = msc_arena_array(&e->arena, (size_t)p->n_instrs, sizeof(e->instrs[0]));
    MSC_TRY(MSC_ALLOCATED(e->operands && e->instrs));
    for (int32_t i = 0; i < p->n_instrs; i++) {
        struct msc_ewise_instr *x = &e->instrs[i];
        *x = p->instrs[i];
        x->out = msc_ewise_place(p, x->out);
        for (int k = 0; k < MSC_EWISE_MAX_X; k++) {
            x->x[k] = msc_ewise_place(p, x->x[k]);
        }
    }
    MSC_TRY(divide_into_blocks(e));
    MSC_TRY(msc_cpu_ewise__make_chain(e));
    msc_cpu_ewise__find_numbers(e);
    return MSC_OK;
}

enum msc_status msc_cpu_ewise_create(struct msc_cpu_ewise **out, const struct msc_plan *plan,
                                     const struct msc_step *step,
                                     const struct msc_ewise_options *options) {
    struct msc_ewise *program;
    *out = NULL;
    MSC_TRY(msc_ewise_create(&program, plan, step, options));
    if (!program) {
        return MSC_OK;
    }
    struct msc_cpu_ewise *e = msc_alloc_zero(1, sizeof(*e));
    if (!e) {
        msc_ewise_destroy(program);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    e->program = program;
    enum msc_status status = cpu_ewise_init(e);
    if (status != MSC_OK) {
        msc_cpu_ewise_destroy(e);
        return status;
    }
    *out = e;
    return MSC_OK;
}

void msc_cpu_ewise_destroy(struct msc_cpu_ewise *e) {
    if (e) {
        msc_ewise_destroy(e->program);
        msc_arena_finish(&e->arena);
        msc_free(e);
    }
}

// Element-wise programs on the device: one shader gets the program as specialisation constants.
#include "base/alloc.h"
#include "kernels/lowering/ewise.h"
#include "kernels/vulkan/vk_kernels.h"

#include <string.h>

// Codes and limits of shaders/ewise.comp.
enum {
    MAX_OPERANDS = 8,
    MAX_REGISTERS = 23,
    MAX_INSTRS = 16,
    FIRST_INSTR = 4,
    FIRST_PARAMETER = 20,
    FIRST_MODE = 52,
    OUTPUT_PLACE = 31,
    MAX_DIMS_TURNS = 8 * MAX_OPERANDS,
};

enum mode {
    AT_INDEX,
    AT_INNER,
    ONE_NUMBER,
    BY_STRIDES,
};

struct operand {
    enum msc_ewise_source source;
    int32_t input;
    struct msc_vk_block *constant;
};

struct msc_vk_program {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *dims;
    uint64_t n;
    int n_operands;
    struct operand operands[MAX_OPERANDS];
};

// ---- Operands ---------------------------------------------------------------------------------

static enum mode mode_of(const struct msc_ewise *e, const struct msc_ewise_operand *o) {
    if (msc_ewise_lies_as_output(e, o)) {
        return AT_INDEX;
    }
    if (msc_ewise_is_constant(o, e->n_dims)) {
        return ONE_NUMBER;
    }
    return msc_ewise_is_constant(o, e->n_dims - 1) && o->strides[e->n_dims - 1] == 1 ? AT_INNER
                                                                                     : BY_STRIDES;
}

// The number of elements of a constant that a program reads.
static uint64_t constant_size(const struct msc_ewise *e, const struct msc_ewise_operand *o) {
    int64_t last = 0;
    for (int d = 0; d < e->n_dims; d++) {
        last += (e->dims[d] - 1) * o->strides[d];
    }
    return (uint64_t)last + 1;
}

// ---- Creating ---------------------------------------------------------------------------------

static bool is_supported(const struct msc_ewise *e) {
    bool fits = e->n_operands <= MAX_OPERANDS && e->n_registers <= MAX_REGISTERS &&
                e->n_instrs <= MAX_INSTRS && e->n_dims <= 8;
    for (int32_t i = 0; i < e->n_instrs && fits; i++) {
        fits = e->instrs[i].op != MSC_EWISE_FINISH_I32;
    }
    return fits;
}

static bool has_power(const struct msc_ewise *e) {
    for (int32_t i = 0; i < e->n_instrs; i++) {
        if (e->instrs[i].op == MSC_EWISE_POWER) {
            return true;
        }
    }
    return false;
}

// The index of a value in the shader: operands come first, registers begin at 8, and the output is
// last.
static uint32_t place_of(const struct msc_ewise *e, int32_t ref) {
    int32_t place = msc_ewise_place(e, ref);
    if (place < e->n_operands) {
        return place < 0 ? 0 : (uint32_t)place;
    }
    int32_t r = place - e->n_operands;
    return r == e->n_registers ? OUTPUT_PLACE : (uint32_t)(MAX_OPERANDS + r);
}

static void vk_ewise_encode(uint32_t constants[MSC_VK_EWISE_CONSTANTS], const struct msc_vk *vk,
                            const struct msc_ewise *e) {
    memset(constants, 0, MSC_VK_EWISE_CONSTANTS * sizeof(constants[0]));
    constants[0] = vk->tuning.lanes;
    constants[1] = !vk->divides_exactly;
    constants[2] = (uint32_t)e->n_instrs;
    constants[3] = (uint32_t)e->n_operands;
    for (int32_t i = 0; i < e->n_instrs; i++) {
        const struct msc_ewise_instr *x = &e->instrs[i];
        constants[FIRST_INSTR + i] = (uint32_t)x->op | place_of(e, x->x[0]) << 8 |
                                     place_of(e, x->x[1]) << 16 | place_of(e, x->out) << 24;
        memcpy(&constants[FIRST_PARAMETER + 2 * i], x->p, sizeof(x->p));
    }
    for (int32_t i = 0; i < e->n_operands; i++) {
        constants[FIRST_MODE + i] = (uint32_t)mode_of(e, &e->operands[i]);
    }
}

static enum msc_status upload_dims(struct msc_vk_program *p, struct msc_vk *vk,
                                   const struct msc_ewise *e) {
    int32_t dims[8 * (MAX_OPERANDS + 2)] = {0};
    dims[0] = e->n_dims;
    for (int d = 0; d < e->n_dims; d++) {
        dims[1 + d] = (int32_t)e->dims[d];
        for (int32_t i = 0; i < e->n_operands; i++) {
            dims[8 * (i + 1) + d + 1] = (int32_t)e->operands[i].strides[d];
        }
    }
    return msc_vk_upload_new(vk, &p->dims, dims, sizeof(dims));
}

static enum msc_status vk_ewise_init(struct msc_vk_program *p, struct msc_vk *vk,
                                     const struct msc_ewise *e) {
    uint32_t constants[MSC_VK_EWISE_CONSTANTS];
    if (!is_supported(e)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "vulkan: no shader for an element-wise program of %d instructions",
                        (int)e->n_instrs);
    }
    p->n_operands = e->n_operands;
    p->n = 1;
    for (int d = 0; d < e->n_dims; d++) {
        p->n *= (uint64_t)e->dims[d];
    }
    for (int32_t i = 0; i < e->n_operands; i++) {
        const struct msc_ewise_operand *o = &e->operands[i];
        p->operands[i] = (struct operand){.source = o->source, .input = o->input};
        if (o->source == MSC_EWISE_FROM_MEMORY) {
            uint64_t n = constant_size(e, o);
            MSC_TRY(msc_vk_upload_new(vk, &p->operands[i].constant, o->memory, n * sizeof(float)));
        }
    }
    MSC_TRY(upload_dims(p, vk, e));
    vk_ewise_encode(constants, vk, e);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_EWISE_POWER, constants);
    return msc_vk_pipeline(&p->pipeline, vk, has_power(e) ? MSC_VK_EWISE_POWER : MSC_VK_EWISE,
                           constants);
}

enum msc_status msc_vk_program_create(struct msc_vk_program **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step,
                                      const struct msc_ewise_options *options) {
    struct msc_ewise *e;
    *out = NULL;
    MSC_TRY(msc_ewise_create(&e, plan, step, options));
    if (!e) {
        return MSC_OK;
    }
    struct msc_vk_program *p = msc_alloc_zero(1, sizeof(*p));
    enum msc_status status =
        p ? vk_ewise_init(p, b->vk, e) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_ewise_destroy(e);
    if (status != MSC_OK) {
        msc_vk_program_destroy(p, b);
        return status;
    }
    *out = p;
    return MSC_OK;
}

void msc_vk_program_destroy(struct msc_vk_program *p, struct msc_vk_backend *b) {
    if (p) {
        for (int i = 0; i < MAX_OPERANDS; i++) {
            msc_vk_free(b->vk, p->operands[i].constant);
        }
        msc_vk_free(b->vk, p->dims);
        msc_free(p);
    }
}

// ---- Running ----------------------------------------------------------------------------------

// The block of an operand. `anchor` is the result of the step's first joint, which precedes the
// program. `made` is the block of the input after conversion from integers to floats, or NULL.
static const struct msc_vk_block *operand_block(const struct operand *o,
                                                const struct msc_call *call,
                                                const struct msc_vk_block *anchor,
                                                const struct msc_vk_block *made) {
    switch (o->source) {
    case MSC_EWISE_FROM_INPUT:
        return made ? made : msc_vk_block_of(&call->inputs[o->input]);
    case MSC_EWISE_FROM_ANCHOR:
        return anchor;
    default:
        return o->constant;
    }
}

static void vk_ewise_fill_call(struct msc_vk_call *c, const struct msc_vk_program *p,
                               const struct msc_vk_backend *b, const struct msc_call *call,
                               const struct msc_vk_block *anchor,
                               const struct msc_vk_block *const made[MAX_OPERANDS]) {
    const struct msc_vk_block *y = msc_vk_block_of(&call->outputs[0]);
    c->row[0] = y != NULL;
    msc_vk_put_quantized(c, &c->row[1], call->quantized, call->n_quantized);
    c->blocks[0] = y ? y : &c->quantized;
    c->blocks[1] = p->dims;
    for (int i = 0; i < MAX_OPERANDS; i++) {
        c->blocks[2 + i] =
            i < p->n_operands ? operand_block(&p->operands[i], call, anchor, made[i]) : b->nothing;
    }
    c->blocks[2 + MAX_OPERANDS] = call->n_quantized > 0 ? &c->quantized : y;
}

// Integer inputs converted to floats.
struct made {
    struct msc_vk_block *blocks[MAX_OPERANDS][MSC_VK_MAX_CALLS];
};

static enum msc_status vk_ewise_make_floats(struct made *made, const struct msc_vk_program *p,
                                            struct msc_vk_backend *b, const struct msc_call calls[],
                                            int n) {
    for (int i = 0; i < p->n_operands; i++) {
        const struct operand *o = &p->operands[i];
        if (o->source == MSC_EWISE_FROM_INPUT) {
            MSC_TRY(msc_vk_expand_input(made->blocks[i], b, calls, n, o->input));
        }
    }
    return MSC_OK;
}

static enum msc_status vk_ewise_dispatch(const struct msc_vk_program *p, struct msc_vk_backend *b,
                                         const struct msc_call calls[],
                                         const struct msc_vk_block *const anchors[],
                                         const struct made *made, int n) {
    static const enum msc_vk_kind kinds[3 + MAX_OPERANDS] = {[0] = MSC_VK_READ_WRITE,
                                                             [2 + MAX_OPERANDS] = MSC_VK_WRITE};
    struct msc_vk_dispatch d;
    uint32_t push[2] = {(uint32_t)p->n, 0};
    MSC_VK_CHECK_PUSH(MSC_VK_EWISE, push);
    msc_vk_dispatch_init(&d, p->pipeline, 3 + MAX_OPERANDS, kinds);
    for (int i = 0; i < n; i++) {
        const struct msc_vk_block *blocks[MAX_OPERANDS];
        for (int k = 0; k < MAX_OPERANDS; k++) {
            blocks[k] = made->blocks[k][i];
        }
        vk_ewise_fill_call(msc_vk_add_call(&d), p, b, &calls[i], anchors ? anchors[i] : NULL,
                           blocks);
    }
    d.groups[0] = msc_vk_spread(b->vk, p->n, MAX_DIMS_TURNS, &push[1]);
    d.push = push;
    d.push_bytes = sizeof(push);
    d.n_row = 1 + MSC_VK_QUANTIZED_WORDS;
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_program_run(const struct msc_vk_program *p, struct msc_vk_backend *b,
                                   const struct msc_call calls[],
                                   const struct msc_vk_block *const anchors[], int n) {
    struct made made = {0};
    enum msc_status status;
    if (!p) {
        return MSC_OK;
    }
    MSC_TRY_OUT(vk_ewise_make_floats(&made, p, b, calls, n));
    status = vk_ewise_dispatch(p, b, calls, anchors, &made, n);
out:
    for (int i = 0; i < p->n_operands; i++) {
        msc_vk_give(made.blocks[i], b, n);
    }
    return status;
}

// ---- Steps of only element-wise joints --------------------------------------------------------

static enum msc_status vk_ewise_prepare(void **kernel, struct msc_vk_backend *b,
                                        const struct msc_plan *plan, const struct msc_step *step) {
    struct msc_ewise_options options = {.start = MSC_EWISE_CHAIN};
    struct msc_vk_program *p;
    MSC_TRY(msc_vk_program_create(&p, b, plan, step, &options));
    if (!p) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "vulkan: no shader for an empty element-wise program");
    }
    *kernel = p;
    return MSC_OK;
}

static void vk_ewise_release(void *kernel, struct msc_vk_backend *b) {
    msc_vk_program_destroy(kernel, b);
}

static enum msc_status vk_ewise_run(void *kernel, struct msc_vk_backend *b,
                                    const struct msc_call calls[], int n) {
    return msc_vk_program_run(kernel, b, calls, NULL, n);
}

const struct msc_vk_family msc_vk_ewise = {.name = "element-wise",
                                           .prepare = vk_ewise_prepare,
                                           .release = vk_ewise_release,
                                           .run = vk_ewise_run,
                                           .reads_integers = true,
                                           .writes_quantized = true};

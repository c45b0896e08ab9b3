#include "kernels/cpu/ewise_run.h"

#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ewise_internal.h"

#include <assert.h>
#include <string.h>

static size_t cpu_ewise_round_up(size_t n_bytes) {
    return (n_bytes + MSC_CPU_EWISE_LINE - 1) / MSC_CPU_EWISE_LINE * MSC_CPU_EWISE_LINE;
}

// The parts of scratch: the address of each value (`places`), the quantisations of operands that a
// The parts of scratch: the address of each value (`places`), the quantisations of operands that a
// chain reads as integers (`quants`), the address from which each buffer was filled (`origins`), a
// copy of a chain that reads numbers (`instrs`), and memory for registers, buffers and an output
// block (`blocks`).
struct scratch {
    const float **places;
    struct msc_simd_instr *instrs;
    const struct msc_quant **quants;
    const void **origins;
    float *blocks;
    bool has_quants; // any of `quants` is set
};

static size_t block_bytes(const struct msc_cpu_ewise *e) {
    return cpu_ewise_round_up((size_t)e->block_elements * sizeof(float)) + MSC_CPU_EWISE_SKEW;
}

static size_t places_bytes(const struct msc_cpu_ewise *e) {
    return cpu_ewise_round_up((size_t)(e->program->n_operands + e->program->n_registers + 1) *
                              sizeof(float *));
}

static size_t quants_bytes(const struct msc_cpu_ewise *e) {
    return cpu_ewise_round_up((size_t)e->program->n_operands * sizeof(struct msc_quant *));
}

static size_t origins_bytes(const struct msc_cpu_ewise *e) {
    return cpu_ewise_round_up((size_t)e->n_buffers * sizeof(void *));
}

static size_t instrs_bytes(const struct msc_cpu_ewise *e) {
    return e->n_numbers == 0
               ? 0
               : cpu_ewise_round_up((size_t)e->chain.n_instrs * sizeof(struct msc_simd_instr));
}

size_t msc_cpu_ewise_scratch_bytes(const struct msc_cpu_ewise *e) {
    return e == NULL ? 0
                     : places_bytes(e) + quants_bytes(e) + origins_bytes(e) + instrs_bytes(e) +
                           (size_t)(e->program->n_registers + e->n_buffers + 1) * block_bytes(e);
}

// Copies a row of n elements: at once if they are adjacent, otherwise one by one. The size of an
// element, `bytes`, is a compile-time constant.
MSC_INLINE void broadcast_row(char *out, const char *in, int64_t n, int64_t stride, size_t bytes) {
    if (stride == 1) {
        memcpy(out, in, (size_t)n * bytes);
        return;
    }
    if (stride == 0) { // uses a local copy, which the compiler knows to be constant
        uint32_t element = 0;
        memcpy(&element, in, bytes);
        for (int64_t i = 0; i < n; i++) {
            memcpy(out + (size_t)i * bytes, &element, bytes);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(out + (size_t)i * bytes, in + i * stride * (int64_t)bytes, bytes);
    }
}

// out[r][c] = in[r * row_stride + c * stride]
MSC_INLINE void broadcast_rows(char *out, const char *in, int64_t rows, int64_t row_stride,
                               int64_t cols, int64_t stride, size_t bytes) {
    if (row_stride == 0 && rows > 1) {
        // All rows are equal: copy the rows written so far, twice as many each time.
        int64_t have = cols, need = rows * cols;
        broadcast_row(out, in, cols, stride, bytes);
        while (have < need) {
            int64_t n = have < need - have ? have : need - have;
            memcpy(out + (size_t)have * bytes, out, (size_t)n * bytes);
            have += n;
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        broadcast_row(out + (size_t)(r * cols) * bytes, in + r * row_stride * (int64_t)bytes, cols,
                      stride, bytes);
    }
}

void msc_cpu_ewise__broadcast(float *out, const float *in, int64_t rows, int64_t row_stride,
                              int64_t cols, int64_t stride) {
    broadcast_rows((char *)out, (const char *)in, rows, row_stride, cols, stride, sizeof(out[0]));
}

// Like broadcast_rows, but dequantises integers. The result is at most one block.
static void broadcast_integers(float *out, const char *in, const struct msc_view *x, int64_t rows,
                               int64_t row_stride, int64_t cols, int64_t stride) {
    char bytes[MSC_CPU_EWISE_BLOCK];
    broadcast_rows(bytes, in, rows, row_stride, cols, stride, 1);
    msc_cpu_dequantize(out, bytes, x->dtype, rows * cols, x->quant);
}

static const float *base_of(const struct msc_ewise_operand *o,
                            const struct msc_cpu_ewise_call *call) {
    switch (o->source) {
    case MSC_EWISE_FROM_INPUT:
        return call->inputs[o->input].data;
    case MSC_EWISE_FROM_MEMORY:
        return o->memory;
    case MSC_EWISE_FROM_BIAS:
        return call->bias ? call->bias : o->memory;
    case MSC_EWISE_FROM_ANCHOR:
        return call->anchor;
    case MSC_EWISE_FROM_SCALES:
        return call->scales;
    case MSC_EWISE_FROM_OFFSETS:
        return (const float *)(const void *)call->offsets;
    }
    return NULL;
}

// The input that an operand reads, if that input is stored as integers; otherwise NULL.
static const struct msc_view *integers_of(const struct msc_ewise_operand *o,
                                          const struct msc_cpu_ewise_call *call) {
    bool is = o->source == MSC_EWISE_FROM_INPUT && call->inputs[o->input].quant;
    return is ? &call->inputs[o->input] : NULL;
}

// True if blocks are whole rows; false if blocks are parts of a row.
static bool is_by_rows(const struct msc_ewise *p) {
    return p->n_dims > 1 && p->dims[p->n_dims - 1] <= MSC_CPU_EWISE_BLOCK;
}

struct block {
    int64_t begin; // index of the first element
    int64_t row;   // index of the first row, over all dims except the innermost
    int64_t col;
    int64_t rows, cols;
};

// True if the block is part of a row, in a program whose other blocks are whole rows.
static bool is_piece(const struct msc_ewise *p, const struct block *k) {
    return is_by_rows(p) && k->cols < p->dims[p->n_dims - 1];
}

// The offset of the block in an operand, in elements.
static int64_t offset_in(const struct msc_ewise *p, const struct msc_ewise_operand *o,
                         const struct block *k) {
    int64_t offset = k->col * o->strides[p->n_dims - 1];
    int64_t row = k->row;
    for (int d = p->n_dims - 2; d > 0; d--) {
        offset += row % p->dims[d] * o->strides[d];
        row /= p->dims[d];
    }
    return p->n_dims > 1 ? offset + row * o->strides[0] : offset;
}

// Fills an operand's buffer for a block. If all rows of the operand are equal (or all elements, if
// blocks are parts of a row), later blocks read the same address and reuse the buffer. These blocks
// may be longer, so the buffer is then filled for the longest block.
static void ewise_run_refill(const struct msc_cpu_ewise *e, const struct msc_ewise_operand *o,
                             const struct block *k, float *buffer, const void *at,
                             const struct msc_view *integers) {
    const struct msc_ewise *p = e->program;
    int64_t stride = o->strides[p->n_dims - 1];
    int64_t row_stride = is_by_rows(p) ? o->strides[p->n_dims - 2] : 0;
    int64_t rows = is_by_rows(p) && row_stride == 0 ? e->block_rows : k->rows;
    int64_t cols = !is_by_rows(p) && stride == 0 ? e->block_elements : k->cols;
    if (integers) {
        broadcast_integers(buffer, at, integers, rows, row_stride, cols, stride);
    } else {
        msc_cpu_ewise__broadcast(buffer, at, rows, row_stride, cols, stride);
    }
}

static void ewise_run_locate(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call,
                             const struct block *k, const struct scratch *s) {
    const struct msc_ewise *p = e->program;
    size_t stride = block_bytes(e) / sizeof(float);
    for (int32_t i = 0; i < p->n_operands; i++) {
        const struct msc_cpu_ewise_operand *o = &e->operands[i];
        const struct msc_ewise_operand *from = &p->operands[i];
        bool is_replaced = from->source == MSC_EWISE_FROM_BIAS && call->bias;
        if (o->mode == MSC_CPU_EWISE_READY && !is_replaced) {
            s->places[i] = o->memory + (is_by_rows(p) ? k->col : 0);
            continue;
        }
        if (from->source == MSC_EWISE_FROM_ANCHOR) {
            s->places[i] = (const float *)call->anchor + (k->begin - call->begin);
            continue;
        }
        const struct msc_view *integers = integers_of(from, call);
        int64_t bytes = integers ? 1 : sizeof(float);
        const void *at = (const char *)base_of(from, call) + offset_in(p, from, k) * bytes;
        bool is_direct = o->mode == MSC_CPU_EWISE_DIRECT;
        if (is_direct && (!integers || s->quants[i])) {
            s->places[i] = at;
            continue;
        }
        bool is_number = o->mode == MSC_CPU_EWISE_NUMBER;
        if (is_number && !integers) {
            s->places[i] = at;
            continue;
        }
        float *buffer = s->blocks + (size_t)(p->n_registers + o->buffer) * stride;
        s->places[i] = buffer;
        if (is_number) {
            msc_cpu_dequantize(buffer, at, integers->dtype, 1, integers->quant);
        } else if (is_direct) {
            msc_cpu_dequantize(buffer, at, integers->dtype, k->rows * k->cols, integers->quant);
        } else if (s->origins[o->buffer] != at) {
            ewise_run_refill(e, from, k, buffer, at, integers);
            // After a piece, the buffer has only part of a row and cannot be reused.
            s->origins[o->buffer] = is_piece(p, k) ? NULL : at;
        }
    }
}

// The longest block that begins at element `at`, ends at `end` or before, and does not cross the
// end of the second innermost dim. A block that is part of a row has at most `most` elements. The
// first and last blocks of a call may be parts of a row even if all others are whole rows.
static struct block next_block(const struct msc_cpu_ewise *e, int64_t at, int64_t end,
                               int64_t most) {
    const struct msc_ewise *p = e->program;
    int64_t inner = p->dims[p->n_dims - 1];
    struct block k = {.begin = at, .row = at / inner, .col = at % inner, .rows = 1};
    if (!is_by_rows(p) || k.col > 0 || end - at < inner) {
        k.cols = inner - k.col < most ? inner - k.col : most;
        k.cols = k.cols < end - at ? k.cols : end - at;
        return k;
    }
    int64_t left = p->dims[p->n_dims - 2] - k.row % p->dims[p->n_dims - 2];
    k.cols = inner;
    k.rows = e->block_rows < left ? e->block_rows : left;
    k.rows = k.rows < (end - at) / inner ? k.rows : (end - at) / inner;
    return k;
}

static void cpu_ewise_run_instr(const struct msc_ewise_instr *x, const struct scratch *s,
                                int64_t n) {
    const float *operands[MSC_EWISE_MAX_X];
    for (int k = 0; k < MSC_EWISE_MAX_X; k++) {
        operands[k] = x->x[k] < 0 ? NULL : s->places[x->x[k]];
    }
    msc_cpu_ewise_loop(x->op, (float *)s->places[x->out], operands, x->p, n);
}

static bool is_chain(const struct msc_cpu_ewise *e) {
    return e->chain.n_instrs > 0 && msc_simd_best()->run_chain;
}

// True if the chain can write the first quantised variant directly. Then sets *q to the
// quantisation of that variant.
static bool makes_bytes(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call,
                        struct msc_simd_bytes *q) {
    if (!is_chain(e) || call->n_quantized == 0 || call->quantized[0].view.dtype == MSC_DTYPE_F32) {
        return false;
    }
    *q = msc_simd_bytes_of(call->quantized[0].quant);
    return q->is_corrected;
}

// Runs the chain for n elements from `at` on. `q` is NULL if the chain writes only floats.
static void run_chain(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call,
                      const struct scratch *s, int64_t at, int64_t n, float *out,
                      const struct msc_simd_bytes *q) {
    struct msc_simd_run run = {
        .arrays = {s->places, s->has_quants ? s->quants : NULL}, .n = n, .q = q};
    struct msc_simd_chain chain = e->chain;
    int32_t n_made = q ? 1 : 0;
    run.bytes = q ? (uint8_t *)call->quantized[0].view.data + at : NULL;
    run.out = call->out || call->n_quantized > n_made ? out : NULL;
    if (e->n_numbers > 0) {
        msc_cpu_ewise__set_numbers(s->instrs, e, s->places);
        chain.instrs = s->instrs;
    }
    msc_simd_best()->run_chain(&chain, &run);
    if (call->n_quantized > n_made) {
        msc_cpu_write_quantized(call->quantized + n_made, call->n_quantized - n_made, at, out, n);
    }
}

static void cpu_ewise_run_block(const struct msc_cpu_ewise *e,
                                const struct msc_cpu_ewise_call *call, const struct scratch *s,
                                int64_t at, int64_t n, const struct msc_simd_bytes *q) {
    float *out = call->out ? call->out + (at - call->begin)
                           : s->blocks + (size_t)(e->program->n_registers + e->n_buffers) *
                                             (block_bytes(e) / sizeof(float));
    if (is_chain(e)) {
        run_chain(e, call, s, at, n, out, q);
        return;
    }
    s->places[e->program->n_operands + e->program->n_registers] = out;
    for (int32_t i = 0; i < e->program->n_instrs; i++) {
        cpu_ewise_run_instr(&e->instrs[i], s, n);
    }
    msc_cpu_write_quantized(call->quantized, call->n_quantized, at, out, n);
}

static bool cpu_ewise_is_direct(const struct msc_cpu_ewise *e, int32_t operand) {
    return e->operands[operand].mode == MSC_CPU_EWISE_DIRECT;
}

// True if all elements, or all elements of a row, can be computed as one block, because no operand
// and no intermediate result needs a buffer.
static bool needs_no_blocks(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call,
                            int32_t n_made) {
    const struct msc_simd_chain *chain = &e->chain;
    bool is_short = e->program->n_dims == 1 || msc_cpu_ewise_is_within_row(e);
    bool fits = is_short && call->n_quantized <= n_made;
    if (is_chain(e) && chain->instrs[0].op == MSC_SIMD_LOAD) {
        for (int32_t i = 0; i < chain->n_instrs; i++) {
            const struct msc_simd_instr *instr = &chain->instrs[i];
            bool reads = instr->op == MSC_SIMD_LOAD || msc_simd_reads_array(instr->op);
            bool is_buffered = reads && !cpu_ewise_is_direct(e, instr->operands[0]) &&
                               e->operands[instr->operands[0]].mode != MSC_CPU_EWISE_NUMBER;
            fits = fits && !is_buffered;
        }
        return fits;
    }
    for (int32_t i = 0; i < e->program->n_operands; i++) {
        fits = fits && cpu_ewise_is_direct(e, i) && !integers_of(&e->program->operands[i], call);
    }
    return fits && e->program->n_instrs == 1;
}

static struct scratch begin_scratch(const struct msc_cpu_ewise *e,
                                    const struct msc_cpu_ewise_call *call) {
    char *memory = call->scratch;
    size_t stride = block_bytes(e) / sizeof(float);
    struct scratch s = {.places = (const float **)(void *)memory};
    s.quants = (const struct msc_quant **)(void *)(memory += places_bytes(e));
    s.origins = (const void **)(void *)(memory += quants_bytes(e));
    s.instrs = (struct msc_simd_instr *)(void *)(memory += origins_bytes(e));
    s.blocks = (float *)(void *)(memory + instrs_bytes(e));
    for (int32_t i = 0; i < e->program->n_operands; i++) {
        const struct msc_view *integers = integers_of(&e->program->operands[i], call);
        bool is_read = integers && is_chain(e) && cpu_ewise_is_direct(e, i);
        s.places[i] = e->operands[i].memory;
        s.quants[i] = is_read ? integers->quant : NULL;
        s.has_quants = s.has_quants || is_read;
    }
    for (int32_t i = 0; i < e->program->n_registers; i++) {
        s.places[e->program->n_operands + i] = s.blocks + (size_t)i * stride;
    }
    for (int32_t i = 0; i < e->n_buffers; i++) {
        s.origins[i] = NULL;
    }
    return s;
}

void msc_cpu_ewise_run(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call) {
    struct scratch s = begin_scratch(e, call);
    struct msc_simd_bytes q;
    bool has_bytes = makes_bytes(e, call, &q);
    int64_t most = needs_no_blocks(e, call, has_bytes ? 1 : 0) ? INT64_MAX : MSC_CPU_EWISE_BLOCK;
    for (int64_t at = call->begin; at < call->end;) {
        struct block k = next_block(e, at, call->end, most);
        int64_t n = k.rows * k.cols;
        assert(n > 0);
        ewise_run_locate(e, call, &k, &s);
        cpu_ewise_run_block(e, call, &s, at, n, has_bytes ? &q : NULL);
        at += n;
    }
}

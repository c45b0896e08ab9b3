// Converts element-wise programs to chains (simd.h). A program can be a chain if every instruction
// reads the result of the previous instruction.
#include "kernels/cpu/ewise_internal.h"
#include "kernels/cpu/simd_indirect.h"

#include <string.h>

struct chainer {
    const struct msc_ewise *e; // the program
    struct msc_simd_instr *instrs;
    int32_t n;
    int32_t saved; // index of the instruction whose result is saved, or -1
};

static int32_t last_use(const struct msc_ewise *e, int32_t instr) {
    int32_t last = instr;
    for (int32_t i = instr + 1; i < e->n_instrs; i++) {
        const struct msc_ewise_instr *x = &e->instrs[i];
        bool reads = x->x[0] == MSC_EWISE_VALUE + instr || x->x[1] == MSC_EWISE_VALUE + instr;
        last = reads ? i : last;
    }
    return last;
}

static struct msc_simd_instr *add_to_chain(struct chainer *c, enum msc_simd_op op,
                                           int32_t operand) {
    struct msc_simd_instr *added = &c->instrs[c->n++];
    *added = (struct msc_simd_instr){.op = op, .operands = {operand}};
    return added;
}

static bool is_number(const struct msc_ewise *e, int32_t operand) {
    const struct msc_ewise_operand *o = &e->operands[operand];
    return msc_ewise_is_constant(o, e->n_dims) && o->source == MSC_EWISE_FROM_MEMORY;
}

// Chain operations of an instruction with two operands, by the kind of its second operand: an
// array, a number or the saved result. MSC_SIMD_LOAD: there is no such operation.
static const struct {
    enum msc_ewise_op instr;
    enum msc_simd_op array, number, saved;
    bool is_commutative;
} binaries[] = {
    {MSC_EWISE_ADD, MSC_SIMD_ADD, MSC_SIMD_ADD_NUMBER, MSC_SIMD_ADD_SAVED, true},
    {MSC_EWISE_SUBTRACT, MSC_SIMD_SUBTRACT, MSC_SIMD_SUBTRACT_NUMBER, MSC_SIMD_LOAD, false},
    {MSC_EWISE_MULTIPLY, MSC_SIMD_MULTIPLY, MSC_SIMD_MULTIPLY_NUMBER, MSC_SIMD_MULTIPLY_SAVED,
     true},
    {MSC_EWISE_DIVIDE, MSC_SIMD_DIVIDE, MSC_SIMD_DIVIDE_NUMBER, MSC_SIMD_LOAD, false},
};

static const struct {
    enum msc_ewise_op instr;
    enum msc_simd_op op;
} unaries[] = {
    {MSC_EWISE_RELU, MSC_SIMD_RELU},
    {MSC_EWISE_CLIP, MSC_SIMD_CLIP},
    {MSC_EWISE_HARD_SWISH, MSC_SIMD_HARD_SWISH},
    {MSC_EWISE_SCALE, MSC_SIMD_MULTIPLY_NUMBER},
};

static bool add_unary(struct chainer *c, const struct msc_ewise_instr *x) {
    for (size_t i = 0; i < sizeof(unaries) / sizeof(unaries[0]); i++) {
        if (unaries[i].instr == x->op) {
            memcpy(add_to_chain(c, unaries[i].op, 0)->p, x->p, sizeof(x->p));
            return true;
        }
    }
    return false;
}

static bool add_binary(struct chainer *c, const struct msc_ewise_instr *x, int32_t other,
                       bool is_swapped) {
    for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++) {
        if (binaries[i].instr != x->op || (is_swapped && !binaries[i].is_commutative)) {
            continue;
        }
        if (other >= MSC_EWISE_VALUE) {
            bool fits = other - MSC_EWISE_VALUE == c->saved && binaries[i].saved != MSC_SIMD_LOAD;
            return fits && add_to_chain(c, binaries[i].saved, 0);
        }
        if (is_number(c->e, other)) {
            add_to_chain(c, binaries[i].number, 0)->p[0] = c->e->operands[other].memory[0];
        } else {
            add_to_chain(c, binaries[i].array, other);
        }
        return true;
    }
    return false;
}

// True if all elements of a row read the same element of the operand.
static bool is_row_number(const struct msc_ewise *e, int32_t operand) {
    return operand < MSC_EWISE_VALUE && e->operands[operand].strides[e->n_dims - 1] == 0;
}

// True if a chain that begins with this instruction should load the second operand, because the
// first operand is a number.
static bool is_number_first(const struct chainer *c, const struct msc_ewise_instr *x) {
    bool is_commutative = false;
    for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++) {
        is_commutative =
            is_commutative || (binaries[i].instr == x->op && binaries[i].is_commutative);
    }
    return is_commutative && is_row_number(c->e, x->x[0]) && !is_row_number(c->e, x->x[1]);
}

static bool cpu_ewise_chain_add_instr(struct chainer *c, int32_t k) {
    const struct msc_ewise_instr *x = &c->e->instrs[k];
    if (x->op == MSC_EWISE_FINISH_I32) {
        struct msc_simd_instr *added = add_to_chain(c, MSC_SIMD_FINISH, x->x[0]);
        memcpy(added->operands, x->x, sizeof(x->x));
        memcpy(added->p, x->p, sizeof(x->p));
        return k == 0;
    }
    bool is_swapped = k > 0 ? x->x[0] != MSC_EWISE_VALUE + k - 1 : is_number_first(c, x);
    int32_t other = is_swapped ? x->x[0] : x->x[1];
    if (k == 0) {
        add_to_chain(c, MSC_SIMD_LOAD, is_swapped ? x->x[1] : x->x[0]);
    } else if (is_swapped && x->x[1] != MSC_EWISE_VALUE + k - 1) {
        return false;
    }
    return x->x[1] < 0 ? add_unary(c, x) : add_binary(c, x, other, is_swapped);
}

// Saves the result of instruction k if it is read again after the next instruction, or read twice
// by the next instruction. False if another saved result is still needed.
static bool cpu_ewise_chain_save(struct chainer *c, int32_t k) {
    const struct msc_ewise_instr *next = &c->e->instrs[k + 1];
    int32_t value = MSC_EWISE_VALUE + k;
    if (last_use(c->e, k) == k + 1 && (next->x[0] != value || next->x[1] != value)) {
        return true;
    }
    if (c->saved >= 0 && last_use(c->e, c->saved) > k) {
        return false;
    }
    c->saved = k;
    return add_to_chain(c, MSC_SIMD_SAVE, 0);
}

enum msc_status msc_cpu_ewise__make_chain(struct msc_cpu_ewise *e) {
    struct chainer c = {.e = e->program, .saved = -1};
    int32_t n = e->program->n_instrs;
    size_t most = 2 * (size_t)n + 1;
    c.instrs = msc_arena_array(&e->arena, most, sizeof(c.instrs[0]));
    MSC_TRY(MSC_ALLOCATED(c.instrs));
    for (int32_t k = 0; k < n; k++) {
        if (!cpu_ewise_chain_add_instr(&c, k) || (k + 1 < n && !cpu_ewise_chain_save(&c, k))) {
            return MSC_OK;
        }
    }
    e->chain = (struct msc_simd_chain){c.n, c.instrs};
    return MSC_OK;
}

// ---- Numbers ----------------------------------------------------------------------------------

// The operation for a number in place of an array; LOAD: there is none.
static enum msc_simd_op number_op(enum msc_simd_op array) {
    for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++) {
        if (binaries[i].array == array) {
            return binaries[i].number;
        }
    }
    return MSC_SIMD_LOAD;
}

void msc_cpu_ewise__find_numbers(struct msc_cpu_ewise *e) {
    const struct msc_simd_chain *chain = &e->chain;
    if (!msc_simd_best()->run_chain || !msc_cpu_ewise_is_within_row(e) || chain->n_instrs == 0 ||
        chain->instrs[0].op != MSC_SIMD_LOAD) {
        return;
    }
    for (int32_t i = 1; i < chain->n_instrs; i++) {
        int32_t operand = chain->instrs[i].operands[0];
        if (number_op(chain->instrs[i].op) != MSC_SIMD_LOAD && is_row_number(e->program, operand) &&
            operand != chain->instrs[0].operands[0]) {
            e->operands[operand].mode = MSC_CPU_EWISE_NUMBER;
            e->n_numbers++;
        }
    }
}

void msc_cpu_ewise__set_numbers(struct msc_simd_instr instrs[], const struct msc_cpu_ewise *e,
                                const float *const places[]) {
    for (int32_t i = 0; i < e->chain.n_instrs; i++) {
        struct msc_simd_instr *to = &instrs[i];
        *to = e->chain.instrs[i];
        enum msc_simd_op op = number_op(to->op);
        if (op != MSC_SIMD_LOAD && e->operands[to->operands[0]].mode == MSC_CPU_EWISE_NUMBER) {
            to->op = op;
            to->p[0] = *places[to->operands[0]];
        }
    }
}

// ---- Epilogues --------------------------------------------------------------------------------

static bool is_anchor(const struct msc_ewise *e, int32_t operand) {
    return e->operands[operand].source == MSC_EWISE_FROM_ANCHOR;
}

bool msc_cpu_ewise_get_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e) {
    const struct msc_simd_chain *chain = &e->chain;
    const struct msc_ewise *p = e->program;
    if (chain->n_instrs == 0 || !is_anchor(p, chain->instrs[0].operands[0])) {
        return false;
    }
    for (int32_t i = 1; i < chain->n_instrs; i++) {
        const struct msc_simd_instr *instr = &chain->instrs[i];
        int32_t other = instr->operands[0];
        bool reads = msc_simd_reads_array(instr->op);
        if (instr->op == MSC_SIMD_SAVE ||
            (reads && (is_anchor(p, other) || !msc_ewise_lies_as_output(p, &p->operands[other])))) {
            return false;
        }
    }
    out->n_instrs = chain->n_instrs - 1;
    out->instrs = chain->instrs + 1;
    return true;
}

bool msc_cpu_ewise_get_sums_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e) {
    if (!msc_cpu_ewise_get_epilogue(out, e) || e->chain.instrs[0].op != MSC_SIMD_FINISH) {
        return false;
    }
    out->finish.low = e->chain.instrs[0].p[0];
    out->finish.high = e->chain.instrs[0].p[1];
    return true;
}

void msc_cpu_ewise_set_arrays(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e,
                              const struct msc_view inputs[], void *scratch) {
    int32_t n = e->program->n_operands;
    const float **arrays = scratch;
    const struct msc_quant **quants = (const struct msc_quant **)(void *)(arrays + n);
    for (int32_t i = 0; i < n; i++) {
        const struct msc_ewise_operand *o = &e->program->operands[i];
        const struct msc_view *x = o->source == MSC_EWISE_FROM_INPUT ? &inputs[o->input] : NULL;
        arrays[i] = x ? x->data : e->operands[i].memory;
        quants[i] = x ? x->quant : NULL;
    }
    out->arrays = (struct msc_simd_arrays){arrays, quants};
}

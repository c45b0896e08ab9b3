// Matrix products of two operands with any leading axes, one of which may be constant. Products are
// computed in integer arithmetic if both operands are quantised to integers.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_matmul_bytes.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/lowering/gemm.h"
#include "kernels/lowering/matmul.h"

#include <math.h>
#include <string.h>

struct kernel {
    const char *name;
    struct msc_operand operands[2];
    struct msc_view constants[2]; // elements of constant operands
    int edited;                   // index of the operand that a weight edit replaces, or -1
    struct msc_gemm_desc desc;
    struct msc_routine *routine;
    // Number of routine calls: products that one call cannot compute together run one by one.
    int64_t n_products;
    int64_t *offsets[2];                // [n_products] start of each factor, in elements
    int64_t n_out;                      // elements of the result of one call
    struct msc_cpu_ewise *epilogues[2]; // one for float32 results, one for integer sums
};

// ---- Preparing --------------------------------------------------------------------------------

static void cpu_matmul_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_routine_destroy(k->routine);
        for (int i = 0; i < 2; i++) {
            msc_free(k->offsets[i]);
            msc_cpu_ewise_destroy(k->epilogues[i]);
        }
        msc_free(k);
    }
}

// Finds the start of both factors of each product. Leading axes are aligned from the right and
// broadcast.
static enum msc_status set_offsets(struct kernel *k, const struct msc_graph *g,
                                   const struct msc_joint *joint) {
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    for (int i = 0; i < 2; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, joint, i);
        k->offsets[i] = msc_alloc_zero((size_t)k->n_products, sizeof(int64_t));
        MSC_TRY(MSC_ALLOCATED(k->offsets[i]));
        for (int64_t p = 0; k->n_products > 1 && p < k->n_products; p++) {
            int64_t rest = p, stride = t->dims[t->n_dims - 1] * t->dims[t->n_dims - 2];
            for (int d = 0; d < t->n_dims - 2; d++) {
                int64_t length = t->dims[t->n_dims - 3 - d];
                int64_t out_length = y->dims[y->n_dims - 3 - d];
                k->offsets[i][p] += length == 1 ? 0 : rest % out_length * stride;
                stride *= length;
                rest /= out_length;
            }
        }
    }
    return MSC_OK;
}

static enum msc_status cpu_matmul_init(struct kernel *k, struct msc_cpu_backend *b,
                                       const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *j = &step->joints[0];
    k->name = j->joint->name;
    k->edited = step->n_weight_slots > 0 ? step->weight_operands[0] : -1;
    if (!msc_gemm_describe_matmul(&k->desc, &k->n_products, plan->graph, j->joint)) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: the kernels do not support this matrix product",
                        k->name);
    }
    k->n_out = k->desc.batch * k->desc.rows * k->desc.out_channels;
    for (int i = 0; i < 2; i++) {
        k->operands[i] = j->operands[i];
        if (j->operands[i].kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *t = msc_graph_tensor(plan->graph, j->operands[i].index);
            k->constants[i] = msc_view_of_array(t->data);
        }
    }
    MSC_TRY(set_offsets(k, plan->graph, j->joint));
    MSC_TRY(msc_routine_create(&k->routine, b->engine, &k->desc));
    struct msc_ewise_options options = {.start = MSC_EWISE_FLOAT, .first = 1};
    MSC_TRY(msc_cpu_ewise_create(&k->epilogues[0], plan, step, &options));
    options.start = MSC_EWISE_SUM_F32;
    options.is_scalar_scale = true;
    options.low = -INFINITY;
    options.high = INFINITY;
    return msc_cpu_ewise_create(&k->epilogues[1], plan, step, &options);
}

static enum msc_status cpu_matmul_prepare(void **out, struct msc_cpu_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    enum msc_status status = cpu_matmul_init(k, b, plan, step);
    if (status != MSC_OK) {
        cpu_matmul_release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

// ---- A constant factor under an edit ----------------------------------------------------------

static void cpu_matmul_release_weights(void *weights) {
    struct msc_matmul_constant *v = weights;
    if (v) {
        msc_matmul_constant_finish(v);
        msc_free(v);
    }
}

static enum msc_status cpu_matmul_weights(void *kernel, struct msc_cpu_backend *b,
                                          const struct msc_edit *const edits[], void **out,
                                          size_t *n_bytes) {
    (void)b;
    const struct kernel *k = kernel;
    const struct msc_edit *edit = edits[0];
    if (!edit || k->edited < 0) {
        return MSC_OK;
    }
    struct msc_matmul_constant *v = msc_alloc_zero(1, sizeof(*v));
    MSC_TRY(MSC_ALLOCATED(v));
    enum msc_status status = msc_matmul_constant_init(v, &k->constants[k->edited], edit);
    if (status != MSC_OK) {
        cpu_matmul_release_weights(v);
        return status;
    }
    *n_bytes = msc_array_n_bytes(v->elements);
    *out = v;
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

struct run {
    const struct kernel *k;
    struct msc_view factors[2];
    int64_t n[2]; // elements of each factor
    bool is_integer;
    bool is_bytes;                 // `bytes` computes the integer sums
    struct msc_matmul_bytes bytes; // without is_bytes, routines compute them in float32
    struct msc_digits digits;      // how the integers of the first factor are split
    void *routine_scratch, *ewise_scratch;
    float *floats[2]; // dequantised factors
    int32_t *sums;
};

static struct msc_view cpu_matmul_factor(const struct kernel *k, const struct msc_call *call,
                                         int i) {
    const struct msc_matmul_constant *v = call->weights;
    if (k->operands[i].kind == MSC_OPERAND_INPUT) {
        return call->inputs[k->operands[i].index];
    }
    if (i != k->edited || !v) {
        return k->constants[i];
    }
    struct msc_view view = msc_view_of_array(v->elements);
    view.quant = msc_matmul_constant_quant(v);
    return view;
}

static size_t cpu_matmul_place(struct run *r, char *memory) {
    size_t used = 0;
    r->routine_scratch = msc_cpu_take(memory, &used,
                                      r->is_bytes ? msc_matmul_bytes_scratch(&r->bytes)
                                                  : msc_routine_scratch_bytes(r->k->routine));
    r->ewise_scratch =
        msc_cpu_take(memory, &used, msc_cpu_ewise_scratch_bytes(r->k->epilogues[r->is_integer]));
    if (r->is_bytes) {
        return used;
    }
    for (int i = 0; i < 2; i++) {
        r->floats[i] = r->factors[i].quant
                           ? msc_cpu_take(memory, &used, (size_t)r->n[i] * sizeof(float))
                           : NULL;
    }
    size_t n_sums = (size_t)(r->k->n_out * r->k->n_products);
    r->sums = r->digits.n > 1 ? msc_cpu_take(memory, &used, n_sums * sizeof(int32_t)) : NULL;
    return used;
}

static void expand_factor(const struct run *r, int i, int digit) {
    const struct msc_view *v = &r->factors[i];
    if (!v->quant) {
        return;
    }
    if (!r->is_integer) {
        msc_cpu_dequantize(r->floats[i], v->data, v->dtype, r->n[i], v->quant);
        return;
    }
    msc_cpu_expand(r->floats[i], v->data, v->dtype, r->n[i], v->quant->zero_points[0],
                   i == 0 ? r->digits.shift * digit : 0,
                   i == 0 ? msc_digits_mask(&r->digits, digit) : -1);
}

static enum msc_status multiply_once(const struct run *r, float out[], int thread) {
    const struct kernel *k = r->k;
    const float *a = r->floats[0] ? r->floats[0] : r->factors[0].data;
    const float *b = r->floats[1] ? r->floats[1] : r->factors[1].data;
    for (int64_t p = 0; p < k->n_products; p++) {
        struct msc_routine_call call = {.a = a + k->offsets[0][p],
                                        .b = b + k->offsets[1][p],
                                        .out = out + p * k->n_out,
                                        .scratch = r->routine_scratch};
        MSC_TRY(msc_routine_run(k->routine, &call, thread));
    }
    return MSC_OK;
}

static enum msc_status cpu_matmul_multiply(const struct run *r, float out[], int thread) {
    int64_t n = r->k->n_out * r->k->n_products;
    expand_factor(r, 1, 0);
    if (r->sums) {
        memset(r->sums, 0, (size_t)n * sizeof(r->sums[0]));
    }
    for (int digit = 0; digit < r->digits.n; digit++) {
        expand_factor(r, 0, digit);
        MSC_TRY(multiply_once(r, out, thread));
        if (r->sums) {
            msc_cpu_add_floats(r->sums, out, n, r->digits.shift * digit);
        }
    }
    if (r->sums) {
        msc_cpu_to_floats(out, r->sums, n);
    }
    return MSC_OK;
}

static void cpu_matmul_multiply_bytes(const struct run *r, float out[]) {
    const struct kernel *k = r->k;
    const struct msc_matmul_bytes *m = &r->bytes;
    const uint8_t *packed = NULL;
    for (int64_t i = 0; i < k->n_products * k->desc.batch; i++, out += m->rows * m->columns) {
        int64_t p = i / k->desc.batch, in_call = i % k->desc.batch;
        const uint8_t *a = r->factors[0].data, *b = r->factors[1].data;
        a += k->offsets[0][p] + in_call * m->rows * m->depth;
        b += k->offsets[1][p] + in_call * m->depth * m->columns;
        msc_matmul_bytes_run(out, m, a, b, b != packed, r->routine_scratch);
        packed = b;
    }
}

// Decides how the product is computed.
static void cpu_matmul_choose(struct run *r, const struct msc_cpu_backend *b) {
    const struct msc_gemm_desc *d = &r->k->desc;
    const struct msc_quant *quants[2] = {r->factors[0].quant, r->factors[1].quant};
    r->is_integer = msc_matmul_is_integer(&r->digits, quants[0], quants[1], d->in_channels);
    if (r->is_integer) {
        r->bytes = (struct msc_matmul_bytes){.product = b->bytes,
                                             .rows = d->rows,
                                             .depth = d->in_channels,
                                             .columns = d->out_channels,
                                             .quants = {quants[0], quants[1]}};
        r->is_bytes = msc_matmul_bytes_accepts(&r->bytes);
    }
}

static enum msc_status cpu_matmul_run(void *kernel, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    struct run r = {.k = k};
    void *memory;
    float scale = 1.0f;
    float *out = call->outputs[0].data;
    for (int i = 0; i < 2; i++) {
        r.factors[i] = cpu_matmul_factor(k, call, i);
        r.n[i] = msc_view_n_elements(&r.factors[i]);
    }
    cpu_matmul_choose(&r, b);
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, cpu_matmul_place(&r, NULL)));
    cpu_matmul_place(&r, memory);
    if (r.is_bytes) {
        cpu_matmul_multiply_bytes(&r, out);
    } else {
        MSC_TRY(cpu_matmul_multiply(&r, out, thread));
    }
    if (r.is_integer) {
        scale = r.factors[0].quant->scales[0] * r.factors[1].quant->scales[0];
    }
    if (k->epilogues[r.is_integer]) {
        struct msc_cpu_ewise_call following = {.inputs = call->inputs,
                                               .anchor = out,
                                               .scales = &scale,
                                               .out = out,
                                               .end = k->n_out * k->n_products,
                                               .scratch = r.ewise_scratch};
        msc_cpu_ewise_run(k->epilogues[r.is_integer], &following);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_matmul = {
    .prepare = cpu_matmul_prepare,
    .release = cpu_matmul_release,
    .run = cpu_matmul_run,
    .reads_integers = true,
    .weights = cpu_matmul_weights,
    .release_weights = cpu_matmul_release_weights,
};

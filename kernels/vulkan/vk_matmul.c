// Matrix products of two operands, one of which may be constant, with any leading axes. The second
// factor is copied into the layout in which the shaders read weights, padded to multiples of 4.
// Products are computed in integer arithmetic if both factors are quantised to integers.
#include "base/alloc.h"
#include "kernels/lowering/lowering.h"
#include "kernels/lowering/matmul.h"
#include "kernels/vulkan/vk_gemm.h"
#include "kernels/vulkan/vk_movement.h"

#include <string.h>

struct kernel {
    const char *name;
    struct msc_operand operands[2];
    struct msc_view constants[2]; // constant factors in host memory
    struct msc_vk_block *blocks[2];
    int edited; // index of the operand that a weight edit replaces, or -1
    int64_t depth;
    int64_t n_out;     // elements of the result
    int64_t n_a, n_b;  // elements of each factor, padded as the shader reads it
    bool broadcasts_a; // several products share rows of the first factor
    struct msc_vk_movement movements[2];
    struct msc_vk_gemm *gemm;
    struct msc_vk_program *epilogue;
};

static void vk_matmul_release(void *memory, struct msc_vk_backend *b) {
    struct kernel *k = memory;
    if (k) {
        for (int i = 0; i < 2; i++) {
            msc_vk_free(b->vk, k->blocks[i]);
            msc_vk_movement_finish(&k->movements[i], b);
        }
        msc_vk_gemm_destroy(k->gemm, b);
        msc_vk_program_destroy(k->epilogue, b);
        msc_free(k);
    }
}

// ---- Preparing --------------------------------------------------------------------------------

struct shape {
    int64_t n_products, rows, depth, cols;
    int n_lead; // leading axes of the output
    int64_t lead[MSC_MAX_DIMS];
    int64_t strides[2][MSC_MAX_DIMS]; // strides of the leading axes per factor; 0 if broadcast
};

static struct shape shape_of(const struct msc_tensor *a, const struct msc_tensor *b,
                             const struct msc_tensor *y) {
    const struct msc_tensor *factors[2] = {a, b};
    struct shape s = {.n_products = msc_dims_product(y->n_dims - 2, y->dims),
                      .rows = a->dims[a->n_dims - 2],
                      .depth = a->dims[a->n_dims - 1],
                      .cols = b->dims[b->n_dims - 1],
                      .n_lead = y->n_dims - 2};
    memcpy(s.lead, y->dims, sizeof(s.lead));
    for (int f = 0; f < 2; f++) {
        const struct msc_tensor *t = factors[f];
        int64_t stride = t->dims[t->n_dims - 1] * t->dims[t->n_dims - 2];
        for (int d = 0; d < t->n_dims - 2; d++) {
            int64_t length = t->dims[t->n_dims - 3 - d];
            s.strides[f][s.n_lead - 1 - d] = length == 1 ? 0 : stride;
            stride *= length;
        }
    }
    return s;
}

// Copies a factor into padded matrices: [leading axes, size[0], size[1]] into
// [leading axes, padded[0], padded[1]].
static enum msc_status init_movement(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                     const struct shape *s, int factor, const int64_t size[2],
                                     const int64_t padded[2]) {
    struct msc_vk_movement_dim dims[MSC_MAX_DIMS];
    int64_t out = padded[0] * padded[1];
    dims[s->n_lead] = (struct msc_vk_movement_dim){(int32_t)padded[0], (int32_t)size[1],
                                                   (int32_t)padded[1], 0, (int32_t)size[0]};
    dims[s->n_lead + 1] =
        (struct msc_vk_movement_dim){(int32_t)padded[1], 1, 1, 0, (int32_t)size[1]};
    for (int d = s->n_lead - 1; d >= 0; d--) {
        dims[d] = (struct msc_vk_movement_dim){.length = (int32_t)s->lead[d],
                                               .in = (int32_t)s->strides[factor][d],
                                               .out = (int32_t)out};
        out *= s->lead[d];
    }
    return msc_vk_movement_init(m, b, dims, s->n_lead + 2);
}

static enum msc_status init_product(struct kernel *k, struct msc_vk_backend *b,
                                    const struct msc_tensor *x, const struct msc_tensor *w,
                                    const struct msc_tensor *y) {
    struct shape s = shape_of(x, w, y);
    int64_t lead_a = msc_dims_product(x->n_dims - 2, x->dims);
    int64_t lead_b = msc_dims_product(w->n_dims - 2, w->dims);
    k->depth = s.depth;
    k->n_out = msc_dims_product(y->n_dims, y->dims);
    if (lead_b == 1 && lead_a == s.n_products) {
        // All products share the second factor, so their rows are treated as one product.
        s.rows *= s.n_products;
        s.n_products = 1;
        s.n_lead = 0;
    }
    k->broadcasts_a = s.n_products > 1 && lead_a != s.n_products;
    int64_t a_size[2] = {s.rows, s.depth}, b_size[2] = {s.depth, s.cols};
    struct msc_vk_gemm_desc desc = {.n_z = s.n_products,
                                    .n_rows = s.rows,
                                    .n_cols = s.cols,
                                    .depth = s.depth,
                                    .x_row = s.depth,
                                    .y_row = s.cols,
                                    .x_step = s.rows * s.depth,
                                    .y_step = s.rows * s.cols};
    struct msc_vk_gemm_weight shape = msc_vk_gemm_weight_shape(&desc);
    int64_t padded[2] = {shape.channels, shape.row};
    desc.w_step = padded[0] * padded[1];
    k->n_a = s.n_products * s.rows * s.depth;
    k->n_b = s.n_products * desc.w_step;
    if (!msc_vk_fits(b, k->n_a * (int64_t)sizeof(float)) ||
        !msc_vk_fits(b, k->n_b * (int64_t)sizeof(float))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: the factors are too large when broadcast",
                        k->name);
    }
    if (k->broadcasts_a) {
        MSC_TRY(init_movement(&k->movements[0], b, &s, 0, a_size, a_size));
    }
    MSC_TRY(init_movement(&k->movements[1], b, &s, 1, b_size, padded));
    return msc_vk_gemm_create(&k->gemm, b, &desc);
}

static enum msc_status vk_matmul_init(struct kernel *k, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_tensor *t[2];
    k->name = j->joint->name;
    k->edited = step->n_weight_slots > 0 ? step->weight_operands[0] : -1;
    for (int i = 0; i < 2; i++) {
        k->operands[i] = j->operands[i];
        t[i] = msc_lowering_operand(plan->graph, j->joint, i);
        if (j->operands[i].kind == MSC_OPERAND_WEIGHT) {
            const struct msc_array *a = msc_graph_tensor(plan->graph, j->operands[i].index)->data;
            k->constants[i] = msc_view_of_array(a);
            MSC_TRY(
                msc_vk_upload_new(b->vk, &k->blocks[i], msc_array_data(a), msc_array_n_bytes(a)));
        }
    }
    MSC_TRY(init_product(k, b, t[0], t[1], msc_lowering_output(plan->graph, j->joint)));
    struct msc_ewise_options options = {.start = MSC_EWISE_FLOAT, .first = 1};
    return msc_vk_program_create(&k->epilogue, b, plan, step, &options);
}

static enum msc_status vk_matmul_prepare(void **out, struct msc_vk_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    enum msc_status status = vk_matmul_init(k, b, plan, step);
    if (status != MSC_OK) {
        vk_matmul_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

// ---- A constant factor under an edit ----------------------------------------------------------

struct variant {
    struct msc_vk_block *block; // the elements on the device
    enum msc_dtype dtype;
    struct msc_matmul_constant constant; // only the quantisation; the elements are freed
};

static void release_weights(void *weights, struct msc_vk_backend *b) {
    struct variant *v = weights;
    if (v) {
        msc_vk_free(b->vk, v->block);
        msc_free(v);
    }
}

static enum msc_status vk_matmul_weights(void *kernel, struct msc_vk_backend *b,
                                         const struct msc_edit *const edits[], void **out,
                                         size_t *n_bytes) {
    const struct kernel *k = kernel;
    const struct msc_edit *edit = edits[0];
    if (!edit || k->edited < 0) {
        return MSC_OK;
    }
    struct variant *v = msc_alloc_zero(1, sizeof(*v));
    enum msc_status status = MSC_ALLOCATED(v);
    MSC_TRY(status);
    MSC_TRY_OUT(msc_matmul_constant_init(&v->constant, &k->constants[k->edited], edit));
    const struct msc_array *elements = v->constant.elements;
    v->dtype = msc_array_dtype(elements);
    *n_bytes = msc_array_n_bytes(elements);
    msc_vk_lock(b->vk);
    status = msc_vk_upload_new(b->vk, &v->block, msc_array_data(elements), *n_bytes);
    msc_vk_unlock(b->vk);
    msc_matmul_constant_finish(&v->constant);
    if (status == MSC_OK) {
        *out = v;
        v = NULL;
    }
out:
    msc_free(v); // on failure, v has no block
    return status;
}

// ---- Running ----------------------------------------------------------------------------------

// How a call is computed; calls with equal jobs run together.
struct job {
    bool is_integer[2];       // true if the factor is stored as bytes
    bool multiplies_integers; // true if the factors are multiplied as integers
    struct msc_digits digits; // how the first factor's integers are split into groups of bits
};

struct run {
    struct kernel *k;
    struct msc_vk_backend *b;
    struct job job;
    int n;
    struct msc_call calls[MSC_VK_MAX_CALLS];
    struct msc_view factors[2][MSC_VK_MAX_CALLS];
    struct msc_vk_block *floats[2][MSC_VK_MAX_CALLS]; // factors converted from bytes
    struct msc_vk_block *broadcast[MSC_VK_MAX_CALLS], *packed[MSC_VK_MAX_CALLS];
    struct msc_vk_block *sums[MSC_VK_MAX_CALLS], *made[MSC_VK_MAX_CALLS];
    const struct msc_vk_block *results[MSC_VK_MAX_CALLS]; // blocks of the outputs, or of `made`
};

static struct msc_view vk_matmul_factor(const struct kernel *k, const struct msc_call *call,
                                        int i) {
    const struct variant *v = call->weights;
    if (k->operands[i].kind == MSC_OPERAND_INPUT) {
        return call->inputs[k->operands[i].index];
    }
    struct msc_view view = k->constants[i];
    view.data = k->blocks[i];
    if (i == k->edited && v) {
        view.data = v->block;
        view.dtype = v->dtype;
        view.quant = msc_matmul_constant_quant(&v->constant);
    }
    return view;
}

static struct job job_of(const struct kernel *k, const struct msc_call *call) {
    const struct msc_quant *a = vk_matmul_factor(k, call, 0).quant,
                           *b = vk_matmul_factor(k, call, 1).quant;
    struct job job = {.is_integer = {a != NULL, b != NULL}};
    job.multiplies_integers = msc_matmul_is_integer(&job.digits, a, b, k->depth);
    return job;
}

static bool go_together(const struct job *a, const struct job *b) {
    return a->is_integer[0] == b->is_integer[0] && a->is_integer[1] == b->is_integer[1] &&
           a->multiplies_integers == b->multiplies_integers && a->digits.n == b->digits.n;
}

static enum msc_status take_memory(struct run *r) {
    const struct kernel *k = r->k;
    for (int i = 0; i < 2; i++) {
        if (r->job.is_integer[i]) {
            uint64_t n = (uint64_t)msc_view_n_elements(&r->factors[i][0]);
            MSC_TRY(msc_vk_take(r->floats[i], r->b, r->n, n * sizeof(float)));
        }
    }
    if (k->broadcasts_a) {
        MSC_TRY(msc_vk_take(r->broadcast, r->b, r->n, (uint64_t)k->n_a * sizeof(float)));
    }
    if (r->job.digits.n > 1) {
        MSC_TRY(msc_vk_take(r->sums, r->b, r->n, (uint64_t)k->n_out * sizeof(int32_t)));
    }
    for (int i = 0; i < r->n; i++) {
        r->results[i] = msc_vk_block_of(&r->calls[i].outputs[0]);
        if (!r->results[i] && (k->epilogue || r->job.digits.n > 1)) {
            MSC_TRY(msc_vk_take(&r->made[i], r->b, 1, (uint64_t)k->n_out * sizeof(float)));
            r->results[i] = r->made[i];
        }
    }
    return msc_vk_take(r->packed, r->b, r->n, (uint64_t)k->n_b * sizeof(float));
}

// Converts the bytes of a factor to floats: to integers, to one digit (some of the bits) of the
// integers, or to dequantised values.
static enum msc_status expand_factor(const struct run *r, const struct msc_vk_block *out[], int f,
                                     int digit) {
    struct msc_vk_expanding items[MSC_VK_MAX_CALLS];
    const struct msc_digits *d = &r->job.digits;
    for (int i = 0; i < r->n; i++) {
        const struct msc_view *v = &r->factors[f][i];
        out[i] = msc_vk_block_of(v);
        if (!r->job.is_integer[f]) {
            continue;
        }
        items[i].in = out[i];
        items[i].out = out[i] = r->floats[f][i];
        items[i].bytes = !r->job.multiplies_integers ? msc_vk_bytes_value(v)
                         : f == 1
                             ? msc_vk_bytes_integer(v)
                             : msc_vk_bytes_digit(v, d->shift * digit, msc_digits_mask(d, digit));
    }
    return r->job.is_integer[f]
               ? msc_vk_expand(r->b, items, r->n, (uint64_t)msc_view_n_elements(&r->factors[f][0]))
               : MSC_OK;
}

static float scale_of(const struct run *r, int i) {
    return r->factors[0][i].quant->scales[0] * r->factors[1][i].quant->scales[0];
}

static enum msc_status multiply_digit(const struct run *r, int digit) {
    const struct kernel *k = r->k;
    const struct msc_vk_block *a[MSC_VK_MAX_CALLS];
    struct msc_vk_gemm_call gemm[MSC_VK_MAX_CALLS];
    bool is_last = r->job.digits.n == 1 && !k->epilogue;
    MSC_TRY(expand_factor(r, a, 0, digit));
    if (k->broadcasts_a) {
        const struct msc_vk_block *const *broadcast =
            (const struct msc_vk_block *const *)r->broadcast;
        MSC_TRY(msc_vk_movement_run(&k->movements[0], r->b, broadcast, a, r->n));
    }
    for (int i = 0; i < r->n; i++) {
        gemm[i] = (struct msc_vk_gemm_call){
            .x = k->broadcasts_a ? r->broadcast[i] : a[i], .w = r->packed[i], .y = r->results[i]};
        if (r->job.multiplies_integers && r->job.digits.n == 1) {
            gemm[i].has_one_scale = true;
            gemm[i].x_scale = scale_of(r, i);
        }
        if (is_last) {
            gemm[i].quantized = r->calls[i].quantized;
            gemm[i].n_quantized = r->calls[i].n_quantized;
        }
    }
    return msc_vk_gemm_run(k->gemm, r->b, MSC_VK_UNIT_FLOATS, gemm, r->n);
}

static enum msc_status multiply_digits(const struct run *r) {
    struct msc_vk_summing items[MSC_VK_MAX_CALLS];
    uint64_t n = (uint64_t)r->k->n_out;
    for (int i = 0; i < r->n; i++) {
        items[i] = (struct msc_vk_summing){r->results[i], r->sums[i], NULL, scale_of(r, i)};
    }
    for (int digit = 0; digit < r->job.digits.n; digit++) {
        MSC_TRY(multiply_digit(r, digit));
        MSC_TRY(msc_vk_add_digits(r->b, items, r->n, n, r->job.digits.shift * digit, digit == 0));
    }
    return msc_vk_finish_sums(r->b, items, r->n, n, 1, MSC_VK_NO_BIAS);
}

static enum msc_status run_together(struct run *r) {
    const struct kernel *k = r->k;
    const struct msc_vk_block *factors[MSC_VK_MAX_CALLS];
    const struct msc_vk_block *const *packed = (const struct msc_vk_block *const *)r->packed;
    MSC_TRY(take_memory(r));
    MSC_TRY(expand_factor(r, factors, 1, 0));
    MSC_TRY(msc_vk_movement_run(&k->movements[1], r->b, packed, factors, r->n));
    MSC_TRY(r->job.digits.n == 1 ? multiply_digit(r, 0) : multiply_digits(r));
    if (!k->epilogue && r->job.digits.n > 1) {
        return msc_vk_quantize_results(r->b, r->calls, r->results, r->n, (uint64_t)k->n_out);
    }
    return msc_vk_program_run(k->epilogue, r->b, r->calls, r->results, r->n);
}

static enum msc_status vk_matmul_run(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_call calls[], int n) {
    bool is_done[MSC_VK_MAX_CALLS] = {false};
    for (int first = 0; first < n; first++) {
        if (is_done[first]) {
            continue;
        }
        struct run r = {.k = kernel, .b = b, .job = job_of(kernel, &calls[first])};
        for (int i = first; i < n; i++) {
            struct job job = job_of(kernel, &calls[i]);
            if (!is_done[i] && go_together(&job, &r.job)) {
                r.factors[0][r.n] = vk_matmul_factor(kernel, &calls[i], 0);
                r.factors[1][r.n] = vk_matmul_factor(kernel, &calls[i], 1);
                r.calls[r.n++] = calls[i];
                is_done[i] = true;
            }
        }
        enum msc_status status = run_together(&r);
        msc_vk_give(r.floats[0], b, r.n);
        msc_vk_give(r.floats[1], b, r.n);
        msc_vk_give(r.broadcast, b, r.n);
        msc_vk_give(r.packed, b, r.n);
        msc_vk_give(r.sums, b, r.n);
        msc_vk_give(r.made, b, r.n);
        MSC_TRY(status);
    }
    return MSC_OK;
}

const struct msc_vk_family msc_vk_matmul = {.name = "matrix product",
                                            .prepare = vk_matmul_prepare,
                                            .release = vk_matmul_release,
                                            .run = vk_matmul_run,
                                            .reads_integers = true,
                                            .writes_quantized = true,
                                            .weights = vk_matmul_weights,
                                            .release_weights = release_weights};

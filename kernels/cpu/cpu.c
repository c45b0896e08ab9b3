#include "kernels/cpu/cpu.h"

#include "base/alloc.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/lowering/families.h"

#include <stdio.h>
#include <string.h>

// ---- Life cycle -------------------------------------------------------------------------------

static void cpu_close(struct msc_backend *base) {
    struct msc_cpu_backend *b = msc_cpu_from(base);
    msc_cpu_memory_destroy(b->memory, b->base.options.n_threads);
    msc_routine_close(b->engine);
    msc_free(b->kept_path);
    msc_free(b);
}

// Chooses matrix products of our own (simd_indirect.h). They run within one thread.
static void choose_products(struct msc_cpu_backend *b) {
    struct msc_routine_isa isa = msc_routine_isa();
    const struct msc_simd *simd = msc_simd_best();
    if (b->base.options.kernel_threads > 1) {
        return;
    }
    b->bytes = isa.uses_bytes ? simd->bytes : NULL;
    b->winograd = isa.uses_bytes ? simd->winograd : NULL;
    b->floats = isa.uses_floats ? simd->floats : NULL;
    b->tiles = isa.has_tiles && simd->tiles && msc_simd_get_tiles() ? simd->tiles : NULL;
}

static enum msc_status cpu_init(struct msc_cpu_backend *b) {
    const struct msc_backend_options *o = &b->base.options;
    MSC_TRY(msc_cpu_memory_create(&b->memory, o->n_threads));
    MSC_TRY(msc_routine_open(&b->engine, o->n_threads, o->kernel_threads));
    choose_products(b);
    int n = snprintf(b->numerics, sizeof(b->numerics), "cpu/%d %s int8-%s", MSC_CPU_KERNELS_VERSION,
                     msc_routine_name(b->engine),
                     o->allow_int8 && (b->bytes || msc_routine_isa().has_int8) ? "on" : "off");
    if (o->kernel_threads > 1) {
        snprintf(b->numerics + n, sizeof(b->numerics) - (size_t)n, " threads-%d",
                 o->kernel_threads);
    }
    return msc_cpu_kept_init(b);
}

static enum msc_status cpu_open(struct msc_backend **out,
                                const struct msc_backend_options *options) {
    if (options->n_threads < 1 || options->kernel_threads < 1) {
        return MSC_FAIL(MSC_E_INVALID, "cpu: n_threads %d and kernel_threads %d must be at least 1",
                        options->n_threads, options->kernel_threads);
    }
    struct msc_cpu_backend *b = msc_alloc_zero(1, sizeof(*b));
    MSC_TRY(MSC_ALLOCATED(b));
    b->base.def = &msc_backend_cpu;
    b->base.options = *options;
    enum msc_status status = cpu_init(b);
    if (status != MSC_OK) {
        cpu_close(&b->base);
        return status;
    }
    *out = &b->base;
    return MSC_OK;
}

enum msc_status msc_cpu_set_isa(const char *level) {
    return msc_routine_set_isa(level);
}

const char *msc_cpu_isa(size_t i) {
    return msc_routine_isa_level(i);
}

static const char *cpu_numerics(const struct msc_backend *b) {
    return msc_cpu_from(b)->numerics;
}

// ---- Steps ------------------------------------------------------------------------------------

struct prepared {
    const char *name; // name of the kernel family
    const struct msc_cpu_family *family;
    void *kernel;
    bool has_quantized; // the only output is float32, so calls may request quantised variants
};

static enum msc_status cpu_prepare(struct msc_backend *base, const struct msc_plan *plan,
                                   struct msc_step *step) {
    const struct msc_cpu_family *family = msc_cpu_family_of(plan->graph, step);
    struct prepared *p = msc_alloc_zero(1, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    p->name = msc_family_name(msc_family_of_step(plan->graph, step));
    p->family = family;
    p->has_quantized =
        step->n_outputs == 1 && plan->values[step->outputs[0]].dtype == MSC_DTYPE_F32;
    enum msc_status status = family->prepare(&p->kernel, msc_cpu_from(base), plan, step);
    if (status != MSC_OK) {
        msc_free(p);
        return status;
    }
    step->kernel = p;
    return MSC_OK;
}

static struct msc_placement cpu_place(const struct msc_backend *b, const struct msc_step *step) {
    const struct prepared *p = step->kernel;
    (void)b;
    return (struct msc_placement){msc_backend_cpu.name, p->name};
}

static void cpu_release(struct msc_backend *base, struct msc_step *step) {
    (void)base;
    struct prepared *p = step->kernel;
    if (p) {
        p->family->release(p->kernel);
        msc_free(p);
        step->kernel = NULL;
    }
}

static bool cpu_variants(const struct msc_backend *base, const struct msc_step *step,
                         struct msc_variants *out) {
    (void)base;
    const struct prepared *p = step->kernel;
    return p && p->family->variants && p->family->variants(p->kernel, out);
}

static void cpu_choose(struct msc_backend *base, const struct msc_step *step, int variant) {
    (void)base;
    const struct prepared *p = step->kernel;
    if (p && p->family->choose) {
        p->family->choose(p->kernel, variant);
    }
}

static enum msc_status cpu_weights(struct msc_backend *base, const struct msc_step *step,
                                   const struct msc_edit *const edits[], void **out,
                                   size_t *n_bytes) {
    const struct prepared *p = step->kernel;
    *out = NULL;
    *n_bytes = 0;
    return p->family->weights
               ? p->family->weights(p->kernel, msc_cpu_from(base), edits, out, n_bytes)
               : MSC_OK;
}

static void cpu_release_weights(struct msc_backend *base, const struct msc_step *step,
                                void *weights) {
    (void)base;
    const struct prepared *p = step->kernel;
    if (weights) {
        p->family->release_weights(weights);
    }
}

// Runs a family that writes only floats (to the output or to a per-thread buffer), then quantises
// these floats.
static enum msc_status run_and_quantize(const struct prepared *p, struct msc_cpu_backend *b,
                                        const struct msc_call *call, int thread) {
    struct msc_view out = call->outputs[0];
    struct msc_call floats = *call;
    int64_t n = msc_view_n_elements(&out);
    floats.outputs = &out;
    floats.n_quantized = 0;
    if (!out.data) {
        MSC_TRY(msc_cpu_get_result(&out.data, b, thread, (size_t)n * sizeof(float)));
    }
    MSC_TRY(p->family->run(p->kernel, b, &floats, thread));
    msc_cpu_write_quantized(call->quantized, call->n_quantized, 0, out.data, n);
    return MSC_OK;
}

// Integers are requantised in pieces of this many elements, which fit a first-level cache.
enum { PIECE = 1024 };

static void quantize_input(const struct msc_quantized *out, const struct msc_view *in) {
    int64_t n = msc_view_n_elements(in);
    if (!in->quant) {
        msc_cpu_write_quantized(out, 1, 0, in->data, n);
        return;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        float x[PIECE];
        int64_t length = n - at < PIECE ? n - at : PIECE;
        msc_cpu_dequantize(x, (const char *)in->data + at, in->dtype, length, in->quant);
        msc_cpu_write_quantized(out, 1, at, x, length);
    }
}

static bool cpu_copies_inputs(const struct prepared *p) {
    return p->family->copies && p->family->is_movement(p->kernel);
}

// True if quantising the inputs and moving their bytes is possible, and not more work than
// quantising the output.
static bool moves_quantized(const struct prepared *p, const struct msc_call *call,
                            int32_t n_inputs) {
    int64_t n = 0;
    if (call->n_quantized != 1 || !cpu_copies_inputs(p) || call->outputs[0].data ||
        call->quantized[0].view.dtype == MSC_DTYPE_F32) {
        return false;
    }
    for (int32_t i = 0; i < n_inputs; i++) {
        const struct msc_view *in = &call->inputs[i];
        bool is_by_channel = in->quant && msc_quant_is_by_channel(in->quant);
        if ((in->dtype != MSC_DTYPE_F32 && !in->quant) || is_by_channel) {
            return false;
        }
        n += msc_view_n_elements(&call->inputs[i]);
    }
    return n <= msc_view_n_elements(&call->outputs[0]);
}

// Quantises the inputs with the quantisation of the output, then runs the family, which moves
// elements of any type.
static enum msc_status quantize_and_run(const struct prepared *p, struct msc_cpu_backend *b,
                                        const struct msc_call *call, int32_t n_inputs, int thread) {
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    struct msc_call bytes = *call;
    size_t n_bytes = 0;
    void *memory = NULL;
    for (int32_t i = 0; i < n_inputs; i++) {
        n_bytes += msc_cpu_round_up((size_t)msc_view_n_elements(&call->inputs[i]));
    }
    MSC_TRY(msc_cpu_get_result(&memory, b, thread, n_bytes));
    for (int32_t i = 0; i < n_inputs; i++) {
        struct msc_quantized quantized = {call->inputs[i], call->quantized[0].quant};
        quantized.view.dtype = call->quantized[0].view.dtype;
        quantized.view.quant = quantized.quant;
        quantized.view.data = memory;
        quantize_input(&quantized, &call->inputs[i]);
        inputs[i] = quantized.view;
        memory = (char *)memory + msc_cpu_round_up((size_t)msc_view_n_elements(&inputs[i]));
    }
    bytes.inputs = inputs;
    bytes.outputs = &call->quantized[0].view;
    bytes.n_quantized = 0;
    return p->family->run(p->kernel, b, &bytes, thread);
}

static enum msc_status cpu_run_family(const struct prepared *p, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    bool is_apart = call->n_quantized > 0 && (!p->family->quantizes || cpu_copies_inputs(p));
    return is_apart ? run_and_quantize(p, b, call, thread)
                    : p->family->run(p->kernel, b, call, thread);
}

// True if an input must be dequantised because the family cannot read its integers.
static bool is_float_input(const struct prepared *p, const struct msc_view *in, int32_t input) {
    if (!in->quant || !p->family->reads_integers) {
        return in->quant != NULL;
    }
    return msc_quant_is_by_channel(in->quant) &&
           !(p->family->reads_channels && p->family->reads_channels(p->kernel, input, in->quant));
}

static enum msc_status dequantize_and_run(const struct prepared *p, struct msc_cpu_backend *b,
                                          const struct msc_call *call, int32_t n_inputs,
                                          int thread) {
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    struct msc_call floats = *call;
    size_t n_bytes = 0;
    void *memory = NULL;
    for (int32_t i = 0; i < n_inputs; i++) {
        inputs[i] = call->inputs[i];
        if (is_float_input(p, &inputs[i], i)) {
            n_bytes += msc_cpu_round_up((size_t)msc_view_n_elements(&inputs[i]) * sizeof(float));
        }
    }
    MSC_TRY(msc_cpu_get_floats(&memory, b, thread, n_bytes));
    for (int32_t i = 0; i < n_inputs; i++) {
        int64_t n = msc_view_n_elements(&inputs[i]);
        if (is_float_input(p, &inputs[i], i)) {
            msc_view_dequantize(memory, &inputs[i]);
            inputs[i].data = memory;
            inputs[i].dtype = MSC_DTYPE_F32;
            inputs[i].quant = NULL;
            memory = (char *)memory + msc_cpu_round_up((size_t)n * sizeof(float));
        }
    }
    floats.inputs = inputs;
    return cpu_run_family(p, b, &floats, thread);
}

// True if any input must be dequantised. False for a step that moves integers without converting
// them.
static bool needs_floats(const struct prepared *p, const struct msc_call *call, int32_t n_inputs) {
    bool has_any = false;
    for (int32_t i = 0; i < n_inputs; i++) {
        has_any = has_any || is_float_input(p, &call->inputs[i], i);
    }
    return has_any && !call->outputs[0].quant;
}

static enum msc_status cpu_run(struct msc_backend *base, const struct msc_step *step,
                               const struct msc_call calls[], size_t n, int thread) {
    const struct prepared *p = step->kernel;
    struct msc_cpu_backend *b = msc_cpu_from(base);
    for (size_t i = 0; i < n; i++) {
        const struct msc_call *call = &calls[i];
        for (int32_t k = 0; k < call->n_quantized; k++) {
            MSC_TRY(
                msc_cpu_check_quantized(call->quantized[k].view.dtype, call->quantized[k].quant));
        }
        if (moves_quantized(p, call, step->n_inputs)) {
            MSC_TRY(quantize_and_run(p, b, call, step->n_inputs, thread));
        } else if (needs_floats(p, call, step->n_inputs)) {
            MSC_TRY(dequantize_and_run(p, b, call, step->n_inputs, thread));
        } else {
            MSC_TRY(cpu_run_family(p, b, call, thread));
        }
    }
    return MSC_OK;
}

static bool cpu_quantizes(const struct msc_backend *base, const struct msc_step *step) {
    (void)base;
    const struct prepared *p = step->kernel;
    return p->has_quantized;
}

static bool cpu_is_movement(const struct msc_backend *base, const struct msc_step *step) {
    (void)base;
    const struct prepared *p = step->kernel;
    return p->has_quantized && p->family->is_movement && p->family->is_movement(p->kernel);
}

static enum msc_status cpu_mask(struct msc_backend *b, const struct msc_view *in,
                                const struct msc_view *out, const struct msc_channel_mask *mask,
                                int thread) {
    int64_t outer, inner;
    (void)b;
    (void)thread;
    MSC_TRY(msc_mask_place(&outer, &inner, in, mask));
    msc_mask_run(out->data, in->data, outer, inner, mask);
    return MSC_OK;
}

// ---- Memory -----------------------------------------------------------------------------------

static void *cpu_allocate(struct msc_backend *b, size_t n_bytes) {
    (void)b;
    return msc_alloc_aligned(n_bytes);
}

static void cpu_release_memory(struct msc_backend *b, void *memory, size_t n_bytes) {
    (void)b;
    (void)n_bytes;
    msc_free_aligned(memory);
}

static enum msc_status cpu_upload(struct msc_backend *b, void *memory, const void *host,
                                  size_t n_bytes) {
    (void)b;
    memcpy(memory, host, n_bytes);
    return MSC_OK;
}

static enum msc_status cpu_download(struct msc_backend *b, void *host, const void *memory,
                                    size_t n_bytes) {
    (void)b;
    memcpy(host, memory, n_bytes);
    return MSC_OK;
}

const struct msc_backend_def msc_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .numerics = cpu_numerics,
    .fuses = msc_family_fuses,
    .layouts = msc_family_layouts,
    .prepare = cpu_prepare,
    .release = cpu_release,
    .place = cpu_place,
    .variants = cpu_variants,
    .choose = cpu_choose,
    .keep = msc_cpu_keep,
    .weights = cpu_weights,
    .release_weights = cpu_release_weights,
    .run = cpu_run,
    .quantizes = cpu_quantizes,
    .is_movement = cpu_is_movement,
    .quantize = msc_cpu_quantize,
    .mask = cpu_mask,
    .memory_is_host = true,
    .allocate = cpu_allocate,
    .release_memory = cpu_release_memory,
    .upload = cpu_upload,
    .download = cpu_download,
};

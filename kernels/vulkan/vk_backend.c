// The definition of the backend: decides where each step runs.
#include "base/alloc.h"
#include "kernels/lowering/families.h"
#include "kernels/vulkan/vk_gemm.h"
#include "kernels/vulkan/vk_host.h"
#include "kernels/vulkan/vk_joint.h"
#include "kernels/vulkan/vulkan.h"

#include <stdio.h>

// A step's kernel, on the device or on the host.
struct prepared {
    const struct msc_vk_family *family; // NULL: the step runs on the host
    void *kernel;
    bool is_one_float; // the only output is a float32 tensor
    struct msc_vk_host_step *host;
};

// ---- Life cycle -------------------------------------------------------------------------------

static void vulkan_close(struct msc_backend *base) {
    struct msc_vk_backend *b = msc_vk_from(base);
    if (b->vk) {
        msc_vk_free(b->vk, b->nothing);
    }
    msc_vk_close(b->vk);
    msc_backend_close(b->host);
    msc_free(b);
}

static struct msc_hash hash_shaders(void) {
    struct msc_hash h = msc_hash_bytes(NULL, 0);
    for (const struct msc_vk_shader_code *c = msc_vk_shader_codes; c->name; c++) {
        h = msc_hash_add_bytes(msc_hash_add_text(h, c->name), c->words, c->n_bytes);
    }
    return h;
}

static enum msc_status vulkan_init(struct msc_vk_backend *b) {
    static const float zeros[64];
    MSC_TRY(msc_vk_open(&b->vk, &b->base.options));
    MSC_TRY(msc_vk_find_budget(b->vk));
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_compare_matrix(b);
    msc_vk_unlock(b->vk);
    MSC_TRY(status);
    MSC_TRY(msc_vk_upload_new(b->vk, &b->nothing, zeros, sizeof(zeros)));
    MSC_TRY(b->base.options.fallback->open(&b->host, &b->base.options));
    char shaders[MSC_HASH_TEXT_BYTES];
    msc_hash_format(shaders, hash_shaders());
    // The numerics line of the fallback backend identifies the kernels of steps that run on the
    // host.
    snprintf(
        b->numerics, sizeof(b->numerics),
        "vulkan/%d %.100s, %.200s, family %s, %s%s, shaders %.8s; %.200s", MSC_VK_KERNELS_VERSION,
        b->vk->properties.deviceName, b->vk->driver, b->vk->tuning.is_family_u ? "u" : "g",
        b->vk->divides_exactly ? "exact division" : "repaired division",
        b->vk->keeps_denormals ? "" : ", no denormals", shaders, b->host->def->numerics(b->host));
    return MSC_OK;
}

static enum msc_status vulkan_open(struct msc_backend **out,
                                   const struct msc_backend_options *options) {
    if (options->n_threads < 1) {
        return MSC_FAIL(MSC_E_INVALID, "vulkan: n_threads is %d, but must be at least 1",
                        options->n_threads);
    }
    struct msc_vk_backend *b = msc_alloc_zero(1, sizeof(*b));
    MSC_TRY(MSC_ALLOCATED(b));
    b->base.def = &msc_backend_vulkan;
    b->base.options = *options;
    enum msc_status status = vulkan_init(b);
    if (status != MSC_OK) {
        vulkan_close(&b->base);
        return status;
    }
    *out = &b->base;
    return MSC_OK;
}

static const char *vulkan_numerics(const struct msc_backend *b) {
    return msc_vk_from(b)->numerics;
}

int msc_vulkan_n_messages(const struct msc_backend *b) {
    return __atomic_load_n(&msc_vk_from(b)->vk->n_messages, __ATOMIC_RELAXED);
}

static bool vulkan_variants(const struct msc_backend *base, const struct msc_step *step,
                            struct msc_variants *out) {
    const struct prepared *p = step->kernel;
    return p && p->family && p->family->gemm &&
           msc_vk_gemm_variants(p->family->gemm(p->kernel), msc_vk_from(base)->vk, out);
}

static void vulkan_choose(struct msc_backend *base, const struct msc_step *step, int variant) {
    const struct prepared *p = step->kernel;
    if (p && p->family && p->family->gemm) {
        msc_vk_gemm_choose_variant(p->family->gemm(p->kernel), msc_vk_from(base)->vk, variant);
    }
}

static enum msc_status vulkan_keep(struct msc_backend *base, const struct msc_kept_choice choices[],
                                   size_t n) {
    return msc_vk_tuned_keep(msc_vk_from(base)->vk, choices, n);
}

// ---- Steps ------------------------------------------------------------------------------------

// True if the step has a constant that is too large for a block.
static bool has_large_constants(const struct msc_vk_backend *b, const struct msc_plan *plan,
                                const struct msc_step *step) {
    for (int32_t i = 0; i < step->n_joints; i++) {
        const struct msc_step_joint *j = &step->joints[i];
        for (int32_t k = 0; k < j->n_operands; k++) {
            const struct msc_operand *o = &j->operands[k];
            if (o->kind == MSC_OPERAND_WEIGHT &&
                !msc_vk_fits(
                    b, (int64_t)msc_array_n_bytes(msc_graph_tensor(plan->graph, o->index)->data))) {
                return true;
            }
        }
    }
    return false;
}

static enum msc_status prepare_on_device(struct prepared *p, struct msc_vk_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_vk_family *family = msc_vk_family_of(plan->graph, step);
    if (!family || has_large_constants(b, plan, step)) {
        return MSC_E_UNSUPPORTED;
    }
    msc_vk_lock(b->vk);
    enum msc_status status = family->init ? msc_vk_joint_prepare(&p->kernel, b, family, plan, step)
                                          : family->prepare(&p->kernel, b, plan, step);
    msc_vk_unlock(b->vk);
    p->family = status == MSC_OK ? family : NULL;
    p->is_one_float = step->n_outputs == 1 && plan->values[step->outputs[0]].dtype == MSC_DTYPE_F32;
    return status;
}

static enum msc_status vulkan_prepare(struct msc_backend *base, const struct msc_plan *plan,
                                      struct msc_step *step) {
    struct msc_vk_backend *b = msc_vk_from(base);
    struct prepared *p = msc_alloc_zero(1, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    enum msc_status status = prepare_on_device(p, b, plan, step);
    if (status == MSC_E_UNSUPPORTED) {
        status = msc_vk_host_prepare(&p->host, b, plan, step);
        msc_log(base->options.log, MSC_LOG_DEBUG, "vulkan: joint %s runs on the host",
                step->n_joints > 0 ? step->joints[0].joint->name : "(reorder)");
    }
    if (status != MSC_OK) {
        msc_free(p);
        return status;
    }
    step->kernel = p;
    return MSC_OK;
}

static void vulkan_release(struct msc_backend *base, struct msc_step *step) {
    struct msc_vk_backend *b = msc_vk_from(base);
    struct prepared *p = step->kernel;
    if (p) {
        if (p->family) {
            msc_vk_lock(b->vk);
            p->family->release(p->kernel, b);
            msc_vk_unlock(b->vk);
        }
        msc_vk_host_release(p->host, b);
        msc_free(p);
        step->kernel = NULL;
    }
}

static struct msc_placement vulkan_place(const struct msc_backend *b, const struct msc_step *step) {
    const struct prepared *p = step->kernel;
    return p->family ? (struct msc_placement){msc_backend_vulkan.name, p->family->name}
                     : msc_vk_host_place(p->host, msc_vk_from(b));
}

static enum msc_status vulkan_weights(struct msc_backend *base, const struct msc_step *step,
                                      const struct msc_edit *const edits[], void **out,
                                      size_t *n_bytes) {
    struct msc_vk_backend *b = msc_vk_from(base);
    const struct prepared *p = step->kernel;
    *out = NULL;
    *n_bytes = 0;
    if (!p->family) {
        return msc_vk_host_weights(p->host, b, edits, out, n_bytes);
    }
    if (!p->family->weights) {
        return MSC_OK;
    }
    return p->family->weights(p->kernel, b, edits, out, n_bytes);
}

static void vulkan_release_weights(struct msc_backend *base, const struct msc_step *step,
                                   void *weights) {
    struct msc_vk_backend *b = msc_vk_from(base);
    const struct prepared *p = step->kernel;
    if (!p->family) {
        msc_vk_host_release_weights(p->host, b, weights);
    } else if (weights) {
        msc_vk_lock(b->vk);
        p->family->release_weights(weights, b);
        msc_vk_unlock(b->vk);
    }
}

// The device makes quantised variants only for steps with a single output, in float32.
static bool vulkan_quantizes(const struct msc_backend *base, const struct msc_step *step) {
    const struct prepared *p = step->kernel;
    (void)base;
    return p->family && p->is_one_float;
}

// Calls in the form that their family supports. Quantised variants that the family does not write
// are removed from the calls, and the float32 outputs then get memory. Inputs that the family
// cannot read as integers are converted to floats.
struct run {
    int n;
    int32_t n_inputs;
    struct msc_call calls[MSC_VK_MAX_CALLS];
    struct msc_view *inputs;      // [n][n_inputs]; NULL: the inputs of the original calls
    struct msc_vk_block **floats; // [n_inputs][n] inputs converted to floats
    struct msc_view outputs[MSC_VK_MAX_CALLS];
    struct msc_vk_block *made[MSC_VK_MAX_CALLS];
};

static enum msc_status prepare_calls(struct run *r, const struct prepared *p,
                                     struct msc_vk_backend *b, const struct msc_call calls[]) {
    for (int i = 0; i < r->n; i++) {
        r->calls[i] = calls[i];
        if (calls[i].n_quantized == 0 ||
            (p->family->writes_quantized &&
             msc_vk_can_write(calls[i].quantized, calls[i].n_quantized))) {
            continue;
        }
        r->calls[i].n_quantized = 0;
        if (!calls[i].outputs[0].data) {
            r->outputs[i] = calls[i].outputs[0];
            MSC_TRY(msc_vk_take(&r->made[i], b, 1, msc_view_n_bytes(&r->outputs[i])));
            r->outputs[i].data = r->made[i];
            r->calls[i].outputs = &r->outputs[i];
        }
    }
    return MSC_OK;
}

// True if input k must be converted to floats for the family, in at least one call.
static bool is_float_input(const struct run *r, const struct prepared *p, int32_t k) {
    for (int i = 0; i < r->n; i++) {
        const struct msc_quant *q = r->calls[i].inputs[k].quant;
        bool is_read = q && p->family->reads_integers &&
                       (!msc_quant_is_by_channel(q) ||
                        (p->family->reads_channels && p->family->reads_channels(p->kernel, k, q)));
        if (q && !is_read) {
            return true;
        }
    }
    return false;
}

static enum msc_status vulkan_make_floats(struct run *r, const struct prepared *p,
                                          struct msc_vk_backend *b) {
    size_t n = (size_t)r->n * (size_t)r->n_inputs;
    bool has_any = false;
    for (int32_t k = 0; k < r->n_inputs; k++) {
        has_any = has_any || is_float_input(r, p, k);
    }
    if (!has_any) {
        return MSC_OK;
    }
    r->inputs = msc_alloc_zero(n, sizeof(r->inputs[0]));
    r->floats = msc_alloc_zero(n, sizeof(r->floats[0]));
    MSC_TRY(MSC_ALLOCATED(r->inputs && r->floats));
    for (int32_t k = 0; k < r->n_inputs; k++) {
        struct msc_vk_block **made = &r->floats[k * r->n];
        if (is_float_input(r, p, k)) {
            MSC_TRY(msc_vk_expand_input(made, b, r->calls, r->n, k));
        }
        for (int i = 0; i < r->n; i++) {
            struct msc_view *v = &r->inputs[i * r->n_inputs + k];
            *v = r->calls[i].inputs[k];
            if (made[i]) {
                v->data = made[i];
                v->dtype = MSC_DTYPE_F32;
                v->quant = NULL;
            }
        }
    }
    for (int i = 0; i < r->n; i++) {
        r->calls[i].inputs = &r->inputs[i * r->n_inputs];
    }
    return MSC_OK;
}

static void vulkan_finish_floats(struct run *r, struct msc_vk_backend *b) {
    if (r->floats) {
        msc_vk_give(r->floats, b, r->n * r->n_inputs);
    }
    msc_free(r->floats);
    msc_free(r->inputs);
}

// Makes the quantised variants that the family did not write.
static enum msc_status make_quantized(struct run *r, struct msc_vk_backend *b,
                                      const struct msc_call calls[]) {
    const struct msc_vk_block *results[MSC_VK_MAX_CALLS];
    struct msc_call left[MSC_VK_MAX_CALLS];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        if (calls[i].n_quantized > r->calls[i].n_quantized) {
            results[n] = msc_vk_block_of(&r->calls[i].outputs[0]);
            left[n++] = calls[i];
        }
    }
    return n == 0 ? MSC_OK
                  : msc_vk_quantize_results(b, left, results, n,
                                            (uint64_t)msc_view_n_elements(&calls[0].outputs[0]));
}

static enum msc_status run_on_device(const struct msc_step *step, struct msc_vk_backend *b,
                                     const struct msc_call calls[], int n) {
    const struct prepared *p = step->kernel;
    struct run r = {.n = n, .n_inputs = step->n_inputs};
    uint64_t before = b->vk->block_peak = b->vk->block_bytes;
    enum msc_status status;
    MSC_TRY_OUT(prepare_calls(&r, p, b, calls));
    MSC_TRY_OUT(vulkan_make_floats(&r, p, b));
    MSC_TRY_OUT(p->family->run(p->kernel, b, r.calls, n));
    status = make_quantized(&r, b, calls);
out:
    msc_vk_give(r.made, b, n);
    vulkan_finish_floats(&r, b);
    uint64_t besides = b->vk->block_peak - before;
    b->vk->besides_bytes = besides > b->vk->besides_bytes ? besides : b->vk->besides_bytes;
    return status;
}

static enum msc_status vulkan_run(struct msc_backend *base, const struct msc_step *step,
                                  const struct msc_call calls[], size_t n, int thread) {
    struct msc_vk_backend *b = msc_vk_from(base);
    const struct prepared *p = step->kernel;
    enum msc_status status = MSC_OK;
    for (size_t i = 0; !p->family && i < n; i++) {
        MSC_TRY(msc_vk_host_run(p->host, b, &calls[i], thread));
    }
    if (!p->family) {
        return MSC_OK;
    }
    msc_vk_lock(b->vk);
    for (size_t i = 0; i < n && status == MSC_OK; i += MSC_VK_MAX_CALLS) {
        size_t rest = n - i;
        status = run_on_device(step, b, &calls[i],
                               rest < MSC_VK_MAX_CALLS ? (int)rest : MSC_VK_MAX_CALLS);
    }
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vulkan_quantize(struct msc_backend *base, const struct msc_view *in,
                                       const struct msc_view *out, const struct msc_quant *q,
                                       int thread) {
    struct msc_vk_backend *b = msc_vk_from(base);
    struct msc_vk_quantizing item = {msc_vk_block_of(in), {*out, q}};
    (void)thread;
    msc_vk_lock(b->vk);
    enum msc_status status = msc_quant_is_by_channel(q)
                                 ? msc_vk_quantize_channels(b, in, out, q)
                                 : msc_vk_quantize(b, &item, 1, (uint64_t)msc_view_n_elements(in));
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vulkan_range(struct msc_backend *base, const struct msc_view *in,
                                    float *least, float *greatest) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_range(least, greatest, b, in);
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vulkan_mask(struct msc_backend *base, const struct msc_view *in,
                                   const struct msc_view *out, const struct msc_channel_mask *mask,
                                   int thread) {
    struct msc_vk_backend *b = msc_vk_from(base);
    (void)thread;
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_mask(b, in, out, mask);
    msc_vk_unlock(b->vk);
    return status;
}

static bool vulkan_compares(struct msc_backend *base, const struct msc_view *z, int64_t n) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    bool compares = msc_vk_compares(b, z, n);
    msc_vk_unlock(b->vk);
    return compares;
}

static enum msc_status vulkan_compare(struct msc_backend *base, const struct msc_comparison items[],
                                      size_t n) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_compare(b, items, n);
    msc_vk_unlock(b->vk);
    return status;
}

// ---- Memory -----------------------------------------------------------------------------------

static void *vulkan_allocate(struct msc_backend *base, size_t n_bytes) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    struct msc_vk_block *block = msc_vk_allocate(b->vk, n_bytes);
    msc_vk_unlock(b->vk);
    return block;
}

static void vulkan_release_memory(struct msc_backend *base, void *memory, size_t n_bytes) {
    struct msc_vk_backend *b = msc_vk_from(base);
    (void)n_bytes;
    msc_vk_lock(b->vk);
    msc_vk_free(b->vk, memory);
    msc_vk_unlock(b->vk);
}

static void vulkan_memory(struct msc_backend *base, struct msc_backend_memory *out) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    msc_vk_get_memory(b->vk, out);
    msc_vk_unlock(b->vk);
}

static void vulkan_transfers(struct msc_backend *base, struct msc_backend_transfers *out) {
    struct msc_vk *vk = msc_vk_from(base)->vk;
    msc_vk_lock(vk);
    *out = (struct msc_backend_transfers){.to_device_bytes = vk->uploaded_bytes,
                                          .to_host_bytes = vk->downloaded_bytes,
                                          .n_submissions = vk->n_submitted,
                                          .n_waits = vk->n_waits};
    msc_vk_unlock(vk);
}

static enum msc_status vulkan_upload(struct msc_backend *base, void *memory, const void *host,
                                     size_t n_bytes) {
    struct msc_vk_backend *b = msc_vk_from(base);
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_upload(b->vk, memory, host, n_bytes);
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vulkan_download(struct msc_backend *base, void *host, const void *memory,
                                       size_t n_bytes) {
    struct msc_vk_backend *b = msc_vk_from(base);
    struct msc_vk_copy copy = {host, memory, n_bytes};
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_download(b->vk, &copy, 1);
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vulkan_download_all(struct msc_backend *base, void *const hosts[],
                                           const void *const memories[], const size_t n_bytes[],
                                           size_t n) {
    struct msc_vk_backend *b = msc_vk_from(base);
    struct msc_vk_copy *copies = msc_alloc((n + 1) * sizeof(*copies));
    MSC_TRY(MSC_ALLOCATED(copies));
    for (size_t i = 0; i < n; i++) {
        copies[i] = (struct msc_vk_copy){hosts[i], memories[i], n_bytes[i]};
    }
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_download(b->vk, copies, n);
    msc_vk_unlock(b->vk);
    msc_free(copies);
    return status;
}

const struct msc_backend_def msc_backend_vulkan = {
    .name = "vulkan",
    .open = vulkan_open,
    .close = vulkan_close,
    .numerics = vulkan_numerics,
    .fuses = msc_family_fuses,
    .layouts = msc_family_layouts,
    .prepare = vulkan_prepare,
    .release = vulkan_release,
    .place = vulkan_place,
    .variants = vulkan_variants,
    .choose = vulkan_choose,
    .keep = vulkan_keep,
    .weights = vulkan_weights,
    .release_weights = vulkan_release_weights,
    .max_calls = MSC_VK_MAX_CALLS,
    .run = vulkan_run,
    .quantizes = vulkan_quantizes,
    .quantize = vulkan_quantize,
    .range = vulkan_range,
    .mask = vulkan_mask,
    .compares = vulkan_compares,
    .compare = vulkan_compare,
    .allocate = vulkan_allocate,
    .release_memory = vulkan_release_memory,
    .memory = vulkan_memory,
    .transfers = vulkan_transfers,
    .upload = vulkan_upload,
    .download = vulkan_download,
    .download_all = vulkan_download_all,
};

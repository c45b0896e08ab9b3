#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "base/rng.h"

#include <string.h>

// Multiplies each element by 1 + 2^-22 if its bit of `bits` is set, otherwise by 1 - 2^-22.
MSC_SIMD static void perturb_block(float x[], int64_t n, uint64_t bits) {
    const float step = 1.0f / (1 << 22);
    for (int64_t i = 0; i < n; i++) {
        x[i] *= bits >> i & 1 ? 1.0f + step : 1.0f - step;
    }
}

enum { NOISE_BLOCK = 64, NOISE_PIECE = 256 * NOISE_BLOCK }; // in elements

static void perturb_elements(float x[], int64_t n, struct msc_rng *rng) {
    for (int64_t i = 0; i < n; i += NOISE_BLOCK) {
        perturb_block(x + i, n - i < NOISE_BLOCK ? n - i : NOISE_BLOCK, msc_rng_u64(rng));
    }
}

// The expression's hash includes the trial's noise seed and everything that the expression's value
// depends on. So different tensors get different noise, and a tensor's noise does not depend on
// what else is evaluated.
static void seed_noise(struct msc_rng *rng, const struct msc_expr *expr, int32_t batch) {
    msc_rng_seed(rng, expr->hash.low, expr->hash.high + (uint64_t)batch);
}

// Reads the elements from index `first` on as float32; `in` may hold integers under another
// quantisation.
static void read_elements(float out[], const struct msc_view *in, const void *data, int64_t first,
                          int64_t n) {
    const char *from = (const char *)data + (size_t)first * msc_dtype_bytes(in->dtype);
    if (in->quant) {
        msc_dequantize_run(out, from, in->dtype, n, in->quant);
    } else {
        memcpy(out, from, (size_t)n * sizeof(out[0]));
    }
}

static void make_float(struct msc_view *v, void *data) {
    v->data = data;
    v->dtype = MSC_DTYPE_F32;
    v->quant = NULL;
}

// Quantises in host memory, piece by piece, so that the float32 copy stays in the processor's
// cache. If `rng` is not NULL, perturbs the copy.
static enum msc_status quantize_pieces(struct msc_backend *b, struct msc_rng *rng,
                                       struct msc_view in, struct msc_view out,
                                       const struct msc_quant *edit, int thread) {
    int64_t n = msc_view_n_elements(&in);
    const struct msc_view from = in;
    char *to = out.data;
    float *piece = msc_alloc_aligned(NOISE_PIECE * sizeof(piece[0]));
    enum msc_status status =
        piece ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory while quantising");
    make_float(&in, piece);
    in.layout = out.layout = MSC_LAYOUT_NCHW;
    in.n_dims = out.n_dims = 1;
    for (int64_t i = 0; status == MSC_OK && i < n; i += NOISE_PIECE) {
        in.dims[0] = out.dims[0] = n - i < NOISE_PIECE ? n - i : NOISE_PIECE;
        out.data = to + (size_t)i * msc_dtype_bytes(out.dtype);
        read_elements(piece, &from, from.data, i, in.dims[0]);
        if (rng) {
            perturb_elements(piece, in.dims[0], rng);
        }
        status = b->def->quantize(b, &in, &out, edit, thread);
    }
    msc_free_aligned(piece);
    return status;
}

// Stores in the entry how a dynamic quantisation quantises these elements.
static const struct msc_quant *find_dynamic(struct msc_entry *entry, const struct msc_quant *edit,
                                            const float x[], int64_t n) {
    msc_quant_find_dynamic(&entry->found_scale, &entry->found_zero, x, n);
    entry->found = *edit;
    entry->found.is_dynamic = false;
    entry->found.scales = &entry->found_scale;
    entry->found.zero_points = &entry->found_zero;
    msc_quant_seal(&entry->found);
    return &entry->found;
}

// Quantises a copy of the whole tensor in host memory. Needed if the tensor is in a device's memory
// (the copy is downloaded, then uploaded), has one scale per channel, or is perturbed before its
// range is found.
static enum msc_status quantize_copy(struct msc_backend *b, struct msc_rng *rng, struct msc_view in,
                                     struct msc_view out, const struct msc_quant *edit,
                                     struct msc_entry *entry, int thread) {
    const struct msc_backend_def *def = b->def;
    const struct msc_view from = in;
    int64_t n = msc_view_n_elements(&from);
    size_t n_bytes = (size_t)n * sizeof(float);
    char *stored = msc_alloc_aligned(msc_view_n_bytes(&from) + 1);
    float *host = msc_alloc_aligned(n_bytes + 1);
    void *copy = def->allocate(b, n_bytes);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(stored && host && copy));
    MSC_TRY_OUT(def->download(b, stored, from.data, msc_view_n_bytes(&from)));
    read_elements(host, &from, stored, 0, n);
    if (rng) {
        perturb_elements(host, n, rng);
    }
    if (edit->is_dynamic) {
        out.quant = edit = find_dynamic(entry, edit, host, n);
    }
    MSC_TRY_OUT(def->upload(b, copy, host, n_bytes));
    make_float(&in, copy);
    status = def->quantize(b, &in, &out, edit, thread);
out:
    if (copy) {
        def->release_memory(b, copy, n_bytes);
    }
    msc_free_aligned(stored);
    msc_free_aligned(host);
    return status;
}

// Lets the backend find the range of a dynamic quantisation, so that the tensor is not copied.
static enum msc_status quantize_over_range(struct msc_backend *b, const struct msc_view *in,
                                           struct msc_view out, const struct msc_quant *edit,
                                           struct msc_entry *entry, int thread) {
    float ends[2];
    MSC_TRY(b->def->range(b, in, &ends[0], &ends[1]));
    out.quant = find_dynamic(entry, edit, ends, 2);
    return b->def->quantize(b, in, &out, out.quant, thread);
}

enum msc_status msc_schedule__quantize(struct msc_schedule *s, const struct msc_node *node,
                                       int thread) {
    struct msc_backend *b = s->options.backend;
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    struct msc_view in = msc_schedule__view(s, node, expr->index, msc_schedule__input(s, node, 0));
    struct msc_view out = msc_schedule__quantized_view(msc_schedule__plan(s, node), expr->index,
                                                       expr->edit, node->entry->outputs[0].data);
    bool is_host = b->def->memory_is_host, is_dynamic = expr->edit->is_dynamic;
    // Backends quantise only float32.
    if (!expr->noise_seed && !in.quant && !is_dynamic) {
        return b->def->quantize(b, &in, &out, expr->edit, thread);
    }
    if (!expr->noise_seed && !in.quant && is_host) {
        out.quant = find_dynamic(node->entry, expr->edit, in.data, msc_view_n_elements(&in));
        return b->def->quantize(b, &in, &out, out.quant, thread);
    }
    if (!expr->noise_seed && !in.quant && b->def->range) {
        enum msc_status status = quantize_over_range(b, &in, out, expr->edit, node->entry, thread);
        if (status != MSC_E_UNSUPPORTED) {
            return status;
        }
    }
    struct msc_rng rng;
    seed_noise(&rng, expr, node->batch);
    struct msc_rng *noise = expr->noise_seed ? &rng : NULL;
    bool in_pieces = is_host && !is_dynamic && !msc_quant_is_by_channel(expr->edit);
    return in_pieces ? quantize_pieces(b, noise, in, out, expr->edit, thread)
                     : quantize_copy(b, noise, in, out, expr->edit, node->entry, thread);
}

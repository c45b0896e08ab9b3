#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "base/rng.h"

#include <string.h>

// Elements moved by one part in 2^22, up where a bit is set, down where not.
MSC_SIMD static void perturb_block(float x[], int64_t n, uint64_t bits) {
    const float step = 1.0f / (1 << 22);
    for (int64_t i = 0; i < n; i++) {
        x[i] *= bits >> i & 1 ? 1.0f + step : 1.0f - step;
    }
}

enum { NOISE_BLOCK = 64, NOISE_PIECE = 256 * NOISE_BLOCK }; // elements

static void perturb_elements(float x[], int64_t n, struct msc_rng *rng) {
    for (int64_t i = 0; i < n; i += NOISE_BLOCK) {
        perturb_block(x + i, n - i < NOISE_BLOCK ? n - i : NOISE_BLOCK, msc_rng_u64(rng));
    }
}

// The expression's hash takes in the seed and all that its value comes from, so that no two tensors
// move alike, and none differently in other company.
static void seed_noise(struct msc_rng *rng, const struct msc_expr *expr, int32_t batch) {
    msc_rng_seed(rng, expr->hash.low, expr->hash.high + (uint64_t)batch);
}

// Memory of the host: piece by piece, so that the perturbed copy stays in the cache.
static enum msc_status quantize_pieces(struct msc_backend *b, struct msc_rng *rng,
                                       struct msc_view in, struct msc_view out,
                                       const struct msc_quant *edit, int thread) {
    int64_t n = msc_view_n_elements(&in);
    const float *from = in.data;
    char *to = out.data;
    float *piece = msc_alloc_aligned(NOISE_PIECE * sizeof(piece[0]));
    enum msc_status status =
        piece ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for the noise of a loss");
    in.data = piece;
    in.layout = out.layout = MSC_LAYOUT_NCHW;
    in.n_dims = out.n_dims = 1;
    for (int64_t i = 0; status == MSC_OK && i < n; i += NOISE_PIECE) {
        in.dims[0] = out.dims[0] = n - i < NOISE_PIECE ? n - i : NOISE_PIECE;
        out.data = to + (size_t)i * msc_dtype_bytes(out.dtype);
        memcpy(piece, from + i, (size_t)in.dims[0] * sizeof(piece[0]));
        perturb_elements(piece, in.dims[0], rng);
        status = b->def->quantize(b, &in, &out, edit, thread);
    }
    msc_free_aligned(piece);
    return status;
}

// Memory of a device: the copy goes there and back.
static enum msc_status quantize_copy(struct msc_backend *b, struct msc_rng *rng, struct msc_view in,
                                     const struct msc_view *out, const struct msc_quant *edit,
                                     int thread) {
    const struct msc_backend_def *def = b->def;
    size_t n_bytes = msc_view_n_bytes(&in);
    float *host = msc_alloc_aligned(n_bytes + 1);
    void *copy = def->allocate(b, n_bytes);
    enum msc_status status = MSC_OK;
    if (!host || !copy) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for the noise of a loss");
        goto out;
    }
    MSC_TRY_OUT(def->download(b, host, in.data, n_bytes));
    perturb_elements(host, msc_view_n_elements(&in), rng);
    MSC_TRY_OUT(def->upload(b, copy, host, n_bytes));
    in.data = copy;
    status = def->quantize(b, &in, out, edit, thread);
out:
    if (copy) {
        def->release_memory(b, copy, n_bytes);
    }
    msc_free_aligned(host);
    return status;
}

enum msc_status msc_schedule__quantize(struct msc_schedule *s, const struct msc_node *node,
                                       int thread) {
    struct msc_backend *b = s->options.backend;
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    struct msc_view in = msc_schedule__view(s, node, expr->index, msc_schedule__input(s, node, 0));
    struct msc_view out = msc_schedule__quantized_view(msc_schedule__plan(s, node), expr->index,
                                                       expr->edit, node->entry->outputs[0].data);
    if (expr->noise_seed) {
        struct msc_rng rng;
        seed_noise(&rng, expr, node->batch);
        return b->def->memory_is_host ? quantize_pieces(b, &rng, in, out, expr->edit, thread)
                                      : quantize_copy(b, &rng, in, &out, expr->edit, thread);
    }
    return b->def->quantize(b, &in, &out, expr->edit, thread);
}

// Computes convolutions of 3 x 3 windows by Winograd's algorithm (simd_winograd_loops.h).
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <string.h>

static bool has_small_windows(const struct msc_gemm_desc *d) {
    if (d->kind != MSC_GEMM_CONV || d->n_spatial != 2 || d->groups != 1 || d->is_input_first) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (d->kernel[i] != 3 || d->strides[i] != 1 || d->dilation[i] != 1) {
            return false;
        }
    }
    return true;
}

static int64_t divide_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

// Compares the instructions of both ways. A direct convolution multiplies 9 weights for each
// output. The algorithm multiplies 36 elements for each tile of 16 outputs, and converts each
// tile's inputs and outputs. It also reads weights of eight times the size once for all images,
// which takes longest for small images.
static bool is_faster(const struct msc_gemm_desc *d, int64_t bytes_per_pair) {
    // measured, in vectors of products
    const double per_input = 12, per_output = 20, per_weight = 100;
    double in = (double)d->in_channels, out = (double)d->out_channels;
    double tiles = (double)(divide_up(d->out[0], 4) * divide_up(d->out[1], 4));
    double direct = 9 * in * out * (double)(d->out[0] * d->out[1]) / (double)bytes_per_pair;
    double converting = 32 * tiles * (per_input * in + per_output * out);
    double reading = per_weight * in * out / (double)d->batch;
    return 36 * tiles * in * out + converting + reading < direct;
}

const struct msc_simd_winograd *msc_cpu_gemm_choose_winograd(const struct msc_cpu_gemm *k) {
    return has_small_windows(&k->desc) ? k->backend->winograd : NULL;
}

bool msc_cpu_gemm_prefers_winograd(const struct msc_cpu_gemm *k) {
    bool has_tiles = k->indirect && k->indirect == k->backend->tiles; // these are faster
    return !has_tiles && is_faster(&k->desc, k->winograd->bytes_per_pair);
}

// Bytes count as int8, so their magnitude is at most 128.
bool msc_cpu_gemm_winograd_fits(int64_t largest) {
    return largest < (1 << 25) / 128;
}

enum msc_status msc_cpu_gemm_pack_winograd(void **out, const struct msc_cpu_gemm *k,
                                           const int8_t weights[]) {
    const struct msc_gemm_desc *d = &k->desc;
    size_t n_bytes = k->winograd->packed_bytes(d->out_channels, d->in_channels);
    void *packed = msc_alloc_aligned(n_bytes);
    if (!packed) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    k->winograd->pack(packed, weights, d->out_channels, d->in_channels);
    *out = packed;
    return MSC_OK;
}

// Scratch has the bytes outside of the images, then the scratch of the algorithm.
static size_t blank_bytes(const struct msc_cpu_gemm *k) {
    return msc_cpu_round_up((size_t)k->desc.in_channels);
}

size_t msc_cpu_gemm_winograd_scratch(const struct msc_cpu_gemm *k) {
    return blank_bytes(k) + k->winograd->scratch_bytes(k->desc.in_channels);
}

struct msc_simd_image_windows msc_cpu_gemm_winograd(const struct msc_cpu_gemm *k,
                                                    const struct msc_quant *q, const void *packed,
                                                    void *memory) {
    const struct msc_gemm_desc *d = &k->chunks[MSC_CPU_GEMM_WINOGRAD].desc;
    memset(memory, q->zero_points[0], (size_t)d->in_channels);
    return (struct msc_simd_image_windows){.flip = q->low < 0 ? 0 : 0x80,
                                           .blank = memory,
                                           .images = d->batch,
                                           .in_height = d->in[0],
                                           .in_width = d->in[1],
                                           .in_channels = d->in_channels,
                                           .pad_top = d->pad_begin[0],
                                           .pad_left = d->pad_begin[1],
                                           .out_height = d->out[0],
                                           .out_width = d->out[1],
                                           .channels = d->out_channels,
                                           .weights = packed,
                                           .scratch = (char *)memory + blank_bytes(k)};
}

// Depthwise convolutions in float32, in NHWC, along one to three spatial axes with windows of any
// length, stride and dilation. The taps inside the image are added in order, each product and each
// sum rounded, so all machines give the same bits.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu_gemm.h"
#include "kernels/cpu/window.h"

enum { LANES = 16, TILE = 4 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
// Lanes at any address.
typedef float loaded
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static struct msc_cpu_window window_of(const struct msc_gemm_desc *d) {
    struct msc_cpu_window w = {.channels = d->in_channels};
    int missing = 3 - d->n_spatial;
    for (int i = 0; i < 3; i++) {
        int a = i - missing;
        w.axes[i] = a < 0 ? (struct msc_pool_axis){1, 1, 1, 1, 1, 0, 0}
                          : (struct msc_pool_axis){d->in[a],      d->out[a],      d->kernel[a],
                                                   d->strides[a], d->dilation[a], d->pad_begin[a],
                                                   d->pad_end[a]};
    }
    return w;
}

// Routines have loops for depthwise convolutions along two axes without dilation; they compute
// others as matrix products, which takes several times as long as adding taps.
bool msc_cpu_gemm_weighs(const struct msc_gemm_spec *spec, const struct msc_cpu_backend *b) {
    const struct msc_gemm_desc *d = &spec->desc;
    bool is_plane = d->n_spatial == 2 && d->dilation[0] == 1 && d->dilation[1] == 1;
    return d->kind == MSC_GEMM_CONV && d->groups == d->in_channels &&
           d->groups == d->out_channels && d->groups >= LANES && !is_plane &&
           b->base.options.kernel_threads == 1;
}

enum msc_status msc_cpu_gemm_pack_weigh(void **out, const struct msc_cpu_gemm *k,
                                        const float weights[]) {
    int64_t channels = k->channels, n_taps = msc_array_n_elements(k->weight) / channels;
    float *packed = msc_alloc_aligned((size_t)(channels * n_taps) * sizeof(float));
    MSC_TRY(MSC_ALLOCATED(packed));
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t t = 0; t < n_taps; t++) {
            packed[t * channels + c] = weights[c * n_taps + t];
        }
    }
    *out = packed;
    return MSC_OK;
}

// ---- Windows ----------------------------------------------------------------------------------

// Windows with the same taps; window i is i * step elements after the first.
struct windows {
    const float *x; // first element of the image
    const float *weights;
    const int64_t *offsets, *taps; // [n_taps]
    int64_t n_taps, channels, step, n;
};

// Adds the taps of `n` windows from window `at` on, for LANES channels from channel c on. `n` is a
// compile-time constant.
MSC_INLINE void weigh_tile(float *out, const struct windows *w, int64_t at, int64_t c, int n) {
    const float *x = w->x + at * w->step + c, *weights = w->weights + c;
    lanes sums[TILE] = {{0}};
    for (int64_t t = 0; t < w->n_taps; t++) {
        lanes weight = *(const loaded *)(weights + w->taps[t] * w->channels);
        const float *from = x + w->offsets[t];
        for (int i = 0; i < n; i++) {
            sums[i] += *(const loaded *)(from + i * w->step) * weight;
        }
    }
    for (int i = 0; i < n; i++) {
        *(loaded *)(out + (at + i) * w->channels + c) = sums[i];
    }
}

MSC_INLINE void weigh_lanes(float *out, const struct windows *w, int64_t c) {
    int64_t i = 0;
    for (; i + TILE <= w->n; i += TILE) {
        weigh_tile(out, w, i, c, TILE);
    }
    for (; i < w->n; i++) {
        weigh_tile(out, w, i, c, 1);
    }
}

// If the channels do not fill the last lanes, these begin earlier and compute some channels again.
MSC_SIMD static void weigh(float *out, const struct windows *given) {
    const struct windows w = *given; // a copy, which cannot alias `out`
    for (int64_t c = 0; c < w.channels; c += LANES) {
        weigh_lanes(out, &w, c + LANES <= w.channels ? c : w.channels - LANES);
    }
}

// ---- Running ----------------------------------------------------------------------------------

size_t msc_cpu_gemm_weigh_scratch(const struct msc_cpu_gemm *k) {
    struct msc_cpu_window w = window_of(&k->desc);
    return msc_cpu_window_bytes(&w);
}

void msc_cpu_gemm_weigh(float out[], const struct msc_cpu_gemm *k, const float in[],
                        const void *packed, const float bias[], void *memory) {
    const struct msc_cpu_gemm_chunks *c = &k->chunks[MSC_CPU_GEMM_FLOAT_DEPTHWISE];
    const struct msc_gemm_desc *finish = &k->chunks[MSC_CPU_GEMM_FLOAT].desc;
    struct msc_cpu_window w = window_of(&k->desc);
    struct msc_cpu_taps t = msc_cpu_window_taps(&w, memory);
    const struct msc_pool_axis *a = w.axes;
    int64_t n_rows = a[0].out * a[1].out, row = a[2].out * w.channels;
    int64_t image = a[0].in * a[1].in * a[2].in * w.channels;
    for (int64_t i = 0; i < c->images * n_rows; i++, out += row) {
        int64_t at = i % n_rows;
        msc_cpu_window_set_row(&t, &w, at / a[1].out, at % a[1].out);
        for (int64_t x = 0, n; x < a[2].out; x += n) {
            n = msc_cpu_window_run(&w, x);
            msc_cpu_window_set_position(&t, &w, x);
            const struct windows windows = {.x = in + i / n_rows * image,
                                            .weights = packed,
                                            .offsets = t.offsets,
                                            .taps = t.taps,
                                            .n_taps = t.n,
                                            .channels = w.channels,
                                            .step = a[2].stride * w.channels,
                                            .n = n};
            weigh(out + x * w.channels, &windows);
        }
        msc_routine_finish(finish, bias, out, a[2].out);
    }
}

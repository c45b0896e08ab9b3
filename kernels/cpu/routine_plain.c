// Implements routine.h in plain C, for builds without oneDNN.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/routine.h"
#include "kernels/cpu/simd_level.h"

#include <string.h>

struct msc_routine_engine {
    int n_threads;
};

// Weights are packed as one matrix [in, out] per group and kernel position.
struct msc_routine {
    struct msc_gemm_desc desc;
    int64_t taps, in, out; // per group
};

struct msc_routine_weights {
    float *data; // [groups, taps, in, out]
};

enum msc_status msc_routine_open(struct msc_routine_engine **out, int n_threads,
                                 int kernel_threads) {
    (void)kernel_threads;
    struct msc_routine_engine *e = msc_alloc_zero(1, sizeof(*e));
    MSC_TRY(MSC_ALLOCATED(e));
    e->n_threads = n_threads;
    *out = e;
    return MSC_OK;
}

void msc_routine_close(struct msc_routine_engine *engine) {
    msc_free(engine);
}

const char *msc_routine_name(const struct msc_routine_engine *engine) {
    (void)engine;
    return "plain";
}

struct msc_routine_isa msc_routine_isa(void) {
    struct msc_routine_isa isa = msc_simd_level_isa();
    isa.allows_avx512 = isa.allows_avx2 = true;
    return isa;
}

enum msc_status msc_routine_set_isa(const char *level) {
    if (!msc_simd_level(0)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "isa %s: this build has no oneDNN and no levels; leave isa unset", level);
    }
    return msc_simd_set_level(level);
}

const char *msc_routine_isa_level(size_t i) {
    return msc_simd_level(i);
}

// ---- Routines ---------------------------------------------------------------------------------

enum msc_status msc_routine_create(struct msc_routine **out, struct msc_routine_engine *engine,
                                   const struct msc_gemm_desc *desc) {
    (void)engine;
    if (desc->is_int8) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "cpu: this build has no int8 routines; they need oneDNN");
    }
    struct msc_routine *d = msc_alloc_zero(1, sizeof(*d));
    MSC_TRY(MSC_ALLOCATED(d));
    d->desc = *desc;
    d->taps = 1;
    d->in = desc->in_channels / desc->groups;
    d->out = desc->out_channels / desc->groups;
    for (int i = desc->n_spatial; i < 3; i++) { // missing axes have length 1
        d->desc.in[i] = d->desc.out[i] = d->desc.kernel[i] = 1;
        d->desc.strides[i] = d->desc.dilation[i] = 1;
        d->desc.pad_begin[i] = 0;
    }
    for (int i = 0; i < 3; i++) {
        d->taps *= d->desc.kernel[i];
    }
    *out = d;
    return MSC_OK;
}

void msc_routine_destroy(struct msc_routine *d) {
    msc_free(d);
}

size_t msc_routine_scratch_bytes(const struct msc_routine *d) {
    (void)d;
    return 0;
}

// ---- Weights ----------------------------------------------------------------------------------

size_t msc_routine_weights_bytes(const struct msc_routine *d) {
    return (size_t)(d->desc.groups * d->taps * d->in * d->out) * sizeof(float);
}

// The index of an element in the plain weights.
static int64_t plain_index(const struct msc_routine *d, int64_t group, int64_t tap, int64_t i,
                           int64_t o) {
    if (d->desc.kind == MSC_GEMM_CONV_TRANSPOSE) {
        return ((group * d->in + i) * d->out + o) * d->taps + tap;
    }
    if (d->desc.is_input_first) {
        return i * d->out + o;
    }
    return ((group * d->out + o) * d->in + i) * d->taps + tap;
}

enum msc_status msc_routine_pack(struct msc_routine_weights **out, const struct msc_routine *d,
                                 const void *elements) {
    const float *from = elements;
    struct msc_routine_weights *w = msc_alloc_zero(1, sizeof(*w));
    float *to = msc_alloc_aligned(msc_routine_weights_bytes(d));
    if (!w || !to) {
        msc_free(w);
        msc_free_aligned(to);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    w->data = to;
    for (int64_t group = 0; group < d->desc.groups; group++) {
        for (int64_t tap = 0; tap < d->taps; tap++) {
            for (int64_t i = 0; i < d->in; i++) {
                for (int64_t o = 0; o < d->out; o++) {
                    *to++ = from[plain_index(d, group, tap, i, o)];
                }
            }
        }
    }
    *out = w;
    return MSC_OK;
}

void msc_routine_weights_destroy(struct msc_routine_weights *w) {
    if (w) {
        msc_free_aligned(w->data);
        msc_free(w);
    }
}

// ---- Running ----------------------------------------------------------------------------------

enum { WIDTH = 64 };

// out [n] += x [depth] * matrix [depth, n], in blocks of columns.
MSC_SIMD static void multiply_add(float out[], const float x[], const float matrix[], int64_t depth,
                                  int64_t n) {
    int64_t first = 0;
    for (; first + WIDTH <= n; first += WIDTH) {
        float sums[WIDTH];
        memcpy(sums, out + first, sizeof(sums));
        for (int64_t k = 0; k < depth; k++) {
            for (int i = 0; i < WIDTH; i++) {
                sums[i] += x[k] * matrix[k * n + first + i];
            }
        }
        memcpy(out + first, sums, sizeof(sums));
    }
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t i = first; i < n; i++) {
            out[i] += x[k] * matrix[k * n + i];
        }
    }
}

// The position of a tap of the window that belongs to position `at`; -1: outside of the image. Each
// output position has a window in the input. In a transposed convolution, each input position has a
// window in the output.
static int64_t tap_position(const struct msc_gemm_desc *d, const int64_t at[3], int64_t tap) {
    bool is_transposed = d->kind == MSC_GEMM_CONV_TRANSPOSE;
    const int64_t *size = is_transposed ? d->out : d->in;
    int64_t k[3] = {tap / (d->kernel[1] * d->kernel[2]), tap / d->kernel[2] % d->kernel[1],
                    tap % d->kernel[2]};
    int64_t position = 0;
    for (int a = 0; a < 3; a++) {
        int64_t i = at[a] * d->strides[a] - d->pad_begin[a] + k[a] * d->dilation[a];
        if (i < 0 || i >= size[a]) {
            return -1;
        }
        position = position * size[a] + i;
    }
    return position;
}

// Computes one image. For each tap of each window (tap_position), multiplies the channels of an
// input position by a matrix of weights and adds the products to an output position.
static void run_image(const struct msc_routine *d, float out[], const float x[],
                      const float weights[]) {
    const struct msc_gemm_desc *desc = &d->desc;
    bool is_transposed = desc->kind == MSC_GEMM_CONV_TRANSPOSE;
    const int64_t *size = is_transposed ? desc->in : desc->out;
    for (int64_t p = 0; p < size[0] * size[1] * size[2]; p++) {
        int64_t at[3] = {p / (size[1] * size[2]), p / size[2] % size[1], p % size[2]};
        for (int64_t tap = 0; tap < d->taps; tap++) {
            int64_t other = tap_position(desc, at, tap);
            if (other < 0) {
                continue;
            }
            const float *from = x + (is_transposed ? p : other) * desc->in_channels;
            float *to = out + (is_transposed ? other : p) * desc->out_channels;
            for (int64_t group = 0; group < desc->groups; group++) {
                multiply_add(to + group * d->out, from + group * d->in,
                             weights + (group * d->taps + tap) * d->in * d->out, d->in, d->out);
            }
        }
    }
}

static void routine_plain_run_conv(const struct msc_routine *d,
                                   const struct msc_routine_call *call) {
    const struct msc_gemm_desc *desc = &d->desc;
    int64_t n_in = desc->in[0] * desc->in[1] * desc->in[2];
    int64_t n_out = desc->out[0] * desc->out[1] * desc->out[2];
    memset(call->out, 0, (size_t)(desc->batch * n_out * desc->out_channels) * sizeof(float));
    for (int64_t i = 0; i < desc->batch; i++) {
        run_image(d, (float *)call->out + i * n_out * desc->out_channels,
                  (const float *)call->a + i * n_in * desc->in_channels, call->weights->data);
    }
    msc_routine_finish(desc, msc_routine_bias(desc, call), call->out, desc->batch * n_out);
}

static void routine_plain_run_rows(const struct msc_routine *d,
                                   const struct msc_routine_call *call) {
    const struct msc_gemm_desc *desc = &d->desc;
    bool is_product = desc->kind == MSC_GEMM_MATMUL;
    int64_t n_matrices = is_product ? desc->batch : 1;
    int64_t rows = is_product ? desc->rows : desc->batch;
    const float *x = call->a;
    float *out = call->out;
    memset(out, 0, (size_t)(n_matrices * rows * d->out) * sizeof(float));
    for (int64_t i = 0; i < n_matrices; i++) {
        const float *matrix =
            is_product ? (const float *)call->b + i * d->in * d->out : call->weights->data;
        for (int64_t r = 0; r < rows; r++) {
            multiply_add(out, x, matrix, d->in, d->out);
            x += d->in;
            out += d->out;
        }
    }
    msc_routine_finish(desc, msc_routine_bias(desc, call), call->out, n_matrices * rows);
}

enum msc_status msc_routine_run(const struct msc_routine *d, const struct msc_routine_call *call,
                                int thread) {
    (void)thread;
    if (d->desc.kind == MSC_GEMM_CONV || d->desc.kind == MSC_GEMM_CONV_TRANSPOSE) {
        routine_plain_run_conv(d, call);
    } else {
        routine_plain_run_rows(d, call);
    }
    return MSC_OK;
}

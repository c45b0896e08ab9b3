// Window functions, discrete Fourier transforms, mel filters and n-gram counts.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const double two_pi = 6.283185307179586476925286766559;

// ---- Windows ----------------------------------------------------------------------------------

enum msc_status msc_reference__window(const struct msc_reference_call *call) {
    // Cosine series: sum over k of coefficient[k] * cos(2 pi k i / period), with alternating signs.
    static const struct {
        enum msc_op op;
        double coefficients[3];
    } rows[] = {
        {MSC_OP_HANN_WINDOW, {0.5, -0.5, 0}},
        {MSC_OP_HAMMING_WINDOW, {25.0 / 46.0, -21.0 / 46.0, 0}},
        {MSC_OP_BLACKMAN_WINDOW, {0.42, -0.5, 0.08}},
    };
    const struct msc_view *out = &call->outputs[0];
    bool is_periodic;
    MSC_TRY(msc_reference__get_bool(&is_periodic, call, "periodic"));
    int64_t n = out->dims[0];
    double period = is_periodic ? (double)n : (double)(n - 1);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (int64_t i = 0; rows[r].op == call->joint->op && i < n; i++) {
            double value = 0;
            for (int k = 0; k < 3; k++) {
                value += rows[r].coefficients[k] * cos(two_pi * k * (double)i / period);
            }
            msc_reference__set_double_at(out, i, value);
        }
    }
    return MSC_OK;
}

// ---- Fourier transforms -----------------------------------------------------------------------

// A line of real or complex numbers, `stride` elements apart.
struct line {
    const struct msc_view *v;
    int64_t first, stride, n;
    bool is_complex; // the imaginary part follows each real part
    // 0, or the length of a spectrum of which only the first half is stored. Element i of the
    // second half is the conjugate of element `mirrored` - i.
    int64_t mirrored;
};

static void get_complex(double out[2], const struct line *l, int64_t i) {
    out[0] = out[1] = 0;
    if (2 * i > l->mirrored && l->mirrored > 0) {
        get_complex(out, l, l->mirrored - i);
        out[1] = -out[1];
        return;
    }
    if (i < l->n) {
        out[0] = msc_reference__get_double_at(l->v, l->first + i * l->stride);
        out[1] =
            l->is_complex ? msc_reference__get_double_at(l->v, l->first + i * l->stride + 1) : 0;
    }
}

// A discrete Fourier transform of n numbers. While the length is even, it is split into transforms
// of half the length; an odd length is computed by the definition.
struct transform {
    int64_t n;
    double *roots; // [n][2]: cos and sin of 2 pi k / n; the sine is negative unless inverse
    double *in;    // [n][2]
    double *out;   // [n][2]
    bool is_inverse;
};

static void transform_finish(struct transform *t) {
    msc_free(t->roots);
}

static enum msc_status transform_init(struct transform *t, int64_t n, bool is_inverse) {
    size_t count = 2 * (size_t)(n > 0 ? n : 0);
    *t = (struct transform){.n = n, .is_inverse = is_inverse};
    t->roots = msc_alloc_zero(3 * count + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(t->roots));
    t->in = t->roots + count;
    t->out = t->in + count;
    for (int64_t k = 0; k < n; k++) {
        double angle = two_pi * (double)k / (double)n;
        t->roots[2 * k] = cos(angle);
        t->roots[2 * k + 1] = is_inverse ? sin(angle) : -sin(angle);
    }
    return MSC_OK;
}

// Transforms n numbers, every `step`-th number of x. Writes n numbers to `out`.
static void transform_part(const struct transform *t, double *out, const double *x, int64_t n,
                           int64_t step) {
    if (n % 2 != 0) {
        for (int64_t k = 0; k < n; k++) {
            double real = 0, imaginary = 0;
            for (int64_t i = 0; i < n; i++) {
                const double *at = x + 2 * i * step, *root = t->roots + 2 * (i * k % n * step);
                real += at[0] * root[0] - at[1] * root[1];
                imaginary += at[0] * root[1] + at[1] * root[0];
            }
            out[2 * k] = real;
            out[2 * k + 1] = imaginary;
        }
        return;
    }
    int64_t half = n / 2;
    transform_part(t, out, x, half, 2 * step);
    transform_part(t, out + n, x + 2 * step, half, 2 * step);
    for (int64_t k = 0; k < half; k++) {
        double *even = out + 2 * k, *odd = out + n + 2 * k;
        const double *root = t->roots + 2 * k * step;
        double real = odd[0] * root[0] - odd[1] * root[1];
        double imaginary = odd[0] * root[1] + odd[1] * root[0];
        odd[0] = even[0] - real;
        odd[1] = even[1] - imaginary;
        even[0] += real;
        even[1] += imaginary;
    }
}

// Transforms a line, weighted by `window` (NULL: all 1), to t->out.
static void transform_line(const struct transform *t, const struct line *l,
                           const struct msc_view *window) {
    for (int64_t i = 0; i < t->n; i++) {
        double weight = window ? msc_reference__get_double_at(window, i) : 1;
        get_complex(t->in + 2 * i, l, i);
        t->in[2 * i] *= weight;
        t->in[2 * i + 1] *= weight;
    }
    if (t->n > 0) {
        transform_part(t, t->out, t->in, t->n, 1);
    }
    for (int64_t i = 0; t->is_inverse && i < 2 * t->n; i++) {
        t->out[i] /= (double)t->n;
    }
}

// Stores real parts and, if `width` is 2, imaginary parts.
static void store_bins(const struct transform *t, const struct msc_view *out, int64_t first,
                       int64_t stride, int64_t n_bins, int width) {
    for (int64_t k = 0; k < n_bins; k++) {
        for (int part = 0; part < width; part++) {
            msc_reference__set_double_at(out, first + k * stride + part, t->out[2 * k + part]);
        }
    }
}

enum msc_status msc_reference__dft(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    bool is_inverse, is_half;
    int64_t axes[1] = {1}, lengths[1];
    int n_axes, n_lengths;
    MSC_TRY(msc_reference__get_bool(&is_inverse, call, "inverse"));
    MSC_TRY(msc_reference__get_bool(&is_half, call, "onesided"));
    MSC_TRY(msc_reference__param_ints(axes, &n_axes, call, "axis", "axis", 1));
    MSC_TRY(msc_reference__param_ints(lengths, &n_lengths, call, "dft_length", "dft_length", 1));
    int axis = (int)(axes[0] < 0 ? axes[0] + x->n_dims : axes[0]);
    if (axis < 0 || axis >= x->n_dims - 1) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: axis %d is out of range for %d dimensions",
                        call->joint->name, axis, x->n_dims);
    }
    bool is_real = is_inverse && is_half;
    int64_t width = is_real ? 1 : 2, n = is_real ? out->dims[axis] : x->dims[axis];
    n = n_lengths == 1 ? lengths[0] : n;
    int64_t x_strides[MSC_MAX_DIMS], out_strides[MSC_MAX_DIMS];
    msc_reference__strides(x_strides, x->n_dims, x->dims);
    msc_reference__strides(out_strides, out->n_dims, out->dims);
    struct transform t;
    MSC_TRY(transform_init(&t, n, is_inverse));
    int64_t count = msc_view_n_elements(out) / width;
    for (int64_t i = 0; i < count; i++) {
        struct line l = {
            x, 0, x_strides[axis], x->dims[axis], x->dims[x->n_dims - 1] == 2, is_real ? n : 0};
        if (width * i / out_strides[axis] % out->dims[axis] != 0) {
            continue; // the transform of bin 0 gives all bins
        }
        for (int d = 0; d < x->n_dims - 1; d++) {
            int64_t at = width * i / out_strides[d] % out->dims[d];
            l.first += d == axis ? 0 : at * x_strides[d];
        }
        transform_line(&t, &l, NULL);
        store_bins(&t, out, width * i, out_strides[axis], out->dims[axis], (int)width);
    }
    transform_finish(&t);
    return MSC_OK;
}

// Transforms frames of the signal [B, L, 1 or 2] to [B, frames, bins, 2].
enum msc_status msc_reference__stft(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    const struct msc_view *window = msc_reference__has(call, 2) ? &call->operands[2] : NULL;
    int64_t step[1], length[1];
    int n_step, n_length;
    MSC_TRY(msc_reference__param_ints(step, &n_step, call, "frame_step", "frame_step", 1));
    MSC_TRY(msc_reference__param_ints(length, &n_length, call, "frame_length", "frame_length", 1));
    bool is_complex = x->n_dims == 3 && x->dims[2] == 2;
    int64_t width = is_complex ? 2 : 1, frames = out->dims[1], bins = out->dims[2];
    int64_t n = n_length == 1 ? length[0] : window ? window->dims[0] : (bins - 1) * 2;
    struct transform t;
    MSC_TRY(transform_init(&t, n, false));
    for (int64_t i = 0; n_step == 1 && bins > 0 && i < out->dims[0] * frames; i++) {
        int64_t batch = i / frames, frame = i % frames;
        struct line l = {x, (batch * x->dims[1] + frame * step[0]) * width, width, n, is_complex,
                         0};
        transform_line(&t, &l, window);
        store_bins(&t, out, 2 * i * bins, 2, bins, 2);
    }
    transform_finish(&t);
    return MSC_OK;
}

// ---- Mel filters ------------------------------------------------------------------------------

static double operand_number(const struct msc_reference_call *call, int i) {
    return msc_reference__get_double_at(&call->operands[i], 0);
}

// Triangular filters between neighbouring points that are evenly spaced on the mel scale.
enum msc_status msc_reference__mel_weight_matrix(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    int64_t n_bins = out->dims[0], n_mels = out->dims[1];
    double length = operand_number(call, 1), rate = operand_number(call, 2);
    double low = 2595 * log10(1 + operand_number(call, 3) / 700);
    double high = 2595 * log10(1 + operand_number(call, 4) / 700);
    for (int64_t m = 0; m < n_mels; m++) {
        double points[3];
        for (int k = 0; k < 3; k++) {
            double mel = low + (double)(m + k) * (high - low) / (double)(n_mels + 2);
            double hertz = 700 * (pow(10, mel / 2595) - 1);
            points[k] = floor((length + 1) * hertz / rate);
        }
        for (int64_t b = 0; b < n_bins; b++) {
            double x = (double)b, value = 0;
            if (points[0] == points[1]) {
                value = x == points[1];
            } else if (x >= points[0] && x <= points[1]) {
                value = (x - points[0]) / (points[1] - points[0]);
            }
            if (x >= points[1] && x < points[2] && points[2] != points[1]) {
                value = (points[2] - x) / (points[2] - points[1]);
            }
            msc_reference__set_double_at(out, b * n_mels + m, value);
        }
    }
    return MSC_OK;
}

// ---- n-grams ----------------------------------------------------------------------------------

enum { MOST_NGRAMS = 4096, MOST_LENGTHS = 32 };

struct ngrams {
    const struct msc_view *x;
    int64_t pool[MOST_NGRAMS], indexes[MOST_NGRAMS], counts[MOST_LENGTHS];
    float weights[MOST_NGRAMS];
    int n_pool, n_indexes, n_counts, n_weights;
    int64_t shortest, longest, most_skips;
    const char *mode;
};

// Checks that ngram_counts are positions in the pool, and limits skips to the row length.
static enum msc_status check_ngrams(struct ngrams *g, const char *joint) {
    int64_t n = g->x->dims[g->x->n_dims - 1];
    for (int i = 0; i < g->n_counts; i++) {
        if (g->counts[i] < 0 || g->counts[i] > g->n_pool) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: ngram_counts[%d] is %lld, but the pool has %d", joint, i,
                            (long long)g->counts[i], g->n_pool);
        }
    }
    g->most_skips = g->most_skips < n ? g->most_skips : n;
    return MSC_OK;
}

static enum msc_status ngrams_init(struct ngrams *g, const struct msc_reference_call *call) {
    g->x = &call->operands[0];
    g->mode = msc_reference__get_text(call, "mode");
    MSC_TRY(msc_reference__get_i64(&g->shortest, call, "min_gram_length"));
    MSC_TRY(msc_reference__get_i64(&g->longest, call, "max_gram_length"));
    MSC_TRY(msc_reference__get_i64(&g->most_skips, call, "max_skip_count"));
    MSC_TRY(msc_reference__param_ints(g->pool, &g->n_pool, call, "pool_int64s", "", MOST_NGRAMS));
    MSC_TRY(msc_reference__param_ints(g->indexes, &g->n_indexes, call, "ngram_indexes", "",
                                      MOST_NGRAMS));
    MSC_TRY(
        msc_reference__param_ints(g->counts, &g->n_counts, call, "ngram_counts", "", MOST_LENGTHS));
    MSC_TRY(
        msc_reference__param_floats(g->weights, &g->n_weights, call, "weights", "", MOST_NGRAMS));
    return check_ngrams(g, call->joint->name);
}

// Counts the occurrences of an n-gram in a row. Elements of an occurrence are `step` apart.
static int64_t count_gram(const struct ngrams *g, const int64_t gram[], int64_t length,
                          int64_t first, int64_t n, int64_t step) {
    int64_t count = 0;
    for (int64_t i = 0; i + (length - 1) * step < n; i++) {
        bool is_same = true;
        for (int64_t k = 0; is_same && k < length; k++) {
            is_same = msc_reference__get_i64_at(g->x, first + i + k * step) == gram[k];
        }
        count += is_same;
    }
    return count;
}

// The pool holds all n-grams of length 1, then those of length 2, and so on. `counts` holds the
// start of each length.
static void count_row(const struct ngrams *g, const struct msc_view *out, int64_t to, int64_t first,
                      int64_t n) {
    int gram = 0;
    for (int64_t length = 1; length <= g->n_counts; length++) {
        int64_t begin = g->counts[length - 1];
        int64_t end = length < g->n_counts ? g->counts[length] : g->n_pool;
        for (int64_t at = begin; at + length <= end; at += length, gram++) {
            int64_t count = 0;
            bool is_asked = length >= g->shortest && length <= g->longest;
            // An n-gram of length 1 has no gaps between its elements.
            int64_t skips = length == 1 ? 0 : g->most_skips;
            for (int64_t s = 0; is_asked && s <= skips; s++) {
                count += count_gram(g, g->pool + at, length, first, n, s + 1);
            }
            if (gram >= g->n_indexes || count == 0) {
                continue;
            }
            double weight = gram < g->n_weights ? (double)g->weights[gram] : 1;
            double value = strcmp(g->mode, "TF") == 0    ? (double)count
                           : strcmp(g->mode, "IDF") == 0 ? weight
                                                         : (double)count * weight;
            msc_reference__set_double_at(out, to + g->indexes[gram], value);
        }
    }
}

enum msc_status msc_reference__tf_idf(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    struct ngrams *g = msc_alloc_zero(1, sizeof(*g));
    MSC_TRY(MSC_ALLOCATED(g));
    enum msc_status status = ngrams_init(g, call);
    int64_t n = x->dims[x->n_dims - 1], width = out->dims[out->n_dims - 1];
    int64_t rows = n > 0 ? msc_view_n_elements(x) / n : 0;
    if (status == MSC_OK && msc_view_n_bytes(out) > 0) {
        memset(out->data, 0, msc_view_n_bytes(out));
    }
    for (int64_t i = 0; status == MSC_OK && i < rows; i++) {
        count_row(g, out, i * width, i * n, n);
    }
    msc_free(g);
    return status;
}

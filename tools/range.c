#include "tools/range.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// number of ranges that `mse` tries, and of positions that it tries for each end
enum { CANDIDATES = 96 };

// ---- Names ------------------------------------------------------------------------------------

static const char *const observer_names[MSC_OBSERVER_COUNT] = {"minmax", "percentile", "mse",
                                                               "hessian"};
static const char *const rounding_names[MSC_ROUNDING_COUNT] = {"nearest", "gptq", "descent"};
static const char *const correction_names[MSC_CORRECTION_COUNT] = {"none", "affine", "bias"};

// The index of a name, or -1.
static int find_name(const char *name, const char *const names[], int n) {
    int i = n - 1;
    while (i >= 0 && strcmp(names[i], name) != 0) {
        i--;
    }
    return i;
}

const char *msc_observer_name(enum msc_observer observer) {
    return observer_names[observer];
}

bool msc_observer_find(enum msc_observer *out, const char *name) {
    int i = find_name(name, observer_names, MSC_OBSERVER_COUNT);
    *out = i >= 0 ? (enum msc_observer)i : *out;
    return i >= 0;
}

const char *msc_rounding_name(enum msc_rounding rounding) {
    return rounding_names[rounding];
}

bool msc_rounding_find(enum msc_rounding *out, const char *name) {
    int i = find_name(name, rounding_names, MSC_ROUNDING_COUNT);
    *out = i >= 0 ? (enum msc_rounding)i : *out;
    return i >= 0;
}

const char *msc_correction_name(enum msc_correction correction) {
    return correction_names[correction];
}

bool msc_correction_find(enum msc_correction *out, const char *name) {
    int i = find_name(name, correction_names, MSC_CORRECTION_COUNT);
    *out = i >= 0 ? (enum msc_correction)i : *out;
    return i >= 0;
}

// ---- Ranges -----------------------------------------------------------------------------------

// Values whose bins are found together.
enum { BINS_AT_ONCE = 512 };

// The bins of values; values that are not finite get the number behind the last bin.
MSC_SIMD static void find_bins(int32_t out[], const float x[], int64_t n, double low,
                               double width) {
    for (int64_t i = 0; i < n; i++) {
        double at = ((double)x[i] - low) / width;
        at = at > 0 ? at : 0; // also if the width is 0
        at = at < MSC_HISTOGRAM_BINS ? at : MSC_HISTOGRAM_BINS - 1;
        int32_t bin = (int32_t)at;
        out[i] = fabsf(x[i]) <= FLT_MAX ? bin : MSC_HISTOGRAM_BINS;
    }
}

// Neighbouring values often fall into one bin, so two tables take turns: a count does not wait for
// the one before.
void msc_histogram_add(struct msc_histogram *h, const float x[], int64_t n) {
    uint32_t counts[2][MSC_HISTOGRAM_BINS + 1] = {{0}};
    int32_t bins[BINS_AT_ONCE];
    double low = (double)h->low, width = ((double)h->high - low) / MSC_HISTOGRAM_BINS;
    for (int64_t first = 0; first < n; first += BINS_AT_ONCE) {
        int64_t now = n - first < BINS_AT_ONCE ? n - first : BINS_AT_ONCE;
        find_bins(bins, x + first, now, low, width > 0 ? width : INFINITY);
        for (int64_t i = 0; i < now; i++) {
            counts[i % 2][bins[i]]++;
        }
    }
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        h->counts[i] += (double)counts[0][i] + (double)counts[1][i];
    }
}

void msc_scheme_limits(const struct msc_scheme *scheme, int32_t *low, int32_t *high) {
    int32_t half = (int32_t)1 << (scheme->bits - 1);
    *low = !scheme->is_symmetric                      ? 0
           : scheme->is_weight && !scheme->has_lowest ? -(half - 1)
                                                      : -half;
    *high = scheme->is_symmetric ? half - 1 : 2 * half - 1;
}

// Divides the cut into as many whole steps as leave room for values up to `top`. False if not even
// one step fits.
static bool fit_cut(const struct msc_scheme *scheme, double top, int32_t high, float *scale,
                    int32_t *zero_point) {
    double cut = scheme->cut;
    double width = scheme->is_symmetric ? fmax(cut, top) : cut + top;
    int32_t steps = cut > 0 && isfinite(width) ? (int32_t)(high * cut / width) : 0;
    if (steps < 1) {
        return false;
    }
    *scale = (float)(cut / steps);
    *zero_point = scheme->is_symmetric ? 0 : steps;
    return true;
}

void msc_scheme_fit(const struct msc_scheme *scheme, struct msc_range range, float *scale,
                    int32_t *zero_point) {
    int32_t low, high;
    msc_scheme_limits(scheme, &low, &high);
    double bottom = fmin(range.low, 0.0);
    double top = fmax(range.high, 0.0);
    if (fit_cut(scheme, top, high, scale, zero_point)) {
        return;
    }
    double width = scheme->is_symmetric ? fmax(-bottom, top) / high : (top - bottom) / high;
    *zero_point = 0;
    *scale = (float)width;
    if (!(*scale > 0) || !isfinite(*scale)) {
        *scale = 1;
        return;
    }
    if (!scheme->is_symmetric) {
        double z = nearbyint(-bottom / (double)*scale);
        *zero_point = z < low ? low : z > high ? high : (int32_t)z;
    }
}

static struct msc_range with_zero(double low, double high) {
    return (struct msc_range){(float)fmin(low, 0.0), (float)fmax(high, 0.0)};
}

static double bin_centre(const struct msc_histogram *h, int bin) {
    return h->low + ((double)h->high - h->low) * (bin + 0.5) / MSC_HISTOGRAM_BINS;
}

// ---- Histograms -------------------------------------------------------------------------------

// Non-empty bins, with the values that every candidate needs.
struct work {
    int n_bins;
    double centres[MSC_HISTOGRAM_BINS]; // ascending
    double counts[MSC_HISTOGRAM_BINS];
};

static void list_bins(struct work *w, const struct msc_histogram *h) {
    w->n_bins = 0;
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        if (h->counts[i] > 0) {
            w->centres[w->n_bins] = bin_centre(h, i);
            w->counts[w->n_bins++] = h->counts[i];
        }
    }
}

MSC_SIMD static double histogram_error(const struct work *w, double scale, double zero_point,
                                       double low, double high) {
    double error = 0;
    for (int i = 0; i < w->n_bins; i++) {
        double q = nearbyint(w->centres[i] / scale) + zero_point;
        q = q < low ? low : q > high ? high : q;
        double d = w->centres[i] - (q - zero_point) * scale;
        error += w->counts[i] * d * d;
    }
    return error;
}

// ---- Search among shrunken ranges -------------------------------------------------------------

static double values_error(const float x[], int64_t n, const struct msc_scheme *scheme,
                           struct msc_range range) {
    int32_t low, high, zero_point;
    float scale;
    double error = 0;
    float block[512];
    msc_scheme_limits(scheme, &low, &high);
    msc_scheme_fit(scheme, range, &scale, &zero_point);
    for (int64_t i = 0; i < n; i += 512) {
        int64_t length = n - i < 512 ? n - i : 512;
        msc_fake_quantize_run(block, x + i, length, scale, zero_point, low, high);
        for (int64_t k = 0; k < length; k++) {
            double d = (double)x[i + k] - (double)block[k];
            error += d * d;
        }
    }
    return error;
}

// The data to search: a histogram, or values.
struct searched {
    const struct msc_observation *o;
    struct msc_range whole;
    const struct work *w; // the bins of a histogram; NULL: search values
    const float *x;
    int64_t n;
};

static double score_of(const struct searched *s, struct msc_range range) {
    int32_t low, high, zero_point;
    float scale;
    if (!s->w) {
        return values_error(s->x, s->n, &s->o->scheme, range);
    }
    msc_scheme_limits(&s->o->scheme, &low, &high);
    msc_scheme_fit(&s->o->scheme, range, &scale, &zero_point);
    return histogram_error(s->w, scale, zero_point, low, high);
}

static struct msc_range scale_ends(struct msc_range whole, double low, double high) {
    return (struct msc_range){(float)(whole.low * low), (float)(whole.high * high)};
}

// Finds the best range with both ends shrunk by the same factor, down to a quarter.
static struct msc_range best_together(const struct searched *s) {
    double least = INFINITY;
    struct msc_range best = s->whole;
    for (int c = 0; c < CANDIDATES; c++) {
        double factor = 1.0 - 0.75 * c / CANDIDATES;
        struct msc_range range = scale_ends(s->whole, factor, factor);
        double score = score_of(s, range);
        if (score < least) {
            least = score;
            best = range;
        }
    }
    return best;
}

// The range with each end at one of CANDIDATES positions, from the full range down to almost 0.
static struct msc_range ends_at(const struct searched *s, const int at[2]) {
    return scale_ends(s->whole, 1.0 - (double)at[0] / CANDIDATES, 1.0 - (double)at[1] / CANDIDATES);
}

static struct msc_range best_apart(const struct searched *s) {
    int best[2] = {0, 0};
    double least = INFINITY;
    for (int c = 0; c < CANDIDATES; c++) {
        double score = score_of(s, ends_at(s, (int[2]){c, c}));
        if (score < least) {
            least = score;
            best[0] = best[1] = c;
        }
    }
    bool has_moved = s->whole.low < 0 && s->whole.high > 0;
    while (has_moved) {
        has_moved = false;
        for (int end = 1; end >= 0; end--) {
            int at[2] = {best[0], best[1]};
            for (at[end] = 0; at[end] < CANDIDATES; at[end]++) {
                double score = score_of(s, ends_at(s, at));
                if (score < least) {
                    least = score;
                    best[end] = at[end];
                    has_moved = true;
                }
            }
        }
    }
    return ends_at(s, best);
}

static struct msc_range best_shrunken(const struct searched *s) {
    return s->o->scheme.is_symmetric ? best_together(s) : best_apart(s);
}

// ---- Histograms -------------------------------------------------------------------------------

static struct msc_range percentile_of_histogram(const struct msc_histogram *h, double percentile) {
    double total = 0;
    double below = 0;
    int first = 0;
    int last = MSC_HISTOGRAM_BINS - 1;
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        total += h->counts[i];
    }
    double tail = total - total * percentile / 100;
    while (first < MSC_HISTOGRAM_BINS - 1 && below + h->counts[first] <= tail) {
        below += h->counts[first++];
    }
    below = 0;
    while (last > 0 && below + h->counts[last] <= tail) {
        below += h->counts[last--];
    }
    double width = ((double)h->high - h->low) / MSC_HISTOGRAM_BINS;
    return with_zero(h->low + width * first, h->low + width * (last + 1));
}

static enum msc_status search_histogram(struct msc_range *out, const struct msc_histogram *h,
                                        const struct msc_observation *o) {
    struct work *w = msc_alloc(sizeof(*w));
    MSC_TRY(MSC_ALLOCATED(w));
    list_bins(w, h);
    *out = best_shrunken(&(struct searched){.o = o, .whole = with_zero(h->low, h->high), .w = w});
    msc_free(w);
    return MSC_OK;
}

enum msc_status msc_range_of_histogram(struct msc_range *out, const struct msc_histogram *h,
                                       const struct msc_observation *o) {
    switch (o->observer) {
    case MSC_OBSERVER_PERCENTILE:
        *out = percentile_of_histogram(h, o->percentile);
        return MSC_OK;
    case MSC_OBSERVER_MSE:
        return search_histogram(out, h, o);
    default:
        *out = with_zero(h->low, h->high);
        return MSC_OK;
    }
}

// ---- Values -----------------------------------------------------------------------------------

// Rearranges values [n] so that the one at `at` is the value there in ascending order: greater ones
// come after it, lesser ones before it (C. A. R. Hoare, "Algorithm 65: Find", 1961).
static float find_ranked(float x[], int64_t n, int64_t at) {
    for (int64_t from = 0, to = n - 1; from < to;) {
        float pivot = x[at];
        int64_t i = from, k = to;
        while (i <= k) {
            for (; x[i] < pivot; i++) {}
            for (; x[k] > pivot; k--) {}
            if (i <= k) {
                float moved = x[i];
                x[i++] = x[k];
                x[k--] = moved;
            }
        }
        from = k < at ? i : from;
        to = i > at ? k : to;
    }
    return x[at];
}

static enum msc_status percentile_of_values(struct msc_range *out, const float x[], int64_t n,
                                            double percentile) {
    float *values = msc_alloc((size_t)n * sizeof(values[0]));
    MSC_TRY(MSC_ALLOCATED(values));
    memcpy(values, x, (size_t)n * sizeof(values[0]));
    // This order of operations gives 999 for 99.9 percent of 1000 in double arithmetic too.
    int64_t tail = (int64_t)floor((double)n - (double)n * percentile / 100);
    tail = tail > (n - 1) / 2 ? (n - 1) / 2 : tail;
    float low = find_ranked(values, n, tail);
    *out = with_zero(low, find_ranked(values, n, n - 1 - tail));
    msc_free(values);
    return MSC_OK;
}

static struct msc_range min_max(const float x[], int64_t n) {
    float low = 0;
    float high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return (struct msc_range){low, high};
}

enum msc_status msc_range_of_values(struct msc_range *out, const float x[], int64_t n,
                                    const struct msc_observation *o) {
    *out = (struct msc_range){0, 0};
    if (n == 0) {
        return MSC_OK;
    }
    switch (o->observer) {
    case MSC_OBSERVER_PERCENTILE:
        return percentile_of_values(out, x, n, o->percentile);
    case MSC_OBSERVER_MSE:
        *out = best_shrunken(&(struct searched){.o = o, .whole = min_max(x, n), .x = x, .n = n});
        return MSC_OK;
    default:
        *out = min_max(x, n);
        return MSC_OK;
    }
}

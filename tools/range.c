#include "tools/range.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 96 }; // shrunken ranges tried, from the whole one to a quarter of it

static const char *const observer_names[MSC_OBSERVER_COUNT] = {"minmax", "percentile", "kl", "mse"};

const char *msc_observer_name(enum msc_observer observer) {
    return observer_names[observer];
}

bool msc_observer_find(enum msc_observer *out, const char *name) {
    for (int i = 0; i < MSC_OBSERVER_COUNT; i++) {
        if (strcmp(observer_names[i], name) == 0) {
            *out = (enum msc_observer)i;
            return true;
        }
    }
    return false;
}

void msc_histogram_add(struct msc_histogram *h, const float x[], int64_t n) {
    double width = ((double)h->high - (double)h->low) / MSC_HISTOGRAM_BINS;
    if (!(width > 0)) {
        h->counts[0] += (double)n;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double at = ((double)x[i] - (double)h->low) / width;
        int bin = at <= 0 ? 0 : at >= MSC_HISTOGRAM_BINS ? MSC_HISTOGRAM_BINS - 1 : (int)at;
        h->counts[bin] += 1;
    }
}

void msc_scheme_limits(const struct msc_scheme *scheme, int32_t *low, int32_t *high) {
    int32_t half = (int32_t)1 << (scheme->bits - 1);
    *low = !scheme->is_symmetric ? 0 : scheme->is_weight ? -(half - 1) : -half;
    *high = scheme->is_symmetric ? half - 1 : 2 * half - 1;
}

void msc_scheme_fit(const struct msc_scheme *scheme, struct msc_range range, float *scale,
                    int32_t *zero_point) {
    int32_t low, high;
    msc_scheme_limits(scheme, &low, &high);
    double bottom = fmin(range.low, 0.0);
    double top = fmax(range.high, 0.0);
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

static struct msc_range shrunken(struct msc_range whole, int candidate) {
    double factor = 1.0 - 0.75 * candidate / CANDIDATES;
    return (struct msc_range){(float)(whole.low * factor), (float)(whole.high * factor)};
}

static double bin_centre(const struct msc_histogram *h, int bin) {
    return h->low + ((double)h->high - h->low) * (bin + 0.5) / MSC_HISTOGRAM_BINS;
}

// The integer a value takes, counted from the lowest.
static int32_t level_of(double x, float scale, int32_t zero_point, int32_t low, int32_t high) {
    double q = nearbyint(x / (double)scale) + zero_point;
    return (int32_t)(q < low ? low : q > high ? high : q) - low;
}

// ---- Histograms -------------------------------------------------------------------------------

static double histogram_error(const struct msc_histogram *h, const struct msc_scheme *scheme,
                              struct msc_range range) {
    int32_t low, high, zero_point;
    float scale;
    double error = 0;
    msc_scheme_limits(scheme, &low, &high);
    msc_scheme_fit(scheme, range, &scale, &zero_point);
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        if (h->counts[i] > 0) {
            double x = bin_centre(h, i);
            int32_t q = level_of(x, scale, zero_point, low, high) + low;
            double d = x - (double)(q - zero_point) * (double)scale;
            error += h->counts[i] * d * d;
        }
    }
    return error;
}

// First and last bin whose centre is inside the range; false when there is none.
static bool bins_inside(const struct msc_histogram *h, double bottom, double top, int *first,
                        int *last) {
    *first = 0;
    *last = MSC_HISTOGRAM_BINS - 1;
    while (*first < MSC_HISTOGRAM_BINS && bin_centre(h, *first) < bottom) {
        ++*first;
    }
    while (*last >= 0 && bin_centre(h, *last) > top) {
        --*last;
    }
    return *first <= *last;
}

// D(P || Q) over the bins inside the range. P: their counts, with what lies outside moved to the
// ends. Q: the counts inside, the mass of each integer spread evenly over its filled bins.
static double histogram_divergence(const struct msc_histogram *h, const struct msc_scheme *scheme,
                                   struct msc_range range, double mass[], double filled[]) {
    int32_t low, high, zero_point;
    float scale;
    int first, last;
    double inside = 0, before = 0, after = 0, divergence = 0;
    msc_scheme_limits(scheme, &low, &high);
    msc_scheme_fit(scheme, range, &scale, &zero_point);
    size_t n_levels = (size_t)(high - low) + 1;
    memset(mass, 0, n_levels * sizeof(mass[0]));
    memset(filled, 0, n_levels * sizeof(filled[0]));
    if (!bins_inside(h, range.low, range.high, &first, &last)) {
        return INFINITY;
    }
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        *(i < first ? &before : i > last ? &after : &inside) += h->counts[i];
        if (i >= first && i <= last && h->counts[i] > 0) {
            int32_t level = level_of(bin_centre(h, i), scale, zero_point, low, high);
            mass[level] += h->counts[i];
            filled[level] += 1;
        }
    }
    for (int i = first; i <= last && inside > 0; i++) {
        double p = h->counts[i] + (i == first ? before : 0) + (i == last ? after : 0);
        int32_t level = level_of(bin_centre(h, i), scale, zero_point, low, high);
        // An empty bin at the end that receives outside mass has no Q: a vanishing one stands in.
        double q = h->counts[i] > 0 ? mass[level] / filled[level] : 1e-6;
        if (p > 0) {
            p /= inside + before + after;
            divergence += p * log(p / (q / inside));
        }
    }
    return inside > 0 ? divergence : INFINITY;
}

static struct msc_range percentile_of_histogram(const struct msc_histogram *h, double percentile) {
    double total = 0;
    double below = 0;
    double tail;
    int first = 0;
    int last = MSC_HISTOGRAM_BINS - 1;
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        total += h->counts[i];
    }
    tail = total * (1 - percentile / 100);
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

static struct msc_range best_shrunken(const struct msc_histogram *h,
                                      const struct msc_observation *o) {
    struct msc_range whole = with_zero(h->low, h->high);
    struct msc_range best = whole;
    double best_score = INFINITY;
    size_t n_levels = (size_t)1 << o->scheme.bits;
    double *work = NULL;
    if (o->observer == MSC_OBSERVER_KL) {
        work = msc_alloc_zero(2 * n_levels, sizeof(work[0]));
        if (!work) {
            return whole;
        }
    }
    for (int c = 0; c < CANDIDATES; c++) {
        struct msc_range range = shrunken(whole, c);
        double score = work ? histogram_divergence(h, &o->scheme, range, work, work + n_levels)
                            : histogram_error(h, &o->scheme, range);
        if (score < best_score) {
            best_score = score;
            best = range;
        }
    }
    msc_free(work);
    return best;
}

struct msc_range msc_range_of_histogram(const struct msc_histogram *h,
                                        const struct msc_observation *o) {
    switch (o->observer) {
    case MSC_OBSERVER_PERCENTILE:
        return percentile_of_histogram(h, o->percentile);
    case MSC_OBSERVER_KL:
    case MSC_OBSERVER_MSE:
        return best_shrunken(h, o);
    default:
        return with_zero(h->low, h->high);
    }
}

// ---- Values -----------------------------------------------------------------------------------

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum msc_status percentile_of_values(struct msc_range *out, const float x[], int64_t n,
                                            double percentile) {
    float *sorted = msc_alloc((size_t)n * sizeof(sorted[0]));
    if (!sorted) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a percentile over %lld values",
                        (long long)n);
    }
    memcpy(sorted, x, (size_t)n * sizeof(sorted[0]));
    qsort(sorted, (size_t)n, sizeof(sorted[0]), compare_floats);
    int64_t tail = (int64_t)floor((double)n * (1 - percentile / 100));
    tail = tail > (n - 1) / 2 ? (n - 1) / 2 : tail;
    *out = with_zero(sorted[tail], sorted[n - 1 - tail]);
    msc_free(sorted);
    return MSC_OK;
}

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

static struct msc_range min_max(const float x[], int64_t n) {
    float low = 0;
    float high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return (struct msc_range){low, high};
}

static struct msc_range least_error(const float x[], int64_t n, const struct msc_scheme *scheme) {
    struct msc_range whole = min_max(x, n);
    struct msc_range best = whole;
    double best_error = INFINITY;
    for (int c = 0; c < CANDIDATES; c++) {
        struct msc_range range = shrunken(whole, c);
        double error = values_error(x, n, scheme, range);
        if (error < best_error) {
            best_error = error;
            best = range;
        }
    }
    return best;
}

static enum msc_status histogram_of_values(struct msc_range *out, const float x[], int64_t n,
                                           const struct msc_observation *o) {
    struct msc_histogram *h = msc_alloc_zero(1, sizeof(*h));
    struct msc_range whole = min_max(x, n);
    if (!h) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a histogram");
    }
    h->low = whole.low;
    h->high = whole.high;
    msc_histogram_add(h, x, n);
    *out = msc_range_of_histogram(h, o);
    msc_free(h);
    return MSC_OK;
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
    case MSC_OBSERVER_KL:
        return histogram_of_values(out, x, n, o);
    case MSC_OBSERVER_MSE:
        *out = least_error(x, n, &o->scheme);
        return MSC_OK;
    default:
        *out = min_max(x, n);
        return MSC_OK;
    }
}

#include "tools/rounding_internal.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// One group of columns, over all rows.
struct fit {
    const struct msc_rounding_rows *rows;
    int64_t n;          // columns of the group
    float *w;           // [n_rows, n] weights
    float *h;           // [n, n]
    float *off, *moved; // [n_rows, n] each: the errors q - w, and the errors times h
    struct msc_range *ranges;
    float *scales; // [n_rows] under the current candidates
    int32_t *zero_points;
    int *tried;               // [n_rows] index of the current candidate range
    int *best;                // [n_rows]
    double *least;            // [n_rows] error of the best range
    struct guess *guesses;    // [n_rows, MSC_ROUNDING_RANGES]
    float *direction, *image; // [n] the first eigenvector of h, and h times it
    float *kept;              // [n_rows] scale of the best range
    int32_t *kept_zero;       // [n_rows]
};

// The estimated error of a range.
struct guess {
    double error;
    int range;
};

// The size of candidate i of MSC_ROUNDING_RANGES, relative to the row's own range: from 1.1 down to
// 0.31.
static float range_factor(int i) {
    return (float)(1.1 - 0.8 * i / MSC_ROUNDING_RANGES);
}

// Sets `off` to q - w for all rows under their current candidates.
static void round_to_ranges(struct fit *f) {
    const struct msc_rounding_rows *r = f->rows;
    int32_t low, high;
    msc_scheme_limits(&r->scheme, &low, &high);
    for (int64_t i = 0; i < r->n_rows; i++) {
        float factor = range_factor(f->tried[i]);
        struct msc_range range = {f->ranges[i].low * factor, f->ranges[i].high * factor};
        msc_scheme_fit(&r->scheme, range, &f->scales[i], &f->zero_points[i]);
        msc_fake_quantize_run(f->off + i * f->n, f->w + i * f->n, f->n, f->scales[i],
                              f->zero_points[i], low, high);
        for (int64_t k = i * f->n; k < (i + 1) * f->n; k++) {
            f->off[k] -= f->w[k];
        }
    }
}

static void try_ranges(struct fit *f) {
    int64_t n_rows = f->rows->n_rows;
    round_to_ranges(f);
    msc_product_f32(f->moved, f->off, f->h, n_rows, f->n, f->n);
    for (int64_t i = 0; i < n_rows; i++) {
        double error = msc_dot(f->off + i * f->n, f->moved + i * f->n, f->n);
        if (f->best[i] < 0 || error < f->least[i]) {
            f->least[i] = error;
            f->best[i] = f->tried[i];
            f->kept[i] = f->scales[i];
            f->kept_zero[i] = f->zero_points[i];
        }
    }
}

static void gather_group(struct fit *f, int64_t begin) {
    const struct msc_rounding_rows *r = f->rows;
    for (int64_t k = 0; k < f->n; k++) {
        memcpy(f->h + k * f->n, r->h + (begin + k) * r->n_columns + begin,
               (size_t)f->n * sizeof(float));
    }
    for (int64_t i = 0; i < r->n_rows; i++) {
        float *w = f->w + i * f->n;
        memcpy(w, r->weights + i * r->n_columns + begin, (size_t)f->n * sizeof(float));
        struct msc_range range = {0, 0};
        for (int64_t k = 0; k < f->n; k++) {
            range.low = w[k] < range.low ? w[k] : range.low;
            range.high = w[k] > range.high ? w[k] : range.high;
        }
        f->ranges[i] = range;
        f->best[i] = -1;
    }
}

static enum msc_status fit_init(struct fit *f, const struct msc_rounding_rows *r,
                                struct msc_arena *arena) {
    size_t n_rows = (size_t)r->n_rows, n = (size_t)msc_rounding__group_columns(r);
    f->rows = r;
    f->w = msc_arena_array(arena, n_rows * n + 1, sizeof(float));
    f->h = msc_arena_array(arena, n * n + 1, sizeof(float));
    f->off = msc_arena_array(arena, n_rows * n + 1, sizeof(float));
    f->moved = msc_arena_array(arena, n_rows * n + 1, sizeof(float));
    f->ranges = msc_arena_array(arena, n_rows + 1, sizeof(f->ranges[0]));
    f->scales = msc_arena_array(arena, n_rows + 1, sizeof(float));
    f->zero_points = msc_arena_array(arena, n_rows + 1, sizeof(int32_t));
    f->least = msc_arena_array(arena, n_rows + 1, sizeof(double));
    f->tried = msc_arena_array(arena, 2 * n_rows + 1, sizeof(int));
    f->best = f->tried + n_rows;
    f->guesses = msc_arena_array(arena, n_rows * MSC_ROUNDING_RANGES + 1, sizeof(f->guesses[0]));
    f->direction = msc_arena_array(arena, 2 * n + 1, sizeof(float));
    f->image = f->direction + n;
    f->kept = msc_arena_array(arena, n_rows + 1, sizeof(float));
    f->kept_zero = msc_arena_array(arena, n_rows + 1, sizeof(int32_t));
    return MSC_ALLOCATED(f->w && f->h && f->off && f->moved && f->ranges && f->scales &&
                         f->zero_points && f->least && f->tried && f->guesses && f->direction &&
                         f->kept && f->kept_zero);
}

// ---- Estimates --------------------------------------------------------------------------------

// Approximates the first eigenvector of h. If inputs have large means, most of h is in the
// direction of the means.
static double find_direction(struct fit *f) {
    enum { ROUNDS = 8 };
    float *v = f->direction;
    double value = 0;
    for (int64_t k = 0; k < f->n; k++) {
        v[k] = f->h[k * f->n + k];
    }
    for (int round = 0; round <= ROUNDS; round++) {
        double length = sqrt(msc_dot(v, v, f->n));
        for (int64_t k = 0; length > 0 && k < f->n; k++) {
            v[k] = (float)(v[k] / length);
        }
        msc_product_f32(f->image, v, f->h, 1, f->n, f->n);
        value = msc_dot(v, f->image, f->n);
        if (round < ROUNDS) {
            memcpy(v, f->image, (size_t)f->n * sizeof(v[0]));
        }
    }
    return value;
}

static int compare_guesses(const void *a, const void *b) {
    const struct guess *x = a, *y = b;
    if (x->error != y->error) {
        return x->error < y->error ? -1 : 1;
    }
    return (x->range > y->range) - (x->range < y->range);
}

// Estimates the errors of all ranges, with h approximated by a diagonal plus its first eigenvector,
// and sorts the ranges of each row.
static void guess_errors(struct fit *f) {
    double value = find_direction(f);
    const float *v = f->direction;
    float *rest = f->image; // the diagonal of h without the eigenvector's part
    for (int64_t k = 0; k < f->n; k++) {
        double left = f->h[k * f->n + k] - value * v[k] * v[k];
        rest[k] = left > 0 ? (float)left : 0;
    }
    for (int range = 0; range < MSC_ROUNDING_RANGES; range++) {
        for (int64_t i = 0; i < f->rows->n_rows; i++) {
            f->tried[i] = range;
        }
        round_to_ranges(f);
        for (int64_t i = 0; i < f->rows->n_rows; i++) {
            const float *off = f->off + i * f->n;
            double along = msc_dot(off, v, f->n), error = value * along * along;
            for (int64_t k = 0; k < f->n; k++) {
                error += (double)rest[k] * off[k] * off[k];
            }
            f->guesses[i * MSC_ROUNDING_RANGES + range] = (struct guess){error, range};
        }
    }
    for (int64_t i = 0; i < f->rows->n_rows; i++) {
        qsort(f->guesses + i * MSC_ROUNDING_RANGES, MSC_ROUNDING_RANGES, sizeof(f->guesses[0]),
              compare_guesses);
    }
}

// Evaluates every range, or only the likely best ones if there are many columns.
static void fit_group(struct fit *f) {
    enum { MANY = 256, LIKELY = 16 };
    bool is_guessed = f->n >= MANY;
    if (is_guessed) {
        guess_errors(f);
    }
    for (int k = 0; k < (is_guessed ? LIKELY : MSC_ROUNDING_RANGES); k++) {
        for (int64_t i = 0; i < f->rows->n_rows; i++) {
            f->tried[i] = is_guessed ? f->guesses[i * MSC_ROUNDING_RANGES + k].range : k;
        }
        try_ranges(f);
    }
}

// ---- Gain and shift ---------------------------------------------------------------------------

enum msc_status msc_rounding_fit_affine(float shifts[], struct msc_rounding_rows *r,
                                        const double means[]) {
    int64_t n = r->n_columns, n_groups = msc_rounding__n_groups(r);
    float *rounded = msc_alloc(2 * (size_t)(r->n_rows * n) * sizeof(rounded[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(rounded));
    float *moved = rounded + r->n_rows * n;
    msc_rounding__dequantize(rounded, r);
    msc_product_f32(moved, rounded, r->h, r->n_rows, n, n);
    for (int64_t i = 0; i < r->n_rows; i++) {
        const float *w = r->weights + i * n, *q = rounded + i * n;
        double covariance = msc_dot(w, moved + i * n, n);
        double variance = msc_dot(q, moved + i * n, n);
        double gain = variance > 0 ? covariance / variance : 1;
        gain = gain < 0.5 ? 0.5 : gain > 2 ? 2 : gain;
        for (int64_t g = 0; g < n_groups; g++) {
            r->scales[i * n_groups + g] *= (float)gain;
        }
        if (shifts) {
            shifts[i] = (float)(msc_dot_means(w, means, n) - gain * msc_dot_means(q, means, n));
        }
    }
    msc_free(rounded);
    return MSC_OK;
}

// ---- Scales -----------------------------------------------------------------------------------

enum msc_status msc_rounding_fit(struct msc_rounding_rows *r) {
    struct msc_arena arena = {0};
    struct fit f;
    int64_t n_groups = msc_rounding__n_groups(r);
    enum msc_status status = fit_init(&f, r, &arena);
    for (int64_t g = 0; status == MSC_OK && g < n_groups; g++) {
        int64_t begin = g * msc_rounding__group_columns(r);
        f.n = r->n_columns - begin < msc_rounding__group_columns(r)
                  ? r->n_columns - begin
                  : msc_rounding__group_columns(r);
        gather_group(&f, begin);
        fit_group(&f);
        for (int64_t i = 0; i < r->n_rows; i++) {
            r->scales[i * n_groups + g] = f.kept[i];
            r->zero_points[i * n_groups + g] = f.kept_zero[i];
        }
    }
    msc_arena_finish(&arena);
    return status;
}

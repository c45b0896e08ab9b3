#include "tools/block_fit.h"

#include "base/platform.h"
#include "data/dtype.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

#define REFITS 3
// Share of the mean importance that every column has, so that no part is without weight.
#define LEAST_IMPORTANCE 1e-6F

// A part of a block: its elements and their weights.
struct part {
    const float *x, *w;          // [n]
    int n, zero, most;           // codes from 0 to most
    bool has_minimum, is_lifted; // is_lifted: a minimum is not negative
};

struct range {
    float scale, minimum, error;
};

// A block while it is fitted.
struct fit {
    const struct msc_gguf_block_type *type;
    const float *x;
    float w[MSC_GGUF_MAX_BLOCK];
    struct part parts[MSC_GGUF_MAX_PARTS];
    struct range ranges[MSC_GGUF_MAX_PARTS]; // the best, before they are rounded
};

// ---- One part ---------------------------------------------------------------------------------

// Sums are added up in a fixed number of lanes, so that they do not depend on the processor.
enum { LANES = 16, MAX_PART = 32 };

static inline float sum_lanes(const float lanes[LANES]) {
    float sum = 0;
    for (int k = 0; k < LANES; k++) {
        sum += lanes[k];
    }
    return sum;
}

// Codes of a part minus `zero`, rounded to nearest.
static inline void round_part(float codes[MAX_PART], const struct part *p, float scale,
                              float minimum) {
    float low = -(float)p->zero, high = low + (float)p->most;
    if (scale == 0) {
        memset(codes, 0, MAX_PART * sizeof(codes[0]));
        return;
    }
    for (int i = 0; i < p->n; i++) {
        float code = rintf((p->x[i] + minimum) / scale);
        code = code > low ? code : low;
        codes[i] = code < high ? code : high;
    }
}

static inline float error_of(const float codes[MAX_PART], const struct part *p, float scale,
                             float minimum) {
    float sums[LANES] = {0};
    for (int i = 0; i < p->n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            float off = scale * codes[i + k] - minimum - p->x[i + k];
            sums[k] += p->w[i + k] * off * off;
        }
    }
    return sum_lanes(sums);
}

// Error of a part with codes rounded to nearest.
MSC_SIMD static float part_error(const struct part *p, float scale, float minimum) {
    float codes[MAX_PART];
    round_part(codes, p, scale, minimum);
    return error_of(codes, p, scale, minimum);
}

// Keeps scale and minimum, improved by least squares for the codes that they give, if their error
// is the least so far.
MSC_SIMD static void try_range(struct range *best, const struct part *p, float scale,
                               float minimum) {
    float codes[MAX_PART];
    float w[LANES] = {0}, q[LANES] = {0}, qq[LANES] = {0}, x[LANES] = {0}, xq[LANES] = {0};
    round_part(codes, p, scale, minimum);
    for (int i = 0; i < p->n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            float by = p->w[i + k], code = codes[i + k];
            w[k] += by;
            q[k] += by * code;
            qq[k] += by * code * code;
            x[k] += by * p->x[i + k];
            xq[k] += by * p->x[i + k] * code;
        }
    }
    double sw = (double)sum_lanes(w), sq = (double)sum_lanes(q), sqq = (double)sum_lanes(qq);
    double sx = (double)sum_lanes(x), sxq = (double)sum_lanes(xq), by = sw * sqq - sq * sq;
    double lift = p->has_minimum && by > 1e-6 * sw * sqq ? (sq * sxq - sqq * sx) / by : 0;
    lift = p->is_lifted && lift < 0 ? 0 : lift;
    if (sqq > 0) {
        float better = (float)((sxq + lift * sq) / sqq);
        round_part(codes, p, better, (float)lift);
        float error = error_of(codes, p, better, (float)lift);
        if (error < best->error) {
            *best = (struct range){better, (float)lift, error};
        }
    }
}

// Steps of the search per unit of the divisor. With more bits, ranges differ less.
static int steps_for(int bits) {
    return bits <= 3 ? 6 : bits <= 5 ? 4 : 2;
}

static struct part part_of(const struct fit *f, int index) {
    const struct msc_gguf_block_type *t = f->type;
    return (struct part){.x = f->x + index * t->n_in_part,
                         .w = f->w + index * t->n_in_part,
                         .n = t->n_in_part,
                         .zero = t->zero,
                         .most = (1 << t->bits) - 1,
                         .has_minimum = t->has_minimums,
                         .is_lifted = t->has_minimums && t->most_factor > 0};
}

static struct range fit_without_minimum(const struct part *p, int steps) {
    struct range best = {.error = INFINITY};
    float top = 0;
    for (int i = 0; i < p->n; i++) {
        top = fabsf(p->x[i]) > fabsf(top) ? p->x[i] : top;
    }
    // The largest element gets the lowest code or the highest one, or almost.
    for (int k = -steps; top != 0 && k <= steps; k++) {
        float off = (float)k / (float)steps;
        try_range(&best, p, -top / ((float)p->zero - off), 0);
        try_range(&best, p, top / ((float)(p->zero - 1) - off / 2), 0);
    }
    return best;
}

static struct range fit_with_minimum(const struct part *p, int steps) {
    float low = p->x[0], high = p->x[0];
    for (int i = 1; i < p->n; i++) {
        low = p->x[i] < low ? p->x[i] : low;
        high = p->x[i] > high ? p->x[i] : high;
    }
    low = p->is_lifted && low > 0 ? 0 : low;
    struct range best = {.minimum = -low, .error = INFINITY};
    // Ranges that are wider than the elements, and narrower on one side or on both.
    for (int k = -steps; high > low && k <= 2 * steps; k++) {
        float scale = (high - low) / ((float)p->most + (float)k / (float)steps);
        float width = scale * (float)p->most;
        if (scale > 0 && isfinite(scale)) {
            try_range(&best, p, scale, -low);
            try_range(&best, p, scale, width - high);
            try_range(&best, p, scale, (width - low - high) / 2);
        }
    }
    return best;
}

// ---- The integers of a block ------------------------------------------------------------------

static uint16_t to_half(double x) {
    float y = (float)x;
    y = y > MSC_F16_MAX ? MSC_F16_MAX : y < -MSC_F16_MAX ? -MSC_F16_MAX : y;
    return msc_f32_to_f16(y);
}

static int clamp(float x, int low, int high) {
    float y = rintf(x);
    return y > (float)low ? y < (float)high ? (int)y : high : low;
}

static double block_error(const struct fit *f, const struct msc_gguf_block *b) {
    float scales[MSC_GGUF_MAX_PARTS], minimums[MSC_GGUF_MAX_PARTS];
    double error = 0;
    msc_gguf_scales(scales, minimums, b, f->type);
    for (int p = 0; p < f->type->n / f->type->n_in_part; p++) {
        error += (double)part_error(&f->parts[p], scales[p], minimums[p]);
    }
    return error;
}

// The nearest factor and lift of a part for the block's numbers, and their best neighbours.
static void choose_factors(struct msc_gguf_block *b, const struct fit *f, int part) {
    const struct msc_gguf_block_type *type = f->type;
    float d = msc_f16_to_f32(b->d), m = type->has_minimums ? msc_f16_to_f32(b->m) : 0;
    int factor =
        d != 0 ? clamp(f->ranges[part].scale / d, type->least_factor, type->most_factor) : 0;
    int lift = m != 0 ? clamp(f->ranges[part].minimum / m, 0, type->most_factor) : 0;
    float least = INFINITY;
    for (int i = -1; i <= 1; i++) {
        for (int k = m != 0 ? -1 : 0; k <= (m != 0); k++) {
            int x = factor + i, y = lift + k;
            if (x < type->least_factor || x > type->most_factor || y < 0 || y > type->most_factor) {
                continue;
            }
            float error = part_error(&f->parts[part], d * (float)x, m * (float)y);
            if (error < least) {
                least = error;
                b->factors[part] = (int16_t)x;
                b->lifts[part] = (uint8_t)y;
            }
        }
    }
}

// The block's numbers that make the largest scale and minimum exact.
static void start_block(struct msc_gguf_block *b, const struct fit *f) {
    const struct msc_gguf_block_type *type = f->type;
    float scale = 0, minimum = 0;
    int n_parts = type->n / type->n_in_part;
    if (type->most_factor == 0) {
        b->d = to_half((double)f->ranges[0].scale);
        b->m = to_half(-(double)f->ranges[0].minimum);
        return;
    }
    for (int p = 0; p < n_parts; p++) {
        scale = fabsf(f->ranges[p].scale) > fabsf(scale) ? f->ranges[p].scale : scale;
        minimum = f->ranges[p].minimum > minimum ? f->ranges[p].minimum : minimum;
    }
    // Signed factors reach further below 0 than above it.
    int most = type->least_factor < 0 ? type->least_factor : type->most_factor;
    b->d = to_half((double)scale / most);
    b->m = to_half((double)minimum / type->most_factor);
    for (int p = 0; p < n_parts; p++) {
        choose_factors(b, f, p);
    }
}

// Fits the block's numbers to its codes and integers by least squares: x = d u - m v, where u is a
// code times its factor, and v the lift (without factors: the code, and -1).
static void refit_block(struct msc_gguf_block *b, const struct fit *f) {
    const struct msc_gguf_block_type *type = f->type;
    bool has_factors = type->most_factor > 0;
    float scales[MSC_GGUF_MAX_PARTS], minimums[MSC_GGUF_MAX_PARTS], codes[MAX_PART];
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
    msc_gguf_scales(scales, minimums, b, type);
    for (int p = 0; p < type->n / type->n_in_part; p++) {
        const struct part *part = &f->parts[p];
        double factor = has_factors ? b->factors[p] : 1;
        double v = !type->has_minimums ? 0 : has_factors ? b->lifts[p] : -1;
        round_part(codes, part, scales[p], minimums[p]);
        for (int i = 0; i < part->n; i++) {
            double w = (double)part->w[i], x = (double)part->x[i], u = factor * (double)codes[i];
            uu += w * u * u;
            uv += w * u * v;
            vv += w * v * v;
            xu += w * x * u;
            xv += w * x * v;
        }
    }
    double by = uu * vv - uv * uv;
    if (by > 1e-12 * uu * vv) {
        b->d = to_half((xu * vv - xv * uv) / by);
        b->m = to_half((xu * uv - xv * uu) / by);
    } else if (uu > 0) {
        b->d = to_half((xu + (double)msc_f16_to_f32(b->m) * uv) / uu);
    }
}

static void improve_block(struct msc_gguf_block *b, const struct fit *f) {
    double least = block_error(f, b);
    for (int i = 0; i < REFITS; i++) {
        struct msc_gguf_block next = *b;
        refit_block(&next, f);
        for (int p = 0; f->type->most_factor > 0 && p < f->type->n / f->type->n_in_part; p++) {
            choose_factors(&next, f, p);
        }
        double error = block_error(f, &next);
        if (!(error < least)) {
            return;
        }
        least = error;
        *b = next;
    }
}

static void set_codes(struct msc_gguf_block *b, const struct fit *f) {
    float scales[MSC_GGUF_MAX_PARTS], minimums[MSC_GGUF_MAX_PARTS], codes[MAX_PART];
    msc_gguf_scales(scales, minimums, b, f->type);
    for (int i = 0; i < f->type->n; i++) {
        int p = i / f->type->n_in_part, k = i % f->type->n_in_part;
        if (k == 0) {
            round_part(codes, &f->parts[p], scales[p], minimums[p]);
        }
        b->codes[i] = (uint8_t)((int)codes[k] + f->type->zero);
    }
}

static void weigh(struct fit *f, const float importance[]) {
    double sum = 0;
    for (int i = 0; importance && i < f->type->n; i++) {
        sum += (double)importance[i];
    }
    float least = LEAST_IMPORTANCE * (float)(sum / f->type->n);
    for (int i = 0; i < f->type->n; i++) {
        f->w[i] = sum > 0 ? fmaxf(importance[i], least) : 1;
    }
}

static void fit_block(uint8_t bytes[], struct fit *f) {
    struct msc_gguf_block b = {0};
    for (int p = 0; p < f->type->n / f->type->n_in_part; p++) {
        int steps = steps_for(f->type->bits);
        f->parts[p] = part_of(f, p);
        f->ranges[p] = f->type->has_minimums ? fit_with_minimum(&f->parts[p], steps)
                                             : fit_without_minimum(&f->parts[p], steps);
    }
    start_block(&b, f);
    improve_block(&b, f);
    set_codes(&b, f);
    msc_gguf_pack(bytes, &b, f->type);
}

void msc_block_fit_rows(uint8_t bytes[], const float x[], int64_t n_rows, int64_t n_columns,
                        const float importance[], const struct msc_gguf_block_type *type) {
    struct fit f = {.type = type};
    for (int64_t at = 0; at < n_rows * n_columns; at += type->n, bytes += type->n_bytes) {
        f.x = x + at;
        weigh(&f, importance ? importance + at % n_columns : NULL);
        fit_block(bytes, &f);
    }
}

// Standard deviations of points under the posterior of the pair model, and pending proposals.
#include "agents/pair_model_internal.h"

#include <math.h>
#include <string.h>

// A point counts as known if at most this fraction of its prior variance is left.
#define LEAST_LEFT 1e-9

static const uint32_t *point_or_believed(const struct msc_pair_model *m, size_t i) {
    return i < m->n_points ? msc_pair__point(m, i)
                           : m->believed + (i - m->n_points) * m->bounds->space->n_tasks;
}

// Covariances of `x`, whose `unknown` and msc_pair__set_own are set, with MSC_PAIR_LANES points
// from i on. Lanes beyond the last point repeat the last point.
static void covariances_with(const struct msc_pair_model *m, size_t i, const uint32_t x[],
                             bool has_unknown, double out[]) {
    double unknown = msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN),
           pairs = msc_pair__strength(m->strengths, MSC_PAIR_PAIRS), shared[MSC_PAIR_LANES] = {0.0};
    const uint32_t *z[MSC_PAIR_LANES];
    for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
        size_t last = m->n_points + m->n_believed - 1;
        z[lane] = point_or_believed(m, i + lane < last ? i + lane : last);
    }
    for (size_t t = 0; has_unknown && t < m->bounds->space->n_tasks; t++) {
        const double added[] = {0.0, m->unknown[t]};
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            shared[lane] += added[x[t] == z[lane][t]];
        }
    }
    msc_pair__pair_covariances(m, i, out);
    for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
        out[lane] = unknown * unknown * shared[lane] + pairs * pairs * out[lane];
    }
}

// Returns the prior variance of a point, and makes it the point of msc_pair__set_own.
static double prior_variance(struct msc_pair_model *m, const uint32_t x[], bool *has_unknown) {
    double unknown = msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN),
           pairs = msc_pair__strength(m->strengths, MSC_PAIR_PAIRS), alone = 0.0;
    *has_unknown = msc_pair__set_unknown(m, x);
    msc_pair__set_own(m, x);
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        alone += m->unknown[t];
    }
    return unknown * unknown * alone + pairs * pairs * msc_pair__pair_variance(m);
}

// Sets `sums` to the covariances of a point with all points of the factor, after prior_variance.
static void set_sums(struct msc_pair_model *m, const uint32_t x[], bool has_unknown) {
    for (size_t i = 0; i < m->n_points + m->n_believed; i += MSC_PAIR_LANES) {
        covariances_with(m, i, x, has_unknown, m->sums + i);
    }
}

// Returns the point's variance that remains if all points of the factor are known, and multiplies
// `sums` by U^-T. Returns 0 as soon as the variance is at most `least`.
static double left_variance(struct msc_pair_model *m, double variance, double least) {
    size_t n = m->n_points + m->n_believed;
    for (size_t k = 0; k < n && variance > least; k++) {
        const double *row = m->factor + k * MSC_PAIR_POINTS;
        m->sums[k] /= row[k];
        variance -= m->sums[k] * m->sums[k];
        for (size_t j = k + 1; j < n; j++) {
            m->sums[j] -= row[j] * m->sums[k];
        }
    }
    return variance > least ? variance : 0.0;
}

double msc_pair_model_spread(struct msc_pair_model *m, const uint32_t choices[], double least) {
    bool has_unknown;
    double variance = prior_variance(m, choices, &has_unknown);
    if (!(variance > least * least)) {
        return 0.0;
    }
    set_sums(m, choices, has_unknown);
    return sqrt(left_variance(m, variance, least * least));
}

double msc_pair_model_spread_kept(struct msc_pair_model *m, const uint32_t choices[],
                                  struct msc_pair_spread *kept) {
    size_t n = m->n_points + m->n_believed;
    if (kept->n == 0) {
        bool has_unknown;
        double variance = prior_variance(m, choices, &has_unknown);
        set_sums(m, choices, has_unknown);
        kept->variance = left_variance(m, variance, 0.0);
        memcpy(kept->solved, m->sums, n * sizeof *m->sums);
        kept->n = n;
    }
    bool has_unknown = kept->n < n && msc_pair__set_unknown(m, choices);
    if (kept->n < n) {
        msc_pair__set_own(m, choices);
    }
    for (; kept->n < n && kept->variance > 0.0; kept->n++) {
        size_t k = kept->n;
        double with[MSC_PAIR_LANES];
        covariances_with(m, k / MSC_PAIR_LANES * MSC_PAIR_LANES, choices, has_unknown, with);
        double sum = with[k % MSC_PAIR_LANES];
        for (size_t j = 0; j < k; j++) {
            sum -= m->factor[j * MSC_PAIR_POINTS + k] * kept->solved[j];
        }
        kept->solved[k] = sum / m->factor[k * MSC_PAIR_POINTS + k];
        kept->variance -= kept->solved[k] * kept->solved[k];
    }
    return kept->variance > 0.0 ? sqrt(kept->variance) : 0.0;
}

void msc_pair_model_believe(struct msc_pair_model *m, const uint32_t choices[]) {
    size_t n_tasks = m->bounds->space->n_tasks, n = m->n_points + m->n_believed;
    if (n == MSC_PAIR_POINTS || m->n_believed == MSC_PAIR_PENDING) {
        return;
    }
    bool has_unknown;
    double variance = prior_variance(m, choices, &has_unknown);
    set_sums(m, choices, has_unknown);
    double left = left_variance(m, variance, LEAST_LEFT * variance);
    if (left == 0.0) {
        return; // the point is known already
    }
    for (size_t i = 0; i < n; i++) {
        m->factor[i * MSC_PAIR_POINTS + n] = m->sums[i];
    }
    m->factor[n * MSC_PAIR_POINTS + n] = sqrt(left);
    msc_pair__set_column(m, n, choices);
    memcpy(m->believed + m->n_believed * n_tasks, choices, n_tasks * sizeof *choices);
    m->n_believed++;
}

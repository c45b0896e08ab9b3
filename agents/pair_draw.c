// Draws from the posterior of the pair model, and the values of points under a draw (Matheron's
// rule; see pair_model.h).
#include "agents/cholesky.h"
#include "agents/numbers.h"
#include "agents/pair_model_internal.h"

#include <math.h>
#include <string.h>

// With fewer points, losses are not reported as additive.
#define ENOUGH_POINTS 6

static void draw_prior(struct msc_pair_model *m, struct msc_rng *rng, double temperature) {
    double unknown = temperature * msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN);
    double pairs = temperature * msc_pair__strength(m->strengths, MSC_PAIR_PAIRS);
    size_t n = m->n_pair_entries;
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        bool is_drawn = temperature > 0.0 && !m->is_known[e] && m->scales[e] > 0.0;
        m->terms[e] = is_drawn ? unknown * m->scales[e] * msc_agent_normal(rng) : 0.0;
    }
    memset(m->pair_terms, 0, n * n * sizeof *m->pair_terms);
    if (temperature == 0.0) {
        return;
    }
    // A term of two tasks is a sum of independent numbers: one for both tasks, one for each choice,
    // and one for the pair of choices.
    double of_both = m->correlation, of_pair = 1.0 - m->correlation;
    double of_one = sqrt(m->correlation * (1.0 - m->correlation));
    for (size_t i = 0, i_end; i < n; i = i_end) {
        for (i_end = i; i_end < n && m->pair_tasks[i_end] == m->pair_tasks[i]; i_end++) {}
        for (size_t k = i_end, k_end; k < n; k = k_end) {
            for (k_end = k; k_end < n && m->pair_tasks[k_end] == m->pair_tasks[k]; k_end++) {}
            double both = of_both * msc_agent_normal(rng);
            for (size_t a = k; a < k_end; a++) {
                // the second task's choice
                m->pair_terms[i * n + a] = of_one * msc_agent_normal(rng);
            }
            for (size_t a = i_end; a-- > i;) {
                double first = of_one * msc_agent_normal(rng);
                for (size_t b = k; b < k_end; b++) {
                    double scale =
                        sqrt(m->scales[m->pair_entries[a]] * m->scales[m->pair_entries[b]]);
                    double sum =
                        both + first + m->pair_terms[i * n + b] + of_pair * msc_agent_normal(rng);
                    m->pair_terms[a * n + b] = pairs * scale * sum;
                    m->pair_terms[b * n + a] = m->pair_terms[a * n + b];
                }
            }
        }
    }
}

// The sum of a point's terms in the draw.
static double sum_of_terms(const struct msc_pair_model *m, const uint32_t x[]) {
    size_t n = m->n_pair_entries, p = 0;
    double sum = 0.0;
    msc_pair__set_places(m, x);
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
        sum += m->terms[e];
        if (p == m->n_paired || m->paired[p] != t) {
            continue;
        }
        const double *row = m->pair_terms + m->places[p] * n;
        for (size_t k = 0; k < p; k++) {
            sum += row[m->places[k]];
        }
        p++;
    }
    return sum;
}

// Terms of TILE x TILE choices are summed at once, in registers. MSC_PAIR_ENTRIES is a multiple of
// TILE, so reading past n_pair_entries stays within a row of features.
#define TILE 4

// Adds the contribution of every point, in order, to the `n_rows` x `n_columns` terms from
// pair_terms[a, b] on.
static void add_tile(struct msc_pair_model *m, size_t a, size_t n_rows, size_t b,
                     size_t n_columns) {
    size_t n = m->n_pair_entries;
    double pairs = msc_pair__strength(m->strengths, MSC_PAIR_PAIRS), sums[TILE][TILE] = {{0}};
    for (size_t r = 0; r < n_rows; r++) {
        memcpy(sums[r], m->pair_terms + (a + r) * n + b, n_columns * sizeof sums[r][0]);
    }
    for (size_t i = 0; i < m->n_points; i++) {
        const double *row = m->features + i * MSC_PAIR_ENTRIES;
        double weight = m->weights[i] * pairs * pairs;
        for (size_t r = 0; r < TILE; r++) {
            double of_row = weight * row[a + r];
            for (size_t c = 0; c < TILE; c++) {
                sums[r][c] += of_row * row[b + c];
            }
        }
    }
    for (size_t r = 0; r < n_rows; r++) {
        memcpy(m->pair_terms + (a + r) * n + b, sums[r], n_columns * sizeof sums[r][0]);
    }
}

// Adds to each term the sum over points of (covariance of the point with the term) * (weight of the
// point).
static void add_data(struct msc_pair_model *m) {
    double unknown = msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN);
    size_t n = m->n_pair_entries;
    for (size_t i = 0; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
            size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
            double spread = m->is_known[e] ? 0.0 : unknown * m->scales[e];
            m->terms[e] += m->weights[i] * spread * spread;
        }
    }
    for (size_t a = 0; a < n; a += TILE) {
        for (size_t b = 0; b < n; b += TILE) {
            add_tile(m, a, n - a < TILE ? n - a : TILE, b, n - b < TILE ? n - b : TILE);
        }
    }
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            m->pair_terms[a * n + b] =
                m->pair_tasks[a] == m->pair_tasks[b] ? 0.0 : m->pair_terms[a * n + b];
        }
    }
}

void msc_pair_model_draw(struct msc_pair_model *m, struct msc_rng *rng, double temperature) {
    size_t n = m->n_points;
    if (temperature == 0.0 && m->has_mean) {
        return;
    }
    m->has_mean = temperature == 0.0;
    if (msc_pair_model_is_additive(m)) {
        msc_pair__leave_out_pairs(m);
    }
    draw_prior(m, rng, temperature);
    for (size_t i = 0; i < n; i++) {
        m->weights[i] =
            m->residuals[i] - (temperature > 0.0 ? sum_of_terms(m, msc_pair__point(m, i)) : 0.0);
    }
    msc_cholesky_solve_lower(m->factor, m->weights, n, MSC_PAIR_POINTS);
    msc_cholesky_solve_upper(m->factor, m->weights, n, MSC_PAIR_POINTS);
    if (n > 0) {
        add_data(m);
    }
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        m->terms[e] += m->means[e];
    }
}

double msc_pair_model_value(const struct msc_pair_model *m, const uint32_t choices[]) {
    return m->base + sum_of_terms(m, choices);
}

bool msc_pair_model_is_additive(const struct msc_pair_model *m) {
    return m->n_points >= ENOUGH_POINTS && m->strengths[MSC_PAIR_PAIRS] == 0;
}

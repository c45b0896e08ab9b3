// Draws from the posterior of the pair model, and the values of points under a draw (Matheron's
// rule; see pair_model.h).
#include "agents/cholesky.h"
#include "agents/numbers.h"
#include "agents/pair_model_internal.h"

#include <math.h>
#include <string.h>

// With fewer points, losses are not reported as additive.
#define ENOUGH_POINTS 6

// ---- Blocks -----------------------------------------------------------------------------------

// The pair terms of two tasks, n_rows x n_columns, and where they are in pair_terms. Of any two
// tasks, `offset` is in the upper triangle of pair_terms.
struct block {
    size_t offset, stride, n_rows, n_columns;
    const double *row_roots, *column_roots; // square roots of the scales of the choices
};

static struct block block_of(const struct msc_pair_model *m, uint32_t a, uint32_t b) {
    size_t first = m->bounds->offsets[a], second = m->bounds->offsets[b];
    return (struct block){.n_rows = m->bounds->space->tasks[a].n_choices,
                          .n_columns = m->bounds->space->tasks[b].n_choices,
                          .row_roots = m->roots + first,
                          .column_roots = m->roots + second};
}

// Calls `apply` for each block.
static void for_blocks(struct msc_pair_model *m,
                       void (*apply)(struct msc_pair_model *m, const struct block *b, void *with),
                       void *with) {
    size_t n = m->n_pair_entries;
    for (size_t k = 0; m->is_near && m->has_pairs && k < m->n_edges; k++) {
        struct block block = block_of(m, m->edges[k].a, m->edges[k].b);
        block.offset = m->edges[k].offset;
        block.stride = block.n_columns;
        apply(m, &block, with);
    }
    for (size_t a = 0; !m->is_near && a < m->n_paired; a++) {
        size_t row = (size_t)m->pair_places[m->bounds->offsets[m->paired[a]]];
        for (size_t b = a + 1; b < m->n_paired; b++) {
            struct block block = block_of(m, m->paired[a], m->paired[b]);
            block.offset = row * n + (size_t)m->pair_places[m->bounds->offsets[m->paired[b]]];
            block.stride = n;
            apply(m, &block, with);
        }
    }
}

// The number of elements of pair_terms.
static size_t count_terms(const struct msc_pair_model *m) {
    if (!m->is_near) {
        return m->n_pair_entries * m->n_pair_entries;
    }
    if (m->n_edges == 0 || !m->has_pairs) {
        return 0;
    }
    const struct msc_pair_edge *last = &m->edges[m->n_edges - 1];
    const struct msc_task *tasks = m->bounds->space->tasks;
    return last->offset + (size_t)tasks[last->a].n_choices * tasks[last->b].n_choices;
}

// ---- Draws ------------------------------------------------------------------------------------

// A term of two tasks is a sum of independent numbers: one for both tasks, one for each choice, and
// one for the pair of choices.
struct prior {
    struct msc_rng *rng;
    double strength;
};

static void draw_block(struct msc_pair_model *m, const struct block *b, void *with) {
    const struct prior *prior = with;
    struct msc_rng *rng = prior->rng;
    double of_both = m->correlation, of_pair = 1.0 - m->correlation;
    double of_one = sqrt(m->correlation * (1.0 - m->correlation));
    double both = of_both * msc_agent_normal(rng), *of_columns = m->columns;
    for (size_t c = 0; c < b->n_columns; c++) {
        of_columns[c] = of_one > 0.0 ? of_one * msc_agent_normal(rng) : 0.0;
    }
    for (size_t r = 0; r < b->n_rows; r++) {
        double of_row = both + (of_one > 0.0 ? of_one * msc_agent_normal(rng) : 0.0);
        double *terms = m->pair_terms + b->offset + r * b->stride;
        for (size_t c = 0; c < b->n_columns && b->row_roots[r] > 0.0; c++) {
            double scale = prior->strength * b->row_roots[r] * b->column_roots[c];
            double sum = of_row + of_columns[c] + of_pair * msc_agent_normal(rng);
            terms[c] = scale * sum;
        }
    }
}

static void draw_prior(struct msc_pair_model *m, struct msc_rng *rng, double temperature) {
    double unknown = temperature * msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN);
    struct prior prior = {rng, temperature * msc_pair__strength(m->strengths, MSC_PAIR_PAIRS)};
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        bool is_drawn = temperature > 0.0 && !m->is_known[e] && m->scales[e] > 0.0;
        m->terms[e] = is_drawn ? unknown * m->scales[e] * msc_agent_normal(rng) : 0.0;
    }
    memset(m->pair_terms, 0, count_terms(m) * sizeof *m->pair_terms);
    if (temperature > 0.0) {
        for_blocks(m, draw_block, &prior);
    }
}

static size_t edge_term(const struct msc_pair_model *m, size_t k, const uint32_t x[]) {
    const struct msc_pair_edge *edge = &m->edges[k];
    return edge->offset + (size_t)x[edge->a] * m->bounds->space->tasks[edge->b].n_choices +
           x[edge->b];
}

// The sum of a point's terms in the draw. Reads only the upper triangle of pair_terms.
static double sum_of_terms(const struct msc_pair_model *m, const uint32_t x[]) {
    size_t n = m->n_pair_entries;
    double sum = 0.0;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        sum += m->terms[msc_exact_bounds_entry(m->bounds, t, x[t])];
    }
    for (size_t k = 0; m->is_near && m->has_pairs && k < m->n_edges; k++) {
        sum += m->pair_terms[edge_term(m, k, x)];
    }
    if (m->is_near) {
        return sum;
    }
    msc_pair__set_own(m, x);
    for (size_t p = 0; p < m->n_paired; p++) {
        const double *row = m->pair_terms + m->places[p] * n;
        double of_row = 0.0;
        for (size_t k = p + 1; k < m->n_paired; k++) {
            of_row += row[m->places[k]];
        }
        sum += of_row;
    }
    return sum;
}

// ---- Data -------------------------------------------------------------------------------------

// Sets pair_weights, of any two tasks only the upper triangle: the sum of the weights of the points
// that have both choices.
static void sum_weights(struct msc_pair_model *m) {
    size_t n = m->n_pair_entries;
    memset(m->pair_weights, 0, count_terms(m) * sizeof *m->pair_weights);
    for (size_t i = 0; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        for (size_t k = 0; m->is_near && m->has_pairs && k < m->n_edges; k++) {
            m->pair_weights[edge_term(m, k, x)] += m->weights[i];
        }
        msc_pair__set_own(m, x);
        for (size_t p = 0; !m->is_near && p < m->n_paired; p++) {
            double *row = m->pair_weights + m->places[p] * n;
            for (size_t k = p + 1; k < m->n_paired; k++) {
                row[m->places[k]] += m->weights[i];
            }
        }
    }
}

// Adds to the terms of a block the sum over points of (covariance of the point with the term) *
// (weight of the point). A covariance has the factor 1 for each choice that the point shares with
// the term, and the correlation for each other choice. So the sum follows from the sums of the
// block, of its rows and of its columns.
static void add_data_to(struct msc_pair_model *m, const struct block *b, void *with) {
    const double strength = *(const double *)with;
    size_t n = b->stride;
    double both = m->correlation, one = 1.0 - m->correlation, all = 0.0;
    double *terms = m->pair_terms + b->offset, *of_columns = m->columns;
    double *weights = m->pair_weights + b->offset;
    memset(of_columns, 0, b->n_columns * sizeof *of_columns);
    for (size_t r = 0; r < b->n_rows; r++) {
        for (size_t c = 0; c < b->n_columns; c++) {
            weights[r * n + c] *= b->row_roots[r] * b->column_roots[c];
            of_columns[c] += weights[r * n + c];
        }
    }
    for (size_t c = 0; c < b->n_columns; c++) {
        all += of_columns[c];
    }
    for (size_t r = 0; r < b->n_rows; r++) {
        double of_row = 0.0;
        for (size_t c = 0; c < b->n_columns; c++) {
            of_row += weights[r * n + c];
        }
        for (size_t c = 0; c < b->n_columns; c++) {
            double sum = one * one * weights[r * n + c] + both * one * (of_row + of_columns[c]) +
                         both * both * all;
            terms[r * n + c] += strength * strength * b->row_roots[r] * b->column_roots[c] * sum;
        }
    }
}

static void add_data(struct msc_pair_model *m) {
    double unknown = msc_pair__strength(m->strengths, MSC_PAIR_UNKNOWN);
    double pairs = msc_pair__strength(m->strengths, MSC_PAIR_PAIRS);
    for (size_t i = 0; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
            size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
            double spread = m->is_known[e] ? 0.0 : unknown * m->scales[e];
            m->terms[e] += m->weights[i] * spread * spread;
        }
    }
    sum_weights(m);
    for_blocks(m, add_data_to, &pairs);
}

// Copies the upper triangle of pair_terms to the lower one.
static void mirror(struct msc_pair_model *m) {
    size_t n = m->n_pair_entries;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = a + 1; b < n; b++) {
            m->pair_terms[b * n + a] = m->pair_terms[a * n + b];
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
    if (!m->is_near) {
        mirror(m);
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

bool msc_pair_model_add_terms(const struct msc_pair_model *m, size_t task, uint32_t choice,
                              double factor, double field[]) {
    const struct msc_exact_bounds *bounds = m->bounds;
    int32_t place = m->pair_places[msc_exact_bounds_entry(bounds, task, choice)];
    const double *row = place < 0 ? NULL : m->pair_terms + (size_t)place * m->n_pair_entries;
    for (size_t p = 0; row && p < m->n_pair_entries; p++) {
        field[m->pair_entries[p]] += factor * row[p];
    }
    bool has_edges = m->is_near && m->has_pairs;
    for (size_t u = has_edges ? m->first_uses[task] : 0; has_edges && u < m->first_uses[task + 1];
         u++) {
        const struct msc_pair_edge *edge = &m->edges[m->uses[u]];
        size_t n_columns = bounds->space->tasks[edge->b].n_choices;
        size_t other = edge->a == task ? edge->b : edge->a, step = edge->a == task ? 1 : n_columns;
        const double *terms =
            m->pair_terms + edge->offset + choice * (edge->a == task ? n_columns : 1);
        for (size_t c = 0; c < bounds->space->tasks[other].n_choices; c++) {
            field[bounds->offsets[other] + c] += factor * terms[c * step];
        }
    }
    return row || (has_edges && m->first_uses[task] < m->first_uses[task + 1]);
}

#include "agents/pair_model.h"

#include "agents/cholesky.h"
#include "agents/numbers.h"
#include "agents/pair_model_internal.h"
#include "base/heap.h"

#include <math.h>
#include <string.h>

// Correlation of the pair terms of one task's choices, unless it is learnt.
#define CORRELATION 0.5
// Scales are at least this fraction of the median scale.
#define LEAST_SCALE 0.02
// Strengths are chosen again when the number of points has grown by the factor CHOOSE_AGAIN. If
// there is no room for more points, they are chosen again after REPLACED * max_points new
// observations.
#define CHOOSE_AGAIN 1.25
#define REPLACED 0.5
// Loss of an unusable choice, relative to the sum of the worst losses of all tasks.
#define UNUSABLE 10.0
// With at most this many points, every fit chooses strengths from the whole grid.
#define FEW_POINTS 40
// Limit on the work of a fit: points times tasks.
#define POINTS_TIMES_TASKS 100000
#define LEAST_POINTS 64

enum { UNKNOWN_STRENGTHS = 3, PAIRS_STRENGTHS = 7, NOISE_STRENGTHS = 4 };
static const double unknown_strengths[UNKNOWN_STRENGTHS] = {0.1, 0.3, 1.0};
static const double pairs_strengths[PAIRS_STRENGTHS] = {0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0};
static const double noise_strengths[NOISE_STRENGTHS] = {0.001, 0.02, 0.06, 0.15};
static const int n_strengths[MSC_PAIR_STRENGTHS] = {UNKNOWN_STRENGTHS, PAIRS_STRENGTHS,
                                                    NOISE_STRENGTHS};
static const double correlations[] = {CORRELATION, 0.0};

// ---- Points -----------------------------------------------------------------------------------

enum msc_status msc_pair_model_init(struct msc_pair_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds, size_t n_models) {
    enum { N = MSC_PAIR_POINTS, E = MSC_PAIR_ENTRIES, ALL = N + MSC_PAIR_PENDING };
    enum { MOST = N - MSC_PAIR_PENDING };
    size_t n_tasks = bounds->space->n_tasks, n = bounds->n_entries;
    *m = (struct msc_pair_model){.bounds = bounds,
                                 .max_points = POINTS_TIMES_TASKS / n_tasks / n_models,
                                 .correlation = CORRELATION};
    m->max_points = m->max_points < LEAST_POINTS ? LEAST_POINTS
                    : m->max_points > MOST       ? MOST
                                                 : m->max_points;
    const struct {
        void **array;
        size_t n, element_bytes;
    } arrays[] = {
        {(void **)&m->points, ALL * n_tasks, sizeof *m->points},
        {(void **)&m->values, ALL, sizeof *m->values},
        {(void **)&m->errors, ALL, sizeof *m->errors},
        {(void **)&m->ages, ALL, sizeof *m->ages},
        {(void **)&m->means, n, sizeof *m->means},
        {(void **)&m->scales, n, sizeof *m->scales},
        {(void **)&m->roots, n, sizeof *m->roots},
        {(void **)&m->is_known, n, sizeof *m->is_known},
        {(void **)&m->pair_places, n, sizeof *m->pair_places},
        {(void **)&m->pair_entries, E, sizeof *m->pair_entries},
        {(void **)&m->pair_tasks, E, sizeof *m->pair_tasks},
        {(void **)&m->tasks, n_tasks, sizeof *m->tasks},
        {(void **)&m->paired, n_tasks, sizeof *m->paired},
        {(void **)&m->places, n_tasks, sizeof *m->places},
        {(void **)&m->own_choices, n_tasks, sizeof *m->own_choices},
        {(void **)&m->own_roots, n_tasks, sizeof *m->own_roots},
        {(void **)&m->unknown, n_tasks, sizeof *m->unknown},
        {(void **)&m->task_scales, n_tasks, sizeof *m->task_scales},
        {(void **)&m->alone, N * N, sizeof *m->alone},
        {(void **)&m->pairs, N * N, sizeof *m->pairs},
        {(void **)&m->factor, N * N, sizeof *m->factor},
        {(void **)&m->residuals, N, sizeof *m->residuals},
        {(void **)&m->units, N, sizeof *m->units},
        {(void **)&m->weights, N, sizeof *m->weights},
        {(void **)&m->sums, N, sizeof *m->sums},
        {(void **)&m->point_choices, N * n_tasks, sizeof *m->point_choices},
        {(void **)&m->point_roots, N * n_tasks, sizeof *m->point_roots},
        {(void **)&m->lanes, MSC_PAIR_LANES * n_tasks, sizeof *m->lanes},
        {(void **)&m->believed, MSC_PAIR_PENDING * n_tasks, sizeof *m->believed},
        {(void **)&m->terms, n, sizeof *m->terms},
        {(void **)&m->pair_terms, E * E, sizeof *m->pair_terms},
        {(void **)&m->pair_weights, E * E, sizeof *m->pair_weights},
        {(void **)&m->columns, E, sizeof *m->columns},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i].array = msc_arena_array(arena, arrays[i].n, arrays[i].element_bytes);
        MSC_TRY(MSC_ALLOCATED(*arrays[i].array));
    }
    for (size_t e = 0; e < n; e++) {
        m->pair_places[e] = -1;
    }
    return MSC_OK;
}

// The point to replace if there is no room for more points: the one of greatest value among all but
// the latest quarter of the points.
static size_t point_to_drop(const struct msc_pair_model *m) {
    size_t worst = 0;
    bool has_worst = false;
    for (size_t i = 0; i < m->n_points; i++) {
        bool is_late = m->ages[i] + m->max_points / 4 >= m->n_told;
        if (!is_late && (!has_worst || m->values[i] > m->values[worst])) {
            worst = i;
            has_worst = true;
        }
    }
    return worst;
}

static void put_point(struct msc_pair_model *m, size_t place, const uint32_t choices[],
                      double value, double error, uint64_t age) {
    size_t n_tasks = m->bounds->space->n_tasks;
    memmove(m->points + place * n_tasks, choices, n_tasks * sizeof *choices);
    m->values[place] = value;
    m->errors[place] = error;
    m->ages[place] = age;
}

static void take_pending(struct msc_pair_model *m) {
    size_t n_tasks = m->bounds->space->n_tasks, first = m->n_points;
    for (size_t i = first; i < first + m->n_pending; i++) {
        size_t place = m->n_points < m->max_points ? m->n_points++ : point_to_drop(m);
        m->n_covered = place < m->n_covered ? place : m->n_covered;
        put_point(m, place, m->points + i * n_tasks, m->values[i], m->errors[i], m->ages[i]);
    }
    m->is_stale = m->is_stale || m->n_pending > 0;
    m->n_pending = 0;
}

static bool is_known_point(const struct msc_pair_model *m, const uint32_t choices[]) {
    size_t n_tasks = m->bounds->space->n_tasks;
    for (size_t i = 0; i < m->n_points + m->n_pending; i++) {
        if (memcmp(m->points + i * n_tasks, choices, n_tasks * sizeof *choices) == 0) {
            return true;
        }
    }
    return false;
}

void msc_pair_model_tell_estimate(struct msc_pair_model *m, const uint32_t choices[], double value,
                                  double error) {
    if (is_known_point(m, choices)) {
        return;
    }
    if (m->n_pending == MSC_PAIR_PENDING) {
        take_pending(m);
    }
    put_point(m, m->n_points + m->n_pending, choices, value, error, m->n_told++);
    m->n_pending++;
}

void msc_pair_model_tell(struct msc_pair_model *m, const uint32_t choices[], double value) {
    msc_pair_model_tell_estimate(m, choices, value, 0.0);
}

// ---- Prior ------------------------------------------------------------------------------------

static bool is_smaller(const void *context, const void *a, const void *b) {
    (void)context;
    return *(const double *)a < *(const double *)b;
}

static void set_scales(struct msc_pair_model *m) {
    size_t n = 0;
    double spare;
    double *sorted = m->terms; // scratch: `terms` is not in use before a draw
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        m->scales[e] = isfinite(m->means[e]) ? fabs(m->means[e]) : 0.0;
        sorted[n] = m->scales[e];
        n += m->scales[e] > 0.0;
    }
    const struct msc_heap heap = {.elements = sorted,
                                  .element_bytes = sizeof *sorted,
                                  .spare = &spare,
                                  .is_before = is_smaller};
    msc_heap_sort(&heap, n);
    double least = n > 0 ? LEAST_SCALE * sorted[n / 2] : LEAST_SCALE;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        m->task_scales[t] = 0.0;
        for (uint32_t c = 0; c < m->bounds->space->tasks[t].n_choices; c++) {
            double *scale = &m->scales[msc_exact_bounds_entry(m->bounds, t, c)];
            *scale = c == m->bounds->most_expensive[t] ? 0.0 : fmax(*scale, least);
            m->roots[msc_exact_bounds_entry(m->bounds, t, c)] = sqrt(*scale);
            m->task_scales[t] = fmax(m->task_scales[t], *scale);
        }
    }
}

static void replace_unusable(struct msc_pair_model *m) {
    double unusable = 0.0;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        unusable += UNUSABLE * m->task_scales[t];
    }
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        m->means[e] = isfinite(m->means[e]) ? m->means[e] : unusable;
    }
}

const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i) {
    return m->points + i * m->bounds->space->n_tasks;
}

double msc_pair_model_linked(const struct msc_pair_model *m, double loss) {
    return m->base + msc_link_of(&m->link, loss - m->base);
}

double msc_pair_model_unlinked(const struct msc_pair_model *m, double value) {
    return m->link.kind == MSC_LINK_NONE ? value
                                         : m->base + msc_link_inverse(&m->link, value - m->base);
}

// The loss of a point above the base's, under the link.
static double above_base(const struct msc_pair_model *m, size_t i) {
    return msc_link_of(&m->link, m->values[i] - m->base);
}

// The least distance from the base that is assumed when noise is computed. Otherwise the best
// points would count as exact.
static double least_distance(const struct msc_pair_model *m) {
    double least = INFINITY;
    for (size_t i = 0; i < m->n_points; i++) {
        double distance = m->values[i] - m->base;
        least = distance > 0.0 && distance < least ? distance : least;
    }
    return isinf(least) ? 0.0 : least;
}

// What the standard errors of a point are relative to: the loss above the base's, but at least
// `least`, times the slope of the link.
static double error_unit(const struct msc_pair_model *m, size_t i, double least) {
    double above = m->values[i] - m->base;
    return fmax(above, least) * msc_link_chord(&m->link, above, above_base(m, i) - m->residuals[i]);
}

static void set_residuals(struct msc_pair_model *m) {
    double least = least_distance(m);
    for (size_t i = 0; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        m->residuals[i] = above_base(m, i);
        for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
            m->residuals[i] -= m->means[msc_exact_bounds_entry(m->bounds, t, x[t])];
        }
        m->units[i] = error_unit(m, i, least);
    }
}

// ---- Posterior --------------------------------------------------------------------------------

double msc_pair__strength(const int places[], int which) {
    const double *const grids[] = {unknown_strengths, pairs_strengths, noise_strengths};
    return grids[which][places[which]];
}

// Factorises the covariance of the points for these strengths. Returns the logarithm of the
// marginal likelihood up to a constant; -inf if the matrix is not positive definite.
static double likelihood(struct msc_pair_model *m, const int places[]) {
    size_t n = m->n_points;
    double unknown = msc_pair__strength(places, MSC_PAIR_UNKNOWN),
           pairs = msc_pair__strength(places, MSC_PAIR_PAIRS);
    double noise = msc_pair__strength(places, MSC_PAIR_NOISE), mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++) {
            m->factor[k * MSC_PAIR_POINTS + i] =
                unknown * unknown * m->alone[i * MSC_PAIR_POINTS + k] +
                pairs * pairs * m->pairs[i * MSC_PAIR_POINTS + k];
        }
        mean += m->factor[i * MSC_PAIR_POINTS + i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double spread = noise * m->units[i], error = m->errors[i] * m->units[i];
        m->factor[i * MSC_PAIR_POINTS + i] +=
            spread * spread + error * error + 1e-8 * mean + 1e-300;
    }
    if (!msc_cholesky_factorise(m->factor, n, MSC_PAIR_POINTS)) {
        return -INFINITY;
    }
    memcpy(m->weights, m->residuals, n * sizeof *m->weights);
    msc_cholesky_solve_lower(m->factor, m->weights, n, MSC_PAIR_POINTS);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum -=
            0.5 * m->weights[i] * m->weights[i] + msc_agent_log(m->factor[i * MSC_PAIR_POINTS + i]);
    }
    return sum;
}

// The grid point of greatest likelihood among those tried.
struct grid_search {
    bool was_tried[UNKNOWN_STRENGTHS][PAIRS_STRENGTHS][NOISE_STRENGTHS];
    int best[MSC_PAIR_STRENGTHS];
    double greatest;
};

static void try_strengths(struct msc_pair_model *m, struct grid_search *g, const int places[]) {
    bool *was_tried = &g->was_tried[places[0]][places[1]][places[2]];
    double here = *was_tried ? -INFINITY : likelihood(m, places);
    *was_tried = true;
    if (here > g->greatest) {
        g->greatest = here;
        memmove(g->best, places, sizeof g->best);
    }
}

static void try_all_strengths(struct msc_pair_model *m, struct grid_search *g) {
    for (int unknown = 0; unknown < UNKNOWN_STRENGTHS; unknown++) {
        for (int pairs = 0; pairs < PAIRS_STRENGTHS; pairs++) {
            for (int noise = 0; noise < NOISE_STRENGTHS; noise++) {
                try_strengths(m, g, (const int[]){unknown, pairs, noise});
            }
        }
    }
}

// Coordinate ascent from the current strengths, as long as the likelihood grows.
static void climb_strengths(struct msc_pair_model *m, struct grid_search *g) {
    double before = -INFINITY;
    while (g->greatest > before) {
        before = g->greatest;
        for (int which = 0; which < MSC_PAIR_STRENGTHS; which++) {
            int tried[MSC_PAIR_STRENGTHS];
            memcpy(tried, g->best, sizeof tried);
            for (tried[which] = 0; tried[which] < n_strengths[which]; tried[which]++) {
                try_strengths(m, g, tried);
            }
        }
    }
}

// Returns the logarithm of the greatest likelihood found.
static double choose_strengths(struct msc_pair_model *m) {
    struct grid_search g = {.greatest = -INFINITY};
    memcpy(g.best, m->strengths, sizeof g.best);
    try_strengths(m, &g, m->strengths);
    if (m->n_points <= FEW_POINTS) {
        try_all_strengths(m, &g);
    } else {
        climb_strengths(m, &g);
    }
    memcpy(m->strengths, g.best, sizeof g.best);
    m->n_chosen = m->n_points;
    m->chosen_at = m->n_told;
    return g.greatest;
}

static bool is_due_to_choose(const struct msc_pair_model *m) {
    bool has_grown = (double)m->n_points >= CHOOSE_AGAIN * (double)m->n_chosen;
    bool is_replaced = m->n_points == m->max_points &&
                       (double)(m->n_told - m->chosen_at) >= REPLACED * (double)m->max_points;
    return has_grown || is_replaced || m->n_points <= FEW_POINTS;
}

// Pairs of neighbours only must be likelier than all pairs by this logarithm.
#define NEAR_EVIDENCE 2.0
// With more points than this, the structure stays.
#define STRUCTURE_POINTS 200

// How pair terms are correlated, and which tasks have them.
struct structure {
    double correlation;
    bool is_near;
};

static void set_structure(struct msc_pair_model *m, struct structure to) {
    bool is_same = m->correlation == to.correlation && m->is_near == to.is_near;
    m->n_covered = is_same ? m->n_covered : 0;
    m->correlation = to.correlation;
    m->is_near = to.is_near;
    msc_pair__choose_pairs(m);
    msc_pair__set_covariances(m);
}

// Chooses the structure of greatest likelihood together with the strengths.
static void choose_structure(struct msc_pair_model *m) {
    size_t n_correlations =
        m->learns_correlation ? sizeof correlations / sizeof correlations[0] : 1;
    struct structure chosen = {m->correlation, m->is_near};
    int best[MSC_PAIR_STRENGTHS] = {0};
    double greatest = -INFINITY;
    for (int is_near = 0; is_near <= (m->n_edges > 0); is_near++) {
        for (size_t i = 0; i < n_correlations; i++) {
            struct structure tried = {correlations[i], is_near};
            set_structure(m, tried);
            double here = choose_strengths(m) - (is_near ? NEAR_EVIDENCE : 0.0);
            if (here > greatest) {
                greatest = here;
                chosen = tried;
                memcpy(best, m->strengths, sizeof best);
            }
        }
    }
    memcpy(m->strengths, best, sizeof best);
    set_structure(m, chosen);
}

// Sets everything that the structure and the strengths are chosen by.
static void set_prior(struct msc_pair_model *m, double base, const double means[],
                      const bool is_known[]) {
    size_t n_entries = m->bounds->n_entries;
    bool is_same = memcmp(m->means, means, n_entries * sizeof *means) == 0 &&
                   memcmp(m->is_known, is_known, n_entries * sizeof *is_known) == 0;
    m->n_covered = is_same ? m->n_covered : 0;
    memcpy(m->means, means, n_entries * sizeof *means);
    memcpy(m->is_known, is_known, n_entries * sizeof *is_known);
    m->base = base;
    take_pending(m);
    m->is_stale = false;
    m->has_mean = false;
    m->n_believed = 0;
    set_scales(m);
    replace_unusable(m);
    set_residuals(m);
}

double msc_pair_model_evidence(struct msc_pair_model *m, double base, const double means[],
                               const bool is_known[]) {
    struct grid_search g = {.greatest = -INFINITY};
    set_prior(m, base, means, is_known);
    set_structure(m, (struct structure){m->correlation, m->is_near});
    memcpy(g.best, m->strengths, sizeof g.best);
    try_strengths(m, &g, m->strengths);
    climb_strengths(m, &g);
    for (size_t i = 0; i < m->n_points; i++) {
        g.greatest += msc_link_log_slope(&m->link, m->values[i] - m->base);
    }
    return g.greatest;
}

void msc_pair_model_fit(struct msc_pair_model *m, double base, const double means[],
                        const bool is_known[]) {
    set_prior(m, base, means, is_known);
    bool is_due = m->n_points > 0 && is_due_to_choose(m);
    bool has_many = m->n_points > STRUCTURE_POINTS && m->n_chosen > 0;
    if (is_due && !has_many) {
        choose_structure(m);
    } else {
        set_structure(m, (struct structure){m->correlation, m->is_near});
    }
    if (is_due && has_many) {
        choose_strengths(m);
    }
    while (!isfinite(likelihood(m, m->strengths)) && m->n_points > 0) {
        m->n_points--; // because of rounding, the matrix was not positive definite
    }
}

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

static const double unknown_strengths[] = {0.1, 0.3, 1.0};
static const double pairs_strengths[] = {0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0};
static const double noise_strengths[] = {0.001, 0.02, 0.06, 0.15};
static const int n_strengths[MSC_PAIR_STRENGTHS] = {3, 7, 4};
static const double correlations[] = {CORRELATION, 0.0};

// ---- Points -----------------------------------------------------------------------------------

enum msc_status msc_pair_model_init(struct msc_pair_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds) {
    enum { N = MSC_PAIR_POINTS, E = MSC_PAIR_ENTRIES, ALL = N + MSC_PAIR_PENDING };
    enum { MOST = N - MSC_PAIR_PENDING };
    size_t n_tasks = bounds->space->n_tasks, n = bounds->n_entries;
    *m = (struct msc_pair_model){
        .bounds = bounds, .max_points = POINTS_TIMES_TASKS / n_tasks, .correlation = CORRELATION};
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
        {(void **)&m->is_known, n, sizeof *m->is_known},
        {(void **)&m->pair_places, n, sizeof *m->pair_places},
        {(void **)&m->pair_entries, E, sizeof *m->pair_entries},
        {(void **)&m->pair_tasks, E, sizeof *m->pair_tasks},
        {(void **)&m->tasks, n_tasks, sizeof *m->tasks},
        {(void **)&m->paired, n_tasks, sizeof *m->paired},
        {(void **)&m->places, n_tasks, sizeof *m->places},
        {(void **)&m->unknown, n_tasks, sizeof *m->unknown},
        {(void **)&m->task_scales, n_tasks, sizeof *m->task_scales},
        {(void **)&m->alone, N * N, sizeof *m->alone},
        {(void **)&m->pairs, N * N, sizeof *m->pairs},
        {(void **)&m->factor, N * N, sizeof *m->factor},
        {(void **)&m->residuals, N, sizeof *m->residuals},
        {(void **)&m->weights, N, sizeof *m->weights},
        {(void **)&m->sums, N, sizeof *m->sums},
        {(void **)&m->features, N * E, sizeof *m->features},
        {(void **)&m->believed, MSC_PAIR_PENDING * n_tasks, sizeof *m->believed},
        {(void **)&m->terms, n, sizeof *m->terms},
        {(void **)&m->pair_terms, E * E, sizeof *m->pair_terms},
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

static bool has_greater_scale(const void *context, const void *a, const void *b) {
    const double *scales = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return scales[left] > scales[right] || (scales[left] == scales[right] && left < right);
}

void msc_pair__leave_out_pairs(struct msc_pair_model *m) {
    for (size_t p = 0; p < m->n_pair_entries; p++) {
        m->pair_places[m->pair_entries[p]] = -1;
    }
    m->n_pair_entries = 0;
    m->n_paired = 0;
}

static void choose_pairs(struct msc_pair_model *m) {
    uint32_t spare;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        m->tasks[t] = (uint32_t)t;
    }
    const struct msc_heap heap = {.elements = m->tasks,
                                  .element_bytes = sizeof *m->tasks,
                                  .spare = &spare,
                                  .is_before = has_greater_scale,
                                  .context = m->task_scales};
    msc_heap_sort(&heap, m->bounds->space->n_tasks);
    msc_pair__leave_out_pairs(m);
    for (size_t i = 0; i < m->bounds->space->n_tasks; i++) {
        uint32_t t = m->tasks[i], n_choices = m->bounds->space->tasks[t].n_choices;
        if (m->n_pair_entries + n_choices > MSC_PAIR_ENTRIES) {
            break;
        }
        for (uint32_t c = 0; c < n_choices; c++) {
            size_t e = msc_exact_bounds_entry(m->bounds, t, c);
            m->pair_places[e] = (int32_t)m->n_pair_entries;
            m->pair_tasks[m->n_pair_entries] = t;
            m->pair_entries[m->n_pair_entries++] = (uint32_t)e;
        }
    }
    m->n_paired = 0;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        if (m->pair_places[m->bounds->offsets[t]] >= 0) {
            m->paired[m->n_paired++] = (uint32_t)t;
        }
    }
}

void msc_pair__set_places(const struct msc_pair_model *m, const uint32_t x[]) {
    for (size_t p = 0; p < m->n_paired; p++) {
        uint32_t t = m->paired[p];
        m->places[p] = (uint32_t)m->pair_places[msc_exact_bounds_entry(m->bounds, t, x[t])];
    }
}

const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i) {
    return m->points + i * m->bounds->space->n_tasks;
}

double msc_pair__covariance(const struct msc_pair_model *m, size_t a, size_t b) {
    return sqrt(m->scales[a] * m->scales[b]) * (a == b ? 1.0 : m->correlation);
}

void msc_pair__set_row(struct msc_pair_model *m, size_t i, const uint32_t x[]) {
    for (size_t p = 0; p < m->n_pair_entries; p++) {
        uint32_t t = m->pair_tasks[p];
        m->features[i * MSC_PAIR_ENTRIES + p] =
            msc_pair__covariance(m, m->pair_entries[p], msc_exact_bounds_entry(m->bounds, t, x[t]));
    }
}

static void set_features(struct msc_pair_model *m) {
    for (size_t i = 0; i < m->n_points; i++) {
        msc_pair__set_row(m, i, msc_pair__point(m, i));
    }
}

bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]) {
    bool is_any = false;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
        m->unknown[t] = m->is_known[e] ? 0.0 : m->scales[e] * m->scales[e];
        is_any = is_any || m->unknown[t] > 0.0;
    }
    return is_any;
}

// Adds to `sums`, for each of MSC_PAIR_LANES points, the part of its covariance with point i that
// comes from shared choices.
static void add_shared(const struct msc_pair_model *m, size_t i, size_t first, double sums[]) {
    size_t n_tasks = m->bounds->space->n_tasks;
    const uint32_t *x = msc_pair__point(m, i), *z = msc_pair__point(m, first);
    for (size_t t = 0; t < n_tasks; t++) {
        const double added[] = {0.0, m->unknown[t]};
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            sums[lane] += added[x[t] == z[lane * n_tasks + t]];
        }
    }
}

// The sum of k_i k_j over all pairs of tasks is ((sum of k)^2 - sum of k^2) / 2.
void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]) {
    const double *row = m->features + i * MSC_PAIR_ENTRIES;
    double sums[MSC_PAIR_LANES] = {0.0}, squares[MSC_PAIR_LANES] = {0.0};
    for (size_t p = 0; p < m->n_paired; p++) {
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            double pair = row[lane * MSC_PAIR_ENTRIES + m->places[p]];
            sums[lane] += pair;
            squares[lane] += pair * pair;
        }
    }
    for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
        out[lane] = 0.5 * (sums[lane] * sums[lane] - squares[lane]);
    }
}

// Sets the covariances of all points, not yet multiplied by strengths: `alone` from choices of
// unknown loss, `pairs` from pair terms.
static void set_covariances(struct msc_pair_model *m) {
    for (size_t i = 0; i < m->n_points; i++) {
        double *alone = m->alone + i * MSC_PAIR_POINTS;
        bool has_unknown = msc_pair__set_unknown(m, msc_pair__point(m, i));
        memset(alone, 0, (i + MSC_PAIR_LANES) / MSC_PAIR_LANES * MSC_PAIR_LANES * sizeof *alone);
        for (size_t k = 0; has_unknown && k <= i; k += MSC_PAIR_LANES) {
            add_shared(m, i, k, alone + k);
        }
    }
    for (size_t k = 0; k < m->n_points; k++) {
        msc_pair__set_places(m, msc_pair__point(m, k));
        for (size_t i = k / MSC_PAIR_LANES * MSC_PAIR_LANES; i < m->n_points; i += MSC_PAIR_LANES) {
            double with[MSC_PAIR_LANES];
            msc_pair__pair_covariances(m, i, with);
            for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
                m->pairs[(i + lane) * MSC_PAIR_POINTS + k] = with[lane];
            }
        }
    }
}

double msc_pair_model_linked(const struct msc_pair_model *m, double loss) {
    return m->base + msc_link_of(&m->link, loss - m->base);
}

// The loss of a point above the base's, under the link.
static double above_base(const struct msc_pair_model *m, size_t i) {
    return msc_link_of(&m->link, m->values[i] - m->base);
}

static void set_residuals(struct msc_pair_model *m) {
    for (size_t i = 0; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        m->residuals[i] = above_base(m, i);
        for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
            m->residuals[i] -= m->means[msc_exact_bounds_entry(m->bounds, t, x[t])];
        }
    }
}

// ---- Posterior --------------------------------------------------------------------------------

// The least distance from the base that is assumed when noise is computed. Otherwise the best
// points would count as exact.
static double least_distance(const struct msc_pair_model *m) {
    double least = INFINITY;
    for (size_t i = 0; i < m->n_points; i++) {
        double distance = above_base(m, i);
        least = distance > 0.0 && distance < least ? distance : least;
    }
    return isinf(least) ? 0.0 : least;
}

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
    double noise = msc_pair__strength(places, MSC_PAIR_NOISE), least = least_distance(m),
           mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++) {
            m->factor[k * MSC_PAIR_POINTS + i] =
                unknown * unknown * m->alone[i * MSC_PAIR_POINTS + k] +
                pairs * pairs * m->pairs[i * MSC_PAIR_POINTS + k];
        }
        mean += m->factor[i * MSC_PAIR_POINTS + i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double distance = fmax(above_base(m, i), least);
        double spread = noise * distance, error = m->errors[i] * distance;
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

static void keep_likelier(struct msc_pair_model *m, const int tried[], int best[],
                          double *greatest) {
    double here = likelihood(m, tried);
    if (here > *greatest) {
        *greatest = here;
        memcpy(best, tried, MSC_PAIR_STRENGTHS * sizeof *best);
    }
}

// Tries all strengths of the grid.
static void try_all_strengths(struct msc_pair_model *m, int best[], double *greatest) {
    for (int unknown = 0; unknown < n_strengths[MSC_PAIR_UNKNOWN]; unknown++) {
        for (int pairs = 0; pairs < n_strengths[MSC_PAIR_PAIRS]; pairs++) {
            for (int noise = 0; noise < n_strengths[MSC_PAIR_NOISE]; noise++) {
                keep_likelier(m, (const int[]){unknown, pairs, noise}, best, greatest);
            }
        }
    }
}

// Coordinate ascent from the current strengths, as long as the likelihood grows.
static void climb_strengths(struct msc_pair_model *m, int best[], double *greatest) {
    double before = -INFINITY;
    while (*greatest > before) {
        before = *greatest;
        for (int which = 0; which < MSC_PAIR_STRENGTHS; which++) {
            int tried[MSC_PAIR_STRENGTHS];
            memcpy(tried, best, sizeof tried);
            for (tried[which] = 0; tried[which] < n_strengths[which]; tried[which]++) {
                keep_likelier(m, tried, best, greatest);
            }
        }
    }
}

static void choose_strengths(struct msc_pair_model *m) {
    int best[MSC_PAIR_STRENGTHS];
    memcpy(best, m->strengths, sizeof best);
    double greatest = likelihood(m, best);
    if (m->n_points <= FEW_POINTS) {
        try_all_strengths(m, best, &greatest);
    } else {
        climb_strengths(m, best, &greatest);
    }
    memcpy(m->strengths, best, sizeof best);
    m->n_chosen = m->n_points;
    m->chosen_at = m->n_told;
}

static bool is_due_to_choose(const struct msc_pair_model *m) {
    bool has_grown = (double)m->n_points >= CHOOSE_AGAIN * (double)m->n_chosen;
    bool is_replaced = m->n_points == m->max_points &&
                       (double)(m->n_told - m->chosen_at) >= REPLACED * (double)m->max_points;
    return has_grown || is_replaced || m->n_points <= FEW_POINTS;
}

// Chooses the correlation of greatest likelihood together with the strengths.
static void choose_correlation(struct msc_pair_model *m) {
    int best[MSC_PAIR_STRENGTHS] = {0};
    double chosen = m->correlation, greatest = -INFINITY;
    for (size_t i = 0; i < sizeof correlations / sizeof correlations[0]; i++) {
        m->correlation = correlations[i];
        set_features(m);
        set_covariances(m);
        choose_strengths(m);
        double here = likelihood(m, m->strengths);
        if (here > greatest) {
            greatest = here;
            chosen = m->correlation;
            memcpy(best, m->strengths, sizeof best);
        }
    }
    memcpy(m->strengths, best, sizeof best);
    m->correlation = chosen;
    set_features(m);
    set_covariances(m);
}

// Sets everything that the likelihood of strengths needs.
static void set_prior(struct msc_pair_model *m, double base, const double means[],
                      const bool is_known[]) {
    memcpy(m->means, means, m->bounds->n_entries * sizeof *means);
    memcpy(m->is_known, is_known, m->bounds->n_entries * sizeof *is_known);
    m->base = base;
    take_pending(m);
    m->is_stale = false;
    m->has_mean = false;
    m->n_believed = 0;
    set_scales(m);
    replace_unusable(m);
    choose_pairs(m);
    set_features(m);
    set_covariances(m);
    set_residuals(m);
}

double msc_pair_model_evidence(struct msc_pair_model *m, double base, const double means[],
                               const bool is_known[]) {
    int best[MSC_PAIR_STRENGTHS];
    set_prior(m, base, means, is_known);
    memcpy(best, m->strengths, sizeof best);
    double greatest = likelihood(m, best);
    climb_strengths(m, best, &greatest);
    for (size_t i = 0; i < m->n_points; i++) {
        greatest += msc_link_log_slope(&m->link, m->values[i] - m->base);
    }
    return greatest;
}

void msc_pair_model_fit(struct msc_pair_model *m, double base, const double means[],
                        const bool is_known[]) {
    set_prior(m, base, means, is_known);
    if (m->n_points == 0) {
        return;
    }
    if (is_due_to_choose(m)) {
        (m->learns_correlation ? choose_correlation : choose_strengths)(m);
    }
    while (!isfinite(likelihood(m, m->strengths)) && m->n_points > 0) {
        m->n_points--; // because of rounding, the matrix was not positive definite
    }
}

#include "agents/near_model.h"

#include "agents/cholesky.h"
#include "agents/near_distance.h"
#include "agents/numbers.h"

#include <math.h>
#include <string.h>

enum { N = MSC_NEAR_POINTS };

// Rates, noise and share are chosen again when the number of told points has grown by this factor,
// and at each fit of at most FEW_POINTS points.
#define CHOOSE_AGAIN 1.15
#define FEW_POINTS 40
#define MOST_RATES 32

// The prior of a rate: its logarithm is normal with standard deviation 1 around that of USUAL_RATE.
#define USUAL_RATE 0.3

static const double rates[] = {0.03, 0.1, 0.3, 1.0, 3.0};
static const double noises[] = {0.001, 0.01, 0.1};
static const double shares[] = {0.0, 0.25, 0.5, 0.75, 0.9};

// In a space of many tasks, all tasks share a rate, and the sum of rates is that of MOST_RATES
// tasks.
static double scale_of_rates(const struct msc_near_model *m) {
    size_t n_tasks = m->bounds->space->n_tasks;
    return n_tasks > MOST_RATES ? MOST_RATES / (double)n_tasks : 1.0;
}

enum msc_status msc_near_model_init(struct msc_near_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds) {
    size_t n_tasks = bounds->space->n_tasks;
    *m = (struct msc_near_model){.bounds = bounds, .noise = 0.01, .summed = 0.5};
    m->points = msc_arena_array(arena, N * n_tasks, sizeof *m->points);
    m->values = msc_arena_array(arena, N, sizeof *m->values);
    m->ages = msc_arena_array(arena, N, sizeof *m->ages);
    m->rates = msc_arena_array(arena, n_tasks, sizeof *m->rates);
    m->distances = msc_arena_array(arena, N * N, sizeof *m->distances);
    m->factor = msc_arena_array(arena, N * N, sizeof *m->factor);
    m->targets = msc_arena_array(arena, N, sizeof *m->targets);
    m->ones = msc_arena_array(arena, N, sizeof *m->ones);
    m->residuals = msc_arena_array(arena, N, sizeof *m->residuals);
    m->alone = msc_arena_array(arena, bounds->n_entries, sizeof *m->alone);
    MSC_TRY(MSC_ALLOCATED(m->points && m->values && m->ages && m->rates && m->distances &&
                          m->factor && m->targets && m->ones && m->residuals && m->alone));
    for (size_t t = 0; t < n_tasks; t++) {
        m->rates[t] = scale_of_rates(m);
    }
    return MSC_OK;
}

// ---- Points -----------------------------------------------------------------------------------

static const uint32_t *point(const struct msc_near_model *m, size_t i) {
    return m->points + i * m->bounds->space->n_tasks;
}

// The place of the next point: a free one, or that of the greatest value among the older half.
static size_t place_of_next(struct msc_near_model *m) {
    size_t worst = 0;
    bool has_worst = false;
    if (m->n_points < N) {
        return m->n_points++;
    }
    for (size_t i = 0; i < N; i++) {
        bool is_late = m->ages[i] + N / 2 >= m->n_told;
        if (!is_late && (!has_worst || m->values[i] > m->values[worst])) {
            worst = i;
            has_worst = true;
        }
    }
    return worst;
}

void msc_near_model_tell(struct msc_near_model *m, const uint32_t choices[], double value) {
    size_t n_tasks = m->bounds->space->n_tasks;
    for (size_t i = 0; i < m->n_points; i++) {
        if (memcmp(point(m, i), choices, n_tasks * sizeof *choices) == 0) {
            return;
        }
    }
    size_t place = place_of_next(m);
    memcpy(m->points + place * n_tasks, choices, n_tasks * sizeof *choices);
    m->values[place] = value;
    m->ages[place] = m->n_told++;
}

double msc_near_model_scale(const struct msc_near_model *m, double value) {
    return m->is_log && value > 0.0 ? msc_agent_log(value) : value;
}

// The logit of the share of points below the i-th one, which counts half; so do others as good.
static double logit_of_rank(const struct msc_near_model *m, size_t i) {
    double below = 0.0;
    for (size_t k = 0; k < m->n_points; k++) {
        below += m->values[k] < m->values[i] ? 1.0 : m->values[k] == m->values[i] ? 0.5 : 0.0;
    }
    return msc_agent_log(below / ((double)m->n_points - below));
}

static void set_targets(struct msc_near_model *m) {
    m->is_log = !m->is_ranked;
    for (size_t i = 0; i < m->n_points; i++) {
        m->is_log = m->is_log && m->values[i] > 0.0;
    }
    for (size_t i = 0; i < m->n_points; i++) {
        m->targets[i] = m->is_ranked ? logit_of_rank(m, i) : msc_near_model_scale(m, m->values[i]);
    }
}

// ---- Fit --------------------------------------------------------------------------------------

static double distance(const struct msc_near_model *m, const uint32_t a[], const uint32_t b[]) {
    double sum = 0.0;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        sum += m->rates[t] * msc_near_distance(m->bounds, t, a[t], b[t]);
    }
    return sum;
}

// Replaces n distances by correlations.
static void correlate(const struct msc_near_model *m, double distances[], size_t n) {
    double powers[N];
    for (size_t i = 0; i < n; i++) {
        powers[i] = -distances[i];
    }
    msc_agent_exp_each(powers, n);
    for (size_t i = 0; i < n; i++) {
        distances[i] =
            (1.0 - m->summed) * powers[i] + m->summed * (1.0 - distances[i] / m->sum_of_rates);
    }
}

double msc_near_model_correlation(const struct msc_near_model *m, const uint32_t a[],
                                  const uint32_t b[]) {
    double here = distance(m, a, b);
    correlate(m, &here, 1);
    return here;
}

static void set_distances(struct msc_near_model *m) {
    for (size_t i = 0; i < m->n_points; i++) {
        for (size_t k = i; k < m->n_points; k++) {
            m->distances[i * N + k] = distance(m, point(m, i), point(m, k));
        }
    }
}

// Adds `change` times the distance of the task's choices to all distances.
static void change_rate(struct msc_near_model *m, size_t task, double change) {
    m->rates[task] += change;
    for (size_t i = 0; i < m->n_points; i++) {
        uint32_t here = point(m, i)[task];
        for (size_t k = i; k < m->n_points; k++) {
            m->distances[i * N + k] +=
                change * msc_near_distance(m->bounds, task, here, point(m, k)[task]);
        }
    }
}

static double dot(const double a[], const double b[], size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

// Factorises the correlations, and sets mean and variance. Returns the logarithm of the likelihood,
// up to a constant; -inf if the matrix is not positive definite or all targets are equal.
static double likelihood(struct msc_near_model *m) {
    size_t n = m->n_points;
    double sum = 0.0;
    m->sum_of_rates = 0.0;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        m->sum_of_rates += m->rates[t];
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(m->factor + i * N + i, m->distances + i * N + i, (n - i) * sizeof *m->factor);
        correlate(m, m->factor + i * N + i, n - i);
        m->factor[i * N + i] += m->noise;
        m->ones[i] = 1.0;
        m->residuals[i] = m->targets[i];
    }
    if (!msc_cholesky_factorise(m->factor, n, N)) {
        return -INFINITY;
    }
    msc_cholesky_solve_lower(m->factor, m->ones, n, N);
    msc_cholesky_solve_lower(m->factor, m->residuals, n, N);
    m->mean = dot(m->ones, m->residuals, n) / dot(m->ones, m->ones, n);
    for (size_t i = 0; i < n; i++) {
        m->residuals[i] -= m->mean * m->ones[i];
        sum += msc_agent_log(m->factor[i * N + i]);
    }
    m->variance = dot(m->residuals, m->residuals, n) / (double)n;
    return m->variance > 0.0 ? -0.5 * (double)n * msc_agent_log(m->variance) - sum : -INFINITY;
}

// The logarithm of the posterior, up to a constant.
static double posterior(struct msc_near_model *m) {
    size_t n_tasks = m->bounds->space->n_tasks, n_rates = n_tasks > MOST_RATES ? 1 : n_tasks;
    double sum = likelihood(m), usual = scale_of_rates(m) * USUAL_RATE;
    for (size_t t = 0; t < n_rates; t++) {
        double above = msc_agent_log(m->rates[t] / usual);
        sum -= 0.5 * above * above;
    }
    return sum;
}

// Chooses the rate of tasks first to end - 1 that has the greatest posterior.
static void choose_rate(struct msc_near_model *m, size_t first, size_t end, double *greatest) {
    double best = m->rates[first], scale = scale_of_rates(m);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        for (size_t t = first; t < end; t++) {
            change_rate(m, t, scale * rates[i] - m->rates[t]);
        }
        double here = posterior(m);
        if (here > *greatest) {
            *greatest = here;
            best = scale * rates[i];
        }
    }
    for (size_t t = first; t < end; t++) {
        change_rate(m, t, best - m->rates[t]);
    }
}

// Chooses the value of *member among n values that has the greatest posterior.
static void choose_among(struct msc_near_model *m, double *member, const double values[], size_t n,
                         double *greatest) {
    double best = *member;
    for (size_t i = 0; i < n; i++) {
        *member = values[i];
        double here = posterior(m);
        if (here > *greatest) {
            *greatest = here;
            best = values[i];
        }
    }
    *member = best;
}

static void choose(struct msc_near_model *m) {
    size_t n_tasks = m->bounds->space->n_tasks;
    bool is_shared = n_tasks > MOST_RATES;
    double greatest = posterior(m);
    for (size_t t = 0; t < (is_shared ? 1 : n_tasks); t++) {
        choose_rate(m, t, is_shared ? n_tasks : t + 1, &greatest);
    }
    choose_among(m, &m->noise, noises, sizeof noises / sizeof noises[0], &greatest);
    choose_among(m, &m->summed, shares, sizeof shares / sizeof shares[0], &greatest);
    m->n_fitted = (size_t)m->n_told;
}

bool msc_near_model_fit(struct msc_near_model *m) {
    set_targets(m);
    set_distances(m);
    if (m->n_points < 2) {
        return false;
    }
    if (m->n_points <= FEW_POINTS || (double)m->n_told >= CHOOSE_AGAIN * (double)m->n_fitted) {
        choose(m);
        set_distances(m); // without the rounding of changed rates
    }
    return isfinite(likelihood(m));
}

void msc_near_model_predict(const struct msc_near_model *m, const uint32_t choices[],
                            double solved[], double *mean, double *left) {
    size_t n = m->n_points;
    msc_near_distances(m->bounds, choices, m->rates, m->alone);
    for (size_t i = 0; i < n; i++) {
        solved[i] = msc_near_sum(m->bounds, m->alone, point(m, i));
    }
    correlate(m, solved, n);
    msc_cholesky_solve_lower(m->factor, solved, n, N);
    *mean = m->mean + dot(solved, m->residuals, n);
    *left = fmax(1.0 - dot(solved, solved, n), 0.0);
}

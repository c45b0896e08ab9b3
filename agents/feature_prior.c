#include "agents/feature_prior.h"

#include "agents/cholesky.h"
#include "agents/numbers.h"

#include <math.h>
#include <string.h>

// Features whose values are positive and vary by more than this factor count as logarithms.
#define LEAST_RATIO 2.0

// ---- Features ---------------------------------------------------------------------------------

static size_t entry_at(const struct msc_exact_bounds *b, size_t task, uint32_t place) {
    return msc_exact_bounds_entry(b, task, b->space->tasks[task].most_expensive_first[place]);
}

static double choice_feature(const struct msc_exact_bounds *b, size_t task, uint32_t choice,
                             size_t which) {
    return b->space->tasks[task].choice_features[choice * b->space->n_choice_features + which];
}

static double task_feature(const struct msc_exact_bounds *b, size_t task, uint32_t choice,
                           size_t which) {
    (void)choice;
    return b->space->tasks[task].features[which];
}

// What the choice saves of a bounded cost if all other tasks have their most expensive choices.
static double saved_cost(const struct msc_exact_bounds *b, size_t task, uint32_t choice,
                         size_t which) {
    const struct msc_cost *cost = b->items[which].cost;
    double saved = 0.0;
    for (size_t k = 0; k < cost->n_terms; k++) {
        const struct msc_cost_term *term = &cost->terms[k];
        double before = term->scale, after = term->scale;
        bool depends = false;
        for (uint32_t j = 0; j < term->n_factors; j++) {
            const struct msc_cost_factor *factor = &term->factors[j];
            uint32_t first = b->most_expensive[factor->task];
            before *= factor->by_choice[first];
            after *= factor->by_choice[factor->task == task ? choice : first];
            depends = depends || factor->task == task;
        }
        saved += depends ? before - after : 0.0;
    }
    return saved;
}

typedef double feature_of(const struct msc_exact_bounds *b, size_t task, uint32_t choice,
                          size_t which);

// The least and the greatest finite value of a feature over all choices but the most expensive.
static void find_range(const struct msc_exact_bounds *b, feature_of *of, size_t which, double *low,
                       double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t t = 0; t < b->space->n_tasks; t++) {
        for (uint32_t p = 1; p < b->space->tasks[t].n_choices; p++) {
            double value = of(b, t, b->space->tasks[t].most_expensive_first[p], which);
            *low = isfinite(value) ? fmin(*low, value) : *low;
            *high = isfinite(value) ? fmax(*high, value) : *high;
        }
    }
}

// Subtracts from feature `at` the mean of its position, sets unknown values to 0 and divides by the
// standard deviation. Returns the standard deviation, or 0 if it is too small.
static double standardise(struct msc_feature_prior *f, size_t at, size_t n_positions) {
    const struct msc_exact_bounds *b = f->bounds;
    double squares = 0.0;
    size_t n_all = 0;
    for (uint32_t p = 1; p < n_positions; p++) {
        double sum = 0.0;
        size_t n = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (size_t t = 0; t < b->space->n_tasks; t++) {
                bool is_there = p < b->space->tasks[t].n_choices;
                double *value = &f->features[entry_at(b, t, is_there ? p : 0) * f->n + at];
                if (is_there && pass == 0 && !isnan(*value)) {
                    sum += *value;
                    n++;
                }
                if (is_there && pass == 1) {
                    *value = isnan(*value) ? 0.0 : *value - sum / (double)n;
                    squares += *value * *value;
                    n_all++;
                }
            }
        }
    }
    double deviation = n_all > 0 ? sqrt(squares / (double)n_all) : 0.0;
    for (size_t e = 0; e < b->n_entries; e++) {
        double *value = &f->features[e * f->n + at];
        *value = deviation > 1e-9 && b->positions[e] > 0 ? *value / deviation : 0.0;
    }
    return deviation > 1e-9 ? deviation : 0.0;
}

// Fills feature `at`, and sets what its kind says of its numbers.
static void fill_feature(struct msc_feature_prior *f, size_t at, feature_of *of, size_t which,
                         size_t n_positions) {
    const struct msc_exact_bounds *b = f->bounds;
    double low, high;
    find_range(b, of, which, &low, &high);
    bool is_log = low > 0.0 && high > LEAST_RATIO * low;
    for (size_t t = 0; t < b->space->n_tasks; t++) {
        for (uint32_t c = 0; c < b->space->tasks[t].n_choices; c++) {
            double value = of(b, t, c, which);
            f->features[msc_exact_bounds_entry(b, t, c) * f->n + at] =
                !isfinite(value) || (is_log && value <= 0.0) ? NAN
                : is_log                                     ? msc_agent_log(value)
                                                             : value;
        }
    }
    f->kinds[at].is_log = is_log;
    f->kinds[at].deviation = standardise(f, at, n_positions);
}

// The index of a feature of choices; SIZE_MAX if there is none of this name.
static size_t find_feature(const struct msc_space *space, const char *name) {
    for (size_t i = 0; i < space->n_choice_features; i++) {
        if (strcmp(space->choice_feature_names[i], name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

// The feature that losses are expected to be proportional to: the first of these names. SIZE_MAX if
// there is none.
static size_t error_feature(const struct msc_space *space) {
    static const char *const names[] = {"output_error", "weight_error"};
    size_t which = SIZE_MAX;
    for (size_t k = 0; k < sizeof names / sizeof names[0] && which == SIZE_MAX; k++) {
        which = find_feature(space, names[k]);
    }
    return which;
}

// Sets `given` if the space gives the metric of all choices.
static enum msc_status set_given(struct msc_feature_prior *f, struct msc_arena *arena,
                                 const char *metric, double sign) {
    const struct msc_exact_bounds *b = f->bounds;
    size_t which = find_feature(b->space, metric);
    bool is_complete = which != SIZE_MAX;
    double *given = msc_arena_array(arena, b->n_entries, sizeof *given);
    MSC_TRY(MSC_ALLOCATED(given));
    for (size_t t = 0; t < b->space->n_tasks && is_complete; t++) {
        double first = choice_feature(b, t, b->most_expensive[t], which);
        for (uint32_t c = 0; c < b->space->tasks[t].n_choices; c++) {
            double above = sign * (choice_feature(b, t, c, which) - first);
            is_complete = is_complete && isfinite(above);
            given[msc_exact_bounds_entry(b, t, c)] = above;
        }
    }
    f->given = is_complete ? given : NULL;
    return MSC_OK;
}

enum msc_status msc_feature_prior_init(struct msc_feature_prior *f, struct msc_arena *arena,
                                       const struct msc_exact_bounds *bounds, size_t n_positions,
                                       const char *metric, double sign) {
    const struct msc_space *space = bounds->space;
    const struct {
        enum msc_feature_of kind;
        feature_of *of;
        size_t n;
        const char *const *names;
    } kinds[] = {{MSC_FEATURE_OF_CHOICE, choice_feature, space->n_choice_features,
                  space->choice_feature_names},
                 {MSC_FEATURE_OF_TASK, task_feature, space->n_features, space->feature_names},
                 {MSC_FEATURE_OF_COST, saved_cost, bounds->n_items, NULL}};
    size_t at = 0;
    *f = (struct msc_feature_prior){.bounds = bounds};
    if (space->n_choice_features == 0) {
        return MSC_OK;
    }
    f->n = space->n_choice_features + space->n_features + bounds->n_items;
    f->n = f->n < MSC_FEATURE_PRIOR_MOST ? f->n : MSC_FEATURE_PRIOR_MOST;
    f->features = msc_arena_array(arena, bounds->n_entries * f->n, sizeof *f->features);
    f->means = msc_arena_array(arena, n_positions, sizeof *f->means);
    f->left = msc_arena_array(arena, bounds->n_entries, sizeof *f->left);
    MSC_TRY(MSC_ALLOCATED(f->features && f->means && f->left));
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < kinds[k].n && at < f->n; i++, at++) {
            const char *name = kinds[k].names ? kinds[k].names[i] : NULL;
            bool is_choice = kinds[k].kind == MSC_FEATURE_OF_CHOICE;
            f->kinds[at] =
                (struct msc_feature_kind){.of = kinds[k].kind,
                                          .name = name,
                                          .is_metric = is_choice && strcmp(name, metric) == 0};
            fill_feature(f, at, kinds[k].of, i, n_positions);
            f->expected[at] = is_choice && i == error_feature(space) ? f->kinds[at].deviation : 0.0;
            f->variances[at] = MSC_FEATURE_LOSS_VARIANCE / MSC_FEATURE_RIDGE;
        }
    }
    return set_given(f, arena, metric, sign);
}

// ---- Regression -------------------------------------------------------------------------------

// Mean losses of the positions under the link, from uniform plans as far as they were observed.
static void set_means(struct msc_feature_prior *f, const struct msc_sensitivity *s) {
    double n_tasks = (double)f->bounds->space->n_tasks;
    f->means[0] = 0.0;
    for (size_t p = 1; p < s->n_positions; p++) {
        double all = msc_link_of(&s->link, s->uniform[p] - s->base_loss);
        double before = p > 1 ? f->means[p - 1] * s->factors[p] : 1.0;
        f->means[p] = all > 0.0 ? all / n_tasks : before;
    }
}

static double regress(const struct msc_feature_prior *f, size_t entry) {
    double sum = f->level;
    for (size_t i = 0; i < f->n; i++) {
        sum += f->coefficients[i] * f->features[entry * f->n + i];
    }
    return sum;
}

// log(loss / mean loss of the position) of a known choice, or NaN.
static double known_log(const struct msc_feature_prior *f, const struct msc_sensitivity *s,
                        size_t entry) {
    double loss = msc_sensitivity_above(s, entry);
    uint32_t p = f->bounds->positions[entry];
    return p > 0 && isfinite(loss) && loss > 0.0 ? msc_agent_log(loss / f->means[p]) : NAN;
}

static size_t count_known(const struct msc_feature_prior *f, const struct msc_sensitivity *s,
                          size_t task) {
    size_t n = 0;
    for (uint32_t c = 0; c < f->bounds->space->tasks[task].n_choices; c++) {
        n += !isnan(known_log(f, s, msc_exact_bounds_entry(f->bounds, task, c)));
    }
    return n;
}

enum { N = MSC_FEATURE_PRIOR_MOST + 1 };

// The known choices of a task count as one observation.
size_t msc_feature_prior_add_losses(struct msc_feature_prior *f, const struct msc_sensitivity *s,
                                    double matrix[], double vector[]) {
    double row[N];
    size_t n = f->n + 1, n_all = 0;
    set_means(f, s);
    for (size_t t = 0; t < f->bounds->space->n_tasks; t++) {
        size_t n_known = count_known(f, s, t);
        n_all += n_known;
        for (uint32_t c = 0; n_known > 0 && c < f->bounds->space->tasks[t].n_choices; c++) {
            size_t e = msc_exact_bounds_entry(f->bounds, t, c);
            double y = known_log(f, s, e);
            if (isnan(y)) {
                continue;
            }
            memcpy(row, f->features + e * f->n, f->n * sizeof *row);
            row[f->n] = 1.0;
            for (size_t i = 0; i < n; i++) {
                vector[i] += row[i] * y / (double)n_known;
                for (size_t k = i; k < n; k++) {
                    matrix[i * N + k] += row[i] * row[k] / (double)n_known;
                }
            }
        }
    }
    return n_all;
}

// Ridge regression of the known logarithms on the features and the level.
static void fit(struct msc_feature_prior *f, const struct msc_sensitivity *s) {
    double matrix[N * N] = {0}, vector[N] = {0};
    size_t n = f->n + 1;
    for (size_t i = 0; i < f->n; i++) {
        matrix[i * N + i] = MSC_FEATURE_LOSS_VARIANCE / f->variances[i];
        vector[i] = f->expected[i] * matrix[i * N + i];
    }
    // The mean of logarithms is about 0: uniform plans give the means.
    matrix[f->n * N + f->n] = MSC_FEATURE_LEVEL_RIDGE;
    msc_feature_prior_add_losses(f, s, matrix, vector);
    if (msc_cholesky_factorise(matrix, n, N)) { // always: the diagonal is positive
        msc_cholesky_solve_lower(matrix, vector, n, N);
        msc_cholesky_solve_upper(matrix, vector, n, N);
        memcpy(f->coefficients, vector, f->n * sizeof *vector);
        f->level = vector[f->n];
    }
}

static void set_left(struct msc_feature_prior *f, const struct msc_sensitivity *s) {
    for (size_t e = 0; e < f->bounds->n_entries; e++) {
        f->left[e] = known_log(f, s, e) - regress(f, e);
    }
}

// What the known choices of the task say about the difference from the regression at `place`.
static double left_at(const struct msc_feature_prior *f, size_t task, uint32_t place) {
    uint32_t n = f->bounds->space->tasks[task].n_choices, before = place, after = place;
    while (before > 0 && isnan(f->left[entry_at(f->bounds, task, before)])) {
        before--;
    }
    while (after < n && isnan(f->left[entry_at(f->bounds, task, after)])) {
        after++;
    }
    double low = before > 0 ? f->left[entry_at(f->bounds, task, before)] : NAN;
    double high = after < n ? f->left[entry_at(f->bounds, task, after)] : NAN;
    if (before > 0 && after < n) {
        return low + (high - low) * (place - before) / (after - before);
    }
    return before > 0 ? low : after < n ? high : 0.0;
}

static void use_given(const struct msc_feature_prior *f, struct msc_sensitivity *s) {
    for (size_t e = 0; e < f->bounds->n_entries; e++) {
        if (!msc_sensitivity_is_known(s, e)) {
            s->guesses[e] = msc_link_of(&s->link, f->given[e]);
        }
    }
}

void msc_feature_prior_improve(struct msc_feature_prior *f, struct msc_sensitivity *s) {
    if (f->n == 0) {
        return;
    }
    if (f->given) {
        use_given(f, s);
        return;
    }
    fit(f, s);
    set_left(f, s);
    for (size_t t = 0; t < f->bounds->space->n_tasks; t++) {
        for (uint32_t p = 1; p < f->bounds->space->tasks[t].n_choices; p++) {
            size_t e = entry_at(f->bounds, t, p);
            if (!msc_sensitivity_is_known(s, e)) {
                s->guesses[e] = f->means[p] * msc_agent_exp(regress(f, e) + left_at(f, t, p));
            }
        }
    }
}

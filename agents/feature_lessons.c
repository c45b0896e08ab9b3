#include "agents/feature_lessons.h"

#include "agents/cholesky.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { N = MSC_FEATURE_LESSONS_MOST, M = MSC_FEATURE_PRIOR_MOST + 1 };

// How much a coefficient varies between networks: its variance for a feature of variance 1.
#define BETWEEN 0.1

// ---- One search -------------------------------------------------------------------------------

enum msc_status msc_feature_study_open(struct msc_feature_study *study,
                                       const struct msc_space *space, const char *metric,
                                       double sign) {
    *study = (struct msc_feature_study){.sign = sign, .goal = {.n_objectives = 1}};
    MSC_TRY(msc_exact_bounds_init(&study->bounds, &study->arena, space, &study->goal));
    MSC_TRY(msc_sensitivity_init(&study->sensitivity, &study->arena, &study->bounds));
    return msc_feature_prior_init(&study->prior, &study->arena, &study->bounds,
                                  study->sensitivity.n_positions, metric, sign);
}

void msc_feature_study_tell(struct msc_feature_study *study, const uint32_t choices[],
                            double value) {
    if (isfinite(value)) {
        msc_sensitivity_tell(&study->sensitivity, choices, study->sign * value);
    }
}

// Observes the isolated losses that the space gives. Their feature is of no use then.
static enum msc_status tell_given(struct msc_feature_study *study) {
    const struct msc_exact_bounds *b = &study->bounds;
    struct msc_sensitivity *s = &study->sensitivity;
    size_t n_tasks = b->space->n_tasks;
    uint32_t *point = msc_arena_array(&study->arena, n_tasks, sizeof *point);
    MSC_TRY(MSC_ALLOCATED(point));
    memcpy(point, b->most_expensive, n_tasks * sizeof *point);
    for (size_t t = 0; t < n_tasks; t++) {
        for (uint32_t c = 0; c < b->space->tasks[t].n_choices; c++) {
            size_t e = msc_exact_bounds_entry(b, t, c);
            point[t] = c;
            if (!msc_sensitivity_is_known(s, e)) {
                msc_sensitivity_tell(s, point, s->base_loss + study->prior.given[e]);
            }
        }
        point[t] = b->most_expensive[t];
    }
    return MSC_OK;
}

static bool is_same_kind(const struct msc_feature_kind *a, const struct msc_feature_kind *b) {
    return a->of == b->of && a->is_log == b->is_log && strcmp(a->name, b->name) == 0;
}

// The place of a feature in the lessons, where it is added if it is new. SIZE_MAX: it teaches
// nothing, or there is no room.
static size_t place_of(struct msc_feature_lessons *l, const struct msc_feature_kind *kind,
                       struct msc_arena *arena) {
    size_t i = 0;
    if (kind->of == MSC_FEATURE_OF_COST || kind->is_metric || kind->deviation == 0.0) {
        return SIZE_MAX;
    }
    while (i < l->n && !is_same_kind(&l->features[i].kind, kind)) {
        i++;
    }
    if (i == l->n && l->n < N) {
        l->features[l->n].kind = *kind;
        l->features[l->n].kind.name = msc_arena_strdup(arena, kind->name);
        l->n += l->features[l->n].kind.name != NULL;
    }
    return i < l->n ? i : SIZE_MAX;
}

// Adds the normal equations of one search. The level, the last unknown, is eliminated: its row is
// subtracted from the others (a Schur complement).
static void add_equations(struct msc_feature_lessons *l, const struct msc_feature_prior *f,
                          const double matrix[], const double vector[], const size_t places[]) {
    size_t last = f->n;
    double of_level = matrix[last * M + last] + MSC_FEATURE_LEVEL_RIDGE;
    for (size_t i = 0; i < f->n; i++) {
        if (places[i] == SIZE_MAX) {
            continue;
        }
        const struct msc_feature_kind *kind = &f->kinds[i];
        struct msc_feature_lesson *lesson = &l->features[places[i]];
        lesson->squares += kind->deviation * kind->deviation;
        lesson->expected += kind->deviation * f->expected[i];
        double share = matrix[i * M + last] / of_level;
        l->vector[places[i]] += (vector[i] - share * vector[last]) * kind->deviation;
        for (size_t k = i; k < f->n; k++) {
            if (places[k] != SIZE_MAX) {
                double sum = (matrix[i * M + k] - share * matrix[k * M + last]) * kind->deviation *
                             f->kinds[k].deviation;
                l->matrix[places[i] * N + places[k]] += sum;
                l->matrix[places[k] * N + places[i]] += i == k ? 0.0 : sum;
            }
        }
    }
}

static enum msc_status learn(struct msc_feature_study *study, struct msc_feature_lessons *lessons,
                             struct msc_arena *arena) {
    double matrix[M * M] = {0}, vector[M] = {0};
    size_t places[M];
    struct msc_feature_prior *f = &study->prior;
    if (f->n == 0 || isnan(study->sensitivity.base_loss)) {
        return MSC_OK;
    }
    MSC_TRY(f->given ? tell_given(study) : MSC_OK);
    msc_sensitivity_guess(&study->sensitivity);
    size_t n_losses = msc_feature_prior_add_losses(f, &study->sensitivity, matrix, vector);
    if (n_losses == 0) {
        return MSC_OK;
    }
    for (size_t i = 0; i < f->n; i++) {
        places[i] = place_of(lessons, &f->kinds[i], arena);
    }
    add_equations(lessons, f, matrix, vector, places);
    lessons->n_losses += n_losses;
    return MSC_OK;
}

enum msc_status msc_feature_study_close(struct msc_feature_study *study,
                                        struct msc_feature_lessons *lessons,
                                        struct msc_arena *arena) {
    enum msc_status status = lessons ? learn(study, lessons, arena) : MSC_OK;
    msc_arena_finish(&study->arena);
    return status;
}

// ---- All searches -----------------------------------------------------------------------------

static const char *const words_of[] = {
    [MSC_FEATURE_OF_CHOICE] = "choice", [MSC_FEATURE_OF_TASK] = "task"};

static enum msc_status add_lesson(cJSON *list, const struct msc_feature_kind *kind, double mean,
                                  double variance) {
    cJSON *lesson = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, lesson));
    MSC_TRY(msc_json_add_text(lesson, "feature", kind->name));
    MSC_TRY(msc_json_add_text(lesson, "of", words_of[kind->of]));
    MSC_TRY(msc_json_add_bool(lesson, "log", kind->is_log));
    MSC_TRY(msc_json_add_number(lesson, "mean", mean));
    return msc_json_add_number(lesson, "variance", variance);
}

// Solves the equations with the usual prior of coefficients. The variance of each coefficient is
// the diagonal of the inverse matrix, times the variance of the losses.
static enum msc_status add_lessons(cJSON *list, const struct msc_feature_lessons *l) {
    double factor[N * N], means[N], unit[N];
    memcpy(factor, l->matrix, sizeof factor);
    memcpy(means, l->vector, sizeof means);
    for (size_t i = 0; i < l->n; i++) {
        factor[i * N + i] += MSC_FEATURE_RIDGE * l->features[i].squares;
        means[i] += MSC_FEATURE_RIDGE * l->features[i].expected;
    }
    if (!msc_cholesky_factorise(factor, l->n, N)) { // never: all deviations are positive
        return MSC_FAIL(MSC_E_STATE, "the coefficients of features cannot be determined");
    }
    msc_cholesky_solve_lower(factor, means, l->n, N);
    msc_cholesky_solve_upper(factor, means, l->n, N);
    for (size_t i = 0; i < l->n; i++) {
        double variance = 0.0;
        memset(unit, 0, sizeof unit);
        unit[i] = 1.0;
        msc_cholesky_solve_lower(factor, unit, l->n, N);
        for (size_t k = 0; k < l->n; k++) {
            variance += unit[k] * unit[k];
        }
        MSC_TRY(
            add_lesson(list, &l->features[i].kind, means[i], MSC_FEATURE_LOSS_VARIANCE * variance));
    }
    return MSC_OK;
}

static enum msc_status fill(cJSON *object, const struct msc_feature_lessons *l,
                            const char *metric) {
    MSC_TRY(msc_json_add_text(object, "metric", metric));
    MSC_TRY(msc_json_add_number(object, "losses", (double)l->n_losses));
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "features", list));
    return add_lessons(list, l);
}

enum msc_status msc_feature_lessons_write(struct cJSON **out,
                                          const struct msc_feature_lessons *lessons,
                                          const char *metric) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? fill(object, lessons, metric) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

// ---- A new search -----------------------------------------------------------------------------

static const char where[] = "coefficients of features";

// Sets *out to the feature of the regression that a lesson is of; f->n: none.
static enum msc_status find_feature(size_t *out, const struct msc_feature_prior *f,
                                    const cJSON *lesson) {
    const char *name, *of;
    bool is_log;
    MSC_TRY(msc_json_get_text(&name, lesson, "feature", where));
    MSC_TRY(msc_json_get_text(&of, lesson, "of", where));
    MSC_TRY(msc_json_get_bool(&is_log, lesson, "log", where));
    for (*out = 0; *out < f->n; (*out)++) {
        const struct msc_feature_kind *kind = &f->kinds[*out];
        if (kind->of != MSC_FEATURE_OF_COST && kind->is_log == is_log &&
            strcmp(words_of[kind->of], of) == 0 && strcmp(kind->name, name) == 0) {
            break;
        }
    }
    return MSC_OK;
}

enum msc_status msc_feature_lessons_use(const struct cJSON *lessons, struct msc_feature_prior *f,
                                        const char *metric) {
    const char *of = "";
    const cJSON *list = NULL, *lesson = NULL;
    if (!lessons) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&of, lessons, "metric", where));
    MSC_TRY(msc_json_get_array(&list, lessons, "features", where));
    cJSON_ArrayForEach(lesson, list) {
        double mean, variance;
        size_t i;
        MSC_TRY(find_feature(&i, f, lesson));
        MSC_TRY(msc_json_get_double(&mean, lesson, "mean", where));
        MSC_TRY(msc_json_get_double(&variance, lesson, "variance", where));
        if (!(variance >= 0.0)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: a variance is %g, expected at least 0", where,
                            variance);
        }
        if (i < f->n && strcmp(of, metric) == 0) {
            double deviation = f->kinds[i].deviation;
            f->expected[i] = mean * deviation;
            f->variances[i] = fmin(variance * deviation * deviation + BETWEEN, f->variances[i]);
        }
    }
    return MSC_OK;
}

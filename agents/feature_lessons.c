#include "agents/feature_lessons.h"

#include "agents/cholesky.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { N = MSC_FEATURE_PRIOR_MOST + 1 };

// Variances of coefficients for a feature of variance 1: the least between networks, what is added to
// it and divided by the number of searches because few searches say little of it, and the variance
// without lessons.
#define BETWEEN 0.1
#define BETWEEN_FEW 0.3
#define USUAL (MSC_FEATURE_LOSS_VARIANCE / MSC_FEATURE_RIDGE)
// An estimate counts if it lowers the variance to at most this share.
#define MOST_LEFT 0.99

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

// Observes the isolated losses that the space gives.
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

// The lesson of a feature, which is added if it is new. NULL: the feature teaches nothing, or there is
// no room.
static struct msc_feature_lesson *lesson_of(struct msc_feature_lessons *l,
                                            const struct msc_feature_kind *kind,
                                            struct msc_arena *arena) {
    size_t i = 0;
    if (kind->of == MSC_FEATURE_OF_COST || kind->is_metric || kind->deviation == 0.0) {
        return NULL;
    }
    while (i < l->n && !is_same_kind(&l->features[i].kind, kind)) {
        i++;
    }
    if (i == l->n && l->n < MSC_FEATURE_LESSONS_MOST) {
        l->features[l->n] = (struct msc_feature_lesson){.kind = *kind};
        l->features[l->n].kind.name = msc_arena_strdup(arena, kind->name);
        l->n += l->features[l->n].kind.name != NULL;
    }
    return i < l->n ? &l->features[i] : NULL;
}

// Adds an estimate: what the losses alone say of a coefficient whose posterior has this mean and
// variance.
static void add_estimate(struct msc_feature_lesson *l, double deviation, double expected,
                         double mean, double variance) {
    double square = deviation * deviation;
    if (!(variance < MOST_LEFT * USUAL)) {
        return;
    }
    double own = 1.0 / (1.0 / variance - 1.0 / USUAL);
    double estimate = own * (mean / variance - expected / USUAL) / deviation;
    double weight = square / (own + BETWEEN);
    l->n_searches++;
    l->weights += weight;
    l->estimates += weight * estimate;
    l->squares += weight * estimate * estimate;
    l->squared_weights += weight * weight;
    l->deviations += square;
}

// The variance of unknown i: an element of the diagonal of the inverse, times that of the losses.
static double variance_of(const double factor[], size_t i, size_t n) {
    double unit[N] = {0}, sum = 0.0;
    unit[i] = 1.0;
    msc_cholesky_solve_lower(factor, unit, n, N);
    for (size_t k = 0; k < n; k++) {
        sum += unit[k] * unit[k];
    }
    return MSC_FEATURE_LOSS_VARIANCE * sum;
}

static enum msc_status learn(struct msc_feature_study *study, struct msc_feature_lessons *lessons,
                             struct msc_arena *arena) {
    double matrix[N * N] = {0}, vector[N] = {0};
    struct msc_feature_prior *f = &study->prior;
    if (f->n == 0 || isnan(study->sensitivity.base_loss)) {
        return MSC_OK;
    }
    MSC_TRY(f->given ? tell_given(study) : MSC_OK);
    msc_sensitivity_guess(&study->sensitivity);
    for (size_t i = 0; i < f->n; i++) { // the metric itself would explain all losses
        for (size_t e = 0; f->kinds[i].is_metric && e < study->bounds.n_entries; e++) {
            f->features[e * f->n + i] = 0.0;
        }
    }
    size_t n_losses = msc_feature_prior_add_losses(f, &study->sensitivity, matrix, vector);
    for (size_t i = 0; i < f->n; i++) {
        matrix[i * N + i] += MSC_FEATURE_RIDGE;
        vector[i] += MSC_FEATURE_RIDGE * f->expected[i];
    }
    matrix[f->n * N + f->n] += MSC_FEATURE_LEVEL_RIDGE;
    if (n_losses == 0 || !msc_cholesky_factorise(matrix, f->n + 1, N)) {
        return MSC_OK;
    }
    msc_cholesky_solve_lower(matrix, vector, f->n + 1, N);
    msc_cholesky_solve_upper(matrix, vector, f->n + 1, N);
    for (size_t i = 0; i < f->n; i++) {
        struct msc_feature_lesson *lesson = lesson_of(lessons, &f->kinds[i], arena);
        if (lesson) {
            add_estimate(lesson, f->kinds[i].deviation, f->expected[i], vector[i],
                         variance_of(matrix, i, f->n + 1));
        }
    }
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

static enum msc_status add_lessons(cJSON *list, const struct msc_feature_lessons *lessons) {
    for (size_t i = 0; i < lessons->n; i++) {
        const struct msc_feature_lesson *l = &lessons->features[i];
        double n = (double)l->n_searches, mean = l->estimates / l->weights, between = 0.0;
        if (n > 1.0) {
            double excess = l->squares - mean * l->estimates - (n - 1.0);
            between = fmax(excess, 0.0) / (l->weights - l->squared_weights / l->weights);
        }
        double few = BETWEEN_FEW / l->deviations; // per unit of the feature, divided by n
        if (n > 0.0) {
            MSC_TRY(add_lesson(list, &l->kind, mean, 1.0 / l->weights + between + few));
        }
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
            double own = variance * deviation * deviation + BETWEEN;
            f->variances[i] = 1.0 / (1.0 / own + 1.0 / USUAL);
            f->expected[i] = f->variances[i] * (mean * deviation / own + f->expected[i] / USUAL);
        }
    }
    return MSC_OK;
}

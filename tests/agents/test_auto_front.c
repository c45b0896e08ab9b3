// The agent `auto` with several objectives: its front, the gains of points (expected values are
// worked out by hand, or with scipy.stats.norm), and the share of hypervolume that it finds of true
// fronts. True fronts come from trying every point.
#include "agents/auto.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- Space ------------------------------------------------------------------------------------

#define TASKS 7
#define CHOICES 3
#define POINTS 2187 // CHOICES to the power of TASKS
#define MOST_FRONT 1024

enum metric { LOSS, TIME, SIZE, ACCURACY, POWER, METRICS };

// Loss, accuracy, time and power are measured. The loss of two neighbouring tasks is more or less
// than the sum, and neighbours with equal choices save time. The size is exact.
struct front_space {
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[TASKS];
    struct msc_cost cost;
    struct msc_cost_term terms[TASKS];
    struct msc_cost_factor factors[TASKS];
    double losses[TASKS][CHOICES], pairs[TASKS][CHOICES][CHOICES], sizes[TASKS][CHOICES];
    double times[TASKS][CHOICES];
    bool has_failures, dearest_fails, saturates;
};

static void open_space(struct front_space *s, const int objectives[], size_t n_objectives) {
    static const uint32_t order[CHOICES] = {0, 1, 2};
    static const char *const labels[CHOICES] = {"8", "5", "3"};
    static const struct msc_metric metrics[METRICS] = {{.name = "distill_loss"},
                                                       {.name = "time_us"},
                                                       {.name = "size_bytes", .is_exact = true},
                                                       {.name = "accuracy", .is_maximised = true},
                                                       {.name = "power"}};
    static const double bits[CHOICES] = {8, 5, 3};
    struct msc_rng rng;
    memset(s, 0, sizeof *s);
    msc_rng_seed(&rng, 3, 1);
    for (size_t t = 0; t < TASKS; t++) {
        double scale = 0.2 + 2.0 * msc_rng_double(&rng), size = 1.0 + 5.0 * msc_rng_double(&rng);
        s->tasks[t] = (struct msc_task){
            .name = "task", .n_choices = CHOICES, .labels = labels, .most_expensive_first = order};
        for (size_t c = 0; c < CHOICES; c++) {
            s->losses[t][c] = c == 0 ? 0.0 : scale * (c == 1 ? 0.2 : 1.0);
            s->sizes[t][c] = size * bits[c];
            s->times[t][c] = (1.0 + 4.0 * msc_rng_double(&rng)) * bits[c];
            for (size_t k = 0; k < CHOICES; k++) {
                s->pairs[t][k][c] = c > 0 && k > 0 ? 1.2 * msc_rng_double(&rng) - 0.4 : 0.0;
            }
        }
        s->factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = s->sizes[t]};
        s->terms[t] =
            (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &s->factors[t]};
    }
    s->cost = (struct msc_cost){.metric = "size_bytes", .n_terms = TASKS, .terms = s->terms};
    s->space = (struct msc_space){.n_tasks = TASKS,
                                  .tasks = s->tasks,
                                  .n_metrics = METRICS,
                                  .metrics = metrics,
                                  .n_costs = 1,
                                  .costs = &s->cost};
    s->goal.n_objectives = n_objectives;
    for (size_t i = 0; i < n_objectives; i++) {
        s->goal.objectives[i] = (struct msc_objective){
            .metric = objectives[i], .is_maximised = metrics[objectives[i]].is_maximised};
    }
}

static void add_bound(struct front_space *s, enum metric metric, double min, double max) {
    s->goal.bounds[s->goal.n_bounds++] =
        (struct msc_bound){.metric = (int)metric, .min = min, .max = max};
}

static void measure(const struct front_space *s, struct msc_trial *trial) {
    const uint32_t *x = trial->proposal.choices;
    double *metrics = trial->outcome.metrics;
    metrics[LOSS] = 1.0;
    metrics[TIME] = metrics[POWER] = 0.0;
    for (size_t t = 0; t < TASKS; t++) {
        metrics[LOSS] += s->losses[t][x[t]] + (t > 0 ? s->pairs[t][x[t - 1]][x[t]] : 0.0);
        metrics[TIME] += s->times[t][x[t]] - (t > 0 && x[t] == x[t - 1] ? 3.0 : 0.0);
        metrics[POWER] += s->times[TASKS - 1 - t][x[t]];
    }
    metrics[SIZE] = msc_cost_value(&s->cost, x);
    metrics[ACCURACY] = 1.0 - 0.05 * metrics[LOSS];
    trial->outcome.state = MSC_TRIAL_COMPLETE;
    if (s->saturates) {
        metrics[LOSS] = log1p(200.0 * metrics[LOSS]);
    }
    if ((s->has_failures && x[0] == 2 && x[3] == 2) || (s->dearest_fails && x[2] == 0)) {
        msc_outcome_fail(&trial->outcome, MSC_CAUSE_TRIAL, "cannot be measured");
    }
    msc_goal_judge(&s->goal, &s->space, &trial->outcome);
}

// ---- Hypervolume ------------------------------------------------------------------------------

struct values {
    double of[MSC_MAX_OBJECTIVES];
};

static bool is_covered(const struct values *by, const struct values *point, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (by->of[i] > point->of[i]) {
            return false;
        }
    }
    return true;
}

// Adds a point to those that no other point dominates in the first n objectives.
static size_t add_values(struct values front[], size_t n_front, const struct values *point,
                         size_t n) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n_front; i++) {
        if (is_covered(&front[i], point, n)) {
            return n_front;
        }
    }
    for (size_t i = 0; i < n_front; i++) {
        if (!is_covered(point, &front[i], n)) {
            front[n_kept++] = front[i];
        }
    }
    front[n_kept] = *point;
    return n_kept + 1;
}

static int compare_last(const void *a, const void *b, size_t n) {
    double left = ((const struct values *)a)->of[n - 1];
    double right = ((const struct values *)b)->of[n - 1];
    return (left > right) - (left < right);
}

static int compare_second(const void *a, const void *b) {
    return compare_last(a, b, 2);
}

static int compare_third(const void *a, const void *b) {
    return compare_last(a, b, 3);
}

static int compare_fourth(const void *a, const void *b) {
    return compare_last(a, b, 4);
}

// The volume that points dominate up to `corner` in the first n objectives: the sum over slices
// along objective n - 1. Sorts `points`.
static double hypervolume(struct values points[], size_t n_points, const double corner[],
                          size_t n) {
    static int (*const compare[])(const void *, const void *) = {
        [2] = compare_second, [3] = compare_third, [4] = compare_fourth};
    struct values below[MOST_FRONT];
    size_t n_below = 0, last = n - 1;
    double sum = 0.0;
    if (n == 1) {
        return n_points > 0 ? fmax(corner[0] - points[0].of[0], 0.0) : 0.0;
    }
    qsort(points, n_points, sizeof *points, compare[n]);
    for (size_t i = 0; i < n_points && points[i].of[last] < corner[last]; i++) {
        double end = i + 1 < n_points ? fmin(points[i + 1].of[last], corner[last]) : corner[last];
        n_below = add_values(below, n_below, &points[i], last);
        if (end > points[i].of[last]) {
            sum += hypervolume(below, n_below, corner, last) * (end - points[i].of[last]);
        }
    }
    return sum;
}

// Two boxes of 3 x 2 and 1 x 3 with a common part of 1 x 2; times 2, and a flat box of 1 x 1 x 1
// above.
static void test_agents_auto_front__hypervolume(void **state) {
    struct values points[] = {{{0, 1, 2}}, {{2, 0, 2}}, {{2, 2, 1}}};
    (void)state;
    assert_true(hypervolume(points, 2, (const double[]){3, 3}, 2) == 7.0);
    assert_true(hypervolume(points, 3, (const double[]){3, 3, 4}, 3) == 15.0);
}

// ---- Searches ---------------------------------------------------------------------------------

static size_t add_trial(struct values front[], size_t n, const struct msc_trial *trial,
                        size_t n_objectives) {
    struct values point;
    memcpy(point.of, trial->outcome.objectives, sizeof point.of);
    assert_true(n < MOST_FRONT);
    return trial->outcome.state == MSC_TRIAL_COMPLETE ? add_values(front, n, &point, n_objectives)
                                                      : n;
}

// The share of the true front's hypervolume that `n_trials` of the agent miss. The corner has the
// greatest value of each objective over all feasible points.
static double missed(const struct front_space *s, const char *agent_name, size_t n_trials) {
    static struct values all[MOST_FRONT], found[MOST_FRONT];
    double corner[MSC_MAX_OBJECTIVES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    size_t n_all = 0, n_found = 0, n_objectives = s->goal.n_objectives, n;
    struct msc_arena arena = {0};
    struct msc_trial trial;
    struct msc_agent *agent = NULL;
    assert_ok(msc_trial_init(&trial, &arena, &s->space));
    for (uint32_t i = 0; i < POINTS; i++) {
        for (uint32_t t = 0, rest = i; t < TASKS; t++, rest /= CHOICES) {
            trial.proposal.choices[t] = rest % CHOICES;
        }
        measure(s, &trial);
        for (size_t k = 0; trial.outcome.state == MSC_TRIAL_COMPLETE && k < n_objectives; k++) {
            corner[k] = fmax(corner[k], trial.outcome.objectives[k]);
        }
        n_all = add_trial(all, n_all, &trial, n_objectives);
    }
    assert_ok(msc_agent_create(&agent, msc_agent_find(agent_name), NULL, &s->space, &s->goal, 5));
    for (size_t id = 0; id < n_trials; id++) {
        trial.id = (int64_t)id;
        assert_ok(msc_agent_ask(agent, &trial.proposal, 1, &n));
        assert_int_equal(n, 1);
        measure(s, &trial);
        assert_ok(msc_agent_tell(agent, &trial));
        n_found = add_trial(found, n_found, &trial, n_objectives);
    }
    msc_agent_destroy(agent);
    msc_arena_finish(&arena);
    double whole = hypervolume(all, n_all, corner, n_objectives);
    return 1.0 - hypervolume(found, n_found, corner, n_objectives) / whole;
}

// `auto` must miss at most `most` of the hypervolume, and at most half of what `evolutionary`
// misses.
static void check_front(const struct front_space *s, size_t n_trials, double most) {
    double by_auto = missed(s, "auto", n_trials);
    double by_others = missed(s, "evolutionary", n_trials);
    print_message("  missed by auto %.4f, by evolutionary %.4f\n", by_auto, by_others);
    assert_true(by_auto <= most && by_auto <= 0.5 * by_others);
}

static void test_agents_auto_front__exact_and_measured(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    check_front(&s, 100, 0.01);
    open_space(&s, (const int[]){SIZE, LOSS}, 2);
    check_front(&s, 100, 0.01);
    open_space(&s, (const int[]){LOSS, TIME}, 2);
    check_front(&s, 100, 0.01);
}

static void test_agents_auto_front__maximised(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){ACCURACY, SIZE}, 2);
    check_front(&s, 100, 0.01);
    // A front of greatest sizes and least times.
    open_space(&s, (const int[]){TIME, SIZE}, 2);
    s.goal.objectives[1].is_maximised = true;
    check_front(&s, 100, 0.01);
}

static void test_agents_auto_front__three_and_four(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE, TIME}, 3);
    check_front(&s, 150, 0.02);
    open_space(&s, (const int[]){LOSS, SIZE, TIME, POWER}, 4);
    check_front(&s, 150, 0.06);
}

static void test_agents_auto_front__bounds(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    add_bound(&s, TIME, -INFINITY, 80.0); // measured
    check_front(&s, 100, 0.01);
    open_space(&s, (const int[]){LOSS, TIME}, 2);
    add_bound(&s, SIZE, -INFINITY, 120.0); // exact
    check_front(&s, 100, 0.01);
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    add_bound(&s, SIZE, 80.0, 140.0); // the metric of an objective
    check_front(&s, 100, 0.01);
}

// A ninth of all points fails, with choices that work in isolation.
static void test_agents_auto_front__failures(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    s.has_failures = true;
    check_front(&s, 100, 0.01);
}

// The most expensive plan cannot be measured.
static void test_agents_auto_front__dearest_fails(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    s.dearest_fails = true;
    check_front(&s, 100, 0.02);
    open_space(&s, (const int[]){SIZE, LOSS}, 2);
    s.dearest_fails = true;
    check_front(&s, 100, 0.02);
}

// Where losses saturate, the models are of transforms of the losses.
static void test_agents_auto_front__saturating(void **state) {
    struct front_space s;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    s.saturates = true;
    check_front(&s, 100, 0.01);
    open_space(&s, (const int[]){TIME, LOSS}, 2);
    s.saturates = true;
    check_front(&s, 100, 0.02);
}

// Without a measured objective, or with too many bounds, the agent proposes only children.
static void test_agents_auto_front__not_used(void **state) {
    struct front_space s;
    struct msc_agent *agent = NULL;
    (void)state;
    open_space(&s, (const int[]){LOSS, SIZE}, 2);
    for (int i = 0; i < MSC_MAX_BOUNDS - 1; i++) {
        add_bound(&s, TIME, -INFINITY, 200.0);
    }
    assert_ok(msc_agent_create(&agent, msc_agent_find("auto"), NULL, &s.space, &s.goal, 5));
    assert_false(((struct msc_auto *)msc_agent_state(agent))->front.is_used);
    msc_agent_destroy(agent);
    assert_true(missed(&s, "auto", 50) < 1.0);
}

// ---- Front ------------------------------------------------------------------------------------

static struct msc_agent *open_agent(struct front_space *s, struct msc_auto_front **front) {
    struct msc_agent *agent = NULL;
    open_space(s, (const int[]){LOSS, SIZE}, 2);
    assert_ok(msc_agent_create(&agent, msc_agent_find("auto"), NULL, &s->space, &s->goal, 5));
    *front = &((struct msc_auto *)msc_agent_state(agent))->front;
    assert_true((*front)->is_used);
    return agent;
}

static void check_values(const struct msc_auto_front *f, size_t point, double loss, double size) {
    assert_true(f->values[point * MSC_MAX_OBJECTIVES] == loss);
    assert_true(f->values[point * MSC_MAX_OBJECTIVES + 1] == size);
}

static void test_agents_auto_front__members(void **state) {
    uint32_t a[TASKS] = {0}, b[TASKS] = {1}, c[TASKS] = {2}, d[TASKS] = {0, 1}, e[TASKS] = {0, 2};
    struct front_space s;
    struct msc_auto_front *f;
    struct msc_agent *agent = open_agent(&s, &f);
    (void)state;
    msc_auto_front_tell(f, a, (const double[]){1.0, 8.0});
    msc_auto_front_tell(f, b, (const double[]){4.0, 4.0});
    msc_auto_front_tell(f, c, NULL);                       // not feasible
    msc_auto_front_tell(f, c, (const double[]){4.0, 5.0}); // dominated by b
    msc_auto_front_tell(f, c, (const double[]){4.0, 4.0}); // equal to b
    msc_auto_front_tell(f, c, (const double[]){NAN, 1.0});
    assert_int_equal(f->n_points, 2);
    msc_auto_front_await(f, d, (const double[]){2.0, 6.0});
    msc_auto_front_await(f, e, (const double[]){3.0, 5.0});
    assert_int_equal(f->n_points, 2);
    assert_int_equal(f->n_pending, 2);
    assert_true(msc_auto_front_improves(f, (const double[]){2.0, 6.0}));
    msc_auto_front_tell(f, c, (const double[]){2.5, 3.0}); // dominates b
    assert_int_equal(f->n_points, 2);
    assert_int_equal(f->n_pending, 2);
    check_values(f, 0, 1.0, 8.0);
    check_values(f, 1, 2.5, 3.0);
    msc_auto_front_tell(f, d, (const double[]){2.0, 7.0});
    assert_int_equal(f->n_points, 3);
    assert_int_equal(f->n_pending, 1);
    check_values(f, 2, 2.0, 7.0);
    check_values(f, 3, 3.0, 5.0);
    for (size_t i = 0; i < 2 * MSC_FRONT_PENDING; i++) {
        msc_auto_front_await(f, e, (const double[]){3.0, 5.0});
    }
    assert_int_equal(f->n_pending, MSC_FRONT_PENDING);
    msc_auto_front_tell(f, e, NULL);
    assert_int_equal(f->n_pending, 0);
    msc_agent_destroy(agent);
}

// If the front is full, the oldest point makes room.
static void test_agents_auto_front__full(void **state) {
    struct front_space s;
    struct msc_auto_front *f;
    struct msc_agent *agent = open_agent(&s, &f);
    (void)state;
    for (uint32_t i = 0; i <= MSC_FRONT_POINTS; i++) {
        uint32_t x[TASKS] = {i};
        msc_auto_front_tell(f, x, (const double[]){i, 1000.0 - i});
    }
    assert_int_equal(f->n_points, MSC_FRONT_POINTS);
    check_values(f, 0, 1.0, 999.0);
    check_values(f, MSC_FRONT_POINTS - 1, MSC_FRONT_POINTS, 1000.0 - MSC_FRONT_POINTS);
    msc_agent_destroy(agent);
}

// Half of the boxes limit the size to 5, where the least loss is 4; the others to 10, where it
// is 1.
static void set_boxes(struct msc_auto_front *f) {
    f->minimised = 0;
    for (size_t k = 0; k < MSC_FRONT_BOXES; k++) {
        f->boxes[k] =
            (struct msc_front_box){.limits = {k % 2 == 0 ? 4.0 : 1.0, k % 2 == 0 ? 5.0 : 10.0}};
    }
}

static void test_agents_auto_front__gain(void **state) {
    struct front_space s;
    struct msc_auto_front *f;
    struct msc_agent *agent = open_agent(&s, &f);
    (void)state;
    set_boxes(f);
    assert_true(msc_auto_front_gain(f, (const double[]){3.0, 5.0}) == 0.5 * 1.0);
    assert_true(msc_auto_front_gain(f, (const double[]){0.5, 5.0}) == 0.5 * (3.5 + 0.5));
    assert_true(msc_auto_front_gain(f, (const double[]){0.5, 6.0}) == 0.5 * 0.5);
    assert_true(msc_auto_front_gain(f, (const double[]){0.5, 11.0}) == 0.0);
    msc_agent_destroy(agent);
}

// An expected improvement is s (z Phi(z) + phi(z)) with z = (best - mean) / s; the chance to be
// within a limit is Phi((limit - mean) / s).
static void test_agents_auto_front__expected_gain(void **state) {
    struct front_space s;
    struct msc_auto_front *f;
    struct msc_agent *agent = open_agent(&s, &f);
    size_t most = 99;
    (void)state;
    set_boxes(f);
    const double exact[] = {0.0, 0.0}, uncertain[] = {2.0, 0.0}, both[] = {2.0, 1.5};
    // Without uncertainty, it is the gain.
    assert_float_equal(msc_auto_front_expected_gain(f, (const double[]){0.5, 5.0}, exact, &most),
                       2.0, 1e-12);
    assert_int_equal(most, 0);
    // Size 5: (2 * gain(0.5) + 2 * gain(-1)) / 2.
    assert_float_equal(msc_auto_front_expected_gain(f, (const double[]){3.0, 5.0}, uncertain, NULL),
                       0.7811120279889924, 1e-10);
    // Size 6: only the second half of the boxes counts.
    assert_float_equal(msc_auto_front_expected_gain(f, (const double[]){3.0, 6.0}, uncertain, NULL),
                       0.08331547058768629, 1e-10);
    // A measured size of mean 6 and standard deviation 1.5.
    assert_float_equal(msc_auto_front_expected_gain(f, (const double[]){3.0, 6.0}, both, &most),
                       0.25918476409793045, 1e-10);
    assert_int_equal(most, 0);
    msc_agent_destroy(agent);
}

// Boxes cover the range of the front, and some are not limited.
static void test_agents_auto_front__boxes(void **state) {
    uint32_t a[TASKS] = {0}, b[TASKS] = {1};
    struct front_space s;
    struct msc_auto_front *f;
    struct msc_agent *agent = open_agent(&s, &f);
    struct msc_rng rng;
    size_t n_unlimited = 0, n_bests[3] = {0};
    (void)state;
    msc_rng_seed(&rng, 1, 1);
    assert_false(msc_auto_front_draw(f, &rng));
    // The exact sizes of the space are from `least` to `most`.
    bool is_exact;
    double least = msc_cost_min(&s.space, &s.cost, &is_exact, NULL);
    double most = msc_cost_max(&s.space, &s.cost, &is_exact, NULL);
    double sizes[] = {least + 0.75 * (most - least), least + 0.25 * (most - least)};
    msc_auto_front_tell(f, a, (const double[]){1.0, sizes[0]});
    msc_auto_front_tell(f, b, (const double[]){4.0, sizes[1]});
    assert_true(msc_auto_front_draw(f, &rng));
    assert_int_equal(f->minimised, 0);
    for (size_t k = 0; k < MSC_FRONT_BOXES; k++) {
        double limit = f->boxes[k].limits[1], margin = 0.1 * (sizes[0] - sizes[1]);
        bool is_unlimited = limit == most;
        assert_true(is_unlimited || (limit >= least && limit <= sizes[0] + margin));
        // The best loss within the limit; 10 % beyond the range if there is none.
        double best = limit >= sizes[0] ? 1.0 : limit >= sizes[1] ? 4.0 : 4.3;
        assert_float_equal(f->boxes[k].limits[0], best, 1e-12);
        n_unlimited += is_unlimited;
        n_bests[best == 1.0 ? 0 : best == 4.0 ? 1 : 2]++;
    }
    // An eighth of 64 boxes; a lattice of one dimension is even up to one or two boxes. The limits
    // of the others are from 0 to 0.8 of the range of sizes.
    assert_in_range(n_unlimited, 7, 9);
    assert_in_range(n_bests[1], 33, 37); // 56 * 0.5 / 0.8
    assert_in_range(n_bests[2], 16, 19); // 56 * 0.25 / 0.8
    msc_agent_destroy(agent);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_auto_front__hypervolume),
        cmocka_unit_test(test_agents_auto_front__exact_and_measured),
        cmocka_unit_test(test_agents_auto_front__maximised),
        cmocka_unit_test(test_agents_auto_front__three_and_four),
        cmocka_unit_test(test_agents_auto_front__bounds),
        cmocka_unit_test(test_agents_auto_front__failures),
        cmocka_unit_test(test_agents_auto_front__dearest_fails),
        cmocka_unit_test(test_agents_auto_front__saturating),
        cmocka_unit_test(test_agents_auto_front__not_used),
        cmocka_unit_test(test_agents_auto_front__members),
        cmocka_unit_test(test_agents_auto_front__full),
        cmocka_unit_test(test_agents_auto_front__gain),
        cmocka_unit_test(test_agents_auto_front__expected_gain),
        cmocka_unit_test(test_agents_auto_front__boxes),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

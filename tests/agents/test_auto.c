// Tests the parts of the agent `auto` separately: sensitivities; the pair model with its draws and
// expected improvement; and moves. Expected values come from the C library, brute force and
// make_pair_model.py.
#include "agents/hope.h"
#include "agents/plan_search.h"
#include "agents/sensitivity.h"
#include "tests/agents/random_space.h"

#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

// ---- Moves ------------------------------------------------------------------------------------

static struct random_space_options options_of(uint64_t seed) {
    return (struct random_space_options){.seed = seed,
                                         .n_tasks = 2 + seed % 5,
                                         .max_choices = 4,
                                         .n_costs = 1 + seed % 3,
                                         .has_products = seed % 2 == 1,
                                         .tightness = 0.5};
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-11 * (1.0 + fabs(a) + fabs(b));
}

static void check_moves(const struct random_space *r, struct msc_exact_moves *moves, size_t task,
                        uint32_t choice) {
    double deltas[MSC_MAX_BOUNDS], before[MSC_MAX_BOUNDS];
    msc_exact_moves_deltas(moves, task, choice, deltas);
    memcpy(before, moves->values, sizeof before);
    double violation = msc_exact_moves_violation(moves, deltas);
    msc_exact_moves_change(moves, task, choice);
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        double value = msc_cost_value(moves->bounds->items[i].cost, moves->point);
        assert_true(is_near(before[i] + deltas[i], value));
        assert_true(is_near(moves->values[i], value));
    }
    assert_true(is_near(violation, msc_goal_exact_violation(&r->goal, &r->space, moves->point)));
    assert_int_equal(msc_exact_moves_hold(moves),
                     msc_exact_bounds_hold(moves->bounds, moves->point));
}

static void test_agents_auto__moves(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct msc_exact_moves moves;
        struct msc_rng rng;
        uint32_t choices[8] = {0};
        struct random_space_options options = options_of(seed);
        random_space_init(&r, &options);
        msc_rng_seed(&rng, seed, 3);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        assert_ok(msc_exact_moves_init(&moves, &r.arena, &bounds));
        msc_exact_moves_start(&moves, choices);
        for (int i = 0; i < 50; i++) {
            size_t t = (size_t)msc_rng_below(&rng, r.space.n_tasks);
            check_moves(&r, &moves, t, (uint32_t)msc_rng_below(&rng, r.space.tasks[t].n_choices));
        }
        random_space_finish(&r);
    }
}

// ---- Spaces without costs ---------------------------------------------------------------------

#define TASKS 3
#define CHOICES 3

struct plain_space {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[TASKS];
    struct msc_exact_bounds bounds;
};

static void plain_space_init(struct plain_space *p) {
    static const uint32_t order[CHOICES] = {0, 1, 2};
    static const char *const labels[CHOICES] = {"8", "4", "2"}, *const names[TASKS] = {"a", "b",
                                                                                       "c"};
    static const struct msc_metric metric = {.name = "distill_loss", .unit = "", .help = ""};
    memset(p, 0, sizeof *p);
    for (size_t t = 0; t < TASKS; t++) {
        p->tasks[t] = (struct msc_task){.name = names[t],
                                        .n_choices = CHOICES,
                                        .labels = labels,
                                        .most_expensive_first = order};
    }
    p->space =
        (struct msc_space){.n_tasks = TASKS, .tasks = p->tasks, .n_metrics = 1, .metrics = &metric};
    p->goal.n_objectives = 1;
    assert_ok(msc_exact_bounds_init(&p->bounds, &p->arena, &p->space, &p->goal));
}

// ---- Sensitivity ------------------------------------------------------------------------------

static void tell(struct msc_sensitivity *s, uint32_t a, uint32_t b, uint32_t c, double loss) {
    msc_sensitivity_tell(s, (const uint32_t[]){a, b, c}, loss);
}

// Opens a sensitivity that has observed only the base plan, with loss 0.5.
static void open_sensitivity(struct msc_sensitivity *s, struct plain_space *p) {
    plain_space_init(p);
    assert_ok(msc_sensitivity_init(s, &p->arena, &p->bounds));
    assert_false(msc_sensitivity_guess(s));
    tell(s, 0, 0, 0, 0.5);
}

// The sensitivity observes results of both changes of task a, of the cheapest choice of task b, and
// of no change of task c.
static void test_agents_auto__guesses(void **state) {
    struct plain_space p;
    struct msc_sensitivity s;
    (void)state;
    open_sensitivity(&s, &p);
    tell(&s, 1, 0, 0, 0.75);
    tell(&s, 2, 0, 0, 1.5); // losses 0.25 and 1: a factor of 4
    tell(&s, 0, 2, 0, 2.5); // loss 2, so b's middle choice is estimated as 2 / 4
    tell(&s, 1, 1, 0, 9.0); // two tasks changed: no information on either
    assert_true(msc_sensitivity_guess(&s));
    static const double expected[] = {0, 0.25, 1, 0, 0.5, 2, 0, 0.5, 2};
    for (size_t e = 0; e < 9; e++) {
        // c's cheapest choice gets the median of the known losses of cheapest choices, 1 and 2.
        // The median of two numbers is the greater one. c's middle choice gets 2 / 4.
        assert_true(is_near(s.guesses[e], expected[e]));
    }
    // Uniform plans add information: from their losses, c's cheapest choice gets 8 - 3 = 5 and c's
    // middle choice 1 - 0.25 - 0.25.
    tell(&s, 1, 1, 1, 1.5);
    tell(&s, 2, 2, 2, 8.5);
    assert_true(msc_sensitivity_guess(&s));
    assert_true(is_near(s.guesses[8], 5.0));
    assert_true(is_near(s.guesses[4], 2.0 / 8.0));
    assert_true(is_near(s.guesses[7], 1.0 - 0.25 - 0.25));
    msc_arena_finish(&p.arena);
}

static void test_agents_auto__failed_probe(void **state) {
    struct plain_space p;
    struct msc_sensitivity s;
    (void)state;
    open_sensitivity(&s, &p);
    tell(&s, 0, 0, 2, NAN);
    assert_true(msc_sensitivity_guess(&s));
    assert_true(isinf(s.guesses[8]));
    assert_true(isfinite(s.guesses[7]));
    msc_arena_finish(&p.arena);
}

// If a choice failed by itself but works together with others, its loss is estimated, in whatever
// order the results are observed.
static void test_agents_auto__doubted_failure(void **state) {
    struct plain_space p;
    struct msc_sensitivity s;
    (void)state;
    open_sensitivity(&s, &p);
    s.doubts_failures = true;
    tell(&s, 0, 1, 1, 0.75);
    tell(&s, 0, 0, 1, NAN);
    tell(&s, 0, 0, 2, NAN);
    assert_true(msc_sensitivity_guess(&s));
    assert_true(s.was_asked[7] && !msc_sensitivity_is_known(&s, 7) && isfinite(s.guesses[7]));
    assert_true(isinf(s.guesses[8]));
    tell(&s, 1, 0, 2, 3.0);
    assert_true(msc_sensitivity_guess(&s) && isfinite(s.guesses[8]));
    msc_arena_finish(&p.arena);
}

// An estimated loss is used as a guess until it is measured.
static void test_agents_auto__estimated_probe(void **state) {
    struct plain_space p;
    struct msc_sensitivity s;
    (void)state;
    open_sensitivity(&s, &p);
    assert_true(msc_sensitivity_tell_estimate(&s, (const uint32_t[]){0, 0, 2}, 2.5));
    assert_true(msc_sensitivity_guess(&s) && is_near(s.guesses[8], 2.0));
    assert_true(msc_sensitivity_is_known(&s, 8) && !msc_sensitivity_is_exact(&s, 8));
    assert_true(msc_sensitivity_is_exact(&s, 0) && s.was_asked[8]);
    tell(&s, 0, 0, 2, 1.5);
    assert_true(msc_sensitivity_is_exact(&s, 8));
    msc_arena_finish(&p.arena);
}

// ---- Model ------------------------------------------------------------------------------------

// Printed by make_pair_model.py.
static const double means[] = {0, 0.5, 2.0, 0, 0.25, 1.0, 0, 0.75, 3.0};
static const bool known[] = {true, true, true, true, true, true, true, false, true};
static const uint32_t points[][TASKS] = {{1, 1, 0}, {2, 2, 0}, {2, 0, 2}, {0, 1, 1},
                                         {1, 2, 2}, {2, 1, 1}, {2, 2, 2}};
static const double values[] = {1.0, 4.5, 4.0, 1.25, 5.5, 3.75, 8.0};
static const double expected_values[] = {
    0.125,          0.889651443781, 3.125,         0.375,         1.20732924115, 3.51384819546,
    1.125,          2.02849963925,  4.54852978783, 0.625,         1.4038948733,  3.56996596544,
    0.953829881018, 1.80040255169,  4.03764404192, 1.81252788119, 2.73027094995, 5.18102363446,
    2.125,          2.89694144482,  4.70612899364, 2.58330255972, 3.42292180191, 5.30327974882,
    3.71841084338,  4.62920048366,  6.72306962485};
enum { N_POINTS = sizeof points / sizeof points[0] };

static void open_empty_model(struct msc_pair_model *m, struct plain_space *p) {
    plain_space_init(p);
    assert_ok(msc_pair_model_init(m, &p->arena, &p->bounds, 1));
}

static void open_model(struct msc_pair_model *m, struct plain_space *p) {
    open_empty_model(m, p);
    for (size_t i = 0; i < N_POINTS; i++) {
        msc_pair_model_tell(m, points[i], values[i]);
        msc_pair_model_tell(m, points[i], values[i]); // observing a point twice changes nothing
    }
    msc_pair_model_fit(m, 0.125, means, known);
}

static void check_values(struct msc_pair_model *m, const double expected[]) {
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 1);
    msc_pair_model_draw(m, &rng, 0.0);
    for (uint32_t i = 0; i < 27; i++) {
        uint32_t x[TASKS] = {i / 9, i / 3 % 3, i % 3};
        assert_true(fabs(msc_pair_model_value(m, x) - expected[i]) < 1e-9);
    }
}

static void test_agents_auto__posterior_mean(void **state) {
    static const int strengths[] = {0, 4, 3};
    struct plain_space p;
    struct msc_pair_model m;
    (void)state;
    open_model(&m, &p);
    assert_int_equal(m.n_points, N_POINTS);
    assert_memory_equal(m.strengths, strengths, sizeof strengths);
    check_values(&m, expected_values);
    msc_arena_finish(&p.arena);
}

// One choice is unusable: results of other choices are kept, and a plan with that choice has the
// worst value.
static void test_agents_auto__unusable_choice(void **state) {
    double without[9];
    struct plain_space p;
    struct msc_pair_model m;
    struct msc_rng rng;
    (void)state;
    open_empty_model(&m, &p);
    memcpy(without, means, sizeof without);
    without[8] = INFINITY;
    msc_pair_model_tell(&m, points[0], values[0]);
    msc_pair_model_tell(&m, points[1], values[1]);
    msc_pair_model_tell(&m, points[5], values[5]);
    msc_pair_model_fit(&m, 0.125, without, known);
    assert_int_equal(m.n_points, 3);
    msc_rng_seed(&rng, 1, 1);
    for (int i = 0; i < 20; i++) {
        msc_pair_model_draw(&m, &rng, 0.1 * i);
        double worst = msc_pair_model_value(&m, (const uint32_t[]){2, 2, 1});
        assert_true(isfinite(worst));
        assert_true(msc_pair_model_value(&m, (const uint32_t[]){0, 0, 2}) > worst);
    }
    msc_arena_finish(&p.arena);
}

static const double expected_of_estimates[] = {
    0.125,          0.890753776599, 3.125,         0.375,         1.20683370019, 3.49753570498,
    1.125,          2.01328948158,  4.47335883052, 0.625,         1.40932813746, 3.56920962331,
    0.946520464371, 1.79692852543,  4.01326579266, 1.76294303852, 2.66980688096, 5.05551149235,
    2.125,          2.89581774816,  4.62490460567, 2.53322782127, 3.37012549303, 5.15566813192,
    3.47968464597,  4.37303809911,  6.32794808216};

// Two of the points are estimates. Their standard error is a fifth of their distance from the sum
// of single losses.
static void test_agents_auto__posterior_of_estimates(void **state) {
    struct plain_space p;
    struct msc_pair_model m;
    (void)state;
    open_empty_model(&m, &p);
    for (size_t i = 0; i < N_POINTS; i++) {
        msc_pair_model_tell_estimate(&m, points[i], values[i], i == 1 || i == 6 ? 0.2 : 0.0);
    }
    msc_pair_model_fit(&m, 0.125, means, known);
    check_values(&m, expected_of_estimates);
    msc_arena_finish(&p.arena);
}

static const double other_values[] = {1.12, 3.38, 6.12, 2.12, 4.12, 2.12, 7.62};
static const double expected_by_correlation[] = {
    0.125,         1.62124298605, 3.125,         0.375,         2.11999064807, 3.375,
    1.125,         2.62124298605, 4.36996036795, 0.625,         2.12124298605, 3.06253422362,
    1.11999798222, 2.86498863028, 3.55753220584, 1.43751140787, 2.93375439392, 4.12000599944,
    2.125,         2.1212530146,  6.12001046268, 1.87500334285, 2.12000401946, 5.87001380553,
    3.38000350012, 3.37625651471, 7.61997433074};

static const double expected_spreads[] = {
    0,           0.070548958, 0,           0,           0.110205546, 0.239387478, 0,
    0.242374364, 0.426381505, 0,           0.186246243, 0.318881546, 0.081279818, 0.212641854,
    0.385660901, 0.190632763, 0.336322238, 0.479796326, 0,           0.298226445, 0.426563854,
    0.185732194, 0.322501775, 0.492592518, 0.340130937, 0.474055338, 0.593291865};

static const double expected_spreads_believed[] = {
    0,           0.0699350206, 0,           0,           0.105948423, 0.239386707,  0,
    0.181688542, 0.420700014,  0,           0.164020384, 0.316265892, 0.0799183809, 0.172676367,
    0.381546826, 0.164134891,  0,           0.432803007, 0,           0.292868856,  0.426469149,
    0.185727522, 0.313417669,  0.492497048, 0.335069743, 0.392484266, 0.581267167};

// These values make independent choices more likely than correlated ones. Without
// learns_correlation, the correlation keeps its default of 0.5.
static void test_agents_auto__correlation(void **state) {
    struct plain_space p;
    struct msc_pair_model m;
    (void)state;
    open_empty_model(&m, &p);
    for (size_t i = 0; i < N_POINTS; i++) {
        msc_pair_model_tell(&m, points[i], other_values[i]);
    }
    msc_pair_model_fit(&m, 0.125, means, known);
    assert_true(m.correlation == 0.5);
    m.learns_correlation = true;
    msc_pair_model_fit(&m, 0.125, means, known);
    assert_true(m.correlation == 0.0);
    check_values(&m, expected_by_correlation);
    msc_arena_finish(&p.arena);
}

static void check_spreads(struct msc_pair_model *m, const double expected[]) {
    for (uint32_t i = 0; i < 27; i++) {
        uint32_t x[TASKS] = {i / 9, i / 3 % 3, i % 3};
        assert_true(fabs(msc_pair_model_spread(m, x, 0.0) - expected[i]) < 1e-6);
        bool is_greater = msc_pair_model_spread(m, x, expected[i] + 1e-6) > 0.0;
        bool is_smaller = msc_pair_model_spread(m, x, expected[i] - 1e-6) == 0.0;
        assert_false(is_greater || (is_smaller && expected[i] > 1e-6));
    }
}

// Compares the spreads of the last `n` points, which are updated step by step, with spreads
// computed from scratch. If `expected` is not NULL, compares them with `expected`, too.
static void check_kept_spreads(struct msc_pair_model *m, struct msc_pair_spread kept[], uint32_t n,
                               const double expected[]) {
    for (uint32_t i = 27; i-- > 27 - n;) {
        uint32_t x[TASKS] = {i / 9, i / 3 % 3, i % 3};
        double spread = msc_pair_model_spread_kept(m, x, &kept[i]);
        assert_true(spread == msc_pair_model_spread(m, x, 0.0));
        assert_true(!expected || fabs(spread - expected[i]) < 1e-6);
    }
}

// A believed point is treated as known, with zero spread, until the next fit.
static void test_agents_auto__spreads(void **state) {
    static const uint32_t believed[TASKS] = {1, 2, 1};
    static struct msc_pair_spread kept[27];
    struct plain_space p;
    struct msc_pair_model m;
    (void)state;
    memset(kept, 0, sizeof kept);
    open_model(&m, &p);
    check_spreads(&m, expected_spreads);
    check_kept_spreads(&m, kept, 27, expected_spreads);
    msc_pair_model_believe(&m, believed);
    msc_pair_model_believe(&m, believed); // believing it twice changes nothing
    check_spreads(&m, expected_spreads_believed);
    check_kept_spreads(&m, kept, 14, expected_spreads_believed);
    memset(kept, 0, sizeof kept);
    check_kept_spreads(&m, kept, 14, expected_spreads_believed);
    msc_pair_model_believe(&m, (const uint32_t[]){2, 0, 2});
    check_kept_spreads(&m, kept, 27, NULL);
    msc_pair_model_fit(&m, 0.125, means, known);
    check_spreads(&m, expected_spreads);
    for (size_t i = 0; i < 2 * MSC_PAIR_PENDING; i++) {
        msc_pair_model_believe(&m, (const uint32_t[]){i / 9 % 3, i / 3 % 3, i % 3});
    }
    assert_true(m.n_believed <= 27);
    msc_arena_finish(&p.arena);
}

static bool is_wanted(const void *context, const uint32_t choices[]) {
    return memcmp(context, choices, TASKS * sizeof *choices) != 0;
}

// The negative expected improvement on `best`, computed with the C library's erfc.
static double expected_improvement(size_t i, double best) {
    double by_mean = best - expected_values[i], z = by_mean / expected_spreads[i];
    double gain = by_mean * 0.5 * erfc(-z * M_SQRT1_2) +
                  expected_spreads[i] * exp(-0.5 * z * z) / sqrt(2.0 * M_PI);
    return -(expected_spreads[i] > 0.0 ? gain : fmax(by_mean, 0.0));
}

// Descends from x and checks that no better point is one or two choices away from the result. Only
// points that `is_wanted` accepts count.
static void check_descent(const struct msc_hope *h, uint32_t x[], double before) {
    static const uint32_t unwanted[TASKS] = {1, 1, 0};
    msc_hope_descend(h, x, before, is_wanted, unwanted);
    double after = msc_hope_value(h, x, INFINITY);
    assert_true(after <= before);
    for (uint32_t k = 0; k < 27; k++) {
        uint32_t y[TASKS] = {k / 9, k / 3 % 3, k % 3};
        int n_changed = (x[0] != y[0]) + (x[1] != y[1]) + (x[2] != y[2]);
        assert_true(n_changed > 2 || !is_wanted(unwanted, y) || isinf(msc_hope_value(h, y, after)));
    }
}

static void test_agents_auto__hopes(void **state) {
    struct plain_space p;
    struct msc_pair_model m;
    (void)state;
    open_model(&m, &p);
    msc_pair_model_draw(&m, NULL, 0.0);
    for (uint32_t i = 0; i < 54; i++) {
        uint32_t at = i % 27, x[TASKS] = {at / 9, at / 3 % 3, at % 3};
        struct msc_hope h = {
            .model = &m, .width = 1.0, .way = i < 27 ? MSC_HOPE_BOUND : MSC_HOPE_IMPROVEMENT};
        double expected = expected_values[at] - 2.0 * expected_spreads[at];
        if (h.way == MSC_HOPE_IMPROVEMENT) {
            h.best_loss = 0.6;
            expected = expected_improvement(at, h.best_loss);
        }
        double before = msc_hope_value(&h, x, INFINITY);
        if (h.way == MSC_HOPE_BOUND || expected < -1e-4) {
            assert_true(fabs(before - expected) < 1e-5);
            assert_true(isinf(msc_hope_value(&h, x, before)));
            check_descent(&h, x, before);
        }
    }
    msc_arena_finish(&p.arena);
}

// The mean of many draws is the posterior mean. Draws differ at every point whose loss is not known
// exactly.
static void test_agents_auto__draws(void **state) {
    enum { DRAWS = 4000 };
    struct plain_space p;
    struct msc_pair_model m;
    struct msc_rng rng;
    double sums[27] = {0}, squares[27] = {0};
    (void)state;
    open_model(&m, &p);
    msc_rng_seed(&rng, 2, 1);
    for (int d = 0; d < DRAWS; d++) {
        msc_pair_model_draw(&m, &rng, 1.0);
        for (uint32_t i = 0; i < 27; i++) {
            double value = msc_pair_model_value(&m, (const uint32_t[]){i / 9, i / 3 % 3, i % 3});
            sums[i] += value / DRAWS;
            squares[i] += value * value / DRAWS;
        }
    }
    for (uint32_t i = 0; i < 27; i++) {
        double spread = sqrt(fmax(squares[i] - sums[i] * sums[i], 0.0));
        assert_true(fabs(sums[i] - expected_values[i]) <= 5.0 * spread / sqrt(DRAWS) + 1e-9);
        bool is_known_alone = (i / 9 == 0) + (i / 3 % 3 == 0) + (i % 3 == 0) >= 2 && i != 1;
        assert_int_equal(spread < 1e-6, is_known_alone);
    }
    msc_arena_finish(&p.arena);
}

static void test_agents_auto__sums_are_found_additive(void **state) {
    struct plain_space p;
    struct msc_pair_model m;
    static const bool all_known[9] = {true, true, true, true, true, true, true, true, true};
    (void)state;
    open_empty_model(&m, &p);
    for (size_t i = 0; i < N_POINTS; i++) {
        double sum = 0.125;
        for (size_t t = 0; t < TASKS; t++) {
            sum += means[3 * t + points[i][t]];
        }
        msc_pair_model_tell(&m, points[i], sum);
    }
    msc_pair_model_fit(&m, 0.125, means, all_known);
    assert_true(msc_pair_model_is_additive(&m));
    msc_arena_finish(&p.arena);
}

// ---- Search -----------------------------------------------------------------------------------

static double sum_of(const struct random_space *r, const struct msc_exact_bounds *bounds,
                     const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < r->space.n_tasks; t++) {
        sum += r->losses[msc_exact_bounds_entry(bounds, t, choices[t])];
    }
    return sum;
}

// Checks that no feasible change of one task improves the point.
static void assert_no_better_change(const struct random_space *r,
                                    const struct msc_exact_bounds *bounds, uint32_t choices[]) {
    double value = sum_of(r, bounds, choices);
    for (size_t t = 0; t < r->space.n_tasks; t++) {
        uint32_t before = choices[t];
        for (uint32_t c = 0; c < r->space.tasks[t].n_choices; c++) {
            choices[t] = c;
            assert_true(!msc_exact_bounds_hold(bounds, choices) ||
                        sum_of(r, bounds, choices) >= value - 1e-9);
        }
        choices[t] = before;
    }
}

static void test_agents_auto__plans(void **state) {
    int n_optimal = 0, n_feasible = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct msc_plan_search search;
        double violation;
        uint32_t choices[8] = {0};
        struct random_space_options options = options_of(seed);
        random_space_init(&r, &options);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        assert_ok(msc_plan_search_init(&search, &r.arena, &bounds, 0));
        search.weights = r.losses;
        double optimum = random_space_optimum(&r);
        msc_plan_search_relax(&search, choices);
        double value = msc_plan_search_run(&search, choices, 200, &violation);
        if (violation == 0.0) {
            assert_true(msc_exact_bounds_hold(&bounds, choices));
            assert_true(is_near(value, sum_of(&r, &bounds, choices)));
            assert_true(value >= optimum - 1e-9);
            assert_no_better_change(&r, &bounds, choices);
            n_feasible++;
            n_optimal += is_near(value, optimum);
        }
        random_space_finish(&r);
    }
    assert_true(n_feasible >= 90);
    assert_true(n_optimal >= 60);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_auto__moves),
        cmocka_unit_test(test_agents_auto__guesses),
        cmocka_unit_test(test_agents_auto__failed_probe),
        cmocka_unit_test(test_agents_auto__doubted_failure),
        cmocka_unit_test(test_agents_auto__posterior_mean),
        cmocka_unit_test(test_agents_auto__unusable_choice),
        cmocka_unit_test(test_agents_auto__estimated_probe),
        cmocka_unit_test(test_agents_auto__posterior_of_estimates),
        cmocka_unit_test(test_agents_auto__correlation),
        cmocka_unit_test(test_agents_auto__spreads),
        cmocka_unit_test(test_agents_auto__hopes),
        cmocka_unit_test(test_agents_auto__draws),
        cmocka_unit_test(test_agents_auto__sums_are_found_additive),
        cmocka_unit_test(test_agents_auto__plans),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

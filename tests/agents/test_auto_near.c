// What the agent `auto` learns from failures and from losses that saturate: the chance of being
// measured, the model without a base, and the link. Expected values come from make_near_model.py
// and the C library.
#include "agents/auto.h"
#include "tests/msc_test.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define MOST_TASKS 10
#define MOST_CHOICES 4

// Tasks of equal cost, from the most expensive choice to the cheapest, and one metric that only an
// evaluation gives.
struct small_space {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[MOST_TASKS];
    struct msc_exact_bounds bounds;
};

static void small_space_init(struct small_space *p, size_t n_tasks, const uint32_t counts[]) {
    static const uint32_t order[MOST_CHOICES] = {0, 1, 2, 3};
    static const char *const labels[MOST_CHOICES] = {"8", "6", "4", "2"};
    static const struct msc_metric metric = {.name = "distill_loss", .unit = "", .help = ""};
    memset(p, 0, sizeof *p);
    for (size_t t = 0; t < n_tasks; t++) {
        p->tasks[t] = (struct msc_task){.name = "task",
                                        .n_choices = counts[t],
                                        .labels = labels,
                                        .most_expensive_first = order};
    }
    p->space = (struct msc_space){
        .n_tasks = n_tasks, .tasks = p->tasks, .n_metrics = 1, .metrics = &metric};
    p->goal.n_objectives = 1;
    assert_ok(msc_exact_bounds_init(&p->bounds, &p->arena, &p->space, &p->goal));
}

// ---- Failures ---------------------------------------------------------------------------------

static const uint32_t counts[] = {4, 3, 2};
static const uint32_t points[][3] = {{0, 0, 0}, {1, 0, 0}, {2, 1, 0}, {3, 2, 1}, {1, 2, 1},
                                     {2, 2, 0}, {3, 0, 1}, {2, 0, 1}, {1, 1, 1}, {3, 1, 0}};
static const double values[] = {NAN, NAN, 2.5, 1.25, 3.0, 1.5, NAN, 4.0, 3.5, 2.0};
static const uint32_t asked[][3] = {{0, 1, 1}, {1, 0, 1}, {2, 2, 1}, {3, 0, 0}};
enum { N_POINTS = sizeof values / sizeof values[0], N_ASKED = sizeof asked / sizeof asked[0] };

static bool is_close(double a, double b) {
    return fabs(a - b) <= 1e-10 * fmax(1.0, fabs(b));
}

static void test_agents_auto_near__chances(void **state) {
    static const double breaks[] = {0.190892552192,  0.0411014394111, 0.025,
                                    0.0448715293586, 0.468852646138,  0.025,
                                    0.025,           0.0337422786022, 0.0236358374575};
    static const double chances[] = {0.809744403128, 0.600873607861, 0.943521768356, 0.42905555627};
    struct small_space p;
    struct msc_chance chance;
    (void)state;
    small_space_init(&p, 3, counts);
    assert_ok(msc_chance_init(&chance, &p.arena, &p.bounds));
    assert_true(msc_chance_share(&chance) == 1.0);
    for (size_t i = 0; i < N_POINTS; i++) {
        msc_chance_tell(&chance, points[i], !isnan(values[i]));
    }
    for (size_t e = 0; e < p.bounds.n_entries; e++) {
        assert_true(is_close(msc_chance_of_break(&chance, e), breaks[e]));
    }
    for (size_t i = 0; i < N_ASKED; i++) {
        assert_true(is_close(msc_chance_of(&chance, asked[i]), chances[i]));
    }
    assert_true(is_close(msc_chance_share(&chance), 0.7));
    msc_arena_finish(&p.arena);
}

// Where two choices fail only together, the pair is found (true chances 0, 1 and 1). Blaming
// single choices alone gives 0.63, 0.85 and 0.91.
static void test_agents_auto_near__failing_pair(void **state) {
    const uint32_t n_choices[] = {4, 4, 4, 4};
    struct small_space p;
    struct msc_chance chance;
    struct msc_rng rng;
    (void)state;
    small_space_init(&p, 4, n_choices);
    assert_ok(msc_chance_init(&chance, &p.arena, &p.bounds));
    msc_rng_seed(&rng, 5, 0);
    for (int i = 0; i < 60; i++) {
        uint32_t choices[4];
        for (size_t t = 0; t < 4; t++) {
            choices[t] = (uint32_t)msc_rng_below(&rng, 4);
        }
        msc_chance_tell(&chance, choices, !(choices[1] == 2 && choices[3] == 0));
    }
    double together = 0.0, first = 0.0, second = 0.0; // means over all points of each kind
    for (uint32_t i = 0; i < 16; i++) {
        together += msc_chance_of(&chance, (const uint32_t[]){i / 4, 2, i % 4, 0}) / 16.0;
        first += msc_chance_of(&chance, (const uint32_t[]){i / 4, 2, i % 4, 3}) / 16.0;
        second += msc_chance_of(&chance, (const uint32_t[]){i / 4, 1, i % 4, 0}) / 16.0;
    }
    assert_true(together < 0.6 && first > 0.88 && second > 0.88);
    msc_arena_finish(&p.arena);
}

// The latest points are kept: after many measured points, earlier failures do not count.
static void test_agents_auto_near__late_points(void **state) {
    struct small_space p;
    struct msc_chance chance;
    (void)state;
    small_space_init(&p, 3, counts);
    assert_ok(msc_chance_init(&chance, &p.arena, &p.bounds));
    for (int i = 0; i < 100; i++) {
        msc_chance_tell(&chance, points[0], false);
    }
    assert_true(msc_chance_of(&chance, points[0]) < 0.01);
    for (int i = 0; i < MSC_CHANCE_POINTS; i++) {
        msc_chance_tell(&chance, points[0], true);
    }
    assert_true(msc_chance_of(&chance, points[0]) > 0.99);
    assert_int_equal(chance.n_failed, 100);
    msc_arena_finish(&p.arena);
}

// ---- The model without a base -----------------------------------------------------------------

static void check_predictions(bool is_ranked, double noise, double centre, double variance,
                              const double expected[][2]) {
    static const double rates[] = {1.0, 0.3, 0.3};
    struct small_space p;
    struct msc_near_model m;
    small_space_init(&p, 3, counts);
    assert_ok(msc_near_model_init(&m, &p.arena, &p.bounds));
    m.is_ranked = is_ranked;
    assert_false(msc_near_model_fit(&m));
    for (size_t i = 0; i < N_POINTS; i++) {
        for (int twice = 0; twice < 2 && !isnan(values[i]); twice++) {
            msc_near_model_tell(&m, points[i], values[i]); // the second time changes nothing
        }
    }
    assert_true(msc_near_model_fit(&m));
    assert_true(m.is_log == !is_ranked && m.noise == noise && m.summed == 0.0);
    assert_true(is_close(m.mean, centre) && is_close(m.variance, variance));
    for (size_t t = 0; t < 3; t++) {
        assert_true(is_close(m.rates[t], rates[t]));
    }
    for (size_t i = 0; i < N_ASKED; i++) {
        double solved[MSC_NEAR_POINTS], mean, left;
        msc_near_model_predict(&m, asked[i], solved, &mean, &left);
        assert_true(is_close(mean, expected[i][0]) && is_close(left, expected[i][1]));
    }
    msc_arena_finish(&p.arena);
}

static void test_agents_auto_near__predictions(void **state) {
    static const double logarithms[][2] = {{1.08767950201, 0.622766835526},
                                           {1.33097793524, 0.275201338999},
                                           {0.769076767418, 0.23508289315},
                                           {0.773542859416, 0.330397552692}};
    static const double ranks[][2] = {{0.830157544798, 0.597320675972},
                                      {2.10258573481, 0.226995646157},
                                      {-0.17153728962, 0.18927387957},
                                      {0.0924880209222, 0.264962914958}};
    (void)state;
    check_predictions(false, 0.1, 0.854983258109, 0.246535105926, logarithms);
    check_predictions(true, 0.001, 0.0688380695426, 4.75324648563, ranks);
}

// Values may be zero or negative; equal values determine nothing.
static void test_agents_auto_near__plain_values(void **state) {
    struct small_space p;
    struct msc_near_model m;
    double solved[MSC_NEAR_POINTS], mean, left;
    (void)state;
    small_space_init(&p, 3, counts);
    assert_ok(msc_near_model_init(&m, &p.arena, &p.bounds));
    msc_near_model_tell(&m, points[0], -1.0);
    msc_near_model_tell(&m, points[3], -1.0);
    assert_false(msc_near_model_fit(&m));
    msc_near_model_tell(&m, points[4], 3.0);
    assert_true(msc_near_model_fit(&m) && !m.is_log);
    msc_near_model_predict(&m, points[4], solved, &mean, &left);
    assert_true(mean > 2.5 && left < 0.1);
    msc_arena_finish(&p.arena);
}

// ---- The link ---------------------------------------------------------------------------------

static void test_agents_auto_near__link(void **state) {
    const struct msc_link links[] = {
        {MSC_LINK_EXP, 2.0}, {MSC_LINK_EXP, 0.7}, {MSC_LINK_LOG, 6.5}, {MSC_LINK_LOG, 20.0}};
    const struct msc_link none = {0};
    (void)state;
    for (double d = 0.01; d < 6.0; d *= 1.3) {
        for (size_t i = 0; i < 4; i++) {
            double s = links[i].scale;
            bool is_exp = links[i].kind == MSC_LINK_EXP;
            double expected = is_exp ? s * expm1(d / s) : -s * log1p(-d / s);
            double slope = is_exp ? d / s : -log1p(-d / s);
            assert_true(is_close(msc_link_of(&links[i], d), expected));
            assert_true(is_close(msc_link_log_slope(&links[i], d), slope));
            assert_true(msc_link_of(&links[i], -d) == -d);
            assert_true(is_close(msc_link_inverse(&links[i], expected), d));
            double half = is_exp ? s * expm1(0.5 * d / s) : -s * log1p(-0.5 * d / s);
            assert_true(
                is_close(msc_link_chord(&links[i], d, half), (expected - half) / (0.5 * d)));
            assert_true(is_close(msc_link_chord(&links[i], d, expected), exp(slope)));
        }
        assert_true(msc_link_of(&none, d) == d && msc_link_log_slope(&none, d) == 0.0);
        assert_true(msc_link_inverse(&none, d) == d && msc_link_chord(&none, d, 0.3) == 1.0);
    }
    // Beyond the end of the logarithm, values still grow.
    assert_true(msc_link_of(&links[2], 7.0) > msc_link_of(&links[2], 6.5));
    assert_true(msc_link_of(&links[2], 6.5) > msc_link_of(&links[2], 6.4));
    assert_true(isnan(msc_link_of(&links[0], NAN)) && isinf(msc_link_of(&links[0], INFINITY)));
}

// ---- The agent --------------------------------------------------------------------------------

typedef double (*loss_fn)(double x);

static double plain(double x) {
    return x;
}

static double saturates_slowly(double x) {
    return 0.25 + log1p(x);
}

static double saturates(double x) {
    return 1.0 - exp(-0.3 * x);
}

// Most points have a loss so near to 1 that they tell little.
static double saturates_deeply(double x) {
    return 1.0 - exp(-1.2 * x);
}

// The loss of choice c of task t alone, before saturation.
static double alone(size_t t, uint32_t c) {
    static const double parts[] = {0.0, 0.1, 0.4, 1.0};
    return parts[c] * (2.0 + (double)(t * t % 7));
}

static double sum_alone(const struct msc_space *space, const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        sum += alone(t, choices[t]);
    }
    return sum;
}

// Whether the point fails: never, or with any of the first two choices of task 4.
static bool fails(bool has_failures, const uint32_t choices[]) {
    return has_failures && choices[4] < 2;
}

static void tell_point(struct msc_agent *agent, const struct msc_space *space, loss_fn loss,
                       bool has_failures, uint32_t choices[], int64_t id) {
    bool is_failed = fails(has_failures, choices);
    double value = is_failed ? NAN : loss(sum_alone(space, choices));
    struct msc_trial trial = {
        .id = id,
        .proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
        .outcome = {.state = is_failed ? MSC_TRIAL_FAILED : MSC_TRIAL_COMPLETE,
                    .cause = is_failed ? MSC_CAUSE_TRIAL : MSC_CAUSE_NONE,
                    .metrics = &value,
                    .objectives = {value}}};
    assert_ok(msc_agent_tell(agent, &trial));
}

// Asks for rounds of four until `n_trials` were told. Returns how many of the last `n_last` failed.
static int run(struct msc_agent *agent, const struct msc_space *space, loss_fn loss,
               bool has_failures, int64_t n_trials, int64_t n_last) {
    static uint32_t choices[4][MOST_TASKS];
    int n_failed = 0;
    for (int64_t id = 0; id < n_trials;) {
        struct msc_proposal proposals[4];
        size_t n;
        for (size_t i = 0; i < 4; i++) {
            proposals[i] = (struct msc_proposal){.choices = choices[i]};
        }
        assert_ok(msc_agent_ask(agent, proposals, 4, &n));
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++, id++) {
            n_failed += id >= n_trials - n_last && fails(has_failures, choices[i]);
            tell_point(agent, space, loss, has_failures, choices[i], id);
        }
    }
    return n_failed;
}

static void open_agent(struct small_space *p, struct msc_agent **agent, uint64_t seed) {
    const uint32_t n_choices[MOST_TASKS] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    small_space_init(p, MOST_TASKS, n_choices);
    assert_ok(msc_agent_create(agent, msc_agent_find("auto"), NULL, &p->space, &p->goal, seed));
}

// Whether a remark of the agent has these words.
static bool says(struct msc_agent *agent, const char *words) {
    cJSON *remarks = cJSON_CreateArray();
    const cJSON *remark = NULL;
    bool is_said = false;
    assert_ok(msc_agent_remarks(agent, remarks));
    cJSON_ArrayForEach(remark, remarks) {
        is_said = is_said || strstr(remark->valuestring, words);
    }
    cJSON_Delete(remarks);
    return is_said;
}

// The agent finds the link that undoes the saturation, and none for sums. Under the link, the
// losses add up.
static void test_agents_auto_near__chosen_link(void **state) {
    static const struct {
        loss_fn loss;
        enum msc_link_kind kind;
    } cases[] = {{plain, MSC_LINK_NONE},
                 {saturates_slowly, MSC_LINK_EXP},
                 {saturates, MSC_LINK_LOG},
                 {saturates_deeply, MSC_LINK_LOG}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct small_space p;
        struct msc_agent *agent;
        open_agent(&p, &agent, 3);
        run(agent, &p.space, cases[i].loss, false, 40, 0);
        const struct msc_auto *a = msc_agent_state(agent);
        assert_int_equal(a->parts[0].model.link.kind, cases[i].kind);
        assert_true(msc_auto_looks_additive(a));
        assert_true(says(agent, "losses saturate") == (cases[i].kind != MSC_LINK_NONE));
        msc_agent_destroy(agent);
        msc_arena_finish(&p.arena);
    }
}

// Opens an agent on a space that gives the losses of single choices, and tells it random points.
static void open_given(struct small_space *p, struct msc_agent **agent, loss_fn loss,
                       double given[MOST_TASKS][4]) {
    static const char *const names[] = {"distill_loss"};
    uint32_t point[MOST_TASKS] = {0};
    struct msc_rng rng;
    open_agent(p, agent, 3);
    msc_agent_destroy(*agent);
    for (size_t t = 0; t < MOST_TASKS; t++) {
        for (uint32_t c = 0; c < 4; c++) {
            given[t][c] = loss(alone(t, c));
        }
        p->tasks[t].choice_features = given[t];
    }
    p->space.n_choice_features = 1;
    p->space.choice_feature_names = names;
    assert_ok(msc_agent_create(agent, msc_agent_find("auto"), NULL, &p->space, &p->goal, 3));
    tell_point(*agent, &p->space, loss, false, point, 0);
    msc_rng_seed(&rng, 1, 1);
    for (int64_t id = 1; id <= 16; id++) {
        for (size_t t = 0; t < MOST_TASKS; t++) {
            point[t] = (uint32_t)msc_rng_below(&rng, 4);
        }
        tell_point(*agent, &p->space, loss, false, point, id);
    }
}

// The evidence for a link counts the losses of single choices that the space gives. Without them,
// random points of plain sums look saturated.
static void test_agents_auto_near__link_of_given_losses(void **state) {
    static const struct {
        loss_fn loss;
        enum msc_link_kind kind;
    } cases[] = {
        {plain, MSC_LINK_NONE}, {saturates_slowly, MSC_LINK_EXP}, {saturates, MSC_LINK_LOG}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double given[MOST_TASKS][4];
        struct small_space p;
        struct msc_agent *agent;
        open_given(&p, &agent, cases[i].loss, given);
        run(agent, &p.space, cases[i].loss, false, 1, 0);
        const struct msc_auto *a = msc_agent_state(agent);
        assert_non_null(a->parts[0].prior.given);
        assert_int_equal(a->parts[0].model.link.kind, cases[i].kind);
        assert_true(says(agent, "the environment gives distill_loss of each single choice"));
        msc_agent_destroy(agent);
        msc_arena_finish(&p.arena);
    }
}

// If all points with a task's dearest choices fail, the agent sees it within as many trials as
// there are tasks, proposes other points and no probes, and says so.
static void test_agents_auto_near__dearest_choices_fail(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct small_space p;
        struct msc_agent *agent;
        open_agent(&p, &agent, seed);
        run(agent, &p.space, plain, true, MOST_TASKS, 0);
        struct msc_auto *a = msc_agent_state(agent);
        assert_true(a->base_fails && a->near.model.n_points > 0);
        int n_failed = run(agent, &p.space, plain, true, 16, 16);
        assert_true(n_failed <= 4);
        run(agent, &p.space, plain, true, 40, 0);
        size_t first = p.bounds.offsets[4];
        for (size_t e = 0; e < p.bounds.n_entries; e++) {
            bool is_bad = e == first || e == first + 1;
            // The agent avoids a bad choice before it is sure.
            assert_true(is_bad == (msc_chance_of_break(&a->chance, e) > 0.3));
        }
        assert_true(says(agent, "the most expensive plan fails"));
        msc_agent_destroy(agent);
        msc_arena_finish(&p.arena);
    }
}

// A base that fails because of its environment may be measured later: probes go on.
static void test_agents_auto_near__base_of_a_lost_worker(void **state) {
    struct small_space p;
    struct msc_agent *agent;
    uint32_t choices[MOST_TASKS] = {0};
    double value = NAN;
    struct msc_trial trial = {.proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
                              .outcome = {.state = MSC_TRIAL_FAILED,
                                          .cause = MSC_CAUSE_ENVIRONMENT,
                                          .metrics = &value,
                                          .objectives = {NAN}}};
    (void)state;
    open_agent(&p, &agent, 1);
    const struct msc_auto *a = msc_agent_state(agent);
    assert_ok(msc_agent_tell(agent, &trial));
    assert_false(a->base_fails);
    trial.outcome.cause = MSC_CAUSE_TRIAL;
    assert_ok(msc_agent_tell(agent, &trial));
    assert_true(a->base_fails);
    tell_point(agent, &p.space, plain, false, choices, 1);
    assert_false(a->base_fails);
    msc_agent_destroy(agent);
    msc_arena_finish(&p.arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_auto_near__chances),
        cmocka_unit_test(test_agents_auto_near__failing_pair),
        cmocka_unit_test(test_agents_auto_near__late_points),
        cmocka_unit_test(test_agents_auto_near__predictions),
        cmocka_unit_test(test_agents_auto_near__plain_values),
        cmocka_unit_test(test_agents_auto_near__link),
        cmocka_unit_test(test_agents_auto_near__chosen_link),
        cmocka_unit_test(test_agents_auto_near__link_of_given_losses),
        cmocka_unit_test(test_agents_auto_near__dearest_choices_fail),
        cmocka_unit_test(test_agents_auto_near__base_of_a_lost_worker),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

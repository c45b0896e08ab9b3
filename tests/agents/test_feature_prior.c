// Tests the guesses of losses from features (agents/feature_prior.h). Expected values come from
// make_feature_prior.py.
#include "agents/feature_prior.h"

#include "base/alloc.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

#define TASKS 4
#define CHOICES 3

struct fixture {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[TASKS];
    const char *feature_names[2];
    struct msc_cost cost;
    struct msc_cost_term terms[TASKS];
    struct msc_cost_factor factors[TASKS];
    struct msc_exact_bounds bounds;
    struct msc_sensitivity sensitivity;
    struct msc_feature_prior prior;
};

// `first` and `second` name the two features of choices.
static void open_fixture_of(struct fixture *f, const char *first, const char *second, double sign) {
    static const uint32_t order[CHOICES] = {0, 1, 2};
    static const char *const labels[CHOICES] = {"8", "4", "2"}, *const names[TASKS] = {"a", "b",
                                                                                       "c", "d"};
    static const struct msc_metric metrics[] = {{.name = "loss"},
                                                {.name = "size", .is_exact = true}};
    static const double sizes[CHOICES] = {8, 4, 2};
    static const double features[TASKS][CHOICES * 2] = {{0, 0, 1, 1, 8, 1.5},
                                                        {0, 0, 2, 1.25, 4, 1},
                                                        {0, 0, 4, NAN, 32, NAN},
                                                        {0, 0, 0.5, 1.75, 16, 1.5}};
    memset(f, 0, sizeof *f);
    f->feature_names[0] = first;
    f->feature_names[1] = second;
    for (uint32_t t = 0; t < TASKS; t++) {
        f->tasks[t] = (struct msc_task){.name = names[t],
                                        .n_choices = CHOICES,
                                        .labels = labels,
                                        .most_expensive_first = order,
                                        .choice_features = features[t]};
        f->factors[t] = (struct msc_cost_factor){.task = t, .by_choice = sizes};
        f->terms[t] =
            (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &f->factors[t]};
    }
    f->cost = (struct msc_cost){.metric = "size", .n_terms = TASKS, .terms = f->terms};
    f->space = (struct msc_space){.n_tasks = TASKS,
                                  .tasks = f->tasks,
                                  .n_choice_features = first ? 2 : 0,
                                  .choice_feature_names = f->feature_names,
                                  .n_metrics = 2,
                                  .metrics = metrics,
                                  .n_costs = 1,
                                  .costs = &f->cost};
    f->goal.n_objectives = f->goal.n_bounds = 1;
    f->goal.bounds[0] = (struct msc_bound){.metric = 1, .min = -INFINITY, .max = 20.0};
    assert_ok(msc_space_check(&f->space));
    assert_ok(msc_exact_bounds_init(&f->bounds, &f->arena, &f->space, &f->goal));
    assert_ok(msc_sensitivity_init(&f->sensitivity, &f->arena, &f->bounds));
    assert_ok(msc_feature_prior_init(&f->prior, &f->arena, &f->bounds, f->sensitivity.n_positions,
                                     "loss", sign));
}

static void open_fixture(struct fixture *f, bool has_features) {
    open_fixture_of(f, has_features ? "output_error" : NULL, "other", 1.0);
}

static void tell(struct fixture *f, const uint32_t choices[TASKS], double loss) {
    msc_sensitivity_tell(&f->sensitivity, choices, loss);
}

static void tell_results(struct fixture *f) {
    tell(f, (const uint32_t[]){0, 0, 0, 0}, 0.5);
    tell(f, (const uint32_t[]){1, 1, 1, 1}, 2.5);
    tell(f, (const uint32_t[]){2, 2, 2, 2}, 8.5);
    tell(f, (const uint32_t[]){2, 0, 0, 0}, 1.5);
    tell(f, (const uint32_t[]){0, 2, 0, 0}, 3.5);
    tell(f, (const uint32_t[]){0, 0, 1, 0}, 0.75);
    assert_true(msc_sensitivity_guess(&f->sensitivity));
}

// The guess of the first task's second choice from all features.
#define GUESS_OF_FIRST 0.55575956481

static void test_agents_feature_prior__guesses(void **state) {
    static const double expected[TASKS][CHOICES] = {{0, GUESS_OF_FIRST, 1},
                                                    {0, 0.444867830696, 3},
                                                    {0, 0.25, 1},
                                                    {0, 0.21820955787, 1.1509340443}};
    struct fixture f;
    (void)state;
    open_fixture(&f, true);
    tell_results(&f);
    msc_feature_prior_improve(&f.prior, &f.sensitivity);
    for (size_t e = 0; e < TASKS * CHOICES; e++) {
        assert_true(fabs(f.sensitivity.guesses[e] - expected[e / CHOICES][e % CHOICES]) < 1e-9);
    }
    msc_arena_finish(&f.arena);
}

// Without features of choices, the guesses stay those of the sensitivity.
static void test_agents_feature_prior__no_features(void **state) {
    double before[TASKS * CHOICES];
    struct fixture f;
    (void)state;
    open_fixture(&f, false);
    tell_results(&f);
    memcpy(before, f.sensitivity.guesses, sizeof before);
    msc_feature_prior_improve(&f.prior, &f.sensitivity);
    assert_memory_equal(before, f.sensitivity.guesses, sizeof before);
    msc_arena_finish(&f.arena);
}

// If the space gives the metric of each choice, guesses are its differences from the most expensive
// choice's; losses that were measured stay.
static void test_agents_feature_prior__given(void **state) {
    static const double expected[TASKS][CHOICES] = {
        {0, 1, 1}, {0, 2, 3}, {0, 0.25, 32}, {0, 0.5, 16}};
    struct fixture f;
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        open_fixture_of(&f, "loss", "other", sign);
        tell_results(&f);
        msc_feature_prior_improve(&f.prior, &f.sensitivity);
        for (size_t e = 0; e < TASKS * CHOICES; e++) {
            bool is_measured = e == 2 || e == 5 || e == 7;
            double here = expected[e / CHOICES][e % CHOICES];
            assert_true(f.sensitivity.guesses[e] == (is_measured ? here : sign * here));
        }
        msc_arena_finish(&f.arena);
    }
}

// A metric that is unknown for a choice is a feature like others.
static void test_agents_feature_prior__given_in_part(void **state) {
    struct fixture f;
    (void)state;
    open_fixture_of(&f, "output_error", "loss", 1.0);
    tell_results(&f);
    msc_feature_prior_improve(&f.prior, &f.sensitivity);
    assert_true(fabs(f.sensitivity.guesses[1] - GUESS_OF_FIRST) < 1e-9);
    msc_arena_finish(&f.arena);
}

// A choice that failed in isolation stays unusable.
static void test_agents_feature_prior__failed_choice(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f, true);
    tell(&f, (const uint32_t[]){0, 0, 0, 1}, NAN);
    tell_results(&f);
    msc_feature_prior_improve(&f.prior, &f.sensitivity);
    assert_true(isinf(f.sensitivity.guesses[3 * CHOICES + 1]));
    assert_true(isfinite(f.sensitivity.guesses[3 * CHOICES + 2]));
    msc_arena_finish(&f.arena);
}

// Losses under a link give the guesses that the linked losses give without one.
static void test_agents_feature_prior__link(void **state) {
    static const uint32_t points[][TASKS] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2},
                                             {2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 1, 0}};
    static const double losses[] = {0.5, 2.5, 8.5, 1.5, 3.5, 0.75};
    const struct msc_link link = {MSC_LINK_EXP, 4.0};
    struct fixture linked, plain;
    (void)state;
    open_fixture(&linked, true);
    open_fixture(&plain, true);
    linked.sensitivity.link = link;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        tell(&linked, points[i], losses[i]);
        tell(&plain, points[i], losses[0] + msc_link_of(&link, losses[i] - losses[0]));
    }
    assert_true(msc_sensitivity_guess(&linked.sensitivity));
    assert_true(msc_sensitivity_guess(&plain.sensitivity));
    msc_feature_prior_improve(&linked.prior, &linked.sensitivity);
    msc_feature_prior_improve(&plain.prior, &plain.sensitivity);
    for (size_t e = 0; e < TASKS * CHOICES; e++) {
        double a = linked.sensitivity.guesses[e], b = plain.sensitivity.guesses[e];
        assert_true(fabs(a - b) <= 1e-9 * fabs(b));
    }
    msc_arena_finish(&linked.arena);
    msc_arena_finish(&plain.arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_feature_prior__guesses),
        cmocka_unit_test(test_agents_feature_prior__no_features),
        cmocka_unit_test(test_agents_feature_prior__given),
        cmocka_unit_test(test_agents_feature_prior__given_in_part),
        cmocka_unit_test(test_agents_feature_prior__failed_choice),
        cmocka_unit_test(test_agents_feature_prior__link),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

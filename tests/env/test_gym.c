// The Gym interface: observations, rewards, errors, truncation, and saved states. Expected
// rewards are worked out from the reward formula.
#include "env/gym.h"
#include "tests/env/toy.h"

#include <math.h>

static const char bounded[] = "{\"tasks\":3,\"choices\":2,\"fail_at\":3,"
                              "\"bounds\":{\"size_ratio\":{\"max\":0.05}}}";

static struct msc_gym *open_gym(struct toy_fixture *f, const char *json, uint64_t budget) {
    struct msc_gym *gym = NULL;
    toy_open(f, json);
    assert_ok(msc_gym_create(&gym, f->env, &f->goal, budget));
    return gym;
}

static struct msc_gym_step play(struct msc_gym *gym, const uint32_t choices[3]) {
    struct msc_gym_step step;
    assert_ok(msc_gym_reset(gym, 1, &step));
    for (size_t t = 0; t < 3; t++) {
        assert_int_equal(step.task, t);
        assert_int_equal(step.n_choices, 2);
        assert_true(!step.terminated && !step.truncated && step.reward == 0.0 && !step.outcome);
        assert_non_null(step.observation);
        assert_ok(msc_gym_step(gym, choices[t], &step));
    }
    assert_true(step.terminated && !step.truncated && step.outcome);
    assert_int_equal(step.n_choices, 0);
    assert_null(step.observation);
    return step;
}

static void test_env_gym__observations_are_the_tasks_features(void **state) {
    (void)state;
    struct toy_fixture f;
    struct msc_gym_step step;
    struct msc_gym *gym = open_gym(&f, "{\"tasks\":3,\"choices\":2}", 0);
    assert_ok(msc_gym_reset(gym, 0, &step));
    assert_ptr_equal(step.observation, msc_env_space(f.env)->tasks[0].features);
    assert_ok(msc_gym_step(gym, 0, &step));
    assert_ptr_equal(step.observation, msc_env_space(f.env)->tasks[1].features);
    msc_gym_destroy(gym);
    toy_close(&f);
}

// The reward of a feasible trial is minus its loss. For an infeasible trial it is minus (the worst
// loss so far + violation). For a failed trial it is minus (the worst loss so far + 1). The most
// expensive point has a ratio of 2/32 = 0.0625, and the bound is 0.05.
static void test_env_gym__rewards(void **state) {
    (void)state;
    struct toy_fixture f;
    const uint32_t expensive[] = {0, 0, 0};
    const uint32_t cheap[] = {1, 1, 1};
    struct msc_gym *gym = open_gym(&f, bounded, 0);
    struct msc_gym_step step = play(gym, expensive);
    assert_int_equal(step.outcome->state, MSC_TRIAL_INFEASIBLE);
    assert_float_equal(step.reward, -(0.0 + 0.0125 / 0.05), 1e-9);
    step = play(gym, cheap);
    double loss = step.outcome->metrics[0];
    assert_true(loss > 0.0 && step.reward == -loss);
    step = play(gym, expensive);
    assert_float_equal(step.reward, -(loss + 0.25), 1e-9);
    step = play(gym, cheap); // trial 3 fails
    assert_int_equal(step.outcome->state, MSC_TRIAL_FAILED);
    assert_float_equal(step.reward, -(loss + 1.0), 1e-9);
    msc_gym_destroy(gym);
    toy_close(&f);
}

static void test_env_gym__errors(void **state) {
    (void)state;
    struct toy_fixture f;
    struct msc_gym_step step;
    const uint32_t cheap[] = {1, 1, 1};
    struct msc_gym *gym = open_gym(&f, bounded, 0);
    assert_int_equal(msc_gym_step(gym, 0, &step), MSC_E_STATE);
    assert_message("call reset first");
    play(gym, cheap);
    assert_int_equal(msc_gym_step(gym, 0, &step), MSC_E_STATE);
    assert_ok(msc_gym_reset(gym, 0, &step));
    assert_ok(msc_gym_step(gym, 1, &step));
    assert_int_equal(msc_gym_step(gym, 2, &step), MSC_E_INVALID);
    assert_message("task task_1 has no choice 2, expected 0 to 1");
    assert_ok(msc_gym_step(gym, 1, &step)); // the refused step did not advance
    assert_int_equal(step.task, 2);
    msc_gym_destroy(gym);
    msc_gym_destroy(NULL);
    toy_close(&f);
}

static void test_env_gym__budget_truncates(void **state) {
    (void)state;
    struct toy_fixture f;
    struct msc_gym_step step;
    const uint32_t cheap[] = {1, 1, 1};
    struct msc_gym *gym = open_gym(&f, bounded, 2);
    play(gym, cheap);
    play(gym, cheap);
    assert_ok(msc_gym_reset(gym, 0, &step));
    assert_false(step.truncated);
    assert_ok(msc_gym_step(gym, 0, &step));
    assert_true(step.truncated && !step.terminated && step.reward == 0.0 && !step.outcome);
    assert_int_equal(msc_gym_step(gym, 0, &step), MSC_E_STATE);
    msc_gym_destroy(gym);
    toy_close(&f);
}

static void test_env_gym__save_and_restore(void **state) {
    (void)state;
    struct toy_fixture f;
    struct toy_fixture other;
    struct msc_gym_step step;
    struct msc_gym_step restored;
    const uint32_t cheap[] = {1, 1, 1};
    struct msc_gym *gym = open_gym(&f, bounded, 3);
    struct msc_gym *copy = open_gym(&other, bounded, 3);
    play(gym, cheap);
    assert_ok(msc_gym_reset(gym, 12345678901234567890u, &step));
    assert_ok(msc_gym_step(gym, 1, &step));
    struct cJSON *saved = NULL;
    assert_ok(msc_gym_save(gym, &saved));
    assert_ok(msc_gym_restore(copy, saved, &restored));
    assert_int_equal(restored.task, 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(msc_gym_step(gym, 0, &step));
        assert_ok(msc_gym_step(copy, 0, &restored));
        assert_int_equal(step.terminated, restored.terminated);
        assert_true(step.reward == restored.reward);
    }
    struct cJSON *again = NULL;
    assert_ok(msc_gym_save(gym, &again));
    struct cJSON *copied = NULL;
    assert_ok(msc_gym_save(copy, &copied));
    assert_true(cJSON_Compare(again, copied, 1));
    cJSON_Delete(again);
    cJSON_Delete(copied);
    cJSON_Delete(saved);
    msc_gym_destroy(gym);
    msc_gym_destroy(copy);
    toy_close(&f);
    toy_close(&other);
}

static void test_env_gym__restore_refuses_damage(void **state) {
    (void)state;
    static const char *const states[] = {
        "{}",
        "{\"seed\":\"x\",\"trials\":\"0\",\"worst\":0,\"running\":true,\"choices\":[],\"env\":"
        "null}",
        "{\"seed\":\"1\",\"trials\":\"0\",\"worst\":0,\"running\":true,\"choices\":[2],"
        "\"env\":null}",
        "{\"seed\":\"1\",\"trials\":\"0\",\"worst\":0,\"running\":true,\"choices\":[1,1,1],"
        "\"env\":null}",
        "{\"seed\":\"1\",\"trials\":\"0\",\"worst\":0,\"running\":false,\"choices\":[1],"
        "\"env\":null}",
        "{\"seed\":\"1\",\"trials\":\"0\",\"worst\":0,\"running\":true,\"choices\":[1],"
        "\"env\":{}}",
    };
    struct toy_fixture f;
    struct msc_gym_step step;
    struct msc_gym *gym = open_gym(&f, bounded, 0);
    assert_ok(msc_gym_reset(gym, 0, &step));
    assert_ok(msc_gym_step(gym, 1, &step));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct cJSON *saved = cJSON_Parse(states[i]);
        assert_non_null(saved);
        assert_int_equal(msc_gym_restore(gym, saved, &step), MSC_E_FORMAT);
        cJSON_Delete(saved);
    }
    assert_ok(msc_gym_step(gym, 1, &step));
    assert_int_equal(step.task, 2);
    msc_gym_destroy(gym);
    toy_close(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_gym__observations_are_the_tasks_features),
        cmocka_unit_test(test_env_gym__rewards),
        cmocka_unit_test(test_env_gym__errors),
        cmocka_unit_test(test_env_gym__budget_truncates),
        cmocka_unit_test(test_env_gym__save_and_restore),
        cmocka_unit_test(test_env_gym__restore_refuses_damage),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

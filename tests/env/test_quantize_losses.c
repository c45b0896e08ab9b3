// Losses of single points, compared with the losses of trials and of the report.
#include "env/quantize/losses.h"

#include "tests/env/quantize_bench.h"

#include <math.h>

enum { N_POINTS = 3, N_FIRST = 8 };

static void points_of(const uint32_t *points[N_POINTS], const struct bench *b) {
    for (size_t i = 0; i < N_POINTS; i++) {
        points[i] = msc_env_space(b->env)->baselines[i].choices;
    }
}

static void count_done(void *payload, size_t n_done, size_t n) {
    size_t *count = payload;
    assert_true(n_done == ++*count && n == N_POINTS);
}

static void test_env_quantize_losses__are_those_of_trials(void **state) {
    const uint32_t *points[N_POINTS];
    double losses[N_POINTS];
    struct bench b;
    size_t n_done = 0;
    struct msc_quantize_losses_of of = {
        .samples = MSC_QUANTIZE_CALIBRATION, .done = count_done, .payload = &n_done};
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    points_of(points, &b);
    assert_ok(msc_quantize_measure_losses(losses, b.env, &of, points, N_POINTS));
    assert_true(n_done == N_POINTS);
    for (size_t i = 0; i < N_POINTS; i++) {
        struct msc_outcome o = evaluate(&b, points[i]);
        assert_true(losses[i] > 0 && losses[i] == metric(&b, &o, "distill_loss"));
    }
    // Without validation samples the calibration samples are used. If n_most exceeds the number of
    // samples, all samples are used.
    of = (struct msc_quantize_losses_of){.samples = MSC_QUANTIZE_VALIDATION,
                                         .n_most = QUANTIZE_SAMPLES + 1};
    double again[N_POINTS];
    assert_ok(msc_quantize_measure_losses(again, b.env, &of, points, N_POINTS));
    assert_memory_equal(again, losses, sizeof losses);
    assert_ok(msc_quantize_measure_losses(again, b.env, &of, points, 0));
    close_bench(&b);
}

// The losses on the first samples, and on the same samples given as validation samples, both equal
// the report's loss.
static void test_env_quantize_losses__of_some_samples(void **state) {
    const uint32_t *points[N_POINTS];
    double of_first[N_POINTS], of_held[N_POINTS], of_all[N_POINTS];
    struct msc_dataset *first = NULL;
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    assert_ok(msc_dataset_create_part(&first, b.c.data, 0, N_FIRST));
    close_env(&b);
    b.host.validation = first;
    assert_ok(create(&b, "{" CHOICES "}"));
    points_of(points, &b);
    struct msc_quantize_losses_of of = {.samples = MSC_QUANTIZE_CALIBRATION, .n_most = N_FIRST};
    assert_ok(msc_quantize_measure_losses(of_first, b.env, &of, points, N_POINTS));
    of = (struct msc_quantize_losses_of){.samples = MSC_QUANTIZE_VALIDATION};
    assert_ok(msc_quantize_measure_losses(of_held, b.env, &of, points, N_POINTS));
    of = (struct msc_quantize_losses_of){.samples = MSC_QUANTIZE_CALIBRATION};
    assert_ok(msc_quantize_measure_losses(of_all, b.env, &of, points, N_POINTS));
    for (size_t i = 0; i < N_POINTS; i++) {
        const cJSON *validation = NULL;
        cJSON *report = NULL;
        assert_ok(msc_env_reevaluate(b.env, points[i], MSC_REEVALUATE_VALIDATION, &report));
        assert_ok(msc_json_get_object(&validation, report, "validation", "report"));
        double said = cJSON_GetObjectItemCaseSensitive(validation, "distill_loss")->valuedouble;
        assert_true(of_held[i] == said);
        assert_true(of_first[i] == of_held[i]);
        assert_true(of_first[i] != of_all[i]);
        cJSON_Delete(report);
    }
    close_bench(&b);
    msc_dataset_destroy(first);
}

static void test_env_quantize_losses__other_environments(void **state) {
    const struct msc_quantize_losses_of of = {.samples = MSC_QUANTIZE_CALIBRATION};
    const uint32_t *points[1] = {NULL};
    struct msc_env *env = NULL;
    double losses[1];
    cJSON *config = cJSON_CreateObject();
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    (void)state;
    assert_ok(msc_env_create(&env, msc_env_find("toy"), config, &host));
    assert_int_equal(msc_quantize_measure_losses(losses, env, &of, points, 1), MSC_E_UNSUPPORTED);
    assert_message("cannot compute distill losses of points");
    msc_env_destroy(env);
    cJSON_Delete(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_losses__are_those_of_trials),
        cmocka_unit_test(test_env_quantize_losses__of_some_samples),
        cmocka_unit_test(test_env_quantize_losses__other_environments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

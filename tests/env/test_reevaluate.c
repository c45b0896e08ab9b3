// The noise in the report of the best trial when memory runs out: the noise is unchanged or
// missing. The expected noise is measured without failures.
#include "tests/env/quantize_bench.h"

#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/short_memory.h"

#include <limits.h>

// Measures the noise while allocations fail: `failing` of them, from the n-th on. *out is unchanged
// if no noise is reported. Returns true if any allocation failed.
static bool find_noise(double *out, struct bench *b, const uint32_t choices[], int n, int failing) {
    cJSON *found = NULL;
    n_failing = failing;
    n_until_failure = n;
    enum msc_status status = msc_env_reevaluate(b->env, choices, MSC_REEVALUATE_NOISE, &found);
    bool failed = n_until_failure <= 0;
    n_until_failure = INT_MAX;
    if (status == MSC_OK && cJSON_HasObjectItem(found, "noise")) {
        assert_ok(msc_json_get_double(out, found, "noise", "report"));
    }
    cJSON_Delete(found);
    return failed;
}

static void test_env_reevaluate__noise(void **state) {
    static const uint32_t choices[16] = {0}; // 16 bits: so fine that rounding moves some elements
    static const int failing[] = {8, 30, 100};
    struct bench b;
    double noise = -1;
    int n_failed = 0;
    (void)state;
    prepare_bench(&b, 1, 4);
    assert_ok(create(&b, "{\"choices\":[{\"bits\":16}]}"));
    assert_false(find_noise(&noise, &b, choices, INT_MAX, 1));
    assert_true(noise > 0);
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
        double found = noise;
        for (int n = 1; find_noise(&found, &b, choices, n, failing[i]); n++, n_failed++) {
            assert_true(found == noise);
        }
    }
    assert_true(n_failed > 100);
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_reevaluate__noise),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

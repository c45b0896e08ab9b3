// Functions of numbers and random draws of the agents, beside the C library.
#include "agents/numbers.h"

#include "tests/msc_test.h"

#include <math.h>

// The bits of each number do not depend on the others.
static void check_exp_each(double first, double step) {
    enum { N_NUMBERS = 43 }; // blocks and a rest
    double each[N_NUMBERS];
    for (int i = 0; i < N_NUMBERS; i++) {
        each[i] = first + i * step;
    }
    msc_agent_exp_each(each, N_NUMBERS);
    for (int i = 0; i < N_NUMBERS; i++) {
        double x = first + i * step;
        assert_true(each[i] == msc_agent_exp(x));
        assert_true(each[i] == exp(x) || fabs(each[i] - exp(x)) <= 1e-12 * fmax(exp(x), 1e-308));
    }
}

static void test_agents_numbers__functions(void **state) {
    (void)state;
    for (double x = 1e-12; x < 1e12; x *= 1.7) {
        assert_true(fabs(msc_agent_log(x) - log(x)) <= 1e-12 * fmax(1.0, fabs(log(x))));
    }
    for (double x = -40.0; x < 40.0; x += 0.37) {
        assert_true(fabs(msc_agent_exp(x) - exp(x)) <= 1e-12 * exp(x));
    }
    for (double x = -30.0; x < 8.0; x += 0.37) {
        double gain = x * 0.5 * erfc(-x * M_SQRT1_2) + exp(-0.5 * x * x) / sqrt(2.0 * M_PI);
        assert_true(fabs(msc_agent_gain(x) - gain) <= 1e-12);
        assert_true(fabs(msc_agent_below(x) - 0.5 * erfc(-x * M_SQRT1_2)) <= 1e-12);
    }
    // Expected values were computed with 40 digits.
    assert_true(fabs(msc_agent_gain(-10.0) - 7.474560254589e-25) <= 1e-36);
    assert_true(msc_agent_gain(-1e6) == 0.0 && msc_agent_gain(1e6) == 1e6);
    assert_true(msc_agent_exp(-1e6) == 0.0);
    assert_true(isinf(msc_agent_exp(1e6)));
    assert_true(isnan(msc_agent_exp(NAN)));
    check_exp_each(-7.0, 0.37);
    check_exp_each(-699.9, 33.0);
    check_exp_each(-900.0, 41.0); // some are 0, some +inf
    struct msc_rng rng;
    double sum = 0.0, squares = 0.0;
    msc_rng_seed(&rng, 1, 2);
    for (int i = 0; i < 20000; i++) {
        double x = msc_agent_normal(&rng);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 20000) < 0.03);
    assert_true(fabs(squares / 20000 - 1.0) < 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_numbers__functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

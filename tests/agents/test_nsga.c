// Ranks and crowding distances of NSGA-II. Expected values are worked out by hand.
#include "agents/nsga.h"

#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static struct msc_outcome complete(double first, double second) {
    return (struct msc_outcome){.state = MSC_TRIAL_COMPLETE, .objectives = {first, second}};
}

// The first front is {A, B, C, D}, from (1, 9) to (8, 1). E is dominated only by B; F by B, C and
// E. In the first front the ranges are 8 - 1 = 7 and 9 - 1 = 8, so
//
//     B: (4 - 1) / 7 + (9 - 3) / 8 = 3/7 + 6/8
//     C: (8 - 2) / 7 + (5 - 1) / 8 = 6/7 + 4/8
static void test_agents_nsga__ranks_and_crowding(void **state) {
    (void)state;
    const struct msc_outcome outcomes[] = {
        complete(6, 6), // point F
        complete(4, 3), // point C
        complete(1, 9), // point A
        complete(3, 5), // point E
        complete(8, 1), // point D
        complete(2, 5), // point B
    };
    const struct msc_outcome *pointers[6];
    size_t ranks[6];
    size_t scratch[24];
    double crowding[6];
    for (size_t i = 0; i < 6; i++) {
        pointers[i] = &outcomes[i];
    }
    msc_nsga_rank(ranks, crowding, scratch, pointers, 6, 2);
    const size_t expected[] = {2, 0, 0, 1, 0, 0};
    assert_memory_equal(ranks, expected, sizeof expected);
    assert_true(isinf(crowding[2]) && isinf(crowding[4]));
    assert_float_equal(crowding[5], 3.0 / 7.0 + 6.0 / 8.0, 1e-12);
    assert_float_equal(crowding[1], 6.0 / 7.0 + 4.0 / 8.0, 1e-12);
    assert_true(isinf(crowding[3]) && isinf(crowding[0]));
    // C (index 1) is less crowded than B (index 5)
    assert_true(msc_nsga_before(ranks, crowding, 1, 5));
    // Points 2 and 4 are both ends of the front, so the lower index comes first.
    assert_true(msc_nsga_before(ranks, crowding, 2, 4));
    assert_false(msc_nsga_before(ranks, crowding, 0, 3));
}

static void test_agents_nsga__infeasible_follow_by_violation(void **state) {
    (void)state;
    struct msc_outcome outcomes[] = {
        complete(1, 1), complete(5, 5), complete(0, 0), complete(0, 0), complete(2, 2),
    };
    outcomes[0].state = MSC_TRIAL_INFEASIBLE;
    outcomes[0].violation = 0.5;
    outcomes[2].state = MSC_TRIAL_INFEASIBLE;
    outcomes[2].violation = 0.25;
    outcomes[3].state = MSC_TRIAL_FAILED;
    const struct msc_outcome *pointers[5];
    size_t ranks[5];
    size_t scratch[20];
    double crowding[5];
    for (size_t i = 0; i < 5; i++) {
        pointers[i] = &outcomes[i];
    }
    msc_nsga_rank(ranks, crowding, scratch, pointers, 5, 2);
    const size_t expected[] = {3, 1, 2, SIZE_MAX, 0};
    assert_memory_equal(ranks, expected, sizeof expected);
}

static void test_agents_nsga__nothing_to_rank(void **state) {
    (void)state;
    size_t ranks[1];
    size_t scratch[4];
    double crowding[1];
    msc_nsga_rank(ranks, crowding, scratch, NULL, 0, 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_nsga__ranks_and_crowding),
        cmocka_unit_test(test_agents_nsga__infeasible_follow_by_violation),
        cmocka_unit_test(test_agents_nsga__nothing_to_rank),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

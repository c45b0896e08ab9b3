// Labels of choices, such as "4 bits", are parsed into bits or density, and into the method. The
// expected results are written next to each label.
#include "results/plan_layers.h"

#include "tests/msc_test.h"

#include <math.h>

static void test_report_plan_layers__labels_of_bits(void **state) {
    (void)state;
    static const struct {
        const char *label;
        double bits;
        const char *method;
    } cases[] = {
        {"8", 8, ""},
        {"6 descent affine", 6, "descent affine"},
        {"4 g32", 4, "g32"},
        {"float16", 16, "float16"},
        {"float", 32, "float"},
        {"8 x0.9", 8, "x0.9"},
        {"quick", NAN, "quick"},
        {"8bit", NAN, "8bit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_plan_choice choice = msc_plan_choice_of_bits(cases[i].label);
        assert_true(choice.bits == cases[i].bits || (isnan(choice.bits) && isnan(cases[i].bits)));
        assert_string_equal(choice.method, cases[i].method);
        assert_true(isnan(choice.density));
    }
}

static void test_report_plan_layers__labels_of_density(void **state) {
    (void)state;
    static const struct {
        const char *label;
        double density;
        const char *method;
    } cases[] = {
        {"0.5", 0.5, ""},
        {"0.75 l2", 0.75, "l2"},
        {"1", 1, ""},
        {"sparsity 0.25", 0.75, ""},
        {"2:4 energy", 0.5, "energy"},
        {"1:4", 0.25, ""},
        {"none", NAN, "none"},
        {"2:0", NAN, "2:0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_plan_choice choice = msc_plan_choice_of_density(cases[i].label);
        assert_true(choice.density == cases[i].density ||
                    (isnan(choice.density) && isnan(cases[i].density)));
        assert_string_equal(choice.method, cases[i].method);
        assert_true(isnan(choice.bits));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_plan_layers__labels_of_bits),
        cmocka_unit_test(test_report_plan_layers__labels_of_density),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

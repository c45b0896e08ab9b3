// Limits after a layer keep NaN, whichever kernel fuses them and however many threads it uses.
// All other numbers are small integers, so sums are exact and must equal the reference kernels'
// in every bit.
#include "tests/kernels/cpu_case.h"

#include <math.h>

static void make_whole(const struct kernel_operand *o, float x[], int64_t n) {
    (void)o;
    for (int64_t i = 0; i < n; i++) {
        x[i] = rintf(x[i]);
    }
}

// Puts NaN into the input, and infinities that become NaN within the layer.
static void spoil_input(const struct kernel_operand *o, float x[], int64_t n) {
    make_whole(o, x, n);
    if (o->role[0] == '\0') {
        x[0] = NAN;
        x[n / 2] = INFINITY;
        x[n / 2 + 1] = -INFINITY;
    }
}

// Puts NaN into all taps of the last channel, because padding times NaN is NaN only in the
// reference kernel.
static void spoil_weight(const struct kernel_operand *o, float x[], int64_t n) {
    make_whole(o, x, n);
    int64_t n_taps = o->n_dims > 1 ? msc_dims_product(o->n_dims - 2, o->dims + 2) : 0;
    for (int64_t i = 1; o->role[0] != '\0' && i <= n_taps; i++) {
        x[n - i] = NAN;
    }
}

static int64_t count_nan(const struct msc_array *a) {
    int64_t n = 0;
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        n += isnan(msc_array_get_double(a, i)) ? 1 : 0;
    }
    return n;
}

// Compares the layer and its limit with the reference. NaN is in the layer's input or in weights
// of its last channel.
static void check(const struct kernel_case *row, enum msc_op limit, const char *limits,
                  int kernel_threads, bool is_in_weight) {
    struct cpu_case c;
    struct msc_array *actual, *expected;
    cpu_case_init(&c, 51);
    c.low = -3.0f;
    c.high = 3.0f;
    c.options.kernel_threads = kernel_threads;
    c.adjust = is_in_weight ? spoil_weight : spoil_input;
    int32_t y = cpu_case_add(&c, row);
    cpu_case_finish_graph(&c, cpu_joint(&c, limit, 1, &y, limits, MSC_NO_ID, MSC_NO_ID));
    cpu_run(&actual, &c, 0);
    cpu_expect(&expected, &c, 0);
    assert_true(count_nan(expected) > 0);
    assert_int_equal(count_nan(actual), count_nan(expected));
    assert_true(cpu_is_equal(actual, expected));
    msc_array_release(actual);
    msc_array_release(expected);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_nan__limits(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "nan"))) {
        for (int k = 0; k < 4; k++) {
            check(row, MSC_OP_RELU, "", 1 + k / 2, k % 2 == 1);
            check(row, MSC_OP_CLIP, "min=-4;max=6", 1 + k / 2, k % 2 == 1);
            check(row, MSC_OP_CLIP, "max=6", 1 + k / 2, k % 2 == 1);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_nan__limits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

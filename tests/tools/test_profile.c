// Profiles: attributing kernel times to joints by the kernels' names, and removing the overhead
// of timing. Expected sums are worked out by hand.
#include "tools/profile.h"

#include "base/alloc.h"
#include "tests/tools/quantize_case.h"

#include <math.h>

static struct msc_profile_kernel kernel(enum msc_profile_kind kind, double us,
                                        const char *const *names, size_t n_names) {
    return (struct msc_profile_kernel){.names = names, .n_names = n_names, .kind = kind, .us = us};
}

#define NAMES(...)                                                                                 \
    (const char *const[]){__VA_ARGS__},                                                            \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

struct fixture {
    struct quantize_case c;
    struct msc_arena arena;
    struct msc_profile_times times;
};

static void open_fixture(struct fixture *f) {
    memset(f, 0, sizeof *f);
    quantize_case_open(&f->c, 1, 4);
}

static void close_fixture(struct fixture *f) {
    msc_arena_finish(&f->arena);
    quantize_case_close(&f->c);
}

static double compute_of(const struct fixture *f, const char *joint) {
    return f->times.compute_us[msc_graph_find_joint(f->c.g, joint)];
}

static void test_tools_profile__finds_who_it_is(void **state) {
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct msc_profile_kernel kernels[] = {
        kernel(MSC_PROFILE_COMPUTE, 1, NAMES("conv1")),
        // The kernel belongs to conv1, the longest matching prefix.
        kernel(MSC_PROFILE_COMPUTE, 2, NAMES("conv1_token_12_nchwc")),
        kernel(MSC_PROFILE_COMPUTE, 4, NAMES("conv12")), // no prefix matches
        kernel(MSC_PROFILE_COMPUTE, 8, NAMES("reorder_5", "", "conv2:0_out")),
        kernel(MSC_PROFILE_COMPUTE, 16, NAMES("image_nhwc")), // the input x, by its alias
        // The kernel belongs to conv2, the consumer of this weight.
        kernel(MSC_PROFILE_COMPUTE, 32, NAMES("conv2.w_unpacked")),
        kernel(MSC_PROFILE_QUANTIZE, 64, NAMES("relu:0_quantized")),
        kernel(MSC_PROFILE_DEQUANTIZE, 128, NAMES("relu.float_3")), // relu:0, the joint's output
        kernel(MSC_PROFILE_DEQUANTIZE, 256, NAMES("head.w_dequantized")),
        kernel(MSC_PROFILE_QUANTIZE, 512, NAMES("unheard")),
    };
    const struct msc_profile profile = {
        .us = 1023, .kernels = kernels, .n_kernels = sizeof kernels / sizeof kernels[0]};
    assert_ok(msc_profile_attribute(&f.times, f.c.g, &profile, &f.arena));
    int32_t relu = msc_graph_find_tensor(f.c.g, "relu:0");
    assert_true(compute_of(&f, "conv1") == 3);
    assert_true(compute_of(&f, "conv2") == 8 + 32);
    assert_true(compute_of(&f, "head") == 256);
    assert_true(compute_of(&f, "x") == 16);
    assert_true(f.times.quantize_us[relu] == 64);
    assert_true(f.times.dequantize_us[relu] == 128);
    assert_true(f.times.other_us == 4 + 512);
    assert_true(f.times.us == 1023);
    close_fixture(&f);
}

// The overhead of timing is equal for all kernels and is subtracted; a kernel keeps at least a
// tenth of its time.
static void test_tools_profile__takes_timing_off(void **state) {
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct msc_profile_kernel kernels[] = {
        kernel(MSC_PROFILE_COMPUTE, 32, NAMES("conv1")),
        kernel(MSC_PROFILE_COMPUTE, 12, NAMES("conv2")),
        kernel(MSC_PROFILE_COMPUTE, 6, NAMES("head")),
    };
    struct msc_profile profile = {.us = 44, .kernels = kernels, .n_kernels = 3};
    assert_ok(msc_profile_attribute(&f.times, f.c.g, &profile, &f.arena));
    assert_true(fabs(compute_of(&f, "conv1") - 30) < 1e-9);
    assert_true(fabs(compute_of(&f, "conv2") - 10) < 1e-9);
    assert_true(fabs(compute_of(&f, "head") - 4) < 1e-9);
    // An overhead of 7 is subtracted from each kernel: head keeps a tenth of its 6. The times are
    // then rescaled to sum to 29.
    profile.us = 29;
    assert_ok(msc_profile_attribute(&f.times, f.c.g, &profile, &f.arena));
    assert_true(fabs(compute_of(&f, "conv1") - 25 * 29 / 30.6) < 1e-9);
    assert_true(fabs(compute_of(&f, "head") - 0.6 * 29 / 30.6) < 1e-9);
    profile.us = 80; // longer than the kernels together: the run was disturbed
    assert_ok(msc_profile_attribute(&f.times, f.c.g, &profile, &f.arena));
    assert_true(fabs(f.times.us - 50) < 1e-9);
    assert_true(fabs(compute_of(&f, "head") - 6) < 1e-9);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_profile__finds_who_it_is),
        cmocka_unit_test(test_tools_profile__takes_timing_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

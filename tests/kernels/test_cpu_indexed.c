// Operators with indices or coordinates: scatters, gathers, and sampling between elements. The cpu
// backend runs them on the reference kernels, other backends on kernels of their own. Results are
// compared with the reference kernels.
#include "tests/kernels/cpu_case.h"

#include <math.h>

static void finish(struct cpu_case *c, int32_t output) {
    cpu_case_finish_graph(c, output);
    cpu_check_close(c, 1e-10);
    cpu_case_finish(c);
}

static void test_kernels_cpu_indexed__scatter(void **state) {
    (void)state;
    cpu_check_cases("scatter");
}

static void test_kernels_cpu_indexed__gather(void **state) {
    (void)state;
    cpu_check_cases("gather");
}

// In one case several elements have the same target. In another case the output is larger than the
// windows imply.
static void test_kernels_cpu_indexed__unpool(void **state) {
    (void)state;
    cpu_check_cases("unpool");
}

static void test_kernels_cpu_indexed__triangles(void **state) {
    (void)state;
    cpu_check_cases("triangles");
}

static void test_kernels_cpu_indexed__reverse_sequence(void **state) {
    (void)state;
    cpu_check_cases("reverse_sequence");
}

static void test_kernels_cpu_indexed__one_hot(void **state) {
    (void)state;
    cpu_check_cases("one_hot");
}

static void test_kernels_cpu_indexed__grid_sample(void **state) {
    (void)state;
    cpu_check_cases("grid_sample");
}

// Coordinates too large for integers, infinite, or NaN.
static void check_far_grid(const char *attributes) {
    static const float places[] = {1e20f, 0, -1e20f, 0.1f, INFINITY, -0.2f, -0.3f, -INFINITY,
                                   NAN,   0, 0.7f,   NAN,  -1e9f,    1e9f,  0.5f,  0.4f};
    struct cpu_case c;
    cpu_case_init(&c, 26);
    int32_t x = cpu_input(&c, "", 4, DIMS(1, 3, 9, 12));
    int32_t grid = cpu_constant(&c, 4, DIMS(1, 2, 4, 2), places);
    finish(&c,
           cpu_joint(&c, MSC_OP_GRID_SAMPLE, 2, IDS(x, grid), attributes, MSC_NO_ID, MSC_NO_ID));
}

static void test_kernels_cpu_indexed__grid_sample_far(void **state) {
    (void)state;
    check_far_grid("mode=linear");
    check_far_grid("mode=nearest");
    check_far_grid("mode=cubic");
    check_far_grid("mode=linear;padding_mode=border");
    check_far_grid("mode=nearest;padding_mode=border;align_corners=1");
    check_far_grid("mode=cubic;padding_mode=border");
}

// Pools regions [n_regions][4] of images with 5 channels.
static void check_regions(const char *attributes, int64_t n_images, int64_t n_regions,
                          const float regions[]) {
    struct cpu_case c;
    cpu_case_init(&c, 27);
    int32_t x = cpu_input(&c, "", 4, DIMS(n_images, 5, 20, 24));
    int32_t rois = cpu_constant(&c, 2, DIMS(n_regions, 4), regions);
    int32_t images = cpu_whole_input(&c, "int64", 0, (int)n_images - 1, 1, DIMS(n_regions));
    finish(&c, cpu_joint(&c, MSC_OP_ROI_ALIGN, 3, IDS(x, rois, images), attributes, MSC_NO_ID,
                         MSC_NO_ID));
}

static void test_kernels_cpu_indexed__roi_align(void **state) {
    static const char *const attributes[] = {
        "output_height=5;output_width=7;sampling_ratio=2;spatial_scale=0.5",
        ("output_height=3;output_width=3;sampling_ratio=0;spatial_scale=0.25;"
         "coordinate_transformation_mode=output_half_pixel"),
        "output_height=4;output_width=2;sampling_ratio=3;mode=max",
    };
    static const float regions[] = {0, 0, 30.5f, 20.25f, 3, 5.5f, 9, 7, -4, 2, 60, 50, 8, 8, 8, 8};
    (void)state;
    for (int i = 0; i < 3; i++) {
        check_regions(attributes[i], 3, 4, regions);
    }
}

// Regions with too many elements to count, or with none.
static void test_kernels_cpu_indexed__roi_align_far(void **state) {
    static const char *const attributes[] = {
        "output_height=5;output_width=3;sampling_ratio=0",
        "output_height=2;output_width=3;sampling_ratio=0;mode=max",
        ("output_height=3;output_width=3;sampling_ratio=0;mode=max;"
         "coordinate_transformation_mode=half_pixel"),
        "output_height=2;output_width=2;sampling_ratio=3;coordinate_transformation_mode=half_pixel",
    };
    static const float regions[] = {
        -100, 2,   400, 9,   0,  0,  1e37f,    5,  3, 4, NAN, 7, -INFINITY, 0,  INFINITY, 10,
        9,    7.5, 2,   3.5, -9, 30, INFINITY, 40, 5, 5, 6,   6, -1e30f,    -3, 1e30f,    30};
    (void)state;
    for (int i = 0; i < 4; i++) {
        check_regions(attributes[i], 1, 8, regions);
    }
}

static void test_kernels_cpu_indexed__resize(void **state) {
    (void)state;
    cpu_check_cases("resize");
}

static void test_kernels_cpu_indexed__columns_to_images(void **state) {
    (void)state;
    cpu_check_cases("columns_to_images");
}

static void test_kernels_cpu_indexed__affine_grid(void **state) {
    (void)state;
    cpu_check_cases("affine_grid");
}

// The mask covers the taps of both offset groups.
static void test_kernels_cpu_indexed__deformed_windows(void **state) {
    (void)state;
    cpu_check_cases("deformed");
}

// Offsets too large for integers, infinite, or NaN: such places are outside the image and count
// as 0.
static void test_kernels_cpu_indexed__deformed_windows_far(void **state) {
    static const float offsets[] = {0.5f, 1e20f, -INFINITY, NAN, -0.25f, -1e20f, INFINITY, 0.75f};
    struct cpu_case c;
    (void)state;
    cpu_case_init(&c, 39);
    int32_t x = cpu_input(&c, "", 4, DIMS(1, 2, 3, 3));
    int32_t w = cpu_input(&c, "", 4, DIMS(2, 2, 1, 1));
    int32_t offset = cpu_constant(&c, 4, DIMS(1, 2, 2, 2), offsets);
    finish(&c, cpu_joint(&c, MSC_OP_DEFORM_CONV, 3, IDS(x, w, offset), "strides=2,2;group=1",
                         MSC_NO_ID, MSC_NO_ID));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_indexed__scatter),
        cmocka_unit_test(test_kernels_cpu_indexed__gather),
        cmocka_unit_test(test_kernels_cpu_indexed__unpool),
        cmocka_unit_test(test_kernels_cpu_indexed__triangles),
        cmocka_unit_test(test_kernels_cpu_indexed__reverse_sequence),
        cmocka_unit_test(test_kernels_cpu_indexed__one_hot),
        cmocka_unit_test(test_kernels_cpu_indexed__grid_sample),
        cmocka_unit_test(test_kernels_cpu_indexed__grid_sample_far),
        cmocka_unit_test(test_kernels_cpu_indexed__roi_align),
        cmocka_unit_test(test_kernels_cpu_indexed__roi_align_far),
        cmocka_unit_test(test_kernels_cpu_indexed__resize),
        cmocka_unit_test(test_kernels_cpu_indexed__columns_to_images),
        cmocka_unit_test(test_kernels_cpu_indexed__affine_grid),
        cmocka_unit_test(test_kernels_cpu_indexed__deformed_windows),
        cmocka_unit_test(test_kernels_cpu_indexed__deformed_windows_far),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

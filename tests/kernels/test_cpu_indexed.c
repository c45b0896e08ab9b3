// Operators that indices or coordinates lead: scatters, picked elements, samples between elements.
// On the cpu backend they run on the reference kernels, on others by kernels of their own.
#include "tests/kernels/cpu_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish(struct cpu_case *c, int32_t output, bool is_equal) {
    cpu_case_finish_graph(c, output);
    if (is_equal) {
        cpu_check_equal(c);
    } else {
        cpu_check_close(c, 1e-10);
    }
    cpu_case_finish(c);
}

// ---- Scatters ---------------------------------------------------------------------------------

struct shape {
    int n_dims;
    int64_t dims[4];
};

static struct shape shape_of(const char *text) {
    struct shape s = {0};
    for (char *end; *text; text = *end ? end + 1 : end) {
        s.dims[s.n_dims++] = strtoll(text, &end, 10);
    }
    return s;
}

struct scatter {
    const char *attributes;
    const char *dtype, *index_dtype;
    const char *x, *indices, *updates; // shapes
    int least, most;                   // index
};

static int32_t scatter_operand(struct cpu_case *c, const char *dtype, const char *shape) {
    struct shape s = shape_of(shape);
    return strcmp(dtype, "float32") == 0 ? cpu_input(c, "", s.n_dims, s.dims)
                                         : cpu_whole_input(c, dtype, -9, 9, s.n_dims, s.dims);
}

static void check_scatter(enum msc_op op, const struct scatter *s) {
    struct cpu_case c;
    struct shape shape = shape_of(s->indices);
    cpu_case_init(&c, 21);
    int32_t x = scatter_operand(&c, s->dtype, s->x);
    int32_t indices =
        cpu_whole_input(&c, s->index_dtype, s->least, s->most, shape.n_dims, shape.dims);
    int32_t updates = scatter_operand(&c, s->dtype, s->updates);
    finish(&c, cpu_joint(&c, op, 3, IDS(x, indices, updates), s->attributes, MSC_NO_ID, MSC_NO_ID),
           true);
}

static void test_kernels_cpu_indexed__scatter(void **state) {
    static const struct scatter elements[] = {
        {"axis=1", "float32", "int32", "3,9,40", "3,20,30", "3,20,30", -9, 8},
        {"axis=0;reduction=add", "float32", "int64", "7,30", "90,30", "90,30", 0, 6},
        {"axis=-1;reduction=mul", "float32", "int64", "8,50", "8,60", "8,60", -50, 49},
        {"axis=0;reduction=max", "float32", "int64", "100", "400", "400", 0, 99},
        {"axis=1;reduction=min", "float16", "int64", "5,31", "4,80", "4,80", 0, 30},
        {"axis=1;reduction=add", "int8", "int64", "5,31", "4,80", "4,80", 0, 30},
        {"axis=1", "bool", "int64", "5,31", "5,8", "5,8", 0, 30},
    };
    static const struct scatter nd[] = {
        {"", "float32", "int64", "6,7,20", "5,4,2", "5,4,20", -6, 5},
        {"", "float32", "int64", "50", "700,1", "700", 0, 49},
        {"reduction=add", "float32", "int64", "9,33", "40,1", "40,33", 0, 8},
        {"reduction=mul", "int32", "int64", "4,5,6", "60,3", "60", 0, 3},
        {"reduction=max", "int64", "int64", "9,33", "40,2", "40", -9, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        check_scatter(MSC_OP_SCATTER_ELEMENTS, &elements[i]);
    }
    for (size_t i = 0; i < sizeof(nd) / sizeof(nd[0]); i++) {
        check_scatter(MSC_OP_SCATTER_ND, &nd[i]);
    }
}

static void test_kernels_cpu_indexed__gather(void **state) {
    static const struct {
        enum msc_op op;
        const char *attributes, *index_dtype;
    } rows[] = {
        {MSC_OP_TAKE, "axis=1", "int32"},
        {MSC_OP_TAKE, "axis=1", "int64"},
        {MSC_OP_GATHER_ELEMENTS, "axis=1", "int32"},
    };
    struct cpu_case c;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cpu_case_init(&c, 28);
        int32_t x = cpu_input(&c, "", 2, DIMS(9, 14));
        int32_t at = cpu_whole_input(&c, rows[i].index_dtype, -14, 13, 2, DIMS(8, 11));
        finish(&c,
               cpu_joint(&c, rows[i].op, 2, IDS(x, at), rows[i].attributes, MSC_NO_ID, MSC_NO_ID),
               true);
    }
}

// Several elements go to the same place; then an output that is larger than what windows give.
static void test_kernels_cpu_indexed__unpool(void **state) {
    struct cpu_case c;
    static const char *const shapes[] = {
        "kernel_shape=2,2;strides=2,2;pads=0,0,0,0",
        "kernel_shape=2,2;strides=2,2;pads=0,0,0,0;output_shape=2,3,14,19",
    };
    (void)state;
    for (int i = 0; i < 2; i++) {
        cpu_case_init(&c, 22);
        int32_t x = cpu_input(&c, "", 4, DIMS(2, 3, 6, 8));
        int32_t at = cpu_whole_input(&c, "int64", 0, 2 * 3 * 12 * 16 - 1, 4, DIMS(2, 3, 6, 8));
        finish(&c, cpu_joint(&c, MSC_OP_MAX_UNPOOL, 2, IDS(x, at), shapes[i], MSC_NO_ID, MSC_NO_ID),
               true);
    }
}

// ---- Picked elements --------------------------------------------------------------------------

static void test_kernels_cpu_indexed__triangles(void **state) {
    static const char *const attributes[] = {"k=0", "k=2", "k=-3", "k=40"};
    struct cpu_case c;
    (void)state;
    for (int i = 0; i < 8; i++) {
        cpu_case_init(&c, 23);
        int32_t x = cpu_input(&c, "", 3, DIMS(3, 17, 23));
        if (i >= 4) {
            x = cpu_joint(&c, MSC_OP_CAST, 1, &x, "dtype=float16", MSC_NO_ID, MSC_NO_ID);
        }
        finish(&c,
               cpu_joint(&c, i % 2 ? MSC_OP_TRIU : MSC_OP_TRIL, 1, &x, attributes[i % 4], MSC_NO_ID,
                         MSC_NO_ID),
               true);
    }
}

static void test_kernels_cpu_indexed__reverse_sequence(void **state) {
    static const char *const attributes[] = {"batch_axis=1;time_axis=0",
                                             "batch_axis=0;time_axis=1"};
    struct cpu_case c;
    (void)state;
    for (int i = 0; i < 2; i++) {
        cpu_case_init(&c, 24);
        int32_t x = cpu_input(&c, "", 3, DIMS(11, 12, 20));
        int32_t lengths = cpu_whole_input(&c, "int64", 0, 11, 1, DIMS(i == 0 ? 12 : 11));
        finish(&c,
               cpu_joint(&c, MSC_OP_REVERSE_SEQUENCE, 2, IDS(x, lengths), attributes[i], MSC_NO_ID,
                         MSC_NO_ID),
               true);
    }
}

static void test_kernels_cpu_indexed__one_hot(void **state) {
    static const char *const attributes[] = {"axis=-1;depth=9", "axis=1;depth=9", "axis=0;depth=9"};
    struct cpu_case c;
    (void)state;
    for (int i = 0; i < 3; i++) {
        cpu_case_init(&c, 25);
        int32_t indices = cpu_whole_input(&c, i == 0 ? "int64" : "int32", -11, 11, 2, DIMS(5, 30));
        int32_t values = cpu_input(&c, "", 1, DIMS(2));
        finish(&c,
               cpu_joint(&c, MSC_OP_ONE_HOT, 2, IDS(indices, values), attributes[i], MSC_NO_ID,
                         MSC_NO_ID),
               true);
    }
}

// ---- Samples ----------------------------------------------------------------------------------

static int32_t as_type(struct cpu_case *c, int32_t x, const char *dtype) {
    char attribute[32];
    snprintf(attribute, sizeof(attribute), "dtype=%s", dtype);
    return strcmp(dtype, "float32") == 0
               ? x
               : cpu_joint(c, MSC_OP_CAST, 1, &x, attribute, MSC_NO_ID, MSC_NO_ID);
}

static void check_grid(const char *attributes, const char *dtype, int n_x, const int64_t x_dims[],
                       int n_grid, const int64_t grid_dims[]) {
    struct cpu_case c;
    cpu_case_init(&c, 26);
    int32_t x = as_type(&c, cpu_input(&c, "", n_x, x_dims), dtype);
    c.low = -1.3f;
    c.high = 1.3f;
    int32_t grid = as_type(&c, cpu_input(&c, "", n_grid, grid_dims), dtype);
    finish(&c, cpu_joint(&c, MSC_OP_GRID_SAMPLE, 2, IDS(x, grid), attributes, MSC_NO_ID, MSC_NO_ID),
           false);
}

// Places that no integer holds, or that are none.
static void check_far_grid(const char *attributes) {
    static const float places[] = {1e20f, 0, -1e20f, 0.1f, INFINITY, -0.2f, -0.3f, -INFINITY,
                                   NAN,   0, 0.7f,   NAN,  -1e9f,    1e9f,  0.5f,  0.4f};
    struct cpu_case c;
    cpu_case_init(&c, 26);
    int32_t x = cpu_input(&c, "", 4, DIMS(1, 3, 9, 12));
    int32_t grid = cpu_constant(&c, 4, DIMS(1, 2, 4, 2), places);
    finish(&c, cpu_joint(&c, MSC_OP_GRID_SAMPLE, 2, IDS(x, grid), attributes, MSC_NO_ID, MSC_NO_ID),
           false);
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

static void test_kernels_cpu_indexed__grid_sample(void **state) {
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    (void)state;
    for (int i = 0; i < 18; i++) {
        char text[96];
        snprintf(text, sizeof(text), "mode=%s;padding_mode=%s;align_corners=%d", modes[i % 3],
                 paddings[i / 3 % 3], i / 9);
        check_grid(text, "float32", 4, DIMS(2, 3, 9, 12), 4, DIMS(2, 15, 11, 2));
    }
    check_grid("mode=linear", "float32", 5, DIMS(1, 2, 5, 6, 7), 5, DIMS(1, 4, 8, 9, 3));
    check_grid("mode=nearest;align_corners=1", "float32", 3, DIMS(1, 2, 30), 3, DIMS(1, 40, 1));
    check_grid("mode=cubic", "float16", 4, DIMS(2, 3, 9, 12), 4, DIMS(2, 15, 11, 2));
}

// Regions [n_regions][4] of images of 5 channels.
static void check_regions(const char *attributes, int64_t n_images, int64_t n_regions,
                          const float regions[]) {
    struct cpu_case c;
    cpu_case_init(&c, 27);
    int32_t x = cpu_input(&c, "", 4, DIMS(n_images, 5, 20, 24));
    int32_t rois = cpu_constant(&c, 2, DIMS(n_regions, 4), regions);
    int32_t images = cpu_whole_input(&c, "int64", 0, (int)n_images - 1, 1, DIMS(n_regions));
    finish(
        &c,
        cpu_joint(&c, MSC_OP_ROI_ALIGN, 3, IDS(x, rois, images), attributes, MSC_NO_ID, MSC_NO_ID),
        false);
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

// Regions that have more elements than can be counted, or are none.
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

static void check_resize(enum msc_op op, const char *attributes, const char *dtype, int n_dims,
                         const int64_t dims[], bool is_equal) {
    struct cpu_case c;
    cpu_case_init(&c, 29);
    int32_t x = strcmp(dtype, "float32") == 0 ? cpu_input(&c, "", n_dims, dims)
                                              : cpu_whole_input(&c, dtype, 0, 255, n_dims, dims);
    finish(&c, cpu_joint(&c, op, 1, &x, attributes, MSC_NO_ID, MSC_NO_ID), is_equal);
}

static void test_kernels_cpu_indexed__resize(void **state) {
    const enum msc_op plain = MSC_OP_RESIZE, filtered = MSC_OP_RESIZE_ANTIALIAS;
    (void)state;
    check_resize(plain, "method=linear;size=2,3,7,9,10;coordinate_transformation_mode=half_pixel",
                 "float32", 5, DIMS(2, 3, 5, 6, 7), true);
    check_resize(plain, "method=cubic;scales=1,2.5,1,1.7;coordinate_transformation_mode=half_pixel",
                 "float32", 4, DIMS(2, 3, 5, 6), true);
    check_resize(plain, "method=linear;size=2,3,31;coordinate_transformation_mode=align_corners",
                 "float32", 3, DIMS(2, 3, 12), true);
    check_resize(plain,
                 "method=linear;size=1,2,9,8;roi=0,0,0.2,-0.3,1,1,1.4,0.8;extrapolation_value=7;"
                 "coordinate_transformation_mode=tf_crop_and_resize",
                 "float32", 4, DIMS(1, 2, 6, 7), true);
    check_resize(plain, // a region whose places are no numbers
                 "method=linear;size=1,2,9,8;roi=0,0,3e38,0,1,1,-3e38,1;extrapolation_value=7;"
                 "coordinate_transformation_mode=tf_crop_and_resize",
                 "float32", 4, DIMS(1, 2, 6, 7), true);
    check_resize(plain, "method=nearest_neighbor;scales=1,1,2,3", "uint8", 4, DIMS(1, 2, 6, 7),
                 true);
    check_resize(plain, "method=linear;scales=1,1,2,3", "uint8", 4, DIMS(1, 2, 6, 7), true);
    check_resize(filtered, "method=linear;scales=1,1,0.3,0.45", "float32", 4, DIMS(2, 3, 20, 24),
                 false);
    check_resize(filtered, "method=cubic;size=2,3,5,30;cubic_exclude=1", "float32", 4,
                 DIMS(2, 3, 20, 24), false);
}

static void test_kernels_cpu_indexed__columns_to_images(void **state) {
    static const struct {
        const char *attributes;
        int64_t dims[3];
    } rows[] = {
        {"image_shape=9,11;block_shape=3,2;strides=2,1;pads=1,0,1,2", {2, 18, 5 * 12}},
        {"image_shape=5,6,7;block_shape=2,2,3;dilations=2,1,1", {1, 24, 3 * 5 * 5}},
        {"image_shape=30;block_shape=4;strides=4", {3, 8, 7}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 36);
        int32_t x = cpu_input(&c, "", 3, rows[i].dims);
        finish(&c, cpu_joint(&c, MSC_OP_COL2IM, 1, &x, rows[i].attributes, MSC_NO_ID, MSC_NO_ID),
               true);
    }
}

static void test_kernels_cpu_indexed__affine_grid(void **state) {
    static const char *const attributes[] = {"size=2,3,7,9", "size=2,3,7,9;align_corners=1",
                                             "size=2,1,4,1,5;align_corners=1"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct cpu_case c;
        cpu_case_init(&c, 37);
        int32_t x = cpu_input(&c, "", 3, i < 2 ? DIMS(2, 2, 3) : DIMS(2, 3, 4));
        finish(&c, cpu_joint(&c, MSC_OP_AFFINE_GRID, 1, &x, attributes[i], MSC_NO_ID, MSC_NO_ID),
               false);
    }
}

// The mask is over taps of both groups of offsets.
static void test_kernels_cpu_indexed__deformed_windows(void **state) {
    static const char attributes[] =
        "strides=2,1;pads=1,1,0,2;dilations=1,2;group=2;offset_group=2";
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct cpu_case c;
        cpu_case_init(&c, 38);
        int32_t x = cpu_input(&c, "", 4, DIMS(2, 4, 9, 10));
        int32_t w = cpu_input(&c, "", 4, DIMS(6, 2, 3, 2));
        int32_t offset = cpu_input(&c, "", 4, DIMS(2, 24, 4, 11));
        int32_t bias = cpu_input(&c, "", 1, DIMS(6));
        int32_t mask = cpu_input(&c, "", 4, DIMS(2, 12, 4, 11));
        finish(&c,
               cpu_joint(&c, MSC_OP_DEFORM_CONV, i == 0 ? 3 : 5, IDS(x, w, offset, bias, mask),
                         attributes, MSC_NO_ID, MSC_NO_ID),
               false);
    }
}

// Offsets that no integer holds, or that are none: what is there is outside, and counts as 0.
static void test_kernels_cpu_indexed__deformed_windows_far(void **state) {
    static const float offsets[] = {0.5f, 1e20f, -INFINITY, NAN, -0.25f, -1e20f, INFINITY, 0.75f};
    struct cpu_case c;
    (void)state;
    cpu_case_init(&c, 39);
    int32_t x = cpu_input(&c, "", 4, DIMS(1, 2, 3, 3));
    int32_t w = cpu_input(&c, "", 4, DIMS(2, 2, 1, 1));
    int32_t offset = cpu_constant(&c, 4, DIMS(1, 2, 2, 2), offsets);
    finish(&c,
           cpu_joint(&c, MSC_OP_DEFORM_CONV, 3, IDS(x, w, offset), "strides=2,2;group=1", MSC_NO_ID,
                     MSC_NO_ID),
           false);
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

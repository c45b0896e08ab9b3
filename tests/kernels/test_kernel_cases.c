// The table of kernel cases itself: its readers are known, names are unique, and operands make
// valid graphs.
#include "tests/kernels/kernel_cases.h"
#include "tests/msc_test.h"

static const char *const readers[] = {
    "bench", "bench_device", "ceiling", "not_ort", "ops",
    // readers in test_cpu_conv.c, test_cpu_chunks.c and test_cpu_nan.c
    "conv", "unreached", "bands", "windows", "columns", "wide_columns", "by_channel", "large_sums",
    "large_sums_by_channel", "fuses", "threads", "chunks", "nan",
    // readers in test_cpu_linear.c
    "linear", "linear_integers", "matmul", "matmul_constant",
    // readers in test_cpu_layers.c
    "pools", "resizes", "softmax", "layer_norm", "group_norm", "reductions", "permutes",
    "depth_space", "renames", "slices", "splits",
    // readers in test_cpu_rare.c
    "functions", "lines", "places", "rare_pools", "fourier", "small_elements", "normalisation",
    "convolutions", "einsum", "recurrent",
    // readers in test_cpu_ewise.c
    "unary", "broadcast", "binary", "binary_constant",
    // readers in test_cpu_indexed.c
    "scatter", "gather", "unpool", "triangles", "reverse_sequence", "one_hot", "grid_sample",
    "resize", "columns_to_images", "affine_grid", "deformed",
    // readers in test_cpu_codes.c and test_cpu_integer.c
    "quantize", "dequantize", "dynamic", "integers", "integer_conv", "integer_product"};

static int count_words(const char *text) {
    int n = 0;
    for (; *text != '\0'; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

static void test_kernels_kernel_cases__readers(void **state) {
    (void)state;
    for (size_t i = 0; i < kernel_n_cases; i++) {
        const struct kernel_case *k = &kernel_cases[i];
        int n_known = 0;
        for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++) {
            n_known += kernel_case_has_reader(k, readers[r]) ? 1 : 0;
        }
        if (n_known == 0 || n_known != count_words(k->readers)) {
            fail_msg("row %zu, %s: unknown or repeated word among the readers \"%s\"", i,
                     k->operands, k->readers);
        }
    }
}

// Rows that are measured have unique names.
static void test_kernels_kernel_cases__names(void **state) {
    (void)state;
    for (size_t i = 0; i < kernel_n_cases; i++) {
        const struct kernel_case *k = &kernel_cases[i];
        bool is_measured = kernel_case_has_reader(k, "bench") ||
                           kernel_case_has_reader(k, "bench_device") ||
                           kernel_case_has_reader(k, "ceiling") || kernel_case_has_reader(k, "ops");
        assert_int_equal(is_measured, k->name[0] != '\0');
        for (size_t j = 0; j < i && k->name[0] != '\0'; j++) {
            assert_string_not_equal(k->name, kernel_cases[j].name);
        }
    }
}

static void fill(void *payload, const struct kernel_operand *o, float x[], int64_t n) {
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        x[i] = o->has_range ? o->low : 1.0f;
    }
}

static void test_kernels_kernel_cases__graphs(void **state) {
    (void)state;
    for (size_t i = 0; i < kernel_n_cases; i++) {
        const struct kernel_case *k = &kernel_cases[i];
        struct kernel_builder b = {.fill = fill};
        int32_t joint;
        if (k->name[0] != '\0') { // named rows are large
            continue;
        }
        assert_ok(msc_graph_create(&b.graph, "case"));
        if (kernel_case_build(&joint, &b, k) != MSC_OK) {
            fail_msg("row %zu, %s: %s", i, k->operands, msc_status_message());
        }
        assert_ok(msc_graph_set_outputs(b.graph, 1, msc_graph_joint(b.graph, joint)->outputs));
        assert_ok(msc_graph_finalize(b.graph));
        for (int x = 0; x < b.n_inputs; x++) {
            msc_array_release(b.inputs[x]);
        }
        msc_graph_destroy(b.graph);
    }
}

static void test_kernels_kernel_cases__operands(void **state) {
    const struct kernel_case k = {.operands = "NCHW last zero_point=113 2,3,4,5; "
                                              "int8 -128..127 (); weight OI const 0.5..2 7,9"};
    struct kernel_operand o[KERNEL_MAX_OPERANDS];
    (void)state;
    assert_int_equal(kernel_case_operands(o, &k), 3);
    assert_string_equal(o[0].layout, "NCHW");
    assert_true(o[0].is_last && !o[0].has_range && o[0].dtype == MSC_DTYPE_F32);
    assert_int_equal(o[0].zero_point, 113);
    assert_int_equal(o[0].n_dims, 4);
    assert_int_equal(o[0].dims[3], 5);
    assert_int_equal(o[1].dtype, MSC_DTYPE_I8);
    assert_int_equal(o[1].n_dims, 0);
    assert_true(o[1].has_range && o[1].low == -128.0f && o[1].high == 127.0f);
    assert_string_equal(o[2].role, "weight");
    assert_true(o[2].is_constant && o[2].low == 0.5f && o[2].high == 2.0f);
    assert_int_equal(o[2].dims[1], 9);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_kernel_cases__readers),
        cmocka_unit_test(test_kernels_kernel_cases__names),
        cmocka_unit_test(test_kernels_kernel_cases__graphs),
        cmocka_unit_test(test_kernels_kernel_cases__operands),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

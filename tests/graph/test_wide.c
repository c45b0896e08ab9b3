// Graphs of float16 and bfloat16 in float32: types, rounding, and the types of exported files.
// Expected sums follow from the types: float16 has 11 significant bits, bfloat16 has 8, and a tie
// rounds to even.
#include "graph/wide.h"

#include "tests/graph/onnx_files.h"

#include "graph/edit.h"
#include "graph/reference/reference.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/msc_wide_%d.onnx", (int)getpid());
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(scratch);
    return 0;
}

// Adds a constant of another type than float32, and returns the output of its joint.
static int32_t add_constant(struct msc_graph *g, const char *name, enum msc_dtype dtype, int n_dims,
                            const int64_t dims[], const float x[]) {
    struct msc_array *wide, *data;
    int32_t tensor;
    assert_ok(msc_array_create_from(&wide, MSC_DTYPE_F32, n_dims, dims, x));
    assert_ok(msc_array_convert(&data, wide, dtype));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, "", data));
    msc_array_release(data);
    msc_array_release(wide);
    return add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){"const", tensor}});
}

static int32_t add_cast(struct msc_graph *g, const char *name, int32_t x, const char *dtype) {
    return add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CAST,
                                                 .name = name,
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_attrs = 1,
                                                 .attrs = &(struct msc_attr){"dtype", dtype}});
}

static int32_t add_two(struct msc_graph *g, enum msc_op op, const char *name, int32_t a,
                       int32_t b) {
    return add_joint(
        g, &(struct msc_joint_spec){.op = op, .name = name, .n_inputs = 2, .inputs = IDS(a, b)});
}

// x -> cast to `dtype` -> add w -> add w -> cast to float32 -> cast to float16 -> cast to float32.
static struct msc_graph *make_sums(const char *dtype, const float w[2]) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "sums"));
    int32_t x = add_input(g, "x", "", 1, DIMS(2));
    int32_t weight = add_constant(g, "w", msc_dtype_find(dtype), 1, DIMS(2), w);
    int32_t y = add_two(g, MSC_OP_ADD, "first", add_cast(g, "narrow", x, dtype), weight);
    y = add_two(g, MSC_OP_ADD, "second", y, weight);
    y = add_cast(g, "wide", y, "float32");
    y = add_cast(g, "back", add_cast(g, "rounded", y, "float16"), "float32");
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static enum msc_dtype type_of(const struct msc_graph *g, const char *joint) {
    return output_of(g, joint)->dtype;
}

static void test_graph_wide__types(void **state) {
    (void)state;
    struct msc_graph *wide, *again, *g = make_sums("float16", (const float[]){1, 2});
    assert_ok(msc_graph_widen(&wide, g));
    assert_ptr_equal(msc_graph_own(wide), g);
    assert_ptr_equal(msc_graph_own(g), g);
    assert_ok(msc_graph_widen(&again, wide));
    assert_ptr_equal(again, wide);
    msc_graph_destroy(again);
    assert_int_equal(msc_graph_n_tensors(wide), msc_graph_n_tensors(g));
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        assert_string_equal(msc_graph_tensor(wide, i)->name, msc_graph_tensor(g, i)->name);
    }
    assert_int_equal(type_of(g, "first"), MSC_DTYPE_F16);
    assert_int_equal(type_of(wide, "narrow"), MSC_DTYPE_F32);
    assert_int_equal(type_of(wide, "first"), MSC_DTYPE_F32);
    assert_string_equal(op_of(wide, "narrow"), "identity");
    assert_string_equal(op_of(wide, "wide"), "identity");
    // Between two Casts the model rounds on purpose.
    assert_int_equal(type_of(wide, "rounded"), MSC_DTYPE_F16);
    assert_string_equal(op_of(wide, "rounded"), "astype");
    int32_t weight = msc_graph_find_tensor(wide, "w");
    assert_true(msc_graph_is_widened(wide, weight));
    assert_int_equal(msc_graph_own_bytes(wide, weight), 2);
    assert_true(msc_array_get_double(msc_graph_tensor(wide, weight)->data, 1) == 2);
    msc_graph_destroy(g); // the wide graph holds it
    assert_int_equal(type_of(msc_graph_own(wide), "first"), MSC_DTYPE_F16);
    msc_graph_destroy(wide);

    g = make_conv_relu();
    assert_ok(msc_graph_widen(&again, g));
    assert_ptr_equal(again, g);
    msc_graph_destroy(again);
    msc_graph_destroy(g);
}

// Checks the value of a joint's output, computed by the reference kernels.
static void check_value(const struct msc_graph *g, int32_t tensor, const float x[2],
                        const float expected[2]) {
    struct msc_array *input, *output;
    assert_ok(msc_array_create_from(&input, MSC_DTYPE_F32, 1, DIMS(2), x));
    assert_ok(msc_reference_run_graph(&output, g, (const struct msc_array *const[]){input}, &tensor,
                                      1, NULL));
    for (int i = 0; i < 2; i++) {
        assert_true(msc_array_get_double(output, i) == (double)expected[i]);
    }
    msc_array_release(output);
    msc_array_release(input);
}

static void test_graph_wide__round(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        float x[2], w[2], own[2], wide[2];
    } rows[] = {
        // 2048 + 1 is halfway between 2048 and 2050, 2050 + 1 between 2050 and 2052.
        {"float16", {2048, 2050}, {1, 1}, {2048, 2052}, {2050, 2052}},
        {"bfloat16", {256, 258}, {1, 1}, {256, 260}, {258, 260}},
        {"float16", {0.1f, 0}, {0, 0}, {0.0999755859375f, 0}, {0.1f, 0}},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct msc_graph *wide, *rounded, *g = make_sums(rows[r].dtype, rows[r].w);
        int32_t map[16], sum = output_of(g, "second")->producer;
        sum = msc_graph_joint(g, sum)->outputs[0];
        assert_true(msc_graph_n_tensors(g) <= 16);
        assert_ok(msc_graph_widen(&wide, g));
        assert_ok(msc_graph_round(&rounded, map, wide));
        assert_ptr_equal(msc_graph_own(rounded), rounded);
        check_value(g, sum, rows[r].x, rows[r].own);
        check_value(rounded, map[sum], rows[r].x, rows[r].own);
        check_value(wide, sum, rows[r].x, rows[r].wide);
        msc_graph_destroy(rounded);
        msc_graph_destroy(wide);
        msc_graph_destroy(g);
    }
}

static void test_graph_wide__set_weight(void **state) {
    (void)state;
    struct msc_graph *wide, *g = make_sums("float16", (const float[]){1, 2});
    struct msc_array *data;
    assert_ok(msc_graph_widen(&wide, g));
    int32_t weight = msc_graph_find_tensor(wide, "w");
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 1, DIMS(2), (const float[]){2049, 0.1f}));
    assert_ok(msc_graph_set_weight_data(wide, weight, data));
    const struct msc_graph *both[] = {wide, g};
    for (int i = 0; i < 2; i++) {
        const struct msc_array *found = msc_graph_tensor(both[i], weight)->data;
        assert_true(msc_array_get_double(found, 0) == 2048);
        assert_true(msc_array_get_double(found, 1) == 0.0999755859375);
    }
    msc_array_release(data);
    msc_graph_destroy(wide);
    msc_graph_destroy(g);
}

// Two products with a softmax between them, in float16.
static struct msc_graph *make_products(void) {
    static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct msc_graph *g;
    int32_t x;
    assert_ok(msc_graph_create(&g, "products"));
    assert_ok(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F16, "", 2, DIMS(2, 4)));
    int32_t v = add_constant(g, "v", MSC_DTYPE_F16, 2, DIMS(4, 4), ones);
    int32_t w = add_constant(g, "w", MSC_DTYPE_F16, 2, DIMS(4, 4), ones);
    int32_t y = add_two(g, MSC_OP_MATMUL, "one", x, v);
    y = add_unary(g, MSC_OP_SOFTMAX, "share", y);
    y = add_two(g, MSC_OP_MATMUL, "two", y, w);
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_set_alias(g, y, "y"));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// Exports the products with 8 bits for the operands of the joint `edited` (NULL: of none).
static struct msc_graph *export_products(const char *edited) {
    static const float scale = 0.125f;
    static const int32_t zero_point = 0;
    const struct msc_edit *edits[8] = {NULL};
    struct msc_graph *wide, *g = make_products();
    struct msc_sites sites;
    struct msc_edit edit = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                                .low = -128,
                                                                .high = 127,
                                                                .axis = -1,
                                                                .n = 1,
                                                                .scales = &scale,
                                                                .zero_points = &zero_point});
    assert_ok(msc_graph_widen(&wide, g));
    assert_ok(msc_sites_find(&sites, wide, NULL));
    assert_true(sites.n_slots <= 8);
    for (int i = 0; edited && i < 2; i++) {
        int32_t slot = msc_sites_find_slot(&sites, msc_graph_find_joint(wide, edited), i);
        assert_int_not_equal(slot, MSC_NO_ID);
        edits[slot] = &edit;
    }
    const struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    assert_ok(msc_onnx_save(wide, scratch, &options));
    msc_sites_finish(&sites);
    msc_graph_destroy(wide);
    msc_graph_destroy(g);
    return load_file(scratch);
}

static enum msc_dtype type_named(const struct msc_graph *g, const char *name) {
    int32_t id = msc_graph_find_tensor(g, name);
    assert_int_not_equal(id, MSC_NO_ID);
    return msc_graph_tensor(g, id)->dtype;
}

static void test_graph_wide__export(void **state) {
    (void)state;
    struct msc_graph *g = export_products(NULL);
    assert_int_equal(count_of(g, MSC_OP_CAST), 0);
    assert_int_equal(type_named(g, "v"), MSC_DTYPE_F16);
    msc_graph_destroy(g);

    g = export_products("one");
    assert_int_equal(type_named(g, "x"), MSC_DTYPE_F16);
    assert_int_equal(type_of(g, "one"), MSC_DTYPE_F32);
    assert_int_equal(type_of(g, "share"), MSC_DTYPE_F16);
    assert_int_equal(type_named(g, "w"), MSC_DTYPE_F16);
    assert_int_equal(type_named(g, "y"), MSC_DTYPE_F16);
    assert_int_equal(count_of(g, MSC_OP_CAST), 2); // before and after the product
    msc_graph_destroy(g);

    // The second product's input is quantised, so its producer computes in float32, too.
    g = export_products("two");
    assert_int_equal(type_of(g, "one"), MSC_DTYPE_F16);
    assert_int_equal(type_of(g, "share"), MSC_DTYPE_F32);
    assert_int_equal(type_of(g, "two"), MSC_DTYPE_F32);
    assert_int_equal(type_named(g, "v"), MSC_DTYPE_F16);
    assert_int_equal(type_named(g, "y"), MSC_DTYPE_F16);
    assert_int_equal(count_of(g, MSC_OP_CAST), 2);
    msc_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_wide__types),
        cmocka_unit_test(test_graph_wide__round),
        cmocka_unit_test(test_graph_wide__set_weight),
        cmocka_unit_test(test_graph_wide__export),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

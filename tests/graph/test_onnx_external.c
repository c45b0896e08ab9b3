// Models whose weights are in a second file: written above a limit, read in place, refused if the
// file is damaged, and removed.
#include "graph/onnx/onnx_file_internal.h"

#include "tests/graph/onnx_files.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { IN = 64, OUT = 512, PAGE = 4096 };

static char path[64], data_path[72];

static int name_files(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/msc_external_%d.onnx", (int)getpid());
    snprintf(data_path, sizeof data_path, "%s.data", path);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    unlink(path);
    unlink(data_path);
    return 0;
}

// Adds a convolution with a weight of 128 KB, which is mapped, and a bias of 2 KB, which is copied.
// The weight's elements are 0, 1, 2 and so on, those of the bias 0, -1, -2.
static int32_t add_wide(struct msc_graph *g, int32_t x) {
    int32_t bias = add_weight(g, "conv.bias", "O", 1, DIMS(OUT));
    float *b = msc_array_data(msc_graph_tensor(g, bias)->data);
    for (int i = 0; i < OUT; i++) {
        b[i] = (float)-i;
    }
    const struct msc_weight_spec weights[2] = {
        {"weight", add_weight(g, "conv.weight", "OIHW", 4, DIMS(OUT, IN, 1, 1))},
        {"bias", bias},
    };
    return add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CONV2D_BIAS,
                                                 .name = "conv",
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_weights = 2,
                                                 .weights = weights});
}

static struct msc_graph *finish(struct msc_graph *g, int32_t y) {
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static struct msc_graph *make_wide(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "wide"));
    return finish(g, add_wide(g, add_input(g, "x", "NCHW", 4, DIMS(1, IN, 2, 2))));
}

// The wide convolution, and an If whose branches have a weight of their own.
static struct msc_graph *make_choice(void) {
    struct msc_graph *g, *bodies[2];
    int32_t inputs[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(msc_graph_create(&bodies[i], "body"));
        int32_t y = add_input(bodies[i], "y", "NCHW", 4, DIMS(1, OUT, 2, 2));
        int32_t w = add_weight(bodies[i], "own.weight", "OIHW", 4, DIMS(1, OUT, 1, 1));
        (void)finish(bodies[i], add_conv(bodies[i], "own", y, w));
    }
    assert_ok(msc_graph_create(&g, "branches"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "c", NULL, MSC_DTYPE_BOOL, "", 0, NULL));
    inputs[1] = add_wide(g, add_input(g, "x", "NCHW", 4, DIMS(1, IN, 2, 2)));
    struct msc_joint_spec spec = {.op = MSC_OP_IF,
                                  .n_inputs = 2,
                                  .inputs = inputs,
                                  .n_graphs = 2,
                                  .graphs = (const struct msc_graph *const *)bodies};
    (void)finish(g, add_joint(g, &spec));
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    return g;
}

// The wide convolution behind a mean. The exporter writes its axes as an initialiser, and then, in
// the model's version of ONNX, as an attribute.
static struct msc_graph *make_axes(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "axes"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, IN, 2, 2));
    static const struct msc_attr attrs[] = {{"axis", "0"}, {"keepdims", "1"}};
    x = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_MEAN,
                                              .n_inputs = 1,
                                              .inputs = (const int32_t[]){x},
                                              .n_attrs = 2,
                                              .attrs = attrs});
    return finish(g, add_wide(g, x));
}

static uint64_t size_of(const char *of) {
    uint64_t n_bytes = 0;
    assert_ok(msc_file_size(&n_bytes, of));
    return n_bytes;
}

static void expect_elements(const struct msc_graph *g, const char *name, int64_t n, int64_t step) {
    const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_find_tensor(g, name));
    const float *x = msc_array_data(t->data);
    assert_int_equal(msc_array_n_elements(t->data), n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(x[i] == (float)(i * step));
    }
}

static const struct msc_onnx_export_options small = {.most_bytes = 1000};

static void test_graph_onnx_external__written(void **state) {
    (void)state;
    struct msc_graph *g = make_wide(), *again;
    Onnx__ModelProto *model;
    assert_ok(msc_onnx_save(g, path, &small));
    // Every tensor begins at a page: 128 KB, then 2 KB.
    assert_int_equal(size_of(data_path), OUT * IN * sizeof(float) + OUT * sizeof(float));
    assert_in_range(size_of(path), 1, 1000);
    assert_ok(msc_onnx_model_read(&model, path));
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = model->graph->initializer[i];
        assert_int_equal(t->data_location, ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL);
        assert_int_equal(t->n_external_data, 3);
        assert_string_equal(t->external_data[0]->value, msc_path_name(data_path));
        assert_int_equal(strtoull(t->external_data[1]->value, NULL, 10) % PAGE, 0);
    }
    msc_onnx_model_free(model);
    again = load_file(path);
    expect_elements(again, "conv.weight", (int64_t)OUT * IN, 1);
    expect_elements(again, "conv.bias", OUT, -1);
    // A model may replace the files from which its weights are read.
    assert_ok(msc_onnx_save(again, path, &small));
    msc_graph_destroy(again);
    again = load_file(path);
    expect_elements(again, "conv.weight", (int64_t)OUT * IN, 1);
    msc_graph_destroy(again);
    msc_graph_destroy(g);
}

static void expect_wide(struct msc_graph *g) {
    assert_ok(msc_onnx_save(g, path, &small));
    msc_graph_destroy(g);
    g = load_file(path);
    expect_elements(g, "conv.weight", (int64_t)OUT * IN, 1);
    expect_elements(g, "conv.bias", OUT, -1);
    msc_graph_destroy(g);
}

static void test_graph_onnx_external__with_bodies(void **state) {
    (void)state;
    expect_wide(make_choice());
}

static void test_graph_onnx_external__with_axes(void **state) {
    (void)state;
    expect_wide(make_axes());
}

static void test_graph_onnx_external__one_file_below_the_limit(void **state) {
    (void)state;
    struct msc_graph *g = make_wide();
    assert_ok(msc_onnx_save(g, path, &(struct msc_onnx_export_options){.most_bytes = 1 << 20}));
    assert_false(msc_file_exists(data_path));
    assert_in_range(size_of(path), OUT * IN * sizeof(float), OUT * IN * sizeof(float) + 4000);
    msc_graph_destroy(g);
    g = load_file(path);
    expect_elements(g, "conv.weight", (int64_t)OUT * IN, 1);
    msc_graph_destroy(g);
}

static void test_graph_onnx_external__cut_short(void **state) {
    (void)state;
    struct msc_graph *g = make_wide();
    assert_ok(msc_onnx_save(g, path, &small));
    msc_graph_destroy(g);
    assert_int_equal(truncate(data_path, 100000), 0);
    assert_int_equal(msc_onnx_load(&g, path, NULL), MSC_E_FORMAT);
    assert_non_null(strstr(msc_status_message(), "conv.weight"));
    assert_non_null(strstr(msc_status_message(), "has 100000 bytes"));
}

static void test_graph_onnx_external__removed(void **state) {
    (void)state;
    struct msc_graph *g = make_wide();
    assert_ok(msc_onnx_save(g, path, &small));
    assert_ok(msc_onnx_remove(path));
    assert_false(msc_file_exists(path));
    assert_false(msc_file_exists(data_path));
    // A file of that name which the model does not read is not removed.
    assert_ok(msc_onnx_save(g, path, NULL));
    assert_ok(msc_file_write(data_path, "other", 5));
    assert_ok(msc_onnx_remove(path));
    assert_false(msc_file_exists(path));
    assert_true(msc_file_exists(data_path));
    msc_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__written, name_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__with_bodies, name_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__with_axes, name_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__one_file_below_the_limit,
                                        name_files, remove_files),
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__cut_short, name_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(test_graph_onnx_external__removed, name_files,
                                        remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

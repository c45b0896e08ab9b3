// Graph files: JSON and text, with weights in a file next to it. Weights that do not fit the graph
// are refused. Expected graphs are those saved, and expected messages are written by hand.
#include "base/file.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "graph/onnx/load.h"
#include "tests/graph/graph_samples.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>

// Saves and reads a graph in the form that `ending` names.
static void check_form(const char *ending) {
    struct msc_graph *g = make_branches(), *read;
    char folder[] = "/tmp/msc_test_graph_XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/net%s", folder, ending);
    assert_ok(msc_graph_save(g, path));
    assert_ok(msc_graph_load(&read, path));
    assert_true(msc_graph_equal(g, read, true));
    msc_graph_destroy(read);
    assert_int_equal(remove(path), 0);
    assert_int_not_equal(msc_graph_load(&read, path), MSC_OK);
    assert_message("net.");
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_int_equal(msc_graph_load(&read, path), MSC_E_UNSUPPORTED);
    assert_message(".onnx, .json, .msc or .gguf");
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
    msc_graph_destroy(g);
}

static void test_graph_file__forms(void **state) {
    (void)state;
    check_form(".json");
    check_form(".msc");
}

// Saves a product with a bias as "net.json" in the new folder `folder`.
static void save_product(const char *folder) {
    struct msc_graph *g;
    int32_t x;
    char path[64];
    assert_ok(msc_graph_create(&g, "product"));
    assert_ok(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F32, "", 2, DIMS(1, 2)));
    const struct msc_weight_spec weights[] = {
        {"weight", add_weight(g, "fc.weight", "", 2, DIMS(1, 2))},
        {"bias", add_weight(g, "fc.bias", "", 1, DIMS(1))},
    };
    int32_t y = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_LINEAR_BIAS,
                                                      .n_inputs = 1,
                                                      .inputs = &x,
                                                      .n_weights = 2,
                                                      .weights = weights});
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    snprintf(path, sizeof(path), "%s/net", folder);
    assert_ok(msc_graph_save(g, path));
    msc_graph_destroy(g);
}

struct given {
    const char *name;
    int n_dims;
    int64_t dims[4];
    double element; // the value of every element
    enum msc_dtype dtype;
};

static enum msc_status load_with(struct msc_graph **out, const char *folder,
                                 const struct given given[], size_t n) {
    struct msc_array_list list = {0};
    char path[64];
    bool is_bound;
    for (size_t i = 0; i < n; i++) {
        struct msc_array *wide, *array;
        assert_ok(msc_array_create(&wide, MSC_DTYPE_F64, given[i].n_dims, given[i].dims));
        for (int64_t k = 0; k < msc_array_n_elements(wide); k++) {
            ((double *)msc_array_data(wide))[k] = given[i].element;
        }
        assert_ok(msc_array_convert(&array, wide, given[i].dtype));
        assert_ok(msc_array_list_add(&list, given[i].name, array));
        msc_array_release(array);
        msc_array_release(wide);
    }
    snprintf(path, sizeof(path), "%s/net.json", folder);
    enum msc_status status = msc_graph_load_weights(out, &is_bound, path, NULL, 0, &list, NULL);
    msc_array_list_finish(&list);
    return status;
}

static void test_graph_file__weights(void **state) {
    (void)state;
    static const struct {
        struct given given[2];
        size_t n;
        const char *message; // NULL: the weights are accepted
    } cases[] = {
        {{{"fc.weight", 2, {1, 2}, 0.1, MSC_DTYPE_F64}, {"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F16}},
         2,
         NULL},
        {{{"fc.weight", 2, {1, 2}, 0.1, MSC_DTYPE_F32}}, 1, "have 'fc.weight' but not 'fc.bias'"},
        {{{"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F32}}, 1, "have 'fc.bias' but not 'fc.weight'"},
        {{{"module.fc.weight", 2, {1, 2}, 0.1, MSC_DTYPE_F32}}, 1, "remove 'module.'"},
        {{{"weight", 2, {1, 2}, 0.1, MSC_DTYPE_F32}}, 1, "'fc.weight': add 'fc.'"},
        {{{"fc.", 2, {1, 2}, 0.1, MSC_DTYPE_F32}, {"", 1, {1}, 0.5, MSC_DTYPE_F32}},
         2,
         "new weight 'fc.' is not in the model"},
        {{{"fc.weight", 2, {1, 2}, 1e39, MSC_DTYPE_F64}, {"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F32}},
         2,
         "1e+39"},
        {{{"fc.weight", 2, {1, 2}, 1, MSC_DTYPE_I64}, {"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F32}},
         2,
         "as floats"},
        {{{"fc.weight", 2, {1, 2}, NAN, MSC_DTYPE_F32}, {"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F32}},
         2,
         "element 0 of 2 of the new 'fc.weight' is NaN"},
        {{{"fc.weight", 1, {2}, 0.1, MSC_DTYPE_F64}, {"fc.bias", 1, {1}, 0.5, MSC_DTYPE_F32}},
         2,
         "float64[2]"},
    };
    char folder[] = "/tmp/msc_test_graph_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    save_product(folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msc_graph *g = NULL;
        enum msc_status status = load_with(&g, folder, cases[i].given, cases[i].n);
        if (cases[i].message != NULL) {
            assert_int_equal(status, MSC_E_INVALID);
            assert_message(cases[i].message);
            continue;
        }
        assert_ok(status);
        const float *weight =
            msc_array_data(msc_graph_tensor(g, msc_graph_find_tensor(g, "fc.weight"))->data);
        const float *bias =
            msc_array_data(msc_graph_tensor(g, msc_graph_find_tensor(g, "fc.bias"))->data);
        assert_true(weight[0] == 0.1f && weight[1] == 0.1f && bias[0] == 0.5f);
        msc_graph_destroy(g);
    }
    snprintf(path, sizeof(path), "%s/net.json", folder);
    assert_int_equal(remove(path), 0);
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

// Saves a convolution by the negative of a weight, and a batch normalisation, as "net.json" in the
// new folder `folder`: the form that a network has before constants are computed and passes run.
static void save_unfolded(const char *folder) {
    struct msc_graph *g;
    char path[64];
    assert_ok(msc_graph_create(&g, "unfolded"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 1, 2, 2));
    int32_t kernel = add_joint(
        g,
        &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                 .name = "kernel",
                                 .n_weights = 1,
                                 .weights = &(struct msc_weight_spec){
                                     "const", add_weight(g, "kernel", "", 4, DIMS(2, 1, 1, 1))}});
    int32_t turned = add_unary(g, MSC_OP_NEGATIVE, "turned", kernel);
    int32_t y = add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_CONV2D, .name = "conv", .n_inputs = 2, .inputs = IDS(x, turned)});
    const struct msc_weight_spec weights[] = {
        {"gamma", add_weight(g, "bn.weight", "O", 1, DIMS(2))},
        {"beta", add_weight(g, "bn.bias", "O", 1, DIMS(2))},
        {"mean", add_weight(g, "bn.running_mean", "O", 1, DIMS(2))},
        {"var", add_weight(g, "bn.running_var", "O", 1, DIMS(2))},
    };
    int32_t z = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_BATCH_NORM,
                                                      .name = "bn",
                                                      .n_inputs = 1,
                                                      .inputs = &y,
                                                      .n_weights = 4,
                                                      .weights = weights});
    assert_ok(msc_graph_set_outputs(g, 1, &z));
    assert_ok(msc_graph_finalize(g));
    snprintf(path, sizeof(path), "%s/net", folder);
    assert_ok(msc_graph_save(g, path));
    msc_graph_destroy(g);
}

// The second channel: (-k x - 1) / sqrt(1 + 1e-5) * 1 + 1 for the weight k.
static void check_folded(const struct msc_graph *g, float k) {
    const struct msc_joint *conv = msc_graph_joint(g, msc_graph_find_joint(g, "conv"));
    float scale = 1 / sqrtf(1 + 1e-5f);
    assert_int_equal(msc_graph_n_joints(g), 2);
    assert_int_equal(conv->op, MSC_OP_CONV2D_BIAS);
    const float *weight =
        msc_array_data(msc_graph_tensor(g, msc_joint_weight(conv, "weight"))->data);
    const float *bias = msc_array_data(msc_graph_tensor(g, msc_joint_weight(conv, "bias"))->data);
    assert_true(fabsf(weight[1] + k * scale) < 1e-6f);
    assert_true(fabsf(bias[1] - (1 - scale)) < 1e-6f);
}

// Constants are computed and passes run when JSON is read, after weights are replaced.
static void test_graph_file__unfolded(void **state) {
    (void)state;
    char folder[] = "/tmp/msc_test_graph_XXXXXX", path[64];
    struct msc_graph *g;
    assert_non_null(mkdtemp(folder));
    save_unfolded(folder);
    snprintf(path, sizeof(path), "%s/net.json", folder);
    assert_ok(msc_graph_load(&g, path));
    check_folded(g, 1);
    msc_graph_destroy(g);
    const struct given given = {"kernel", 4, {2, 1, 1, 1}, 3, MSC_DTYPE_F32};
    assert_ok(load_with(&g, folder, &given, 1));
    check_folded(g, 3);
    msc_graph_destroy(g);
    assert_int_equal(remove(path), 0);
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

// x * clip(x + 3, 0, 6) / 6 of a convolution and a bias, as a graph without passes has them.
static const char separate[] = "net <OUTPUTS: y>\n"
                               "ID x OUT: x<1,1,4,4|float32> OPTYPE: input\n"
                               "ID conv IN: x OPTYPE: nn.conv2d WEIGHTS: weight: w\n"
                               "ID b OPTYPE: constant WEIGHTS: const: b\n"
                               "ID biased IN: conv,b OPTYPE: add\n"
                               "ID three OPTYPE: constant WEIGHTS: const: three\n"
                               "ID six OPTYPE: constant WEIGHTS: const: six\n"
                               "ID a IN: biased,three OPTYPE: add\n"
                               "ID c IN: a OPTYPE: clip ATTRS: min=0 max=6\n"
                               "ID m IN: biased,c OPTYPE: multiply\n"
                               "ID y IN: m,six OPTYPE: divide\n";

static struct msc_graph *load_text(const char *folder, const char *text, enum msc_status status) {
    struct msc_graph *g = NULL;
    char path[64];
    snprintf(path, sizeof(path), "%s/net.msc", folder);
    assert_ok(msc_file_write(path, text, strlen(text)));
    assert_int_equal(msc_graph_load(&g, path), status);
    assert_int_equal(remove(path), 0);
    return g;
}

static void save_numbers(const char *folder, float bias) {
    const struct {
        const char *name;
        int n_dims;
        int64_t dims[4];
        float element;
    } rows[] = {{"w", 4, {2, 1, 1, 1}, 1},
                {"b", 3, {2, 1, 1}, bias},
                {"three", 0, {0}, 3},
                {"six", 0, {0}, 6}};
    struct msc_array_list list = {0};
    char path[64];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_array *array;
        assert_ok(msc_array_create(&array, MSC_DTYPE_F32, rows[i].n_dims, rows[i].dims));
        for (int64_t k = 0; k < msc_array_n_elements(array); k++) {
            ((float *)msc_array_data(array))[k] = rows[i].element;
        }
        assert_ok(msc_array_list_add(&list, rows[i].name, array));
        msc_array_release(array);
    }
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_ok(msc_safetensors_save(path, &list, NULL, 0));
    msc_array_list_finish(&list);
}

// A text by hand with weights by name goes through the passes of every import; its weights must be
// finite. Without the weights file, it is an error that names the file; a text that needs no
// weights needs no file.
static void test_graph_file__by_hand(void **state) {
    (void)state;
    char folder[] = "/tmp/msc_test_graph_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    save_numbers(folder, 0.5f);
    struct msc_graph *g = load_text(folder, separate, MSC_OK);
    assert_int_equal(msc_graph_n_joints(g), 3);
    const struct msc_joint *conv = msc_graph_joint(g, msc_graph_find_joint(g, "conv"));
    assert_int_equal(conv->op, MSC_OP_CONV2D_BIAS);
    assert_string_equal(msc_graph_tensor(g, msc_joint_weight(conv, "weight"))->layout, "OIHW");
    assert_int_equal(msc_graph_joint(g, msc_graph_find_joint(g, "y"))->op, MSC_OP_HARD_SWISH);
    msc_graph_destroy(g);
    save_numbers(folder, NAN);
    load_text(folder,
              "net <OUTPUTS: y>\nID x OUT: x<1,1,4,4|float32> OPTYPE: input\n"
              "ID y IN: x OPTYPE: msc.conv2d_bias WEIGHTS: weight: w bias: b",
              MSC_E_FORMAT);
    assert_message("net.msc:3:4");
    load_text(folder,
              "net <OUTPUTS: y>\nID x OUT: x<2,1,1|float32> OPTYPE: input\n"
              "ID y IN: x OPTYPE: nn.prelu WEIGHTS: slope: b",
              MSC_E_INVALID);
    assert_message("weight 'b': element 0 of 2 is NaN");
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_int_equal(remove(path), 0);
    load_text(folder, separate, MSC_E_NOT_FOUND);
    assert_message("net.msc: reading its weights: cannot open");
    g = load_text(folder,
                  "net <OUTPUTS: y> ID x OUT: x<1|float32> OPTYPE: input\n"
                  "ID y IN: x OPTYPE: tanh",
                  MSC_OK);
    assert_int_equal(msc_graph_tensor(g, msc_graph_output(g, 0))->dims[0], 1);
    msc_graph_destroy(g);
    assert_int_equal(remove(folder), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_file__forms),
        cmocka_unit_test(test_graph_file__by_hand),
        cmocka_unit_test(test_graph_file__weights),
        cmocka_unit_test(test_graph_file__unfolded),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

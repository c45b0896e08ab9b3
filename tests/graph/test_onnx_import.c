// ONNX import: names, operators, constants, layouts, external data and refusals. Expected values
// follow from files/make_models.py, which writes the models.
#include "base/alloc.h"
#include "base/file.h"
#include "tests/graph/onnx_files.h"
#include "tests/temp_folder.h"

#include <sys/stat.h>

static void test_graph_onnx_import__names(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("names"));
    // Three name clashes: two nodes share a name, a node and an input share a name, and a name
    // derived from an operator is also the name of a later node.
    assert_string_equal(op_of(g, "relu_1"), "nn.relu");
    assert_string_equal(op_of(g, "sigmoid"), "sigmoid");
    assert_string_equal(op_of(g, "tanh"), "tanh");
    assert_string_equal(op_of(g, "abs"), "abs");
    assert_string_equal(op_of(g, "relu"), "add");
    assert_string_equal(op_of(g, "x"), "input");
    assert_string_equal(output_of(g, "sigmoid")->alias, "b");
    assert_string_equal(output_of(g, "relu")->alias, "y");
    assert_int_equal(msc_graph_n_inputs(g), 1);
    assert_int_not_equal(msc_graph_find_tensor(g, "w"), MSC_NO_ID);
    assert_int_equal(msc_graph_find_tensor(g, "unused"), MSC_NO_ID);
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__gemm(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("gemm"));
    assert_string_equal(op_of(g, "oi"), "msc.linear_bias");
    assert_string_equal(weight_of(g, "oi", "weight")->name, "w_oi");
    assert_string_equal(weight_of(g, "oi", "weight")->layout, "OI");
    assert_string_equal(op_of(g, "io"), "msc.linear_bias");
    assert_string_equal(weight_of(g, "io", "weight")->layout, "IO");
    assert_string_equal(weight_of(g, "io", "bias")->layout, "O");
    // The weight is 0.5 * ramp, the bias 2 * [1, -1].
    check_floats(weight_of(g, "scaled", "weight"), 6,
                 (const float[]){-0.5f, -0.375f, -0.25f, -0.125f, 0.0f, 0.125f});
    check_floats(weight_of(g, "scaled", "bias"), 2, (const float[]){2.0f, -2.0f});
    check_floats(weight_of(g, "scalar", "bias"), 2, (const float[]){3.0f, 3.0f});
    assert_string_equal(op_of(g, "bare"), "msc.linear");
    assert_string_equal(op_of(g, "full_bias"), "msc.gemm");
    assert_string_equal(op_of(g, "turned"), "msc.gemm");
    assert_string_equal(attr_of(g, "turned", "trans_a"), "1");
    assert_string_equal(op_of(g, "product"), "msc.linear_bias");
    assert_string_equal(output_of(g, "product")->alias, "sum");
    assert_string_equal(op_of(g, "left"), "matmul");
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__symbols(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims"));
    const struct msc_tensor *x = output_of(g, "x"), *y = output_of(g, "y");
    check_dims(x, "[-1,-1]");
    check_dims(y, "[-1,1]");
    assert_int_equal(x->prims[0], y->prims[0]);
    assert_string_equal(msc_graph_prim(g, x->prims[0])->name, "N");
    assert_string_equal(msc_graph_prim(g, x->prims[1])->name, "x.1");
    assert_int_equal(output_of(g, "add")->prims[1], x->prims[1]);
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__unnamed_dims(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims_unnamed"));
    const struct msc_tensor *x = output_of(g, "x");
    assert_string_equal(msc_graph_prim(g, x->prims[0])->name, "x.0");
    assert_string_equal(msc_graph_prim(g, x->prims[1])->name, "x.1");
    msc_graph_destroy(g);
    const struct msc_binding bindings[] = {{"x.0", 2}, {"x.1", 3}};
    struct msc_onnx_import_options options = {.bindings = bindings, .n_bindings = 2};
    assert_ok(msc_onnx_load(&g, MSC_TESTS_MODEL("dims_unnamed"), &options));
    check_dims(output_of(g, "abs"), "[2,3]");
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__bound_symbols(void **state) {
    (void)state;
    struct msc_graph *g;
    const struct msc_binding bindings[] = {{"N", 4}, {"x.1", 7}};
    struct msc_onnx_import_options options = {.bindings = bindings, .n_bindings = 2};
    assert_ok(msc_onnx_load(&g, MSC_TESTS_MODEL("dims"), &options));
    assert_true(msc_graph_is_bound(g));
    check_dims(output_of(g, "add"), "[4,7]");
    msc_graph_destroy(g);
    const struct msc_binding unknown = {"M", 4};
    options = (struct msc_onnx_import_options){.bindings = &unknown, .n_bindings = 1};
    assert_int_equal(msc_onnx_load(&g, MSC_TESTS_MODEL("dims"), &options), MSC_E_INVALID);
    assert_message("bind: no input or input dimension is called \"M\"; possible names: N, x.1");
}

static void test_graph_onnx_import__outputs(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("outputs"));
    static const char *const aliases[] = {"x", "k", "i", "j"};
    static const char *const ops[] = {"identity", "identity", "nn.relu", "identity"};
    assert_int_equal(msc_graph_n_outputs(g), 4);
    for (int32_t i = 0; i < 4; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_output(g, i));
        assert_string_equal(t->alias, aliases[i]);
        assert_string_equal(op_of(g, msc_graph_joint(g, t->producer)->name), ops[i]);
    }
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__constants(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("constants"));
    // The weight is the transposed ramp [2, 3], under the name of the transposed value.
    const struct msc_tensor *w = weight_of(g, "matmul", "weight");
    assert_string_equal(w->name, "w");
    check_floats(w, 6, (const float[]){-1.0f, -0.25f, -0.75f, 0.0f, -0.5f, 0.25f});
    assert_string_equal(op_of(g, "n_float"), "constant");
    check_floats(weight_of(g, "add_constants", "const"), 2, (const float[]){3.0f, 4.0f});
    assert_string_equal(attr_of(g, "reshape", "shape"), "1,2");
    assert_int_equal(msc_graph_find_joint(g, "sqrt"), MSC_NO_ID);
    assert_int_equal(msc_graph_find_joint(g, "n_ints"), MSC_NO_ID);
    assert_int_equal(msc_graph_n_joints(g), 7);
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__remainders(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("remainders"));
    assert_string_equal(attr_of(g, "pad", "pad_width"), "0,0,5,5");
    check_dims(output_of(g, "pad"), "[21,8]");
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__reductions(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("reductions"));
    assert_string_equal(attr_of(g, "pad", "pad_width"), "0,16,36,6");
    check_dims(output_of(g, "pad"), "[52,25]");
    msc_graph_destroy(g);
}

// The scales gamma / sqrt(var + epsilon) are 2 and 1/2.
static void test_graph_onnx_import__batch_norm(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("batch_norm"));
    assert_string_equal(op_of(g, "conv_a"), "msc.conv2d_bias");
    assert_string_equal(weight_of(g, "conv_a", "weight")->name, "w_a");
    check_floats(weight_of(g, "conv_a", "weight"), 4, (const float[]){2.0f, 4.0f, -0.5f, 2.0f});
    assert_string_equal(weight_of(g, "conv_a", "bias")->name, "beta_a");
    check_floats(weight_of(g, "conv_a", "bias"), 2, (const float[]){-1.0f, 1.5f});
    assert_string_equal(output_of(g, "conv_a")->alias, "a_norm");
    check_floats(weight_of(g, "conv_b", "weight"), 4, (const float[]){2.0f, 1.0f, 0.0f, 0.5f});
    assert_string_equal(weight_of(g, "conv_b", "bias")->name, "b_b");
    check_floats(weight_of(g, "conv_b", "bias"), 2, (const float[]){0.25f, 1.0f});
    assert_int_equal(msc_graph_find_joint(g, "norm_a"), MSC_NO_ID);
    assert_int_equal(msc_graph_find_joint(g, "norm_b"), MSC_NO_ID);
    // The third normalisation is not merged, because the result of its convolution is also an
    // output.
    assert_string_equal(op_of(g, "conv_c"), "nn.conv2d");
    assert_string_equal(op_of(g, "norm_c"), "nn.batch_norm");
    msc_graph_destroy(g);
    struct msc_onnx_import_options options = {.keep_batch_norm = true};
    assert_ok(msc_onnx_load(&g, MSC_TESTS_MODEL("batch_norm"), &options));
    assert_string_equal(op_of(g, "norm_a"), "nn.batch_norm");
    check_floats(weight_of(g, "conv_a", "weight"), 4, (const float[]){1.0f, 2.0f, -1.0f, 4.0f});
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__old_softmax(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("softmax_12"));
    assert_string_equal(op_of(g, "flat"), "reshape");
    check_dims(output_of(g, "softmax"), "[2,60]");
    check_dims(output_of(g, "flat"), "[2,3,4,5]");
    assert_string_equal(op_of(g, "last"), "nn.softmax");
    assert_string_equal(attr_of(g, "last", "axis"), "3");
    const struct msc_tensor *s = output_of(g, "s"), *t = output_of(g, "symbolic");
    assert_int_equal(t->prims[1], s->prims[1]);
    assert_int_equal(t->prims[2], s->prims[2]);
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__old_opset(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("opset_9"));
    check_dims(output_of(g, "slice"), "[1,3,3,4]");
    check_dims(output_of(g, "pad"), "[1,3,4,6]");
    assert_string_equal(attr_of(g, "pad", "pad_value"), "1.5");
    assert_string_equal(attr_of(g, "clip", "max"), "6");
    check_dims(output_of(g, "upsample"), "[1,3,8,12]");
    assert_string_equal(attr_of(g, "upsample", "coordinate_transformation_mode"), "asymmetric");
    assert_string_equal(attr_of(g, "upsample", "rounding_method"), "floor");
    assert_int_equal(msc_graph_find_joint(g, "dropout"), MSC_NO_ID);
    check_dims(output_of(g, "mean"), "[1,3]");
    check_dims(output_of(g, "unsqueeze"), "[1,1,3,1]");
    const struct msc_joint *split = msc_graph_joint(g, msc_graph_find_joint(g, "split"));
    check_dims(msc_graph_tensor(g, split->outputs[0]), "[1,1,1]");
    check_dims(msc_graph_tensor(g, split->outputs[1]), "[1,2,1]");
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__windows(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("windows"));
    assert_string_equal(attr_of(g, "same", "padding"), "0,0,1,1");
    assert_string_equal(attr_of(g, "lower", "padding"), "1,1,0,0");
    check_dims(output_of(g, "same"), "[1,4,3,3]");
    check_dims(output_of(g, "ceil"), "[1,3,3,3]");
    check_dims(output_of(g, "up"), "[1,2,11,12]");
    check_dims(output_of(g, "padded"), "[1,2,10,11]");
    assert_string_equal(weight_of(g, "up", "weight")->layout, "IOHW");
    msc_graph_destroy(g);
}

static void test_graph_onnx_import__shared_weights(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("shared"));
    assert_ptr_equal(weight_of(g, "first", "weight"), weight_of(g, "second", "weight"));
    assert_string_equal(msc_graph_joint(g, msc_graph_find_joint(g, "second"))->shared_ref, "first");
    // A matrix read in two orientations becomes two weights that share their elements.
    const struct msc_tensor *oi = weight_of(g, "gemm", "weight");
    const struct msc_tensor *io = weight_of(g, "matmul", "weight");
    assert_string_equal(oi->layout, "OI");
    assert_string_equal(io->layout, "IO");
    assert_ptr_equal(oi->data, io->data);
    msc_graph_destroy(g);
}

// If an embedding table is also the last layer's weight, it is imported as one weight with the
// layer's layout.
static void test_graph_onnx_import__tied_weights(void **state) {
    (void)state;
    static const char *const paths[] = {MSC_TESTS_MODEL("tied"), MSC_TESTS_MODEL("tied_turned")};
    for (size_t i = 0; i < 2; i++) {
        struct msc_graph *g = load_file(paths[i]);
        const struct msc_joint *take = msc_graph_joint(g, msc_graph_find_joint(g, "take"));
        const struct msc_tensor *w = weight_of(g, "linear", "weight");
        assert_ptr_equal(msc_graph_tensor(g, msc_graph_weight_of(g, take->operands[0])), w);
        assert_string_equal(w->name, "w");
        assert_string_equal(w->layout, "OI");
        msc_graph_destroy(g);
    }
}

static void test_graph_onnx_import__layouts(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view"));
    assert_string_equal(output_of(g, "x")->layout, "NCHW"); // inferred from the consumer of x
    assert_string_equal(output_of(g, "conv")->layout, "NCHW");
    assert_string_equal(weight_of(g, "conv", "weight")->layout, "OIHW");
    assert_string_equal(output_of(g, "reshape")->layout, "NC");
    msc_graph_destroy(g);
}

// A weight stored as integers with a scale is imported as an ordinary float weight.
static void test_graph_onnx_import__quantised(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("quantised"));
    assert_string_equal(op_of(g, "to"), "quantize");
    assert_string_equal(op_of(g, "fro"), "dequantize");
    assert_int_equal(output_of(g, "to")->dtype, MSC_DTYPE_U8);
    assert_int_equal(output_of(g, "fro")->dtype, MSC_DTYPE_F32);
    assert_string_equal(output_of(g, "to")->layout, "NCHW");
    assert_string_equal(weight_of(g, "to", "scale")->name, "xs");
    assert_string_equal(weight_of(g, "to", "zero_point")->name, "xz");
    // The weight is (-128 - 1) * 0.5 and (127 + 1) * 0.25.
    assert_string_equal(op_of(g, "conv"), "msc.conv2d_bias");
    check_floats(weight_of(g, "conv", "weight"), 2, (const float[]){-64.5f, 32.0f});
    check_floats(weight_of(g, "conv", "bias"), 2, (const float[]){20000.0f, -6.0f});
    int32_t factor = msc_graph_joint(g, msc_graph_find_joint(g, "mul"))->operands[1];
    const struct msc_tensor *made = msc_graph_tensor(g, factor);
    const struct msc_joint *constant = msc_graph_joint(g, made->producer);
    assert_int_equal(constant->op, MSC_OP_CONSTANT);
    check_floats(msc_graph_tensor(g, constant->operands[0]), 3,
                 (const float[]){-0.25f, -2.0f, 1.75f});
    assert_int_equal(msc_graph_n_joints(g), 6);
    msc_graph_destroy(g);
}

static void copy_file(const char *to, const char *from) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&bytes, &n_bytes, from));
    assert_ok(msc_file_write(to, bytes, n_bytes));
    msc_free(bytes);
}

static void test_graph_onnx_import__external_data(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("external"));
    check_floats(weight_of(g, "conv", "weight"), 4, (const float[]){1.0f, 2.0f, 3.0f, 4.0f});
    msc_graph_destroy(g);
}

// External data must be a regular file in the model's folder: links that lead out of it and other
// kinds of file are refused.
static void test_graph_onnx_import__external_data_is_a_file_in_the_folder(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    char model[TEMP_FOLDER_BYTES + 32];
    char data[TEMP_FOLDER_BYTES + 32];
    char inside[TEMP_FOLDER_BYTES + 32];
    struct msc_graph *g = NULL;
    temp_folder_make(folder);
    snprintf(model, sizeof model, "%s/external.onnx", folder);
    snprintf(data, sizeof data, "%s/external.bin", folder);
    snprintf(inside, sizeof inside, "%s/weights.bin", folder);
    copy_file(model, MSC_TESTS_MODEL("external"));

    assert_int_equal(symlink(MSC_TESTS_FOLDER "/graph/files/external.bin", data), 0);
    assert_int_equal(msc_onnx_load(&g, model, NULL), MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "must be in the model's own folder"));
    assert_int_equal(unlink(data), 0);

    assert_int_equal(mkfifo(data, 0600), 0);
    alarm(60); // ends the test if a read blocks forever
    assert_int_equal(msc_onnx_load(&g, model, NULL), MSC_E_INVALID);
    alarm(0);
    assert_non_null(strstr(msc_status_message(), "external.bin"));
    assert_int_equal(unlink(data), 0);

    // A link within the folder is accepted.
    copy_file(inside, MSC_TESTS_FOLDER "/graph/files/external.bin");
    assert_int_equal(symlink("weights.bin", data), 0);
    assert_ok(msc_onnx_load(&g, model, NULL));
    msc_graph_destroy(g);
    temp_folder_remove(folder);
}

static void test_graph_onnx_import__dropout_of_nothing(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dropout_nothing"));
    assert_string_equal(op_of(g, "dropout"), "identity");
    msc_graph_destroy(g);
}

// Before opset 14 additional outputs make a BatchNormalization a training node, unless they have no
// names or is_test is set.
static void test_graph_onnx_import__no_training(void **state) {
    (void)state;
    static const char *const paths[] = {MSC_TESTS_MODEL("training_no_outputs"),
                                        MSC_TESTS_MODEL("training_is_test")};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct msc_graph *g = load_file(paths[i]);
        assert_string_equal(op_of(g, "norm"), "nn.batch_norm");
        msc_graph_destroy(g);
    }
}

// Joints are named after the modules of the network that the file tells.
static void test_graph_onnx_import__modules(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"body.conv1", "nn.conv2d", "body.conv1"},
        {"body.act", "nn.relu", "body.act"},
        {"mean", "nn.global_avg_pool", "block"},
        {"layers.0.fc", "msc.linear", "layers.0.fc"},
        {"layers.0.fc/gate", "sigmoid", "layers.0.fc"},
        {"layers.0.out", "msc.linear", "layers.0.out"},
        {"layers.1.out", "msc.linear", "layers.1.out"},
        {"exp", "exp", "block"},
        {"plain", "nn.relu", "block"},
    };
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("modules"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(op_of(g, rows[i][0]), rows[i][1]);
        int32_t joint = msc_graph_find_joint(g, rows[i][0]);
        assert_string_equal(msc_graph_joint(g, joint)->scope, rows[i][2]);
    }
    msc_graph_destroy(g);
}

// Nodes may be in any order, as ONNX Runtime's tools write them.
static void test_graph_onnx_import__unsorted(void **state) {
    (void)state;
    static const char *const names[] = {"relu", "tanh", "mean", "greater", "sigmoid", "if"};
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("unsorted"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_not_equal(msc_graph_find_joint(g, names[i]), MSC_NO_ID);
    }
    assert_string_equal(output_of(g, "if")->alias, "y");
    msc_graph_destroy(g);
}

// Sparse initialisers and constants are read as dense tensors. Indices are offsets or coordinates.
static void test_graph_onnx_import__sparse(void **state) {
    (void)state;
    const float coordinates[] = {0.0f, 2.0f, 0.0f, -1.0f, 0.0f, 0.5f};
    const float offsets[] = {0.0f, 3.0f, 0.0f, 4.0f};
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("sparse"));
    check_dims(weight_of(g, "product", "weight"), "[2,3]");
    check_floats(weight_of(g, "product", "weight"), 6, coordinates);
    check_floats(weight_of(g, "constant", "const"), 4, offsets);
    msc_graph_destroy(g);
    g = load_file(MSC_TESTS_MODEL("sparse_function"));
    check_floats(weight_of(g, "call/constant", "const"), 4, offsets);
    msc_graph_destroy(g);
}

struct refusal {
    const char *path;
    enum msc_status status;
    const char *message;
};

static void check_refusals(const struct refusal rows[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct msc_graph *g = NULL;
        assert_int_equal(msc_onnx_load(&g, rows[i].path, NULL), rows[i].status);
        assert_message(rows[i].path);
        assert_message(rows[i].message);
        assert_null(g);
    }
}

static void test_graph_onnx_import__refusals(void **state) {
    (void)state;
    static const struct refusal rows[] = {
        {MSC_TESTS_MODEL("nan"), MSC_E_INVALID, "initialiser 'w': element 2 of 3 is NaN"},
        {MSC_TESTS_MODEL("infinite"), MSC_E_INVALID, "initialiser 'w': element 1 of 2 is infinite"},
        {MSC_TESTS_MODEL("unknown"), MSC_E_UNSUPPORTED,
         "node 'corner' (Det): unsupported operator 'Det' of domain 'com.example'; the model has "
         "no function of this name: state the types of the node's outputs (value_info), or give a "
         "plug-in"},
        {MSC_TESTS_MODEL("nchwc"), MSC_E_UNSUPPORTED,
         "node 'conv' (Conv): unsupported operator 'Conv' of domain 'com.microsoft.nchwc'; ONNX "
         "Runtime wrote the node for one processor: optimise at level extended or below"},
        {MSC_TESTS_MODEL("zip_map"), MSC_E_UNSUPPORTED,
         "node 'zip' (ZipMap): unsupported operator 'ZipMap' of domain 'ai.onnx.ml'; it turns the "
         "probabilities into dictionaries: export the model without it (skl2onnx: "
         "options={'zipmap': False})"},
        {MSC_TESTS_MODEL("sparse_outside"), MSC_E_FORMAT,
         "sparse initialiser 'w': its index 1 is outside of its dimensions"},
        {MSC_TESTS_MODEL("undefined"), MSC_E_FORMAT,
         "node 'relu' (Relu): value 'nothing' is not produced"},
        {MSC_TESTS_MODEL("twice"), MSC_E_FORMAT, "node 'b' (Abs): two nodes produce the value 'y'"},
        {MSC_TESTS_MODEL("mismatch"), MSC_E_INVALID,
         "input has 1 channels, but the weight expects 3"},
        {MSC_TESTS_MODEL("opset_29"), MSC_E_UNSUPPORTED,
         "opset 29, expected 1 to 28; export the model with one of these (opset_version)"},
        {MSC_TESTS_MODEL("narrow_float"), MSC_E_UNSUPPORTED,
         "node 'add' (Add): input 1 is float8e4m3fn, which only QuantizeLinear and "
         "DequantizeLinear may read"},
        {MSC_TESTS_MODEL("quantised_precision"), MSC_E_UNSUPPORTED,
         "precision is float16, expected float32"},
        {MSC_TESTS_MODEL("quantised_types"), MSC_E_FORMAT,
         "output_dtype differs from the type of the zero point"},
        {MSC_TESTS_MODEL("range_stash"), MSC_E_UNSUPPORTED,
         "stash_type is 10, expected 1 (float32)"},
        {MSC_TESTS_MODEL("bitcast_width"), MSC_E_INVALID,
         "the bits of float32 cannot become 'int16', expected a type of 32 bits"},
        {MSC_TESTS_MODEL("scatter_batch"), MSC_E_INVALID,
         "its axis is 0, the batch; expected a later axis"},
        {MSC_TESTS_MODEL("attention_rule"), MSC_E_INVALID,
         "update_rule gated_delta takes a decay and a beta"},
        {MSC_TESTS_MODEL("training_output"), MSC_E_UNSUPPORTED,
         "value 'mean' is an extra output of BatchNormalization that is not supported"},
        {MSC_TESTS_MODEL("training_outputs"), MSC_E_UNSUPPORTED,
         "node 'norm' (BatchNormalization): the output 'mean' means training mode before opset 14"},
        {MSC_TESTS_MODEL("dropout_half"), MSC_E_UNSUPPORTED,
         "training_mode is set, expected a model for inference"},
        {MSC_TESTS_MODEL("short_weight"), MSC_E_FORMAT, "needs 16 bytes, found 15"},
        {MSC_TESTS_MODEL("huge_weight"), MSC_E_FORMAT, "negative or too large"},
        {MSC_TESTS_MODEL("external_outside"), MSC_E_INVALID, "must be in the model's own folder"},
        {MSC_TESTS_MODEL("external_short"), MSC_E_FORMAT, "bytes 16 to 32 are outside"},
        {MSC_TESTS_MODEL("quantised_scales"), MSC_E_INVALID,
         "node 'q' (QuantizeLinear): joint 'q' (quantize): scales [3] do not fit [1,2,4] along "
         "axis 1"},
        {MSC_TESTS_MODEL("quantised_blocks"), MSC_E_INVALID, "scales [1,2,3] do not fit"},
        {MSC_TESTS_MODEL("quantised_zeros"), MSC_E_INVALID,
         "zero points are [], expected the shape"},
        {MSC_TESTS_FOLDER "/graph/files/make_models.py", MSC_E_FORMAT, "at byte"},
        {MSC_TESTS_MODEL("block_scalar"), MSC_E_FORMAT,
         "node 'table' (GatherBlockQuantized): scales must have the shape of data, with one "
         "element for each block of 32 along axis 1"},
        {MSC_TESTS_MODEL("block_rows"), MSC_E_FORMAT, "scales must have the shape of data"},
        {MSC_TESTS_MODEL("block_bytes"), MSC_E_FORMAT,
         "w has 68 bytes, expected 4 rows of 32 codes of 4 bits"},
    };
    check_refusals(rows, sizeof rows / sizeof rows[0]);
    struct msc_graph *g;
    assert_int_not_equal(msc_onnx_load(&g, MSC_TESTS_MODEL("absent"), NULL), MSC_OK);
    assert_message("absent.onnx");
}

// Bodies of Scan and Loop, and lengths that are too large or do not fit.
static void test_graph_onnx_import__refused_bodies_and_lengths(void **state) {
    (void)state;
    static const struct refusal rows[] = {
        {MSC_TESTS_MODEL("scan_left_out"), MSC_E_FORMAT, "(Scan): the required input 0 is missing"},
        {MSC_TESTS_MODEL("scan_axis"), MSC_E_FORMAT, "axis 2147483648 is out of range for input 1"},
        {MSC_TESTS_MODEL("scan_count"), MSC_E_FORMAT,
         "num_scan_inputs is 2147483648, but the node has 2 inputs"},
        {MSC_TESTS_MODEL("scan_lengths"), MSC_E_INVALID,
         "operand 1 has a different batch size or number of iterations than operand 0"},
        {MSC_TESTS_MODEL("loop_left_out"), MSC_E_FORMAT, "(Loop): the required input 2 is missing"},
        {MSC_TESTS_MODEL("too_long"), MSC_E_INVALID, "tensor 'x:0' of [3,2199023255552] is too"},
        {MSC_TESTS_MODEL("too_many"), MSC_E_INVALID, "is too large"},
        {MSC_TESTS_MODEL("n_grams"), MSC_E_INVALID,
         "n-gram 0 has output index 9223372036854775807, which is out of range"},
        {MSC_TESTS_MODEL("split_wraps"), MSC_E_INVALID,
         "part 1 of the axis has length -4611686018427387900, expected 0 or more"},
        {MSC_TESTS_MODEL("split_negative"), MSC_E_INVALID,
         "part 0 of the axis has length -1, expected 0 or more"},
        {MSC_TESTS_MODEL("split_large"), MSC_E_INVALID, "the parts add up to more than 2^63 - 1"},
        {MSC_TESTS_MODEL("split_short"), MSC_E_INVALID,
         "parts add up to 3, but the axis has length 4"},
        {MSC_TESTS_MODEL("split_long"), MSC_E_INVALID,
         "add up to 1099511627777, but the axis has length 4"},
        {MSC_TESTS_MODEL("resize_ratio"), MSC_E_INVALID,
         "axis 0 of length 1 cannot become 1.15292e+18 times as long"},
        {MSC_TESTS_MODEL("nested"), MSC_E_UNSUPPORTED, "bodies are nested more than 8 levels deep"},
    };
    check_refusals(rows, sizeof rows / sizeof rows[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_import__names),
        cmocka_unit_test(test_graph_onnx_import__gemm),
        cmocka_unit_test(test_graph_onnx_import__symbols),
        cmocka_unit_test(test_graph_onnx_import__unnamed_dims),
        cmocka_unit_test(test_graph_onnx_import__bound_symbols),
        cmocka_unit_test(test_graph_onnx_import__outputs),
        cmocka_unit_test(test_graph_onnx_import__constants),
        cmocka_unit_test(test_graph_onnx_import__batch_norm),
        cmocka_unit_test(test_graph_onnx_import__old_softmax),
        cmocka_unit_test(test_graph_onnx_import__old_opset),
        cmocka_unit_test(test_graph_onnx_import__windows),
        cmocka_unit_test(test_graph_onnx_import__shared_weights),
        cmocka_unit_test(test_graph_onnx_import__tied_weights),
        cmocka_unit_test(test_graph_onnx_import__layouts),
        cmocka_unit_test(test_graph_onnx_import__quantised),
        cmocka_unit_test(test_graph_onnx_import__external_data),
        cmocka_unit_test(test_graph_onnx_import__external_data_is_a_file_in_the_folder),
        cmocka_unit_test(test_graph_onnx_import__remainders),
        cmocka_unit_test(test_graph_onnx_import__reductions),
        cmocka_unit_test(test_graph_onnx_import__dropout_of_nothing),
        cmocka_unit_test(test_graph_onnx_import__no_training),
        cmocka_unit_test(test_graph_onnx_import__modules),
        cmocka_unit_test(test_graph_onnx_import__unsorted),
        cmocka_unit_test(test_graph_onnx_import__sparse),
        cmocka_unit_test(test_graph_onnx_import__refusals),
        cmocka_unit_test(test_graph_onnx_import__refused_bodies_and_lengths),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

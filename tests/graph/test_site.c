// Sites: the places at which compression can act, the slots that a site covers, and the values that
// each target requantises. Expected sites are written by hand for small graphs.
#include "graph/site.h"

#include "tests/graph/graph_samples.h"

// Expected sites in order: "name:axis*slots" for weights, "name*slots" for activations.
static void check_scheme(const struct msc_graph *g, const struct msc_site_scheme *scheme,
                         const char *expected) {
    struct msc_sites sites;
    struct msc_str text = {0};
    assert_ok(msc_sites_find(&sites, g, scheme));
    for (int32_t i = 0; i < sites.n_sites; i++) {
        const struct msc_site *site = &sites.sites[i];
        msc_str_append(&text, i > 0 ? " " : "");
        msc_str_append(&text, site->name);
        if (site->kind == MSC_SITE_WEIGHT) {
            msc_str_printf(&text, "@%d", (int)site->channel_axis);
        }
        msc_str_printf(&text, "*%d", (int)site->n_slots);
        assert_int_equal(msc_sites_find_name(&sites, site->name), i);
    }
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
    msc_sites_finish(&sites);
}

static void check_sites(const struct msc_graph *g, bool by_use, const char *expected) {
    check_scheme(g, &(struct msc_site_scheme){.by_use = by_use}, expected);
}

static void check_target(const struct msc_graph *g, const char *target, const char *expected) {
    check_scheme(g, &(struct msc_site_scheme){.target = msc_target_find(target)}, expected);
}

// Checks that the groups of a weight run along `axes` axes, starting with `axis`.
static void check_group(const struct msc_graph *g, const char *name, int32_t axis, int32_t axes) {
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_site *site = &sites.sites[msc_sites_find_name(&sites, name)];
    assert_int_equal(site->group_axis, axis);
    assert_int_equal(site->group_axes, axes);
    msc_sites_finish(&sites);
}

static void test_graph_site__convolutions(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    check_sites(g, false, "x:0*1 shared.weight@0*2 conv_a:0*1");
    check_group(g, "shared.weight", 1, 3);
    check_sites(g, true, "x:0-c-conv_a*1 shared.weight@0*2 conv_a:0-c-conv_b*1");
    msc_graph_destroy(g);
}

static void test_graph_site__slots(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    assert_int_equal(sites.n_slots, 4);
    int32_t slot = msc_sites_find_slot(&sites, find(g, "conv_b"), 1);
    assert_int_equal(slot, 3);
    assert_int_equal(sites.slots[slot].tensor, msc_graph_find_tensor(g, "shared.weight"));
    assert_int_equal(sites.slots[slot].kind, MSC_SITE_WEIGHT);
    assert_int_equal(sites.slots[slot].channel_axis, 0);
    assert_int_equal(msc_sites_find_slot(&sites, find(g, "conv_b"), 0), 2);
    assert_int_equal(sites.slots[2].channel_axis, -1);
    assert_int_equal(msc_sites_find_slot(&sites, find(g, "conv_b"), 2), MSC_NO_ID);
    assert_int_equal(msc_sites_find_slot(&sites, find(g, "relu"), 0), MSC_NO_ID);
    assert_int_equal(msc_sites_find_name(&sites, "relu:0"), MSC_NO_ID);
    const struct msc_site *shared = &sites.sites[1];
    assert_int_equal(shared->slots[0], 1);
    assert_int_equal(shared->slots[1], 3);
    msc_sites_finish(&sites);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// A convolution called `name` with 4 input and output channels in `groups` groups.
static int32_t add_grouped(struct msc_graph *g, const char *name, int32_t x, int64_t groups) {
    const struct msc_attr attrs[] = {{"groups", groups == 4 ? "4" : groups == 2 ? "2" : "1"}};
    int32_t weight = add_weight(g, name, "OIHW", 4, DIMS(4, 4 / groups, 1, 1));
    return add_joint(g, &(struct msc_joint_spec){
                            .op = MSC_OP_CONV2D,
                            .name = name,
                            .n_inputs = 1,
                            .inputs = &x,
                            .n_weights = 1,
                            .weights = &(struct msc_weight_spec){"weight", weight},
                            .n_attrs = 1,
                            .attrs = attrs,
                        });
}

// A tensor has a channel axis only if all of its uses keep the channels apart.
static void test_graph_site__channels(void **state) {
    static const int32_t axes[] = {-1, 1, -1}, axes_by_use[] = {1, -1, 1, -1};
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "channels"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 4, 3, 3));
    int32_t a = add_grouped(g, "deep_a", x, 4);
    int32_t b = add_grouped(g, "wide", x, 1);
    int32_t c = add_grouped(g, "deep_b", a, 4);
    int32_t d = add_grouped(g, "pairs", b, 2);
    assert_ok(msc_graph_set_outputs(g, 2, IDS(c, d)));
    assert_ok(msc_graph_finalize(g));
    for (int by_use = 0; by_use < 2; by_use++) {
        struct msc_sites sites;
        int n = 0;
        assert_ok(msc_sites_find(&sites, g, &(struct msc_site_scheme){.by_use = by_use}));
        for (int32_t i = 0; i < sites.n_sites; i++) {
            if (sites.sites[i].kind == MSC_SITE_ACTIVATION) {
                assert_int_equal(sites.sites[i].channel_axis, by_use ? axes_by_use[n] : axes[n]);
                n++;
            }
        }
        assert_int_equal(n, by_use ? 4 : 3);
        msc_sites_finish(&sites);
    }
    msc_graph_destroy(g);
}

static int32_t add_constant(struct msc_graph *g, const char *name, int32_t weight) {
    return add_joint(g, &(struct msc_joint_spec){
                            .op = MSC_OP_CONSTANT,
                            .name = name,
                            .n_weights = 1,
                            .weights = &(struct msc_weight_spec){"const", weight},
                        });
}

static int32_t add_matmul(struct msc_graph *g, const char *name, int32_t a, int32_t b) {
    return add_joint(g, &(struct msc_joint_spec){
                            .op = MSC_OP_MATMUL, .name = name, .n_inputs = 2, .inputs = IDS(a, b)});
}

static void test_graph_site__products(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "products"));
    int32_t x = add_input(g, "x", "", 2, DIMS(4, 4));
    int32_t square = add_matmul(g, "square", x, x);
    int32_t named = add_constant(g, "c1", add_weight(g, "table", "IO", 2, DIMS(4, 4)));
    int32_t plain = add_constant(g, "c2", add_weight(g, "plain", "", 2, DIMS(4, 4)));
    int32_t a = add_matmul(g, "a", square, named);
    int32_t b = add_matmul(g, "b", plain, a);
    int32_t y = add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_LINEAR,
                                    .name = "fc",
                                    .n_inputs = 1,
                                    .inputs = &b,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){
                                        "weight", add_weight(g, "fc.w", "OI", 2, DIMS(3, 4))}});
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, "x:0*2 square:0*1 table@1*1 plain@-1*1 a:0*1 b:0*1 fc.w@0*1");
    check_group(g, "table", 0, 1);
    check_group(g, "plain", 1, 1);
    check_group(g, "fc.w", 1, 1);
    check_sites(g, true,
                "x:0-c-square*2 square:0-c-a*1 table@1*1 plain@-1*1 a:0-c-b*1 b:0-c-fc*1 fc.w@0*1");
    msc_graph_destroy(g);
}

// A float table is a weight site. A lookup in an activation or in integers has no site.
static void test_graph_site__embeddings(void **state) {
    (void)state;
    struct msc_graph *g;
    int32_t ids;
    struct msc_array *numbers;
    assert_ok(msc_graph_create(&g, "embedding"));
    assert_ok(msc_graph_add_input(&ids, g, "ids", NULL, MSC_DTYPE_I64, "", 1, DIMS(5)));
    int32_t x = add_input(g, "x", "", 2, DIMS(9, 4));
    int32_t table = add_constant(g, "c1", add_weight(g, "table", "", 2, DIMS(9, 4)));
    int32_t weight;
    assert_ok(msc_array_create(&numbers, MSC_DTYPE_I64, 2, DIMS(9, 4)));
    assert_ok(msc_graph_add_weight(&weight, g, "numbers", NULL, "", numbers));
    msc_array_release(numbers);
    int32_t whole = add_constant(g, "c2", weight);
    int32_t outputs[3];
    const int32_t tables[] = {table, x, whole};
    for (int i = 0; i < 3; i++) {
        outputs[i] =
            add_joint(g, &(struct msc_joint_spec){
                             .op = MSC_OP_TAKE, .n_inputs = 2, .inputs = IDS(tables[i], ids)});
    }
    assert_ok(msc_graph_set_outputs(g, 3, outputs));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, "table@0*1");
    check_group(g, "table", 1, 1);
    msc_graph_destroy(g);
}

// Both weights and the input have sites, but the state has none. A product of constants has none
// either.
static void test_graph_site__recurrent(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "recurrent"));
    int32_t x = add_input(g, "x", "", 3, DIMS(5, 2, 3));
    int32_t h = add_input(g, "h", "", 3, DIMS(1, 2, 4));
    int32_t w = add_constant(g, "c1", add_weight(g, "w", "", 3, DIMS(1, 12, 3)));
    int32_t r = add_constant(g, "c2", add_weight(g, "r", "", 3, DIMS(1, 12, 4)));
    int32_t b = add_constant(g, "c3", add_weight(g, "b", "", 2, DIMS(1, 24)));
    int32_t a = add_constant(g, "c4", add_weight(g, "a", "", 2, DIMS(4, 4)));
    const struct msc_attr hidden = {"hidden_size", "4"};
    int32_t inputs[] = {x, w, r, b, MSC_NO_ID, h};
    int32_t y = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_GRU,
                                                      .name = "gru",
                                                      .n_inputs = 6,
                                                      .inputs = inputs,
                                                      .n_attrs = 1,
                                                      .attrs = &hidden});
    int32_t outputs[] = {y, add_matmul(g, "fixed", a, a)};
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, "x:0*1 w@1*1 r@1*1");
    check_group(g, "r", 2, 1);
    msc_graph_destroy(g);
}

static void check_transposed(const char *groups, const int64_t dims[], const char *expected) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "transposed"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 4, 5, 5));
    int32_t w = add_weight(g, "w", "IOHW", 4, dims);
    int32_t y = add_joint(g, &(struct msc_joint_spec){
                                 .op = MSC_OP_CONV2D_TRANSPOSE,
                                 .n_inputs = 1,
                                 .inputs = &x,
                                 .n_weights = 1,
                                 .weights = &(struct msc_weight_spec){"weight", w},
                                 .n_attrs = 1,
                                 .attrs = &(struct msc_attr){"groups", groups},
                             });
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, expected);
    // OpenVINO has an integer kernel for transposed convolutions, ONNX Runtime does not.
    check_target(g, "openvino", expected);
    msc_graph_destroy(g);
}

static void test_graph_site__transposed(void **state) {
    (void)state;
    check_transposed("1", DIMS(4, 6, 2, 2), "x:0*1 w@1*1");
    check_transposed("2", DIMS(4, 3, 2, 2), "x:0*1 w@-1*1");
}

static void test_graph_site__none(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "none"));
    int32_t y = add_unary(g, MSC_OP_RELU, NULL, add_input(g, "x", "", 1, DIMS(3)));
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, "");
    msc_graph_destroy(g);
}

static int32_t add_linear(struct msc_graph *g, const char *name, int32_t x, const char *weight) {
    return add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_LINEAR,
                                    .name = name,
                                    .n_inputs = 1,
                                    .inputs = &x,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){
                                        "weight", add_weight(g, weight, "OI", 2, DIMS(3, 16))}});
}

// A residual block with pooling and a classifier. Nothing is requantised between a convolution or
// sum and its relu. Pooling and reshaping keep the scale.
static void test_graph_site__target(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "block"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 3, 4, 4));
    int32_t w1 = add_weight(g, "w1", "OIHW", 4, DIMS(4, 3, 1, 1));
    int32_t w2 = add_weight(g, "w2", "OIHW", 4, DIMS(4, 4, 1, 1));
    int32_t relu = add_unary(g, MSC_OP_RELU, "relu", add_conv(g, "conv1", x, w1));
    int32_t pool =
        add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_MAX_POOL2D,
                                              .name = "pool",
                                              .n_inputs = 1,
                                              .inputs = &relu,
                                              .n_attrs = 2,
                                              .attrs = (const struct msc_attr[]){
                                                  {"pool_size", "2,2"}, {"strides", "2,2"}}});
    int32_t conv2 = add_conv(g, "conv2", pool, w2);
    int32_t sum = add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_ADD, .name = "sum", .n_inputs = 2, .inputs = IDS(conv2, pool)});
    int32_t flat = add_unary(g, MSC_OP_FLATTEN, "flat", add_unary(g, MSC_OP_RELU, "relu2", sum));
    int32_t y = add_linear(g, "fc", flat, "w3");
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    check_sites(g, false, "x:0*1 w1@0*1 pool:0*1 w2@0*1 flat:0*1 w3@0*1");
    // ONNX Runtime's products may return floats.
    check_target(g, "onnxruntime", "x:0*1 w1@0*1 relu:0*3 w2@0*1 conv2:0*1 relu2:0*2 w3@0*1");
    check_target(g, "tflite", "x:0*1 w1@0*1 relu:0*3 w2@0*1 conv2:0*1 relu2:0*2 w3@0*1 fc:0*1");
    // OpenVINO adds a residual to the convolution's sum in float.
    check_target(g, "openvino", "x:0*1 w1@0*1 relu:0*3 w2@0*1 relu2:0*2 w3@0*1");
    check_target(g, "generic", "x:0*1 w1@0*1 pool:0*1 w2@0*1 flat:0*1 w3@0*1");
    msc_graph_destroy(g);
}

static int32_t add_number(struct msc_graph *g, const char *name, float value) {
    struct msc_array *data;
    int32_t tensor;
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 1, DIMS(1), &value));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, "", data));
    msc_array_release(data);
    return add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){"const", tensor}});
}

static int32_t add_pair(struct msc_graph *g, enum msc_op op, const char *name, int32_t a,
                        int32_t b) {
    return add_joint(
        g, &(struct msc_joint_spec){.op = op, .name = name, .n_inputs = 2, .inputs = IDS(a, b)});
}

// x - 1 ── conv * 2 + 1 ── hard swish * 2 + 1 ── * -1 ── conv2. Constants after a convolution merge
// into it, and positive factors merge into the scale. Results of other additions and of a negative
// factor are requantised. The model's input is quantised only once, after the subtraction.
static void test_graph_site__target_numbers(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "numbers"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 4, 4, 4));
    int32_t w = add_weight(g, "w", "OIHW", 4, DIMS(4, 4, 1, 1));
    int32_t one = add_number(g, "one", 1), two = add_number(g, "two", 2);
    int32_t minus = add_number(g, "minus", -1);
    int32_t t = add_pair(g, MSC_OP_SUBTRACT, "centred", x, one);
    t = add_conv(g, "conv", t, w);
    t = add_pair(g, MSC_OP_MULTIPLY, "a", t, two);
    t = add_pair(g, MSC_OP_ADD, "b", one, t);
    t = add_unary(g, MSC_OP_HARD_SWISH, "swish", t);
    t = add_pair(g, MSC_OP_MULTIPLY, "c", two, t);
    t = add_pair(g, MSC_OP_ADD, "d", t, one);
    t = add_pair(g, MSC_OP_MULTIPLY, "e", t, minus);
    t = add_conv(g, "conv2", t, w);
    assert_ok(msc_graph_set_outputs(g, 1, &t));
    assert_ok(msc_graph_finalize(g));
    check_target(g, "onnxruntime", "centred:0*1 w@0*2 b:0*1 c:0*1 d:0*1 e:0*1 conv2:0*1");
    check_target(g, "tflite", "centred:0*1 w@0*2 conv:0*1 b:0*1 swish:0*1 e:0*1 conv2:0*1");
    check_sites(g, false, "centred:0*1 w@0*2 e:0*1");
    msc_graph_destroy(g);
}

// If the result of a convolution has another consumer or is an output, it is also requantised
// before the relu. Results that only float joints read are not requantised.
static void test_graph_site__target_readers(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "readers"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 3, 4, 4));
    int32_t w1 = add_weight(g, "w1", "OIHW", 4, DIMS(3, 3, 1, 1));
    int32_t conv = add_conv(g, "conv", x, w1);
    int32_t relu = add_unary(g, MSC_OP_RELU, "relu", conv);
    int32_t tanh = add_unary(g, MSC_OP_TANH, "tanh", add_unary(g, MSC_OP_TANH, "inner", relu));
    assert_ok(msc_graph_set_outputs(g, 2, IDS(conv, tanh)));
    assert_ok(msc_graph_finalize(g));
    check_target(g, "onnxruntime", "x:0*1 w1@0*1 conv:0*2");
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g,
                             &(struct msc_site_scheme){.target = msc_target_find("onnxruntime")}));
    int32_t slot = msc_sites_find_slot(&sites, MSC_NO_ID, 0);
    assert_int_equal(sites.slots[slot].tensor, conv);
    assert_int_equal(msc_sites_find_slot(&sites, MSC_NO_ID, 1), MSC_NO_ID);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// A product's result may be read as floats, so a sum of such results is computed in float, too.
static void test_graph_site__target_sums(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "sums"));
    int32_t x = add_input(g, "x", "NC", 2, DIMS(3, 16));
    int32_t a = add_linear(g, "a", x, "w1"), b = add_linear(g, "b", x, "w2");
    int32_t sum =
        add_joint(g, &(struct msc_joint_spec){
                         .op = MSC_OP_ADD, .name = "s", .n_inputs = 2, .inputs = IDS(a, b)});
    int32_t outer =
        add_joint(g, &(struct msc_joint_spec){
                         .op = MSC_OP_ADD, .name = "outer", .n_inputs = 2, .inputs = IDS(sum, a)});
    assert_ok(msc_graph_set_outputs(g, 1, &outer));
    assert_ok(msc_graph_finalize(g));
    check_target(g, "onnxruntime", "x:0*2 w1@0*1 w2@0*1");
    check_target(g, "tflite", "x:0*2 w1@0*1 w2@0*1 a:0*2 b:0*1 s:0*1 outer:0*1");
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_site__convolutions),
        cmocka_unit_test(test_graph_site__slots),
        cmocka_unit_test(test_graph_site__channels),
        cmocka_unit_test(test_graph_site__products),
        cmocka_unit_test(test_graph_site__embeddings),
        cmocka_unit_test(test_graph_site__recurrent),
        cmocka_unit_test(test_graph_site__transposed),
        cmocka_unit_test(test_graph_site__none),
        cmocka_unit_test(test_graph_site__target),
        cmocka_unit_test(test_graph_site__target_numbers),
        cmocka_unit_test(test_graph_site__target_readers),
        cmocka_unit_test(test_graph_site__target_sums),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

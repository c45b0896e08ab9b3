// The printed, JSON and prototxt forms of graphs. Expected texts come from the MSC tutorial or
// follow the description of MSC's forms.
#include "tests/graph/graph_samples.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <stdio.h>

// tests/golden/sort_tutorial.py made these files from the text of the MSC tutorial.
static void check_golden(const char *file, struct msc_str *found) {
    char path[512];
    char *expected;
    size_t n_bytes;
    snprintf(path, sizeof(path), "%s/golden/%s", MSC_TESTS_FOLDER, file);
    assert_ok(msc_file_read(&expected, &n_bytes, path));
    assert_ok(msc_str_status(found));
    assert_string_equal(msc_str_text(found), expected);
    assert_int_equal(found->length, n_bytes);
    msc_free(expected);
    msc_str_finish(found);
}

static void test_graph_forms__tutorial_printed(void **state) {
    (void)state;
    struct msc_graph *g = make_conv_relu();
    struct msc_str text = {0};
    msc_graph_print(g, &text);
    check_golden("conv_relu.txt", &text);
    msc_graph_destroy(g);
}

static void test_graph_forms__tutorial_json(void **state) {
    (void)state;
    struct msc_graph *g = make_conv_relu();
    struct msc_str text = {0};
    msc_graph_write_json(g, &text);
    check_golden("conv_relu.json", &text);
    msc_graph_destroy(g);
}

static void test_graph_forms__tutorial_prototxt(void **state) {
    (void)state;
    struct msc_graph *g = make_conv_relu();
    struct msc_str text = {0};
    msc_graph_write_prototxt(g, &text);
    check_golden("conv_relu.prototxt", &text);
    msc_graph_destroy(g);
}

// Expected: the tutorial's print of one node.
static void test_graph_forms__joint(void **state) {
    (void)state;
    struct msc_graph *g = make_conv_relu();
    struct msc_str text = {0};
    msc_joint_print(g, find(g, "relu"), &text);
    assert_string_equal(msc_str_text(&text), "ID_2 relu <PARENTS: conv2d| CHILDERN: >\n"
                                             "  IN: conv2d:0<1,6,4,4|float32|NCHW>\n"
                                             "  OUT: relu:0(relu)<1,6,4,4|float32|NCHW>\n"
                                             "  OPTYPE: nn.relu\n"
                                             "  SCOPE: block\n");
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// Cases that the tutorial does not show; expected texts follow the description of MSC's forms. A
// symbolic dimension is printed as its prim, a joint with a shared weight names the weight's first
// holder, and every scope is printed.
static void test_graph_forms__branches(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    struct msc_str text = {0};
    msc_graph_print(g, &text);
    const char *printed = msc_str_text(&text);
    assert_non_null(strstr(printed, "branches <INPUTS: x:0| OUTPUTS: add:0,tanh:0>\n"
                                    "P_0 batch <PARENTS: | CHILDERN: >\n"
                                    "  OPTYPE: shape\n"
                                    "  ATTRS: dim=0 out_idx=0 producer=x \n"
                                    "\n"
                                    "ID_0 x <PARENTS: | CHILDERN: conv_a>\n"
                                    "  OUT: x:0(data)<batch,4,5,5|float32|NCHW>\n"));
    assert_non_null(strstr(printed, "ID_2 conv_b(M: conv_a) <PARENTS: conv_a| CHILDERN: split>\n"));
    assert_non_null(strstr(printed, "ID_3 split <PARENTS: conv_b| CHILDERN: relu,add,tanh>\n"));
    assert_non_null(strstr(printed, "  OUT: split:0<batch,2,5,5|float32|NCHW>,"
                                    "split:1<batch,2,5,5|float32|NCHW>\n"
                                    "  OPTYPE: split\n"
                                    "  SCOPE: body.0\n"
                                    "  ATTRS: axis=1 indices_or_sections=2 \n"));
    msc_str_finish(&text);
    msc_graph_write_prototxt(g, &text);
    assert_non_null(strstr(msc_str_text(&text), "    scope: \"body.0\"\n"));
    assert_non_null(
        strstr(msc_str_text(&text), "\nprim {\n  name: \"batch\"\n  type: \"shape\"\n"));
    assert_null(strstr(msc_str_text(&text), "scope: \"block\""));
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

static void test_graph_forms__scalar_and_escapes(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_str text = {0};
    assert_ok(msc_graph_create(&g, "a\"b\\c\n"));
    int32_t x = add_input(g, "s", "", 0, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    msc_tensor_print(g, msc_graph_input(g, 0), &text);
    assert_string_equal(msc_str_text(&text), "s:0(s)<float32>");
    msc_str_finish(&text);
    msc_graph_write_prototxt(g, &text);
    const char *expected = "name: \"a\\\"b\\\\c\\012\"\nlayer {\n";
    assert_memory_equal(msc_str_text(&text), expected, strlen(expected));
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// The expected text follows the description of MSC's inspect().
static void test_graph_forms__inspect(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    struct msc_str text = {0};
    cJSON *tree;
    assert_ok(msc_graph_inspect(g, &tree));
    msc_json_write(&text, tree);
    assert_string_equal(
        msc_str_text(&text),
        "{\"inputs\":[{\"name\":\"data\",\"shape\":[\"batch\",4,5,5],\"dtype\":\"float32\","
        "\"layout\":\"NCHW\"}],"
        "\"outputs\":[{\"name\":\"sum\",\"shape\":[\"batch\",2,5,5],\"dtype\":\"float32\","
        "\"layout\":\"NCHW\"},"
        "{\"name\":\"act\",\"shape\":[\"batch\",2,5,5],\"dtype\":\"float32\",\"layout\":\"NCHW\"}],"
        "\"nodes\":{\"total\":7,\"input\":1,\"nn.conv2d\":2,\"split\":1,\"nn.relu\":1,\"add\":1,"
        "\"tanh\":1},\"prims\":{\"total\":1,\"shape\":1}}");
    msc_str_finish(&text);
    cJSON_Delete(tree);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_forms__tutorial_printed),
        cmocka_unit_test(test_graph_forms__tutorial_json),
        cmocka_unit_test(test_graph_forms__tutorial_prototxt),
        cmocka_unit_test(test_graph_forms__joint),
        cmocka_unit_test(test_graph_forms__branches),
        cmocka_unit_test(test_graph_forms__scalar_and_escapes),
        cmocka_unit_test(test_graph_forms__inspect),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Positions of joints (nodes) in the drawing of a network: below their inputs, and not on top of
// each other. The networks are small enough to state the expected rows here.
#include "report/graph_layout.h"
#include "report/graph_picture.h"

#include "base/json.h"
#include "tests/graph/graph_samples.h"

#include <math.h>
#include <stdio.h>

// x -> left and x -> right_1 -> right_2; left and right_2 are added.
static struct msc_graph *make_diamond(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "diamond"));
    int32_t x = add_input(g, "x", "NC", 2, DIMS(2, 3));
    int32_t left = add_unary(g, MSC_OP_RELU, "left", x);
    int32_t right_1 = add_unary(g, MSC_OP_RELU, "right_1", x);
    int32_t right_2 = add_unary(g, MSC_OP_RELU, "right_2", right_1);
    int32_t sum = add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_ADD, .name = "sum", .n_inputs = 2, .inputs = IDS(left, right_2)});
    assert_ok(msc_graph_set_outputs(g, 1, &sum));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static int32_t layer_of(const struct msc_graph_layout *layout, const struct msc_graph *g,
                        const char *name) {
    return layout->nodes[msc_graph_find_joint(g, name)].layer;
}

static void test_report_graph_layout__layers_are_longest_paths(void **state) {
    (void)state;
    struct msc_graph *g = make_diamond();
    struct msc_graph_layout layout;
    assert_ok(msc_graph_layout_make(&layout, g));
    assert_int_equal(layer_of(&layout, g, "x"), 0);
    assert_int_equal(layer_of(&layout, g, "left"), 1);
    assert_int_equal(layer_of(&layout, g, "right_1"), 1);
    assert_int_equal(layer_of(&layout, g, "right_2"), 2);
    assert_int_equal(layer_of(&layout, g, "sum"), 3);
    assert_int_equal(layout.n_layers, 4);
    msc_graph_layout_finish(&layout);
    msc_graph_destroy(g);
}

// One layer of n joints, then layers of a single joint.
static struct msc_graph *make_wide(int n) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "wide"));
    int32_t x = add_input(g, "x", "NC", 2, DIMS(2, 3)), sum = x;
    int32_t parts[16];
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "part_%d", i);
        parts[i] = add_unary(g, MSC_OP_RELU, name, x);
    }
    for (int i = 0; i < n; i++) {
        sum = add_joint(g, &(struct msc_joint_spec){
                               .op = MSC_OP_ADD, .n_inputs = 2, .inputs = IDS(sum, parts[i])});
    }
    assert_ok(msc_graph_set_outputs(g, 1, &sum));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static void test_report_graph_layout__none_is_over_another(void **state) {
    (void)state;
    struct msc_graph *g = make_wide(12);
    struct msc_graph_layout layout;
    assert_ok(msc_graph_layout_make(&layout, g));
    for (int32_t a = 0; a < msc_graph_n_joints(g); a++) {
        const struct msc_joint *j = msc_graph_joint(g, a);
        assert_true(layout.nodes[a].column >= 0.0);
        assert_true(layout.nodes[a].column <= layout.n_columns - 1.0);
        for (int32_t p = 0; p < j->n_parents; p++) {
            assert_true(layout.nodes[j->parents[p]].layer < layout.nodes[a].layer);
        }
        for (int32_t b = 0; b < a; b++) {
            bool is_beside = layout.nodes[a].layer == layout.nodes[b].layer;
            double gap = fabs(layout.nodes[a].column - layout.nodes[b].column);
            assert_true(!is_beside || gap > 1.0 - 1e-9);
        }
    }
    msc_graph_layout_finish(&layout);
    msc_graph_destroy(g);
}

static void test_report_graph_layout__a_picture_knows_tasks_and_edges(void **state) {
    (void)state;
    struct msc_graph *g = make_diamond();
    cJSON *plan = NULL, *picture = NULL;
    static const char text[] = "[{\"task\":\"left:0\"},{\"task\":\"elsewhere\"}]";
    assert_ok(msc_json_parse(&plan, text, sizeof text - 1, "plan"));
    assert_ok(msc_graph_picture(&picture, g, plan));
    const cJSON *joints = cJSON_GetObjectItemCaseSensitive(picture, "joints");
    const cJSON *left = cJSON_GetArrayItem(joints, msc_graph_find_joint(g, "left"));
    const cJSON *tasks = cJSON_GetObjectItemCaseSensitive(left, "tasks");
    assert_int_equal(cJSON_GetArraySize(joints), 5);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(picture, "edges")), 5);
    assert_int_equal(cJSON_GetArraySize(tasks), 1);
    assert_int_equal(cJSON_GetArrayItem(tasks, 0)->valueint, 0);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(left, "shape")->valuestring, "2 × 3");
    cJSON_Delete(picture);
    cJSON_Delete(plan);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_graph_layout__layers_are_longest_paths),
        cmocka_unit_test(test_report_graph_layout__none_is_over_another),
        cmocka_unit_test(test_report_graph_layout__a_picture_knows_tasks_and_edges),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

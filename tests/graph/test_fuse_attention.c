// Fusion into msc.attention: which joints become one, what the fused joint contains, and that
// splitting restores the joints. The models come from tests/kernels/make_cases.py. tests/kernels
// checks that results do not change. tests/long/check_transformer.py checks this with edits.
#include "tests/graph/onnx_files.h"

#include "graph/onnx/load.h"
#include "graph/passes/bind.h"
#include "graph/passes/fuse_internal.h"

#include <unistd.h>

#define CASE(name) MSC_TESTS_FOLDER "/kernels/cases/test_fused_" name "/model.onnx"

// Expected values. The names are names of tensors of the model.
static const struct {
    const char *result, *query, *q, *k, *probabilities, *v;
    float scale;
} rows[] = {
    {"transpose_14", "reshape_3", "transpose_4", "transpose_6", "softmax_12", "transpose_8", 0.5F},
    {"transpose_30", "reshape_18", "mul_24", "mul_25", "softmax_28", "transpose_23", 0.5F},
    {"matmul_45", "reshape_34", "transpose_35", "transpose_40", "softmax_44", "transpose_39", 0.5F},
    {"matmul_59", "reshape_47", "transpose_53", "transpose_54", "softmax_57", "transpose_58", 0.5F},
    {"matmul_63", "x0", "x0", "transpose_60", "softmax_62", "x0", 1},
    {"matmul_79", "reshape_67", "transpose_68", "transpose_70", "softmax_78", "transpose_72", 1},
    {"matmul_83", "reshape_74", "transpose_75", "transpose_70", "softmax_82", "transpose_72", 1},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static void check_value(const struct msc_graph *g, const char *tensor, const char *alias) {
    int32_t id = msc_graph_find_tensor(g, tensor);
    assert_int_not_equal(id, MSC_NO_ID);
    assert_string_equal(msc_graph_tensor(g, id)->alias, alias);
}

static void test_graph_fuse_attention__joints(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("attention"));
    assert_int_equal(count_of(g, MSC_OP_ATTENTION), N_ROWS);
    assert_int_equal(count_of(g, MSC_OP_MATMUL) + count_of(g, MSC_OP_SOFTMAX), 0);
    for (int i = 0; i < N_ROWS; i++) {
        const struct msc_joint *j = msc_graph_joint(g, msc_graph_find_joint(g, rows[i].result));
        const struct msc_graph *body = j->graphs[0];
        float scale;
        assert_int_equal(j->op, MSC_OP_ATTENTION);
        assert_string_equal(msc_graph_tensor(g, j->operands[0])->alias, rows[i].query);
        assert_string_equal(msc_graph_tensor(g, j->outputs[0])->alias, rows[i].result);
        assert_true(msc_joint_attr_float(j, "scale", &scale));
        assert_float_equal(scale, rows[i].scale, 1e-6);
        assert_int_equal(count_of(body, MSC_OP_MATMUL), 2);
        assert_int_equal(count_of(body, MSC_OP_SOFTMAX), 1);
        assert_int_equal(msc_graph_n_inputs(body), j->n_operands);
        check_value(body, msc_joint_attr(j, "probabilities"), rows[i].probabilities);
    }
    msc_graph_destroy(g);
}

// The sites are the operands of each product. The names of the sites come from the joints that
// produce the operands.
static void test_graph_fuse_attention__split(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("attention")), *split, *again;
    struct msc_sites sites;
    assert_ok(msc_graph_split(&split, g));
    assert_int_equal(count_of(split, MSC_OP_ATTENTION), 0);
    assert_int_equal(count_of(split, MSC_OP_MATMUL), 2 * N_ROWS);
    assert_int_equal(count_of(split, MSC_OP_SOFTMAX), N_ROWS);
    assert_int_equal(msc_graph_n_outputs(split), N_ROWS);
    assert_ok(msc_sites_find(&sites, split, NULL));
    for (int i = 0; i < N_ROWS; i++) {
        static const char *const keys[] = {"q", "k", "probabilities", "v"};
        const char *const aliases[] = {rows[i].q, rows[i].k, rows[i].probabilities, rows[i].v};
        const struct msc_joint *j = msc_graph_joint(g, msc_graph_find_joint(g, rows[i].result));
        for (int k = 0; k < 4; k++) {
            check_value(split, msc_joint_attr(j, keys[k]), aliases[k]);
            int32_t site = msc_sites_find_name(&sites, msc_joint_attr(j, keys[k]));
            assert_int_not_equal(site, MSC_NO_ID);
            assert_int_equal(sites.sites[site].kind, MSC_SITE_ACTIVATION);
        }
        assert_string_equal(msc_graph_tensor(split, msc_graph_output(split, i))->alias,
                            rows[i].result);
        assert_string_equal(op_of(split, rows[i].probabilities), "nn.softmax");
    }
    msc_sites_finish(&sites);
    assert_ok(msc_graph_split(&again, split));
    assert_ptr_equal(again, split);
    msc_graph_destroy(again);
    // A bound graph, which is the graph that runs, can be split, too.
    assert_ok(msc_graph_bind(&again, g, NULL, 0));
    assert_true(msc_graph_equal(again, split, true));
    msc_graph_destroy(again);
    msc_graph_destroy(split);
    msc_graph_destroy(g);
}

// A graph that was saved and loaded is equal, both fused and split.
static void check_again(const struct msc_graph *g, const char *path) {
    struct msc_graph *read, *split, *read_split;
    assert_ok(msc_graph_load(&read, path));
    assert_true(msc_graph_equal(g, read, true));
    assert_ok(msc_graph_split(&split, g));
    assert_ok(msc_graph_split(&read_split, read));
    assert_true(msc_graph_equal(split, read_split, true));
    msc_graph_destroy(read_split);
    msc_graph_destroy(split);
    msc_graph_destroy(read);
}

static void test_graph_fuse_attention__files(void **state) {
    static const char *const models[] = {CASE("attention"), CASE("attention_in_branch"),
                                         MSC_TESTS_MODEL("attention")};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct msc_graph *g = load_file(models[i]);
        char stem[64], path[80];
        snprintf(stem, sizeof(stem), "graph_fuse_attention_%d", (int)getpid());
        assert_ok(msc_graph_save(g, stem));
        snprintf(path, sizeof(path), "%s.json", stem);
        check_again(g, path);
        remove(path);
        snprintf(path, sizeof(path), "%s.safetensors", stem);
        remove(path);
        msc_graph_destroy(g);
    }
}

static void test_graph_fuse_attention__export(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("attention")), *again;
    struct msc_sites sites;
    char path[64];
    snprintf(path, sizeof(path), "graph_fuse_attention_%d.onnx", (int)getpid());
    assert_ok(msc_onnx_save(g, path, NULL));
    again = load_file(path);
    assert_int_equal(count_of(again, MSC_OP_ATTENTION), N_ROWS);
    for (int i = 0; i < N_ROWS; i++) {
        assert_string_equal(attr_of(again, rows[i].result, "probabilities"),
                            attr_of(g, rows[i].result, "probabilities"));
    }
    msc_graph_destroy(again);
    remove(path);
    // Edits belong to the slots of the split graph, so an export of the fused graph with edits is
    // refused.
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit **edits = msc_alloc_zero((size_t)sites.n_slots, sizeof(edits[0]));
    const struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    assert_int_equal(msc_onnx_save(g, path, &options), MSC_E_STATE);
    msc_free((void *)edits);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// Nothing is fused if the axis, the position of the scale, the consumers or the constants differ.
static void test_graph_fuse_attention__not(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("no_attention")), *split;
    assert_int_equal(count_of(g, MSC_OP_ATTENTION), 0);
    assert_int_equal(count_of(g, MSC_OP_SOFTMAX), 12);
    assert_int_equal(count_of(g, MSC_OP_MATMUL), 24);
    assert_ok(msc_graph_split(&split, g));
    assert_ptr_equal(split, g);
    msc_graph_destroy(split);
    msc_graph_destroy(g);
}

static void test_graph_fuse_attention__branches(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("attention_in_branch")), *split, *taken;
    const struct msc_graph *body = msc_graph_joint(g, msc_graph_find_joint(g, "if"))->graphs[0];
    assert_int_equal(count_of(body, MSC_OP_ATTENTION), 1);
    assert_ok(msc_graph_split(&split, g));
    body = msc_graph_joint(split, msc_graph_find_joint(split, "if"))->graphs[0];
    assert_int_equal(count_of(body, MSC_OP_ATTENTION), 0);
    assert_string_equal(op_of(body, "softmax_2"), "nn.softmax");

    const bool is_true = true;
    struct msc_array *condition;
    int32_t n_taken;
    assert_ok(msc_array_create_from(&condition, MSC_DTYPE_BOOL, 0, NULL, &is_true));
    const struct msc_array *const arrays[] = {condition, NULL};
    assert_ok(msc_graph_take_branches(&taken, &n_taken, g, arrays, 2));
    assert_int_equal(n_taken, 1);
    assert_int_equal(count_of(taken, MSC_OP_ATTENTION), 0);
    assert_string_equal(op_of(taken, "if/then/softmax_2"), "nn.softmax");
    msc_array_release(condition);
    msc_graph_destroy(taken);
    msc_graph_destroy(split);
    msc_graph_destroy(g);
}

// Each symbolic dimension of the result is the symbol of the operand it comes from.
static void test_graph_fuse_attention__symbols(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("attention")), *split, *bound;
    const struct msc_binding bindings[] = {{"N", 2}, {"S", 3}, {"M", 5}};
    const struct msc_tensor *y = output_of(g, "mix");
    assert_string_equal(op_of(g, "mix"), "msc.attention");
    assert_string_equal(msc_graph_prim(g, y->prims[0])->name, "N");
    assert_string_equal(msc_graph_prim(g, y->prims[1])->name, "S");
    assert_int_equal(y->dims[2], 4);
    assert_ok(msc_graph_split(&split, g));
    const struct msc_tensor *p = output_of(split, "softmax");
    assert_string_equal(msc_graph_prim(split, p->prims[1])->name, "S");
    assert_string_equal(msc_graph_prim(split, p->prims[2])->name, "M");
    assert_ok(msc_graph_bind(&bound, g, bindings, 3));
    check_dims(output_of(bound, "softmax"), "[2,3,5]");
    check_dims(output_of(bound, "mix"), "[2,3,4]");
    msc_graph_destroy(bound);
    msc_graph_destroy(split);
    msc_graph_destroy(g);
}

// The graph already has joints with the names that the body's inputs would get.
static void test_graph_fuse_attention__names(void **state) {
    (void)state;
    struct msc_graph *g, *split, *whole;
    int32_t n, x;
    assert_ok(msc_graph_create(&g, "names"));
    assert_ok(msc_graph_add_symbol(&n, g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", "x", MSC_DTYPE_F32, "", 3, DIMS(2, -1, 4),
                                           IDS(MSC_NO_ID, n, MSC_NO_ID)));
    struct msc_attr twice = {"axis", "1"}, turned = {"axes", "0,2,1"};
    int32_t longer = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CONCAT,
                                                           .name = "value",
                                                           .n_inputs = 2,
                                                           .inputs = IDS(x, x),
                                                           .n_attrs = 1,
                                                           .attrs = &twice});
    int32_t key = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_PERMUTE_DIMS,
                                                        .name = "key",
                                                        .n_inputs = 1,
                                                        .inputs = &longer,
                                                        .n_attrs = 1,
                                                        .attrs = &turned});
    int32_t scores = add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_MATMUL, .name = "query", .n_inputs = 2, .inputs = IDS(x, key)});
    int32_t p = add_unary(g, MSC_OP_SOFTMAX, "p", scores);
    int32_t y = add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_MATMUL, .name = "y", .n_inputs = 2, .inputs = IDS(p, longer)});
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_graph_clone(&whole, g));
    assert_ok(msc_fuse_all(g, &(struct msc_fuse_options){false}));
    assert_int_equal(count_of(g, MSC_OP_ATTENTION), 1);
    const struct msc_joint *j = msc_graph_joint(g, msc_graph_find_joint(g, "y"));
    assert_string_equal(msc_joint_attr(j, "k"), "key:0");
    const struct msc_tensor *t = msc_graph_tensor(g, j->outputs[0]);
    assert_string_equal(msc_graph_prim(g, t->prims[1])->name, "N");
    assert_ok(msc_graph_split(&split, g));
    assert_true(msc_graph_equal(split, whole, true));
    msc_graph_destroy(split);
    msc_graph_destroy(whole);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_fuse_attention__joints),
        cmocka_unit_test(test_graph_fuse_attention__split),
        cmocka_unit_test(test_graph_fuse_attention__files),
        cmocka_unit_test(test_graph_fuse_attention__export),
        cmocka_unit_test(test_graph_fuse_attention__not),
        cmocka_unit_test(test_graph_fuse_attention__branches),
        cmocka_unit_test(test_graph_fuse_attention__symbols),
        cmocka_unit_test(test_graph_fuse_attention__names),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Strategy files: round trips, damaged files, merging edits of tensors and of single uses, and
// strategies of another model. Expected edits are those that the test set before.
#include "tools/strategy.h"

#include "base/file.h"
#include "tests/graph/graph_samples.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// conv1 and conv2 read x, and conv3 reads the relu after conv1.
static struct msc_graph *make_graph(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "main"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 3, 4, 4));
    int32_t a = add_conv(g, "conv1", x, add_weight(g, "w1", "OIHW", 4, DIMS(6, 3, 1, 1)));
    int32_t b = add_conv(g, "conv2", x, add_weight(g, "w2", "OIHW", 4, DIMS(6, 3, 1, 1)));
    a = add_unary(g, MSC_OP_RELU, "relu", a);
    int32_t c = add_conv(g, "conv3", a, add_weight(g, "w3", "OIHW", 4, DIMS(2, 6, 1, 1)));
    assert_ok(msc_graph_set_outputs(g, 2, IDS(b, c)));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static const float scales6[6] = {0.1f, 0.2f, 1.0f / 3.0f, 1e-30f, 3.0f, 1.1754944e-38f};
static const int32_t zeros6[6] = {0};

static struct msc_quant per_channel(void) {
    struct msc_quant q = {.bits = 6,
                          .low = -31,
                          .high = 31,
                          .axis = 0,
                          .n = 6,
                          .scales = scales6,
                          .zero_points = zeros6};
    msc_quant_seal(&q);
    return q;
}

// Parameters for a weight [2, 6, 1, 1] in groups of 4 and 2.
static struct msc_quant in_groups(void) {
    struct msc_quant q = {.bits = 4,
                          .low = -7,
                          .high = 7,
                          .axis = 1,
                          .n = 4,
                          .group_size = 4,
                          .group_axes = 3,
                          .scales = scales6,
                          .zero_points = zeros6};
    msc_quant_seal(&q);
    return q;
}

static struct msc_quant per_tensor(const float *scale, const int32_t *zero) {
    struct msc_quant q = {
        .bits = 8, .high = 255, .axis = -1, .n = 1, .scales = scale, .zero_points = zero};
    msc_quant_seal(&q);
    return q;
}

struct fixture {
    struct msc_graph *graph;
    struct msc_sites by_tensor, by_use;
    struct msc_strategy *strategy;
};

static void open_fixture(struct fixture *f) {
    f->graph = make_graph();
    assert_ok(msc_sites_find(&f->by_tensor, f->graph, NULL));
    assert_ok(msc_sites_find(&f->by_use, f->graph, &(struct msc_site_scheme){.by_use = true}));
    assert_ok(msc_strategy_create(&f->strategy, NULL));
}

static void close_fixture(struct fixture *f) {
    msc_strategy_destroy(f->strategy);
    msc_sites_finish(&f->by_tensor);
    msc_sites_finish(&f->by_use);
    msc_graph_destroy(f->graph);
}

static void set(struct fixture *f, const struct msc_sites *sites, const char *site,
                const struct msc_quant *quant) {
    int32_t at = msc_sites_find_name(sites, site);
    assert_int_not_equal(at, MSC_NO_ID);
    const struct msc_strategy_choice choice = {.label = "label", .quant = quant};
    assert_ok(msc_strategy_set(f->strategy, f->graph, sites, at, &choice));
}

// The edit of a joint's operand, or NULL if it stays float.
static const struct msc_quant *edit_at(const struct fixture *f, const struct msc_strategy *s,
                                       const char *joint, int32_t operand) {
    const struct msc_edit *edits[6] = {NULL};
    assert_int_equal(f->by_tensor.n_slots, 6);
    assert_ok(msc_strategy_apply(s, f->graph, &f->by_tensor, edits));
    int32_t slot = msc_sites_find_slot(&f->by_tensor, find(f->graph, joint), operand);
    assert_int_not_equal(slot, MSC_NO_ID);
    return msc_edit_quant(edits[slot]);
}

static void assert_same(const struct msc_quant *a, const struct msc_quant *b) {
    assert_non_null(a);
    assert_true(msc_hash_equal(a->hash, b->hash));
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->scales, b->scales, (size_t)a->n * sizeof(float));
}

// ---- Files ------------------------------------------------------------------------------------

static void test_tools_strategy__save_load_is_exact(void **state) {
    char path[] = "/tmp/msc_strategy_XXXXXX";
    static const float scale = 0.0123f;
    static const int32_t zero = 131;
    struct msc_quant w = per_channel();
    struct msc_quant x = per_tensor(&scale, &zero);
    struct msc_quant half = msc_quant_of_float(MSC_DTYPE_F16), groups = in_groups();
    struct msc_strategy *loaded;
    struct fixture f;
    (void)state;
    open_fixture(&f);
    set(&f, &f.by_tensor, "w1", &w);
    set(&f, &f.by_use, "x:0-c-conv2", &x);
    set(&f, &f.by_tensor, "w2", &half);
    set(&f, &f.by_tensor, "w3", &groups);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(msc_strategy_save(f.strategy, f.graph, path));
    assert_ok(msc_strategy_load(&loaded, path));
    assert_int_equal(msc_strategy_n_edits(loaded), 4);
    assert_true(msc_hash_equal(msc_strategy_hash(loaded), msc_strategy_hash(f.strategy)));
    assert_same(edit_at(&f, loaded, "conv1", 1), &w);
    assert_same(edit_at(&f, loaded, "conv2", 1), &half);
    assert_same(edit_at(&f, loaded, "conv3", 1), &groups);
    assert_int_equal(edit_at(&f, loaded, "conv2", 1)->type, MSC_DTYPE_F16);
    assert_same(edit_at(&f, loaded, "conv2", 0), &x);
    assert_null(edit_at(&f, loaded, "conv1", 0));
    assert_null(edit_at(&f, loaded, "conv3", 0));
    msc_strategy_destroy(loaded);
    unlink(path);
    close_fixture(&f);
}

// Weights with many scales: zero points that are equal, and zero points that differ.
static void test_tools_strategy__many_scales(void **state) {
    enum { N = 5000 };
    static float scales[N];
    static int32_t zeros[N];
    (void)state;
    for (int32_t differ = 0; differ < 2; differ++) {
        char path[] = "/tmp/msc_strategy_XXXXXX";
        struct msc_quant q = {.bits = 8, .high = 255, .axis = 0, .n = N};
        struct msc_strategy *loaded;
        struct fixture f;
        struct stat info;
        for (int32_t i = 0; i < N; i++) {
            scales[i] = 0.01f + 1e-5f * (float)i;
            zeros[i] = differ ? i % 256 : 128;
        }
        q.scales = scales;
        q.zero_points = zeros;
        msc_quant_seal(&q);
        open_fixture(&f);
        set(&f, &f.by_tensor, "w1", &q);
        int file = mkstemp(path);
        assert_true(file >= 0);
        assert_ok(msc_strategy_save(f.strategy, f.graph, path));
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size < N * (differ ? 12 : 6));
        assert_ok(msc_strategy_load(&loaded, path));
        assert_true(msc_hash_equal(msc_strategy_hash(loaded), msc_strategy_hash(f.strategy)));
        msc_strategy_destroy(loaded);
        close(file);
        unlink(path);
        close_fixture(&f);
    }
}

static void expect_refused(const char *text, const char *message) {
    struct msc_strategy *s;
    cJSON *json;
    assert_ok(msc_json_parse(&json, text, strlen(text), "t"));
    assert_int_not_equal(msc_strategy_from_json(&s, json, "s"), MSC_OK);
    assert_message(message);
    cJSON_Delete(json);
}

#define HEAD "{\"schema\":\"mscgym.strategy.1\",\"weights\":\"0123456789abcdef0123456789abcdef\","
#define EDIT(rest) HEAD "\"edits\":[{\"site\":\"w\",\"tensor\":\"w\",\"choice\":\"8\"," rest "}]}"
#define RANGE "\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[1],\"zero_points\":[0],"

static void test_tools_strategy__damaged_json(void **state) {
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"edits\":[]}", "s: not a strategy file (it has no \"schema\")"},
        {"{\"schema\":\"mscgym.strategy.9\",\"edits\":[]}", "expected \"mscgym.strategy.1\""},
        {"{\"schema\":\"mscgym.strategy.1\",\"edits\":[]}", "weights"},
        {"{\"schema\":\"mscgym.strategy.1\",\"weights\":\"x\",\"edits\":[]}",
         "s: weights is \"x\", which is not a hash"},
        {HEAD "\"edits\":[4]}", "s: edits[0]: expected an object"},
        {HEAD "\"edit\":[]}", "edits"},
        {EDIT("\"bits\":1,\"low\":0,\"high\":1,\"axis\":-1,\"scales\":[1],\"zero_points\":[0]"),
         "edits[0]: bits is 1"},
        {EDIT("\"bits\":4,\"low\":-8,\"high\":15,\"axis\":-1,\"scales\":[1],\"zero_points\":[0]"),
         "-8 to 15 do not fit 4 bits"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":16,\"axis\":-1,\"scales\":[1],\"zero_points\":[0]"),
         "do not fit 4 bits"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":8,\"scales\":[1],\"zero_points\":[0]"),
         "axis is 8"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[],\"zero_points\":[]"),
         "0 scales"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[1,1],\"zero_points\":[0,"
              "0]"),
         "2 scales and 2 zero points do not match axis -1"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1,1],\"zero_points\":[0,0,"
              "0]"),
         "2 scales and 3 zero points"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":\"AACAPwA=\",\"zero_points\":"
              "[0]"),
         "edits[0]: scales has 5 bytes, expected 4 bytes for each number"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":\"AACAP\",\"zero_points\":["
              "0]"),
         "edits[0]: scales"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":\"AADAfw==\",\"zero_points\":"
              "[0]"),
         "edits[0]: scales[0] is not a finite number"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":\"AACAvw==\",\"zero_points\":"
              "[0]"),
         "edits[0]: scales[0] is not a positive number"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1],\"zero_points\":\"EAAAAA="
              "=\""),
         "edits[0]: zero_points[0] is not an integer from 0 to 15"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1,0],\"zero_points\":[0,0]"),
         "scales[1]"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1,1e39],\"zero_points\":[0,"
              "0]"),
         "scales[1]"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[\"1\"],\"zero_points\":[0]"),
         "scales[0]"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1],\"zero_points\":[16]"),
         "zero_points[0]"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":0,\"scales\":[1],\"zero_points\":[0.5]"),
         "zero_points[0]"},
        {EDIT("\"joints\":[],\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[1],\"zero_"
              "points\":[0]"),
         "joints is empty"},
        {EDIT("\"joints\":[3],\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[1],\"zero_"
              "points\":[0]"),
         "joints must be names"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":1,\"group_size\":0,\"group_axes\":1,"
              "\"scales\":[1],\"zero_points\":[0]"),
         "group_size is 0"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":-1,\"group_size\":4,\"group_axes\":1,"
              "\"scales\":[1],\"zero_points\":[0]"),
         "axis is -1"},
        {EDIT("\"bits\":4,\"low\":0,\"high\":15,\"axis\":7,\"group_size\":4,\"group_axes\":2,"
              "\"scales\":[1],\"zero_points\":[0]"),
         "group_axes is 2"},
        {EDIT("\"type\":\"float8\""),
         "edits[0]: unknown type \"float8\": expected float16, bfloat16, "
         "dynamic or a block type of GGUF, such as q4_k"},
        {EDIT("\"type\":\"q4_0\",\"axis\":1"), "\"blocks\" is missing"},
        {EDIT("\"type\":\"q4_0\",\"axis\":2,\"blocks\":\"AAAA\""), "axis is 2, expected 0 or 1"},
        {EDIT("\"type\":\"q4_0\",\"axis\":1,\"blocks\":\"A\""), "edits[0]: blocks"},
        {EDIT("\"type\":\"q4_0\",\"axis\":1,\"blocks\":\"AAAA\",\"bits\":4"), "bits"},
        {EDIT("\"type\":\"float16\",\"blocks\":\"AAAA\""), "blocks is not allowed"},
        {EDIT("\"type\":\"float16\",\"axis\":-1"), "axis is not allowed with type float16"},
        {EDIT("\"type\":\"dynamic\",\"bits\":8"), "bits is not allowed with type dynamic"},
        {EDIT("\"bit\":4,\"low\":0,\"high\":15,\"axis\":-1,\"scales\":[1],\"zero_points\":[0]"),
         "bits"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_refused(rows[i].text, rows[i].message);
    }
}

static void test_tools_strategy__damaged_origins(void **state) {
    static const struct {
        const char *text, *message;
    } rows[] = {
        {EDIT(RANGE "\"symmetric\":true"), "observer"},
        {EDIT(RANGE "\"observer\":\"mean\",\"symmetric\":true"), "unknown observer \"mean\""},
        {EDIT(RANGE "\"observer\":\"mse\""), "symmetric"},
        {EDIT(RANGE "\"observer\":\"percentile\",\"symmetric\":true"), "percentile"},
        {EDIT(RANGE "\"observer\":\"percentile\",\"percentile\":50,\"symmetric\":true"),
         "percentile is 50"},
        {EDIT(RANGE "\"observer\":\"mse\",\"range_scale\":0,\"symmetric\":true"), "range_scale 0"},
        {EDIT("\"type\":\"float16\",\"observer\":\"mse\""),
         "observer is not allowed with type float16"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_refused(rows[i].text, rows[i].message);
    }
}

#undef EDIT
#undef RANGE

// ---- Later edits over earlier ones ------------------------------------------------------------

static void test_tools_strategy__later_edit_of_tensor_wins(void **state) {
    static const float one = 1, two = 2;
    static const int32_t zero = 7;
    struct msc_quant first = per_tensor(&one, &zero);
    struct msc_quant second = per_tensor(&two, &zero);
    struct fixture f;
    (void)state;
    open_fixture(&f);
    set(&f, &f.by_use, "x:0-c-conv1", &first);
    set(&f, &f.by_tensor, "x:0", &second);
    assert_int_equal(msc_strategy_n_edits(f.strategy), 1);
    assert_same(edit_at(&f, f.strategy, "conv1", 0), &second);
    assert_same(edit_at(&f, f.strategy, "conv2", 0), &second);
    // An edit of one use overrides the edit of the tensor.
    set(&f, &f.by_use, "x:0-c-conv2", &first);
    assert_int_equal(msc_strategy_n_edits(f.strategy), 2);
    assert_same(edit_at(&f, f.strategy, "conv1", 0), &second);
    assert_same(edit_at(&f, f.strategy, "conv2", 0), &first);
    // An edit of the whole tensor replaces both.
    set(&f, &f.by_tensor, "x:0", &second);
    assert_int_equal(msc_strategy_n_edits(f.strategy), 1);
    assert_same(edit_at(&f, f.strategy, "conv2", 0), &second);
    close_fixture(&f);
}

static void test_tools_strategy__float_takes_away(void **state) {
    static const float one = 1;
    static const int32_t zero = 7;
    struct msc_quant x = per_tensor(&one, &zero);
    struct msc_quant w = per_channel();
    struct fixture f;
    (void)state;
    open_fixture(&f);
    set(&f, &f.by_tensor, "x:0", &x);
    set(&f, &f.by_tensor, "w1", &w);
    set(&f, &f.by_tensor, "relu:0", &x);
    // One use of an edited tensor becomes float, the other keeps its edit.
    set(&f, &f.by_use, "x:0-c-conv1", NULL);
    assert_null(edit_at(&f, f.strategy, "conv1", 0));
    assert_same(edit_at(&f, f.strategy, "conv2", 0), &x);
    assert_int_equal(msc_strategy_n_edits(f.strategy), 3);
    // Everything becomes float: the only use of relu:0, the weight w1, and all uses of x:0.
    set(&f, &f.by_use, "relu:0-c-conv3", NULL);
    set(&f, &f.by_tensor, "w1", NULL);
    set(&f, &f.by_tensor, "x:0", NULL);
    assert_int_equal(msc_strategy_n_edits(f.strategy), 0);
    close_fixture(&f);
}

static void test_tools_strategy__merge(void **state) {
    static const float one = 1, two = 2;
    static const int32_t zero = 7;
    struct msc_quant first = per_tensor(&one, &zero);
    struct msc_quant second = per_tensor(&two, &zero);
    struct msc_quant w = per_channel();
    struct fixture early, late;
    (void)state;
    open_fixture(&early);
    open_fixture(&late);
    set(&early, &early.by_tensor, "x:0", &first);
    set(&early, &early.by_use, "x:0-c-conv2", &first);
    set(&early, &early.by_tensor, "w1", &w);
    set(&late, &late.by_tensor, "x:0", &second);
    set(&late, &late.by_tensor, "w2", &w);
    struct msc_hash before = msc_strategy_hash(early.strategy);
    assert_ok(msc_strategy_merge(early.strategy, late.strategy));
    assert_false(msc_hash_equal(before, msc_strategy_hash(early.strategy)));
    assert_int_equal(msc_strategy_n_edits(early.strategy), 3);
    assert_same(edit_at(&early, early.strategy, "conv1", 0), &second);
    assert_same(edit_at(&early, early.strategy, "conv2", 0), &second);
    assert_same(edit_at(&early, early.strategy, "conv1", 1), &w);
    assert_same(edit_at(&early, early.strategy, "conv2", 1), &w);
    close_fixture(&early);
    close_fixture(&late);
}

// A strategy without edits, such as that of a search that removes nothing, leaves the target alone.
static void test_tools_strategy__merge_empty(void **state) {
    const struct msc_site_scheme scheme = {.target = msc_target_find("onnxruntime")};
    struct msc_strategy *s, *empty, *copy;
    (void)state;
    assert_ok(msc_strategy_create(&s, &scheme));
    assert_ok(msc_strategy_create(&empty, NULL));
    assert_ok(msc_strategy_create(&copy, NULL));
    assert_ok(msc_strategy_merge(s, empty));
    assert_ptr_equal(msc_strategy_scheme(s).target, scheme.target);
    assert_ok(msc_strategy_merge(copy, s));
    assert_ptr_equal(msc_strategy_scheme(copy).target, scheme.target);
    msc_strategy_destroy(s);
    msc_strategy_destroy(empty);
    msc_strategy_destroy(copy);
}

// ---- What does not fit the model --------------------------------------------------------------

static void test_tools_strategy__apply_to_other_model(void **state) {
    static const struct {
        const char *tensor, *joints, *message;
        int axis, n;
    } rows[] = {
        {"w9", "",
         "s does not fit this model: the strategy names tensor w9, which the model does not have",
         -1, 1},
        {"w1", "", "2 scales for axis 0 of tensor w1", 0, 2},
        {"w1", "", "for axis 4 of tensor w1", 4, 1},
        {"x:0", "", "but joint conv1 supports only one", 1, 3},
        {"conv3:0", "", "the model has no matching use", -1, 1},
        {"x:0", "\"joints\":[\"conv1\",\"conv7\"],", "joint conv7", -1, 1},
        {"x:0", "\"joints\":[\"conv3\"],", "the model has no matching use", -1, 1},
    };
    struct fixture f;
    (void)state;
    open_fixture(&f);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct msc_edit *edits[6] = {NULL};
        struct msc_strategy *s;
        struct msc_str text = {0};
        char weights[MSC_HASH_TEXT_BYTES];
        cJSON *json;
        msc_str_printf(&text,
                       "{\"schema\":\"mscgym.strategy.1\",\"weights\":\"%s\",\"edits\":["
                       "{\"site\":\"s\",\"tensor\":\"%s\",%s\"choice\":\"8\",\"bits\":8,\"low\":0,"
                       "\"high\":255,\"axis\":%d,"
                       "\"scales\":[%s],\"zero_points\":[%s]}]}",
                       msc_hash_format(weights, msc_graph_weights_hash(f.graph)), rows[i].tensor,
                       rows[i].joints, rows[i].axis,
                       rows[i].n == 1   ? "1"
                       : rows[i].n == 2 ? "1,1"
                                        : "1,1,1",
                       rows[i].n == 1   ? "0"
                       : rows[i].n == 2 ? "0,0"
                                        : "0,0,0");
        assert_ok(msc_str_status(&text));
        assert_ok(msc_json_parse(&json, text.data, text.length, "t"));
        assert_ok(msc_strategy_from_json(&s, json, "s"));
        assert_int_equal(msc_strategy_apply(s, f.graph, &f.by_tensor, edits), MSC_E_STATE);
        assert_message(rows[i].message);
        msc_strategy_destroy(s);
        cJSON_Delete(json);
        msc_str_finish(&text);
    }
    close_fixture(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_strategy__save_load_is_exact),
        cmocka_unit_test(test_tools_strategy__many_scales),
        cmocka_unit_test(test_tools_strategy__damaged_json),
        cmocka_unit_test(test_tools_strategy__damaged_origins),
        cmocka_unit_test(test_tools_strategy__later_edit_of_tensor_wins),
        cmocka_unit_test(test_tools_strategy__float_takes_away),
        cmocka_unit_test(test_tools_strategy__merge),
        cmocka_unit_test(test_tools_strategy__merge_empty),
        cmocka_unit_test(test_tools_strategy__apply_to_other_model),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

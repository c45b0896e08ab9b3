// MSC's weight graph of small networks. Expected nodes are written by hand from MSC's description
// of weight graphs.
#include "graph/weight_graph.h"

#include "base/json.h"
#include "base/str.h"
#include "tests/graph/channels_case.h"

#include <string.h>

// An expected node: its kind and strategy, and the names of its parents and friends.
struct row {
    const char *name, *type, *strategy, *parents, *friends;
};

static void join_names(char out[256], const struct msc_weight_graph *w, const struct msc_graph *g,
                       const int32_t nodes[], int32_t n) {
    out[0] = '\0';
    for (int32_t i = 0; i < n; i++) {
        strcat(out, i > 0 ? "," : "");
        strcat(out, msc_graph_tensor(g, w->nodes[nodes[i]].tensor)->name);
    }
}

static void check_rows(const struct msc_graph *g, const struct row rows[], int32_t n) {
    struct msc_weight_graph w;
    char text[256];
    assert_ok(msc_weight_graph_build(&w, g));
    assert_int_equal(w.n, n);
    for (int32_t i = 0; i < n; i++) {
        const struct msc_weight_node *node = &w.nodes[i];
        assert_string_equal(msc_graph_tensor(g, node->tensor)->name, rows[i].name);
        assert_string_equal(node->type, rows[i].type);
        assert_string_equal(node->strategy, rows[i].strategy);
        join_names(text, &w, g, node->parents, node->n_parents);
        assert_string_equal(text, rows[i].parents);
        join_names(text, &w, g, node->friends, node->n_friends);
        assert_string_equal(text, rows[i].friends);
    }
    msc_weight_graph_finish(&w);
}

// a -> norm -> relu -> b. `sum` adds relu and b, and c reads the concatenation of relu and sum.
static struct net branches(void) {
    struct net n = net_begin(3);
    int32_t x = add_input(n.g, "x", "NCHW", 4, (const int64_t[]){1, 3, 4, 4});
    int32_t a = net_conv(&n, "a", x, 8, 3, 1);
    a = net_batch_norm(&n, "norm", a);
    a = add_unary(n.g, MSC_OP_RELU, "relu", a);
    int32_t b = net_conv(&n, "b", a, 8, 3, 1);
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, (const int32_t[]){a, b}, NULL, NULL);
    int32_t both = net_joint(&n, MSC_OP_CONCAT, "both", 2, (const int32_t[]){a, sum}, "axis", "1");
    int32_t c = net_conv(&n, "c", both, 5, 1, 1);
    net_end(&n, 1, &c);
    return n;
}

static void test_graph_weight_graph__branches(void **state) {
#define FRIENDS "a.weight,b.weight,sum:0"
    static const struct row rows[] = {
        {"a.weight", "weight", "main", "", FRIENDS},
        {"a.bias", "bias", "follow", "a.weight", ""},
        {"norm.gamma", "gamma", "follow", "a.weight", ""},
        {"norm.beta", "beta", "follow", "a.weight", ""},
        {"norm.mean", "mean", "follow", "a.weight", ""},
        {"norm.var", "var", "follow", "a.weight", ""},
        {"b.weight", "weight", "main", "a.weight", FRIENDS},
        {"b.bias", "bias", "follow", "b.weight", ""},
        {"sum:0", "output", "passby", "a.weight,b.weight", FRIENDS},
        {"both:0", "output", "multi_inputs", "a.weight,sum:0", ""},
        {"c.weight", "weight", "main", "both:0", ""},
        {"c.bias", "bias", "follow", "c.weight", ""},
    };
    (void)state;
    struct net n = branches();
    check_rows(n.g, rows, sizeof rows / sizeof rows[0]);
    msc_graph_destroy(n.g);
}

// The node that MSC's documentation shows, with exactly the members shown there, and a node with
// friends.
static void test_graph_weight_graph__forms(void **state) {
    struct msc_weight_graph w;
    cJSON *json, *node;
    struct msc_str text = {0};
    (void)state;
    struct net n = branches();
    assert_ok(msc_weight_graph_build(&w, n.g));
    assert_ok(msc_weight_graph_to_json(&json, &w, n.g));
    node = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "nodes"), 0);
    char *found = cJSON_PrintUnformatted(node);
    assert_string_equal(
        found, "{\"index\":0,\"name\":\"a.weight\",\"shared_ref\":\"\",\"weight_type\":\"weight\","
               "\"weight\":{\"name\":\"a.weight\",\"alias\":\"\",\"dtype\":\"float32\","
               "\"layout\":\"OIHW\",\"shape\":[8,3,3,3],\"prims\":[]},\"parents\":[],"
               "\"friends\":[\"a.weight\",\"b.weight\",\"sum:0\"],"
               "\"attrs\":{\"producer_type\":\"msc.conv2d_bias\",\"weight_strategy\":\"main\"}}");
    cJSON_free(found);
    cJSON_Delete(json);
    msc_weight_graph_write_prototxt(&w, n.g, &text);
    assert_non_null(strstr(msc_str_text(&text),
                           "\nlayer {\n  name: \"c.weight\"\n  type: \"weight\"\n"
                           "  top: \"c.weight\"\n  bottom: \"both:0\"\n  layer_param {\n"
                           "    idx: 10\n    producer_type: \"msc.conv2d_bias\"\n"
                           "    weight: \"c.weight<5,16,1,1|float32|OIHW>\"\n"
                           "    weight_strategy: \"main\"\n  }\n}"));
    assert_non_null(
        strstr(msc_str_text(&text), "    friend_0: \"W_0 a.weight <PARENTS: | CHILDERN: "));
    msc_str_clear(&text);
    msc_weight_graph_print(&w, n.g, &text);
    assert_non_null(strstr(msc_str_text(&text),
                           "W_9 both:0 <PARENTS: a.weight,sum:0| CHILDERN: c.weight>\n"
                           "  WEIGHT_TYPE: output\n"));
    msc_str_finish(&text);
    msc_weight_graph_finish(&w);
    msc_graph_destroy(n.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_weight_graph__branches),
        cmocka_unit_test(test_graph_weight_graph__forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

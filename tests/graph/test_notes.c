// What a model's file says beside the network: through clones, bound graphs, ONNX files and JSON.
#include "graph/notes.h"

#include "tests/graph/onnx_files.h"

#include "base/str.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct msc_attr metadata[] = {
    {"names", "cat, dog"}, {"mscgym.program", "old"}, {"stride", "32"}};
static const struct msc_attr docs[] = {{"z", "logits"}};

static struct msc_graph *make_graph(const struct msc_attr pairs[], size_t n) {
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims"));
    const struct msc_graph_notes notes = {.model_version = 7,
                                          .doc = "made by us",
                                          .graph_doc = "licence",
                                          .n_metadata = n,
                                          .metadata = pairs,
                                          .n_docs = 1,
                                          .docs = docs};
    assert_false(msc_graph_has_notes(g));
    assert_int_equal(msc_graph_notes(g)->opset, 13);
    assert_ok(msc_graph_set_notes(g, &notes));
    assert_true(msc_graph_has_notes(g));
    return g;
}

// Takes the graph.
static void expect_notes(struct msc_graph *g, size_t n_metadata) {
    const struct msc_graph_notes *n = msc_graph_notes(g);
    assert_int_equal(n->model_version, 7);
    assert_string_equal(n->doc, "made by us");
    assert_string_equal(n->graph_doc, "licence");
    assert_string_equal(n->domain, "");
    assert_int_equal(n->n_metadata, n_metadata);
    assert_string_equal(n->metadata[0].key, "names");
    assert_string_equal(n->metadata[0].value, "cat, dog");
    assert_string_equal(n->metadata[n_metadata - 1].key, "stride");
    assert_int_equal(n->n_docs, 1);
    assert_string_equal(n->docs[0].key, "z");
    assert_string_equal(n->docs[0].value, "logits");
    msc_graph_destroy(g);
}

static void test_graph_notes__copies(void **state) {
    (void)state;
    static const struct msc_binding bindings[] = {{"N", 4}, {"x.1", 3}};
    struct msc_graph *g = make_graph(metadata, 3), *copy;
    assert_ok(msc_graph_clone(&copy, g));
    expect_notes(copy, 3);
    assert_ok(msc_graph_bind_open(&copy, g, bindings, 2));
    expect_notes(copy, 3);
    msc_graph_destroy(g);
}

// Our own keys in a file are those of an earlier export.
static void test_graph_notes__onnx(void **state) {
    (void)state;
    char path[64];
    struct msc_graph *g = make_graph(metadata, 3), *again;
    snprintf(path, sizeof(path), "/tmp/msc_notes_%d.onnx", (int)getpid());
    assert_ok(msc_onnx_save(g, path, NULL));
    assert_ok(msc_onnx_load(&again, path, NULL));
    unlink(path);
    expect_notes(again, 2);
    msc_graph_destroy(g);
}

static void test_graph_notes__json(void **state) {
    (void)state;
    static const struct msc_attr odd[] = {{"names", "cat, dog"}, {"bytes", "\xff"}, {"stride", ""}};
    struct msc_graph *g = make_graph(odd, 3), *again;
    struct msc_str text = {0};
    msc_graph_write_json(g, &text);
    assert_ok(msc_graph_read_json(&again, text.data, text.length, "g.json", NULL));
    expect_notes(again, 2); // what is not UTF-8 is no JSON
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// Of the wrong form.
static void test_graph_notes__damaged(void **state) {
    (void)state;
    static const char *const texts[] = {"\"notes\": 1", "\"notes\": {\"metadata\": {\"a\": 1}}",
                                        "\"notes\": {\"doc\": []}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims")), *again;
        struct msc_str text = {0}, changed = {0};
        msc_graph_write_json(g, &text);
        msc_str_append_n(&changed, text.data, text.length - 1);
        msc_str_printf(&changed, ", %s}", texts[i]);
        assert_int_equal(msc_graph_read_json(&again, changed.data, changed.length, "g.json", NULL),
                         MSC_E_FORMAT);
        assert_non_null(strstr(msc_status_message(), "g.json"));
        msc_str_finish(&text);
        msc_str_finish(&changed);
        msc_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_notes__copies),
        cmocka_unit_test(test_graph_notes__onnx),
        cmocka_unit_test(test_graph_notes__json),
        cmocka_unit_test(test_graph_notes__damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

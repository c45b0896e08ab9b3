// Notes: metadata and documentation that a model file contains in addition to the network. Notes
// are kept through clones, binding, ONNX files and JSON. Expected notes are those that the test
// sets.
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

// Clears the notes; at first they hold only the file's opset.
static void forget_notes(struct msc_graph *g) {
    assert_true(msc_graph_has_notes(g));
    assert_int_equal(msc_graph_notes(g)->opset, 13);
    assert_ok(msc_graph_set_notes(g, &(struct msc_graph_notes){0}));
    assert_false(msc_graph_has_notes(g));
}

static struct msc_graph *make_graph(const struct msc_attr pairs[], size_t n) {
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims"));
    const struct msc_graph_notes notes = {.opset = 15,
                                          .model_version = 7,
                                          .doc = "made by us",
                                          .graph_doc = "licence",
                                          .n_metadata = n,
                                          .metadata = pairs,
                                          .n_output_docs = 1,
                                          .output_docs = docs};
    forget_notes(g);
    assert_ok(msc_graph_set_notes(g, &notes));
    assert_true(msc_graph_has_notes(g));
    return g;
}

// Checks the notes and destroys the graph.
static void expect_notes(struct msc_graph *g, size_t n_metadata) {
    const struct msc_graph_notes *n = msc_graph_notes(g);
    assert_int_equal(n->opset, 15);
    assert_int_equal(n->model_version, 7);
    assert_string_equal(n->doc, "made by us");
    assert_string_equal(n->graph_doc, "licence");
    assert_string_equal(n->domain, "");
    assert_int_equal(n->n_metadata, n_metadata);
    assert_string_equal(n->metadata[0].key, "names");
    assert_string_equal(n->metadata[0].value, "cat, dog");
    assert_string_equal(n->metadata[n_metadata - 1].key, "stride");
    assert_int_equal(n->n_input_docs, 0);
    assert_int_equal(n->n_output_docs, 1);
    assert_string_equal(n->output_docs[0].key, "z");
    assert_string_equal(n->output_docs[0].value, "logits");
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

// Metadata with mscgym's own keys comes from an earlier export and is not loaded.
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
    assert_ok(msc_graph_read_json(&again, text.data, text.length, "g.json", NULL, NULL));
    expect_notes(again, 2); // metadata that is not UTF-8 cannot be written as JSON
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// Reads the graph's JSON with its member "notes" replaced by `notes`.
static enum msc_status read_with(struct msc_graph **out, const char *notes) {
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims"));
    struct msc_str text = {0}, changed = {0};
    forget_notes(g);
    msc_graph_write_json(g, &text);
    assert_null(strstr(text.data, "\"notes\""));
    msc_str_append_n(&changed, text.data, text.length - 1);
    msc_str_printf(&changed, ", \"notes\": %s}", notes);
    enum msc_status status =
        msc_graph_read_json(out, changed.data, changed.length, "g.json", NULL, NULL);
    msc_str_finish(&text);
    msc_str_finish(&changed);
    msc_graph_destroy(g);
    return status;
}

static void expect_pair(const struct msc_attr *pair, const char *key, const char *value) {
    assert_string_equal(pair->key, key);
    assert_string_equal(pair->value, value);
}

// A tensor that is both input and output has two texts, one for each role. If entries repeat, the
// last one is used, as in ONNX Runtime.
static void test_graph_notes__same_names(void **state) {
    (void)state;
    static const struct msc_attr repeated[] = {{"names", "a"}, {"k", "1"},     {"names", "b"},
                                               {"", "2"},      {"names", "c"}, {"", "3"}};
    static const struct msc_attr input_docs[] = {{"x", "in"}, {"y", "old"}, {"y", "new"}};
    static const struct msc_attr output_docs[] = {{"y", "out"}, {"x", "out of x"}};
    const struct msc_graph_notes notes = {.n_metadata = 6,
                                          .metadata = repeated,
                                          .n_input_docs = 3,
                                          .input_docs = input_docs,
                                          .n_output_docs = 2,
                                          .output_docs = output_docs};
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims")), *again;
    struct msc_str text = {0};
    assert_ok(msc_graph_set_notes(g, &notes));
    msc_graph_write_json(g, &text);
    assert_ok(msc_graph_read_json(&again, text.data, text.length, "g.json", NULL, NULL));
    const struct msc_graph_notes *n = msc_graph_notes(again);
    assert_int_equal(n->n_metadata, 3);
    expect_pair(&n->metadata[0], "names", "c");
    expect_pair(&n->metadata[1], "k", "1");
    expect_pair(&n->metadata[2], "", "3");
    assert_int_equal(n->n_input_docs, 2);
    expect_pair(&n->input_docs[0], "x", "in");
    expect_pair(&n->input_docs[1], "y", "new");
    assert_int_equal(n->n_output_docs, 2);
    expect_pair(&n->output_docs[0], "y", "out");
    expect_pair(&n->output_docs[1], "x", "out of x");
    msc_graph_destroy(again);
    msc_graph_destroy(g);
    msc_str_finish(&text);
}

// The opset is kept even without other notes; a graph without an opset writes none.
static void test_graph_notes__opset(void **state) {
    (void)state;
    static const struct {
        const char *notes;
        int opset;
    } cases[] = {
        {"{}", 0}, {"{\"opset\": 1}", 1}, {"{\"opset\": 18}", 18}, {"{\"opset\": \"28\"}", 28}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msc_graph *g, *again;
        struct msc_str text = {0};
        assert_ok(read_with(&g, cases[i].notes));
        assert_int_equal(msc_graph_notes(g)->opset, cases[i].opset);
        msc_graph_write_json(g, &text);
        assert_ok(msc_graph_read_json(&again, text.data, text.length, "g.json", NULL, NULL));
        assert_int_equal(msc_graph_notes(again)->opset, cases[i].opset);
        msc_str_finish(&text);
        msc_graph_destroy(again);
        msc_graph_destroy(g);
    }
}

// Damaged notes. Each message names the member that is wrong.
static void test_graph_notes__damaged(void **state) {
    (void)state;
    static const struct {
        const char *notes, *says;
    } cases[] = {
        {"1", "g.json: \"notes\""},
        {"{\"metadata\": {\"a\": 1}}", "g.json: notes: metadata"},
        {"{\"metadata\": []}", "g.json: notes: \"metadata\""},
        {"{\"input_docs\": 3}", "g.json: notes: \"input_docs\""},
        {"{\"output_docs\": {\"z\": null}}", "g.json: notes: output_docs"},
        {"{\"doc\": []}", "g.json: notes: \"doc\""},
        {"{\"model_version\": \"two\"}", "g.json: notes: \"model_version\""},
        {"{\"opset\": 0}", "g.json: notes: \"opset\" is 0, expected 1 to 28"},
        {"{\"opset\": 29}", "g.json: notes: \"opset\" is 29, expected 1 to 28"},
        {"{\"opset\": -1}", "g.json: notes: \"opset\" is -1, expected 1 to 28"},
        {"{\"opset\": 4294967309}", "g.json: notes: \"opset\" is 4294967309, expected 1 to 28"},
        {"{\"opset\": 17.5}", "g.json: notes: \"opset\""},
        {"{\"opset\": \"new\"}", "g.json: notes: \"opset\""},
        {"{\"opset\": []}", "g.json: notes: \"opset\""},
        {"{\"opset\": null}", "g.json: notes: \"opset\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msc_graph *again;
        assert_int_equal(read_with(&again, cases[i].notes), MSC_E_FORMAT);
        if (strncmp(msc_status_message(), cases[i].says, strlen(cases[i].says)) != 0) {
            fail_msg("%s: '%s' does not begin with '%s'", cases[i].notes, msc_status_message(),
                     cases[i].says);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_notes__copies), cmocka_unit_test(test_graph_notes__onnx),
        cmocka_unit_test(test_graph_notes__json),   cmocka_unit_test(test_graph_notes__same_names),
        cmocka_unit_test(test_graph_notes__opset),  cmocka_unit_test(test_graph_notes__damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

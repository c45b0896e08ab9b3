#include "graph/onnx/load.h"
#include "tests/graph/graph_samples.h"

#include <stdio.h>
#include <stdlib.h>

static void test_graph_file__json(void **state) {
    (void)state;
    struct msc_graph *g = make_branches(), *read;
    char folder[] = "/tmp/msc_test_graph_XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/net", folder);
    assert_ok(msc_graph_save(g, path));
    snprintf(path, sizeof(path), "%s/net.json", folder);
    assert_ok(msc_graph_load(&read, path));
    assert_true(msc_graph_equal(g, read, true));
    msc_graph_destroy(read);
    assert_int_equal(remove(path), 0);
    assert_int_not_equal(msc_graph_load(&read, path), MSC_OK);
    assert_message("net.json");
    snprintf(path, sizeof(path), "%s/net.safetensors", folder);
    assert_int_equal(msc_graph_load(&read, path), MSC_E_UNSUPPORTED);
    assert_message(".onnx or .json");
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_file__json),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// ONNX files that are truncated or have wrong bytes: each gives a graph or an error that names
// the file, never a crash. Also loading and saving when memory runs out.
#include "tests/graph/onnx_files.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "graph/passes/bind.h"
#include "tests/short_memory.h"

#include <limits.h>
#include <unistd.h>

// Together these models contain every kind of message and most operators.
static const char *const models[] = {
    MSC_TESTS_MODEL("attention"), MSC_TESTS_MODEL("batch_norm"), MSC_TESTS_MODEL("constants"),
    MSC_TESTS_MODEL("external"),  MSC_TESTS_MODEL("gemm"),       MSC_TESTS_MODEL("opset_9"),
    MSC_TESTS_MODEL("outputs"),   MSC_TESTS_MODEL("softmax_12"), MSC_TESTS_MODEL("view"),
    MSC_TESTS_MODEL("windows"),   MSC_TESTS_MODEL("operators"),
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/msc_damage_%d.onnx", (int)getpid());
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(scratch);
    return 0;
}

// A graph that loads must also survive binding and writing.
static void use(struct msc_graph *g) {
    struct msc_graph *bound = NULL;
    struct msc_input_shape shapes[8];
    size_t n = (size_t)msc_graph_n_inputs(g);
    for (size_t i = 0; i < n && i < 8; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
        shapes[i].n_dims = t->n_dims;
        for (int d = 0; d < t->n_dims; d++) {
            shapes[i].dims[d] = t->dims[d] < 0 ? 4 : t->dims[d];
        }
    }
    if (n <= 8 && msc_graph_bind_shapes(&bound, g, shapes, n) == MSC_OK) {
        msc_graph_destroy(bound);
    }
}

static void load_bytes(const char *data, size_t n_bytes) {
    struct msc_graph *g = NULL;
    unlink(scratch); // overwriting a file would flush it to disk, thousands of times
    FILE *file = fopen(scratch, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n_bytes, file), n_bytes);
    fclose(file);
    if (msc_onnx_load(&g, scratch, NULL) == MSC_OK) {
        use(g);
    } else {
        assert_message(scratch);
    }
    msc_graph_destroy(g);
}

static void test_graph_onnx_damage__cut_off(void **state) {
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        char *data;
        size_t n_bytes;
        assert_ok(msc_file_read(&data, &n_bytes, models[m]));
        for (size_t n = 0; n < n_bytes; n++) {
            load_bytes(data, n);
        }
        msc_free(data);
    }
}

static void test_graph_onnx_damage__wrong_bytes(void **state) {
    (void)state;
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    for (size_t m = 0; m < N_MODELS; m++) {
        char *data;
        size_t n_bytes;
        assert_ok(msc_file_read(&data, &n_bytes, models[m]));
        for (size_t i = 0; i < n_bytes; i++) {
            char before = data[i];
            data[i] = (char)(before ^ (1 << msc_rng_below(&rng, 8)));
            load_bytes(data, n_bytes);
            data[i] = (char)msc_rng_below(&rng, 256);
            load_bytes(data, n_bytes);
            data[i] = before;
        }
        msc_free(data);
    }
}

// Messages nested 30000 deep: field 7 (graph) of a model, then field 1 (node), 5 (attribute), 6
// (graph), 1 (node), ...
static void test_graph_onnx_damage__nesting(void **state) {
    (void)state;
    enum { DEPTH = 30000 };
    static const char tags[] = {0x0a, 0x2a, 0x32};
    char *data = msc_alloc(4 * DEPTH);
    size_t at = 4 * DEPTH;
    for (int i = DEPTH - 1; i >= 0; i--) {
        size_t length = 4 * (size_t)DEPTH - at;
        char varint[3] = {(char)(length | 0x80), (char)(length >> 7 | 0x80), (char)(length >> 14)};
        at -= 4;
        memcpy(data + at + 1, varint, 3);
        data[at] = i == 0 ? 0x3a : tags[(i - 1) % 3];
    }
    load_bytes(data + at, 4 * DEPTH - at);
    assert_message("nested too deeply at byte");
    assert_message("at most 100 levels of messages");
    msc_free(data);
}

static const char *scenario_model;

static enum msc_status load_bind_save(void) {
    struct msc_graph *g = NULL, *bound = NULL;
    enum msc_status status = MSC_OK;
    const struct msc_binding bindings[] = {{"N", 2}, {"H", 8}, {"W", 6}};
    MSC_TRY_OUT(msc_onnx_load(&g, scenario_model, NULL));
    if (strstr(msc_path_name(scenario_model), "view") != NULL) {
        MSC_TRY_OUT(msc_graph_bind(&bound, g, bindings, 3));
    }
    MSC_TRY_OUT(msc_onnx_save(bound == NULL ? g : bound, scratch, NULL));
out:
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    return status;
}

// The n-th allocation fails, for n = 1, 2, ..., until everything succeeds.
static void test_graph_onnx_damage__out_of_memory(void **state) {
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        scenario_model = models[m];
        bool failed = true;
        int n_ok = 0;
        for (int n = 1; failed; n++) {
            int before = n_live;
            n_until_failure = n;
            enum msc_status status = load_bind_save();
            failed = n_until_failure <= 0;
            n_until_failure = INT_MAX;
            assert_int_equal(n_live, before);
            assert_true(status == MSC_E_NOMEM || status == MSC_OK);
            n_ok += status == MSC_OK;
        }
        // The last run succeeds. At most two earlier runs also succeed. In those runs the file was
        // written completely, and only the flush after the write failed.
        assert_true(n_ok >= 1 && n_ok <= 3);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_damage__cut_off),
        cmocka_unit_test(test_graph_onnx_damage__wrong_bytes),
        cmocka_unit_test(test_graph_onnx_damage__nesting),
        cmocka_unit_test(test_graph_onnx_damage__out_of_memory),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

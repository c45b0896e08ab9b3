// `run --tensor` writes tensors of all samples to files. The expected numbers were worked out by
// hand; check_collect.py compares real networks with ONNX Runtime.
#include "tests/joint_attrs.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include "base/file.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "model/collect.h"

#include <stdio.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void save_array(const char *path, const float values[], int64_t n) {
    struct msc_array *x;
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 2, DIMS(n, 2), values));
    assert_ok(msc_npy_save(path, x));
    msc_array_release(x);
}

// x [1, 2] -> scale: diag(1, 2) -> relu -> permute to [2, 1]
static void save_model(const char *path) {
    struct msc_graph *g;
    struct msc_array *data;
    const char *alias = "scaled";
    struct joint_attrs axes;
    int32_t tensor, weight, joint;
    assert_ok(msc_graph_create(&g, "scale"));
    assert_ok(msc_graph_add_input(&tensor, g, "x", "x", MSC_DTYPE_F32, "NC", 2, DIMS(1, 2)));
    assert_ok(
        msc_array_create_from(&data, MSC_DTYPE_F32, 2, DIMS(2, 2), (const float[]){1, 0, 0, 2}));
    assert_ok(msc_graph_add_weight(&weight, g, "scale.weight", NULL, "OI", data));
    msc_array_release(data);
    struct msc_weight_spec spec = {"weight", weight};
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = MSC_OP_LINEAR,
                                                           .name = "scale",
                                                           .n_inputs = 1,
                                                           .inputs = &tensor,
                                                           .n_weights = 1,
                                                           .weights = &spec,
                                                           .aliases = &alias}));
    tensor = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_add_joint(
        &joint, g, &(struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &tensor}));
    tensor = msc_graph_joint(g, joint)->outputs[0];
    joint_attrs_read(&axes, "axes=1,0");
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = MSC_OP_PERMUTE_DIMS,
                                                           .n_inputs = 1,
                                                           .inputs = &tensor,
                                                           .n_attrs = axes.n,
                                                           .attrs = axes.rows}));
    assert_ok(msc_graph_set_outputs(g, 1, &msc_graph_joint(g, joint)->outputs[0]));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_graph_save(g, path));
    msc_graph_destroy(g);
}

// The model with the samples (3, -4), (1, 2) and (0, 5).
static struct msc_model *open_model(void **state, struct msc_arena *arena) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m;
    const char *base = msc_path_join(arena, *state, "scale");
    save_model(base);
    dataset.options.inputs = msc_path_join(arena, *state, "x.npy");
    save_array(dataset.options.inputs, (const float[]){3, -4, 1, 2, 0, 5}, 3);
    o.device = "cpu";
    o.n_threads = 2;
    assert_ok(msc_model_open(&m, msc_arena_printf(arena, "%s.json", base), &o));
    assert_ok(msc_model_load_dataset(m, &dataset));
    return m;
}

static void check_array(const struct msc_array_list *list, const char *name, int n_dims,
                        const int64_t dims[], const float expected[]) {
    const struct msc_array *a = msc_array_list_find(list, name);
    assert_non_null(a);
    assert_int_equal(msc_array_n_dims(a), n_dims);
    assert_memory_equal(msc_array_dims(a), dims, (size_t)n_dims * sizeof dims[0]);
    assert_memory_equal(msc_array_data(a), expected, msc_array_n_bytes(a));
}

static void test_pipeline_collect__all(void **state) {
    struct msc_arena arena = {0};
    struct msc_array_list list = {0};
    struct msc_model *m = open_model(state, &arena);
    struct msc_collect c = {.patterns = (const char *[]){"*"},
                            .n_patterns = 1,
                            .path = msc_path_join(&arena, *state, "all.npz")};
    assert_ok(msc_collect(m, &c));
    assert_int_equal(c.n_tensors, 3);
    assert_int_equal(c.n_samples, 3);
    assert_ok(msc_npz_load(&list, c.path));
    assert_int_equal(list.n, 3);
    assert_string_equal(list.names[0], "scaled");
    check_array(&list, "scaled", 2, DIMS(3, 2), (const float[]){3, -8, 1, 4, 0, 10});
    check_array(&list, list.names[1], 2, DIMS(3, 2), (const float[]){3, 0, 1, 4, 0, 10});
    // The permuted tensor does not have one row per sample, so it gets an axis for the samples.
    check_array(&list, list.names[2], 3, DIMS(3, 2, 1), (const float[]){3, 0, 1, 4, 0, 10});
    msc_array_list_finish(&list);
    assert_ok(msc_collect(m, &c)); // msc_collect may overwrite its earlier output
    msc_model_close(m);
    msc_arena_finish(&arena);
}

static void test_pipeline_collect__some(void **state) {
    struct msc_arena arena = {0};
    struct msc_array_list list = {0};
    struct msc_model *m = open_model(state, &arena);
    struct msc_collect c = {.patterns = (const char *[]){"sca*d", "scaled", "x"},
                            .n_patterns = 3,
                            .path = msc_path_join(&arena, *state, "some.safetensors")};
    assert_ok(msc_collect(m, &c));
    assert_ok(msc_safetensors_load(&list, c.path));
    assert_int_equal(list.n, 2);
    check_array(&list, "scaled", 2, DIMS(3, 2), (const float[]){3, -8, 1, 4, 0, 10});
    check_array(&list, "x", 2, DIMS(3, 2), (const float[]){3, -4, 1, 2, 0, 5});
    msc_array_list_finish(&list);
    msc_model_close(m);
    msc_arena_finish(&arena);
}

static void test_pipeline_collect__refused(void **state) {
    struct msc_arena arena = {0};
    struct msc_model *m = open_model(state, &arena);
    const char *patterns[] = {"conv*"};
    struct msc_collect c = {
        .patterns = patterns, .n_patterns = 1, .path = msc_path_join(&arena, *state, "no.npz")};
    assert_int_equal(msc_collect(m, &c), MSC_E_NOT_FOUND);
    assert_non_null(strstr(msc_status_message(), "conv*"));
    assert_false(msc_file_exists(c.path));
    c.path = "no.npy";
    assert_int_equal(msc_collect(m, &c), MSC_E_INVALID);
    // A file with tensors other than those to be written is not overwritten.
    patterns[0] = "x";
    c.path = msc_path_join(&arena, *state, "all.npz");
    assert_int_equal(msc_collect(m, &c), MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "such as scaled"));
    msc_model_close(m);
    msc_arena_finish(&arena);
}

static int setup(void **state) {
    static char folder[TEMP_FOLDER_BYTES];
    temp_folder_make(folder);
    *state = folder;
    return 0;
}

static int teardown(void **state) {
    temp_folder_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_collect__all),
        cmocka_unit_test(test_pipeline_collect__some),
        cmocka_unit_test(test_pipeline_collect__refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

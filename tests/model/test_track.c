// Comparing two models tensor by tensor. The expected numbers were worked out by hand;
// check_track.py compares exported networks with ONNX Runtime.
#include "tests/msc_test.h"

#include "data/npy.h"
#include "model/track.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

// tensor = input * diag(1, factor)
static int32_t add_linear(struct msc_graph *g, const char *name, int32_t input, float factor) {
    struct msc_array *data;
    int32_t weight, joint;
    const float values[4] = {1, 0, 0, factor};
    const char *weight_name = strcmp(name, "first") == 0 ? "first.weight" : "second.weight";
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 2, DIMS(2, 2), values));
    assert_ok(msc_graph_add_weight(&weight, g, weight_name, NULL, "OI", data));
    msc_array_release(data);
    struct msc_weight_spec spec = {"weight", weight};
    struct msc_joint_spec joint_spec = {.op = MSC_OP_LINEAR,
                                        .name = name,
                                        .n_inputs = 1,
                                        .inputs = &input,
                                        .n_weights = 1,
                                        .weights = &spec,
                                        .aliases = &name};
    assert_ok(msc_graph_add_joint(&joint, g, &joint_spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// x -> first -> relu -> second. The relu's output has no name of its own in the model.
static void save_chain(const char *path, float first, float second) {
    struct msc_graph *g;
    int32_t tensor, relu;
    assert_ok(msc_graph_create(&g, "chain"));
    assert_ok(msc_graph_add_input(&tensor, g, "x", "x", MSC_DTYPE_F32, "NC", 2, DIMS(1, 2)));
    tensor = add_linear(g, "first", tensor, first);
    assert_ok(msc_graph_add_joint(
        &relu, g, &(struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &tensor}));
    tensor = add_linear(g, "second", msc_graph_joint(g, relu)->outputs[0], second);
    assert_ok(msc_graph_set_outputs(g, 1, &tensor));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_graph_save(g, path));
    msc_graph_destroy(g);
}

// The chain with the samples (3, 4) and (0, 0).
static struct msc_model *open_chain(float first, float second) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m = NULL;
    struct msc_array *x;
    char path[64], model[80], weights[80], inputs[80];
    snprintf(path, sizeof path, "/tmp/msc_track_%d", (int)getpid());
    snprintf(model, sizeof model, "%s.json", path);
    snprintf(weights, sizeof weights, "%s.safetensors", path);
    snprintf(inputs, sizeof inputs, "%s.npy", path);
    save_chain(path, first, second);
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 2, DIMS(2, 2), (const float[]){3, 4, 0, 0}));
    assert_ok(msc_npy_save(inputs, x));
    msc_array_release(x);
    o.device = "cpu";
    o.n_threads = 2;
    assert_ok(msc_model_open(&m, model, &o));
    dataset.options.inputs = inputs;
    assert_ok(msc_model_load_dataset(m, &dataset));
    unlink(model);
    unlink(weights);
    unlink(inputs);
    return m;
}

static struct msc_track *track(struct msc_model *one, struct msc_model *other) {
    const struct msc_track_side sides[2] = {{.model = one}, {.model = other}};
    struct msc_track *made = NULL;
    assert_ok(msc_track_make(&made, sides));
    assert_int_equal(made->n_samples, 2);
    return made;
}

static const char *label(const struct msc_model *m, const struct msc_track *t, size_t row) {
    return msc_tensor_label(msc_graph_tensor(m->graph, t->rows[row].tensor));
}

// The outputs are (3, 4) and (0, 0) in one model, (3, 8) and (0, 0) in the other.
static void test_pipeline_track__numbers(void **state) {
    (void)state;
    struct msc_model *one = open_chain(1, 1), *other = open_chain(1, 2);
    struct msc_track *t = track(one, other);
    assert_int_equal(t->n_rows, 2);
    assert_string_equal(label(one, t, 0), "first");
    assert_true(t->rows[0].snr_db == INFINITY && t->rows[0].cosine == 1.0);
    assert_true(t->rows[0].max_abs == 0.0 && t->rows[0].mean_abs == 0.0);
    assert_string_equal(label(one, t, 1), "second");
    assert_int_equal(t->rows[1].n, 4);
    assert_true(t->rows[1].max_abs == 4.0 && t->rows[1].mean_abs == 1.0);
    assert_true(fabs(t->rows[1].snr_db - 10 * log10(25.0 / 16.0)) < 1e-12);
    assert_true(fabs(t->rows[1].cosine - 41.0 / sqrt(25.0 * 73.0)) < 1e-12);
    assert_true(t->rows[1].inputs_db == INFINITY);
    assert_int_equal(t->worst, 1);
    assert_true(fabs(msc_track_fall(&t->rows[1]) - (40.0 - t->rows[1].snr_db)) < 1e-12);
    msc_track_destroy(t);
    msc_model_close(other);
    msc_model_close(one);
}

// Only the first layer is wrong. The second has the same error because it reads the first layer's
// output.
static void test_pipeline_track__first_at_fault(void **state) {
    (void)state;
    struct msc_model *one = open_chain(1, 1), *other = open_chain(2, 1);
    struct msc_track *t = track(one, other);
    assert_int_equal(t->worst, 0);
    assert_true(t->rows[1].snr_db == t->rows[0].snr_db);
    assert_true(t->rows[1].inputs_db == t->rows[0].snr_db);
    msc_track_destroy(t);
    msc_model_close(other);
    msc_model_close(one);
}

// A model compared with itself: all tensors are compared, even with little memory.
static void test_pipeline_track__parts(void **state) {
    (void)state;
    struct msc_model *one = open_chain(1, 1);
    for (int i = 0; i < 2; i++) {
        struct msc_track *t = track(one, one);
        assert_int_equal(t->n_rows, 3);
        assert_int_equal(t->worst, t->n_rows);
        for (size_t k = 0; k < t->n_rows; k++) {
            assert_int_equal(t->rows[k].n, 4);
            assert_true(t->rows[k].snr_db == INFINITY);
        }
        msc_track_destroy(t);
        one->memory_bytes = 1; // compares one tensor at a time
    }
    msc_model_close(one);
}

static struct msc_strategy *keep_one(int unit) {
    const struct msc_channel_group group = {.name = "first.weight", .n_units = 2};
    const bool is_gone[] = {unit != 0, unit != 1};
    struct msc_strategy *s;
    assert_ok(msc_strategy_create(&s, NULL));
    assert_ok(msc_strategy_prune_group(s, &group, "0.5", is_gone));
    return s;
}

// One side has only the second of two channels: (4), (0) after the first layer, and (0, 4), (0, 0)
// after the second. Only channels that both sides have are compared, whichever side is pruned.
static void test_pipeline_track__channels(void **state) {
    (void)state;
    struct msc_model *one = open_chain(1, 1);
    struct msc_strategy *second = keep_one(1), *first = keep_one(0);
    for (int side = 0; side < 2; side++) {
        struct msc_track_side sides[2] = {{.model = one}, {.model = one}};
        struct msc_track *t;
        sides[side].strategy = second;
        assert_ok(msc_track_make(&t, sides));
        assert_int_equal(t->n_rows, 3);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(t->rows[i].n, 2);
            assert_true(t->rows[i].snr_db == INFINITY);
        }
        assert_int_equal(t->rows[2].n, 4);
        assert_true(t->rows[2].max_abs == 3.0 && t->rows[2].mean_abs == 0.75);
        assert_true(fabs(t->rows[2].cosine - 16.0 / sqrt(25.0 * 16.0)) < 1e-12);
        assert_int_equal(t->worst, 2);
        msc_track_destroy(t);
        sides[1 - side].strategy = first; // the sides have no channel in common
        assert_ok(msc_track_make(&t, sides));
        assert_int_equal(t->rows[0].n, 0);
        assert_int_equal(t->rows[2].n, 4);
        msc_track_destroy(t);
    }
    msc_strategy_destroy(first);
    msc_strategy_destroy(second);
    msc_model_close(one);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_track__numbers),
        cmocka_unit_test(test_pipeline_track__first_at_fault),
        cmocka_unit_test(test_pipeline_track__parts),
        cmocka_unit_test(test_pipeline_track__channels),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Opening, running and checking a model. tests/cli/files/make_files.py made the models and, with
// ONNX Runtime, the expected outputs.
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include "data/npy.h"
#include "graph/onnx/load.h"
#include "model/model.h"
#include "model/latency.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

#define FILES MSC_TESTS_FOLDER "/cli/files/"

static struct msc_model *open_model(const char *path, int n_threads, bool is_single) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m = NULL;
    o.device = "cpu";
    o.n_threads = n_threads;
    o.is_single = is_single;
    o.memory_bytes = 64 << 20;
    assert_ok(msc_model_open(&m, path, &o));
    return m;
}

static struct msc_model *open_tiny(int n_threads, bool is_single) {
    return open_model(FILES "tiny.onnx", n_threads, is_single);
}

static void test_pipeline_model__inputs(void **state) {
    (void)state;
    struct msc_model *m = open_tiny(1, false);
    assert_int_equal(m->n_inputs, 1);
    assert_true(m->is_batched);
    assert_string_equal(m->specs[0].name, "x");
    assert_int_equal(m->specs[0].n_dims, 4);
    assert_int_equal(m->specs[0].dims[0], -1);
    assert_int_equal(m->specs[0].dims[3], 4);
    msc_model_close(m);
}

// Runs a model on x.npy and compares the output with the expected file, within float32 rounding.
// Closes the model.
static void check_output(struct msc_model *m, const char *expected) {
    struct msc_array *x = NULL;
    struct msc_array *y = NULL;
    assert_ok(msc_npy_load(&x, FILES "x.npy"));
    assert_ok(msc_npy_load(&y, expected));
    struct msc_model_run run = {.inputs = (const struct msc_array *const[]){x}, .repeat = 3};
    assert_ok(msc_model_run(m, &run));
    assert_int_equal(run.n_outputs, 1);
    assert_int_equal(msc_array_n_elements(run.outputs[0]), msc_array_n_elements(y));
    for (int64_t k = 0; k < msc_array_n_elements(y); k++) {
        double found = msc_array_get_double(run.outputs[0], k);
        double truth = msc_array_get_double(y, k);
        assert_true(fabs(found - truth) < 1e-6);
    }
    assert_true(run.microseconds[0] > 0);
    assert_true(run.microseconds[0] <= run.microseconds[2]);
    msc_model_run_finish(&run);
    msc_model_close(m);
    msc_array_release(x);
    msc_array_release(y);
}

static void tell_some_room(struct msc_backend *b, struct msc_backend_memory *out) {
    (void)b;
    *out = (struct msc_backend_memory){.room_bytes = (uint64_t)600 << 20};
}

// The memory limit is half of the free memory of the device, or of the machine if that is less.
static void test_pipeline_model__memory_of_a_device(void **state) {
    (void)state;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m = NULL;
    o.device = "cpu";
    assert_ok(msc_model_open(&m, FILES "tiny.onnx", &o));
    const struct msc_backend_def *kept = m->backend->def;
    struct msc_backend_def small = *kept;
    small.memory = tell_some_room;
    m->backend->def = &small;
    assert_ok(msc_model_load_first(m, NULL, 1));
    m->backend->def = kept;
    assert_true(m->memory_bytes <= (uint64_t)300 << 20);
    assert_true(m->memory_bytes >= (uint64_t)256 << 20);
    msc_model_close(m);
}

// Like a search, a run has the memory limit that --help states: half of the free memory, at most 4
// GiB.
static void test_pipeline_model__memory_of_a_run(void **state) {
    (void)state;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m = NULL;
    struct msc_array *x = NULL;
    o.device = "cpu";
    assert_ok(msc_model_open(&m, FILES "tiny.onnx", &o));
    assert_ok(msc_npy_load(&x, FILES "x.npy"));
    struct msc_model_run run = {.inputs = (const struct msc_array *const[]){x}};
    assert_ok(msc_model_run(m, &run));
    assert_true(m->memory_bytes > 0 && m->memory_bytes <= (uint64_t)4 << 30);
    msc_model_run_finish(&run);
    msc_model_close(m);
    msc_array_release(x);
}

// Outputs equal ONNX Runtime's outputs, for any number of threads.
static void test_pipeline_model__outputs(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        check_output(open_tiny(i == 1 ? 2 : 1, i == 2), FILES "outputs.npy");
    }
}

// A quantised export can be opened like any other model.
static void test_pipeline_model__quantised_outputs(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        check_output(open_model(FILES "tiny_4.onnx", 1, i == 1), FILES "outputs_4.npy");
    }
}

// A graph in memory is a model without a file. The model keeps its own reference.
static void test_pipeline_model__graph_in_memory(void **state) {
    (void)state;
    const struct msc_binding unknown = {.symbol = "M", .value = 2};
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_graph *g = NULL;
    struct msc_model *m = NULL;
    o.device = "cpu";
    assert_ok(msc_graph_load(&g, FILES "tiny.onnx"));
    assert_ok(msc_model_open_graph(&m, g, "my network", &o));
    msc_graph_destroy(g);
    g = msc_graph_retain(m->graph);
    check_output(m, FILES "outputs.npy");
    o.bindings = &unknown;
    o.n_bindings = 1;
    assert_int_equal(msc_model_open_graph(&m, g, "my network", &o), MSC_E_INVALID);
    assert_message("my network: bind: ");
    msc_graph_destroy(g);
}

// Measures two models in turn, on random inputs and on the first batch of a file.
static void test_pipeline_model__latency(void **state) {
    (void)state;
    static const struct {
        const char *inputs;
        int64_t batch, n_found;
    } cases[] = {{NULL, 1, 1}, {NULL, 3, 3}, {FILES "inputs.npz", 2, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct msc_latency latency = {0};
        struct msc_model *models[] = {open_tiny(1, true), open_model(FILES "tiny_4.onnx", 1, true)};
        for (size_t i = 0; i < 2; i++) {
            assert_ok(msc_model_load_first(models[i], cases[c].inputs, cases[c].batch));
            assert_int_equal(msc_dataset_n_batches(models[i]->dataset), 1);
            const struct msc_array *x = msc_dataset_batch(models[i]->dataset, 0, 0);
            assert_int_equal(msc_array_dim(x, 0), cases[c].n_found);
        }
        assert_ok(msc_model_latency(&latency, models, 2, 3));
        for (size_t i = 0; i < 6; i++) {
            assert_true(latency.us[i] > 0);
        }
        assert_true(latency.runs[0] >= 1 && latency.runs[1] <= MSC_LATENCY_MAX_RUNS);
        msc_latency_finish(&latency);
        msc_model_close(models[0]);
        msc_model_close(models[1]);
    }
}

// Random inputs are within the range that suits their type.
static void test_pipeline_model__random_inputs(void **state) {
    (void)state;
    struct msc_model *m = NULL;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.device = "cpu";
    assert_ok(msc_model_open(&m, FILES "tiny.onnx", &o));
    struct msc_input_spec spec = m->specs[0];
    static const struct {
        enum msc_dtype dtype;
        double min, max;
    } cases[] = {{MSC_DTYPE_F32, -1, 1}, {MSC_DTYPE_F16, -1, 1}, {MSC_DTYPE_U8, 0, 127},
                 {MSC_DTYPE_I8, 0, 127}, {MSC_DTYPE_I64, 0, 1},  {MSC_DTYPE_BOOL, 0, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double least = INFINITY, most = -INFINITY;
        m->specs[0] = spec;
        m->specs[0].dtype = cases[c].dtype;
        assert_ok(msc_model_load_first(m, NULL, 64));
        const struct msc_array *x = msc_dataset_batch(m->dataset, 0, 0);
        for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
            least = fmin(least, msc_array_get_double(x, i));
            most = fmax(most, msc_array_get_double(x, i));
        }
        assert_true(least >= cases[c].min && most <= cases[c].max && least < most);
        msc_dataset_destroy(m->dataset);
        m->dataset = NULL;
    }
    msc_model_close(m);
}

static void test_pipeline_model__named_tensors(void **state) {
    (void)state;
    struct msc_array *x = NULL;
    struct msc_model *m = open_tiny(1, false);
    assert_ok(msc_npy_load(&x, FILES "x.npy"));
    struct msc_model_run run = {.inputs = (const struct msc_array *const[]){x},
                                .tensors = (const char *const[]){"r", "y"},
                                .n_tensors = 2};
    assert_ok(msc_model_run(m, &run));
    assert_int_equal(msc_array_dim(run.outputs[0], 1), 2);
    for (int64_t k = 0; k < msc_array_n_elements(run.outputs[0]); k++) {
        assert_true(msc_array_get_double(run.outputs[0], k) >= 0); // r is the output of Relu
    }
    assert_int_equal(msc_array_dim(run.outputs[1], 1), 3);
    msc_model_run_finish(&run);
    run.tensors = (const char *const[]){"nothing"};
    run.n_tensors = 1;
    assert_int_equal(msc_model_run(m, &run), MSC_E_NOT_FOUND);
    assert_message("there is no tensor \"nothing\"");
    msc_array_release(x);
    msc_model_close(m);
}

// The output c of the convolution, for x.npy; owned by the caller.
static struct msc_array *run_convolution(struct msc_model *m) {
    struct msc_array *x = NULL;
    assert_ok(msc_npy_load(&x, FILES "x.npy"));
    struct msc_model_run run = {.inputs = (const struct msc_array *const[]){x},
                                .tensors = (const char *const[]){"c"},
                                .n_tensors = 1};
    assert_ok(msc_model_run(m, &run));
    struct msc_array *c = msc_array_retain(run.outputs[0]);
    msc_model_run_finish(&run);
    msc_array_release(x);
    return c;
}

static void check_times(const struct msc_array *y, const struct msc_array *x, double factor) {
    assert_int_equal(msc_array_n_elements(y), msc_array_n_elements(x));
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        assert_true(msc_array_get_double(y, i) == factor * msc_array_get_double(x, i));
    }
}

// Writes n weights of tiny_doubled.onnx under their own names, or a single weight under the name
// `as`.
static void save_weights(const char *path, const char *const names[], size_t n, const char *as) {
    struct msc_array_list list = {0};
    struct msc_model *m = open_model(FILES "tiny_doubled.onnx", 1, false);
    for (size_t i = 0; i < n; i++) {
        int32_t tensor = msc_graph_find_tensor(m->graph, names[i]);
        assert_ok(msc_array_list_add(&list, as ? as : names[i],
                                     msc_graph_tensor(m->graph, tensor)->data));
    }
    assert_ok(msc_npz_save(path, &list));
    msc_array_list_finish(&list);
    msc_model_close(m);
}

// Weights of the digits network with n channels in each convolution; all elements are `value`.
static void save_digits(const char *path, int64_t n, float value) {
    const struct {
        const char *name;
        int n_dims;
        int64_t dims[4];
    } weights[] = {{"0.weight", 4, {n, 1, 3, 3}}, {"0.bias", 1, {n}},
                   {"2.weight", 4, {n, n, 3, 3}}, {"2.bias", 1, {n}},
                   {"5.weight", 4, {n, n, 3, 3}}, {"5.bias", 1, {n}},
                   {"10.weight", 2, {10, 4 * n}}, {"10.bias", 1, {10}}};
    struct msc_array_list list = {0};
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        struct msc_array *x = NULL;
        assert_ok(msc_array_create(&x, MSC_DTYPE_F32, weights[i].n_dims, weights[i].dims));
        for (int64_t k = 0; k < msc_array_n_elements(x); k++) {
            ((float *)msc_array_data(x))[k] = value;
        }
        assert_ok(msc_array_list_add(&list, weights[i].name, x));
        msc_array_release(x);
    }
    assert_ok(msc_npz_save(path, &list));
    msc_array_list_finish(&list);
}

// A network that is opened with the weights of a pruned network has its lengths, and takes other
// weights of these lengths only.
static void test_pipeline_model__pruned_weights(void **state) {
    static const char digits[] = MSC_TESTS_FOLDER "/../examples/digits/digits.onnx";
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_array_list weights = {0};
    struct msc_model *m = NULL;
    (void)state;
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/w.npz", folder);
    save_digits(path, 5, 1);
    assert_ok(msc_npz_load(&weights, path));
    o.device = "cpu";
    o.weights = &weights;
    assert_ok(msc_model_open(&m, digits, &o));
    const struct msc_tensor *t =
        msc_graph_tensor(m->graph, msc_graph_find_tensor(m->graph, "2.weight"));
    assert_true(t->n_dims == 4 && t->dims[0] == 5 && t->dims[1] == 5);
    for (int i = 0; i < 2; i++) {
        save_digits(path, 5, (float)(3 + i));
        assert_ok(msc_model_update_weights(m, path));
        assert_true(msc_array_get_double(t->data, 7) == 3 + i);
    }
    save_digits(path, 6, 1);
    assert_int_equal(msc_model_update_weights(m, path), MSC_E_INVALID);
    assert_message("weight 0.weight of");
    assert_true(msc_array_get_double(t->data, 7) == 4);
    msc_model_close(m);
    // The unpruned network keeps its own lengths.
    m = open_model(digits, 1, false);
    assert_int_equal(msc_model_update_weights(m, path), MSC_E_INVALID);
    assert_message("weight 0.weight of");
    msc_model_close(m);
    msc_array_list_finish(&weights);
    temp_folder_remove(folder);
}

// Doubling the kernel and the bias doubles the output exactly.
static void test_pipeline_model__other_weights(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    struct msc_model *m = open_tiny(1, false);
    struct msc_array *before = run_convolution(m);
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/w.npz", folder);
    const char *files[] = {path, FILES "tiny.onnx", FILES "tiny_doubled.onnx", FILES "tiny.onnx"};
    save_weights(path, (const char *const[]){"conv.weight", "conv.bias"}, 2, NULL);
    for (int i = 0; i < 4; i++) {
        assert_ok(msc_model_update_weights(m, files[i]));
        struct msc_array *after = run_convolution(m);
        check_times(after, before, i % 2 == 0 ? 2 : 1);
        msc_array_release(after);
    }
    // A file of weights that do not fit leaves the model unchanged.
    save_weights(path, (const char *const[]){"conv.weight"}, 1, "conv.weights");
    assert_int_equal(msc_model_update_weights(m, path), MSC_E_INVALID);
    assert_message("'conv.weights'");
    save_weights(path, (const char *const[]){"conv.bias"}, 1, "conv.weight");
    assert_int_equal(msc_model_update_weights(m, path), MSC_E_INVALID);
    assert_message("'conv.weight' is float32[2,1,3,3]");
    assert_int_equal(msc_model_update_weights(m, FILES "jump.onnx"), MSC_E_INVALID);
    struct msc_array *after = run_convolution(m);
    check_times(after, before, 1);
    msc_array_release(after);
    msc_array_release(before);
    msc_model_close(m);
    temp_folder_remove(folder);
}

static void test_pipeline_model__dataset(void **state) {
    (void)state;
    struct msc_model *m = open_tiny(1, false);
    struct msc_config_dataset from = {.options = MSC_DATASET_OPTIONS_INIT};
    from.options.inputs = FILES "inputs.npz";
    from.options.labels = FILES "labels.npy";
    from.options.batch = 0;
    from.is_dynamic = true; // counts only where a linear layer reads many positions of a sample
    from.validation_fraction = 0.3;
    assert_ok(msc_model_load_dataset(m, &from));
    // Shapes are small, so the batch is the largest allowed. The last six of 20 samples are held
    // back.
    assert_int_equal(from.options.batch, 64);
    assert_int_equal(msc_dataset_n_samples(m->dataset), 14);
    assert_int_equal(msc_dataset_n_samples(m->validation), 6);
    assert_true(msc_dataset_has_labels(m->validation));
    assert_ok(msc_model_check(m, &from, 1e-4, 0));
    // A negative tolerance refuses any difference. Only oneDNN's kernels differ from the reference.
    if (strstr(msc_model_numerics(m), "onednn")) {
        assert_int_equal(msc_model_check(m, &from, -1, 0), MSC_E_STATE);
        assert_message("baseline: output y[");
    }
    msc_model_close(m);
}

// If rounding decides an output (a discontinuity), the tensors before it are compared instead.
static void test_pipeline_model__discontinuous_outputs(void **state) {
    (void)state;
    struct msc_model *m = open_model(FILES "jump.onnx", 1, false);
    struct msc_config_dataset from = {.options = MSC_DATASET_OPTIONS_INIT};
    from.options.inputs = FILES "jump_x.npy";
    from.options.batch = 1;
    assert_ok(msc_model_load_dataset(m, &from));
    assert_ok(msc_model_check(m, &from, 1e-4, 1e-5));
    // A negative tolerance refuses any difference. Only oneDNN's kernels add in another order.
    if (strstr(msc_model_numerics(m), "onednn")) {
        assert_int_equal(msc_model_check(m, &from, -1, 0), MSC_E_STATE);
        assert_message("baseline: output scaled[");
    }
    msc_model_close(m);
}

// The output is 2^18 times a sum that cancels to zero, so it consists only of rounding errors. The
// check passes because it allows for the change of the output when the inputs are rounded.
static void test_pipeline_model__sums_that_cancel(void **state) {
    (void)state;
    struct msc_model *m = open_model(FILES "cancel.onnx", 1, false);
    struct msc_config_dataset from = {.options = MSC_DATASET_OPTIONS_INIT};
    from.options.inputs = FILES "cancel_x.npy";
    from.options.batch = 1;
    assert_ok(msc_model_load_dataset(m, &from));
    assert_ok(msc_model_check(m, &from, 1e-3, 1e-3));
    msc_model_close(m);
}

static void test_pipeline_model__refused(void **state) {
    (void)state;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *m = NULL;
    const struct msc_binding samples = {"N", 4};
    const struct msc_binding unknown = {"H", 4};
    o.bindings = &samples;
    o.n_bindings = 1;
    assert_int_equal(msc_model_open(&m, FILES "tiny.onnx", &o), MSC_E_INVALID);
    assert_message("counts samples");
    o.bindings = &unknown;
    assert_int_equal(msc_model_open(&m, FILES "tiny.onnx", &o), MSC_E_INVALID);
    assert_message("no input or input dimension is called \"H\"");
    assert_null(m);
    msc_model_close(NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_model__inputs),
        cmocka_unit_test(test_pipeline_model__memory_of_a_run),
        cmocka_unit_test(test_pipeline_model__memory_of_a_device),
        cmocka_unit_test(test_pipeline_model__outputs),
        cmocka_unit_test(test_pipeline_model__graph_in_memory),
        cmocka_unit_test(test_pipeline_model__quantised_outputs),
        cmocka_unit_test(test_pipeline_model__latency),
        cmocka_unit_test(test_pipeline_model__random_inputs),
        cmocka_unit_test(test_pipeline_model__named_tensors),
        cmocka_unit_test(test_pipeline_model__other_weights),
        cmocka_unit_test(test_pipeline_model__pruned_weights),
        cmocka_unit_test(test_pipeline_model__dataset),
        cmocka_unit_test(test_pipeline_model__discontinuous_outputs),
        cmocka_unit_test(test_pipeline_model__sums_that_cancel),
        cmocka_unit_test(test_pipeline_model__refused),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

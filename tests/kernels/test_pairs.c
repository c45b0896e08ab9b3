// Networks that quantise values themselves: QuantizeLinear, DequantizeLinear and a convolution
// whose weights were dequantised. Results must have the bits of integer arithmetic
// (kernels/backend.h), which the test computes tap by tap.
#include "base/rng.h"
#include "data/array_codes.h"
#include "graph/onnx/load.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "kernels/engine/planner.h"
#include "tests/kernels/kernel_cases.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 2, IN = 5, OUT = 7, SIZE = 6, N_IN = BATCH * IN * SIZE * SIZE };
enum { N_OUT = BATCH * OUT * SIZE * SIZE, DEPTH = IN * 9, N_WEIGHTS = OUT * DEPTH };

struct network {
    struct msc_graph *g;
    struct msc_array *x;
    int32_t output, dequantised; // tensors: the last, and the convolution's input
    int n_weights;
    float weight_scales[OUT], bias[OUT];
    int8_t codes[N_WEIGHTS];
};

// What differs from a network that runs on integers.
struct fault {
    float scale;        // factor of the scale of the first DequantizeLinear
    bool has_no_codes;  // the weight is stored as floats
    bool is_by_channel; // the first pair has a scale per channel
};

static const struct {
    float scale;
    int32_t zero;
} input = {0.0371f, 117}, result = {0.061f, 30}, again = {0.63f, 7};

// Takes ownership of the array.
static struct msc_weight_spec add_array(struct network *n, const char *role, const char *layout,
                                        struct msc_array *a) {
    struct msc_weight_spec spec = {.role = role};
    char name[16];
    snprintf(name, sizeof(name), "w%d", n->n_weights++);
    assert_ok(msc_graph_add_weight(&spec.tensor, n->g, name, name, layout, a));
    msc_array_release(a);
    return spec;
}

static struct msc_weight_spec add_weight(struct network *n, const char *role, enum msc_dtype dtype,
                                         const char *layout, int n_dims, const int64_t dims[],
                                         const void *elements) {
    struct msc_array *a;
    assert_ok(msc_array_create_from(&a, dtype, n_dims, dims, elements));
    return add_array(n, role, layout, a);
}

static int32_t add(struct network *n, enum msc_op op, int32_t x, const char *attributes,
                   int n_weights, const struct msc_weight_spec weights[]) {
    int32_t joint;
    assert_ok(kernel_add_joint(&joint, n->g, op, 1, &x, attributes, n_weights, weights));
    return msc_graph_joint(n->g, joint)->outputs[0];
}

// Adds a QuantizeLinear or a DequantizeLinear of uint8.
static int32_t add_quant(struct network *n, enum msc_op op, int32_t x, float scale, int32_t zero,
                         bool is_by_channel) {
    float scales[IN];
    uint8_t zeros[IN];
    int64_t length = IN;
    for (int i = 0; i < IN; i++) {
        scales[i] = scale;
        zeros[i] = (uint8_t)zero;
    }
    int n_dims = is_by_channel ? 1 : 0;
    const struct msc_weight_spec weights[] = {
        add_weight(n, "scale", MSC_DTYPE_F32, "", n_dims, &length, scales),
        add_weight(n, "zero_point", MSC_DTYPE_U8, "", n_dims, &length, zeros)};
    return add(n, op, x, op == MSC_OP_QUANTIZE ? "dtype=uint8" : "", 2, weights);
}

static int32_t add_conv(struct network *n, struct msc_rng *rng, int32_t x, bool has_codes) {
    const int64_t dims[] = {OUT, IN, 3, 3}, channels = OUT;
    struct msc_array *weight, *scales;
    assert_ok(msc_array_create(&weight, MSC_DTYPE_F32, 4, dims));
    float *elements = msc_array_data(weight);
    for (int i = 0; i < N_WEIGHTS; i++) {
        int c = i / DEPTH;
        n->weight_scales[c] = 0.003f + 0.0007f * (float)c;
        n->bias[c] = 0.3f * (float)c - 0.7f;
        n->codes[i] = (int8_t)((int)msc_rng_below(rng, 256) - 128);
        elements[i] = (float)n->codes[i] * n->weight_scales[c];
    }
    assert_ok(msc_array_create_from(&scales, MSC_DTYPE_F32, 1, &channels, n->weight_scales));
    if (has_codes) {
        const struct msc_array_codes codes = {.low = -128, .high = 127, .scales = scales};
        assert_ok(msc_array_set_codes(weight, &codes));
    }
    msc_array_release(scales);
    const struct msc_weight_spec weights[] = {
        add_array(n, "weight", "OIHW", weight),
        add_weight(n, "bias", MSC_DTYPE_F32, "O", 1, &channels, n->bias)};
    return add(n, MSC_OP_CONV2D_BIAS, x, "padding=1,1,1,1", 2, weights);
}

static void open_network(struct network *n, const struct fault *fault) {
    const int64_t dims[] = {BATCH, IN, SIZE, SIZE};
    struct msc_rng rng;
    int32_t t;
    *n = (struct network){.n_weights = 0};
    msc_rng_seed(&rng, 5, 0);
    assert_ok(msc_array_create(&n->x, MSC_DTYPE_F32, 4, dims));
    for (int i = 0; i < N_IN; i++) {
        ((float *)msc_array_data(n->x))[i] = (float)msc_rng_double(&rng) * 10.0f - 4.5f;
    }
    assert_ok(msc_graph_create(&n->g, "pairs"));
    assert_ok(msc_graph_add_input(&t, n->g, "x", "x", MSC_DTYPE_F32, "NCHW", 4, dims));
    t = add_quant(n, MSC_OP_QUANTIZE, t, input.scale, input.zero, fault->is_by_channel);
    n->dequantised = add_quant(n, MSC_OP_DEQUANTIZE, t, input.scale * fault->scale, input.zero,
                               fault->is_by_channel);
    t = add_conv(n, &rng, n->dequantised, !fault->has_no_codes);
    t = add(n, MSC_OP_RELU, t, "", 0, NULL);
    t = add_quant(n, MSC_OP_QUANTIZE, t, result.scale, result.zero, false);
    n->output = add_quant(n, MSC_OP_DEQUANTIZE, t, result.scale, result.zero, false);
    assert_ok(msc_graph_set_outputs(n->g, 1, &n->output));
    assert_ok(msc_graph_finalize(n->g));
}

static void close_network(struct network *n) {
    msc_array_release(n->x);
    msc_graph_destroy(n->g);
}

// ---- Expected results -------------------------------------------------------------------------

static int32_t quantise(float x, float scale, int32_t zero) {
    float q = rintf(x / scale) + (float)zero;
    return (int32_t)fminf(fmaxf(q, 0.0f), 255.0f);
}

// The integer that the convolution multiplies. With an edit, the dequantised input is quantised
// once more, to 4 bits.
static int32_t read_code(float x, bool is_edited) {
    int32_t code = quantise(x, input.scale, input.zero) - input.zero;
    if (!is_edited) {
        return code;
    }
    int32_t second = quantise((float)code * input.scale, again.scale, again.zero);
    return (second < 15 ? second : 15) - again.zero;
}

// The sum of output channel c at row y and column x of an image.
static int32_t sum_of(const struct network *n, bool is_edited, int image, int c, int y, int x) {
    const float *elements = msc_array_data(n->x);
    int32_t sum = 0;
    for (int tap = 0; tap < DEPTH; tap++) {
        int row = y + tap % 9 / 3 - 1, column = x + tap % 3 - 1;
        if (row >= 0 && row < SIZE && column >= 0 && column < SIZE) {
            int at = ((image * IN + tap / 9) * SIZE + row) * SIZE + column;
            sum += read_code(elements[at], is_edited) * n->codes[c * DEPTH + tap];
        }
    }
    return sum;
}

static float expected(const struct network *n, bool is_edited, int at) {
    int image = at / (SIZE * SIZE * OUT), c = at / (SIZE * SIZE) % OUT;
    float t = (is_edited ? again.scale : input.scale) * n->weight_scales[c];
    float y = t * (float)sum_of(n, is_edited, image, c, at / SIZE % SIZE, at % SIZE);
    y = y + n->bias[c];
    y = y > 0.0f ? y : 0.0f;
    return (float)(quantise(y, result.scale, result.zero) - result.zero) * result.scale;
}

static enum msc_status check_output(void *payload, size_t trial, size_t batch,
                                    const struct msc_view values[]) {
    const struct network *n = payload;
    int n_large = 0;
    (void)batch;
    for (int i = 0; i < N_OUT; i++) {
        float y = ((const float *)values[0].data)[i];
        assert_true(y == expected(n, trial == 1, i));
        n_large += y > 0.0f;
    }
    assert_true(n_large > N_OUT / 4 && n_large < N_OUT);
    return MSC_OK;
}

// Runs three trials; the second has an edit at the convolution's input.
static void run_trials(struct msc_evaluator *ev, struct network *n) {
    const struct msc_sites *sites = msc_evaluator_sites(ev);
    const int32_t *readers;
    assert_int_equal(msc_graph_consumers(n->g, n->dequantised, &readers), 1);
    const struct msc_edit *edits[2][16] = {{NULL}};
    struct msc_edit edit = msc_edit_quantize((struct msc_quant){.bits = 4,
                                                                .high = 15,
                                                                .axis = -1,
                                                                .n = 1,
                                                                .scales = &again.scale,
                                                                .zero_points = &again.zero});
    assert_true(sites->n_slots <= 16);
    edits[1][msc_sites_find_slot(sites, readers[0], 0)] = &edit;
    struct msc_eval_trial trials[] = {
        {.edits = edits[0]}, {.edits = edits[1]}, {.edits = edits[0]}};
    const struct msc_sink sink = {.batch = check_output, .payload = n};
    assert_ok(msc_evaluator_run(ev, trials, 3, &sink, 0));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(trials[i].status, MSC_OK);
    }
}

static void test_kernels_pairs__run_as_integers(void **state) {
    struct network n;
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_backend_options opened = MSC_BACKEND_OPTIONS_INIT;
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 4, .dims = {BATCH, IN, SIZE, SIZE}};
    (void)state;
    open_network(&n, &(struct fault){.scale = 1.0f});
    const struct msc_array *inputs[] = {n.x};
    assert_ok(msc_backend_open(&options.backend, "cpu", &opened));
    assert_ok(msc_dataset_create_whole(&data, &spec, inputs, 1));
    assert_ok(msc_evaluator_create(&ev, n.g, data, &n.output, 1, &options));
    run_trials(ev, &n);
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    msc_backend_close(options.backend);
    close_network(&n);
}

// ---- Plans ------------------------------------------------------------------------------------

// Plans a graph, which it takes over. Returns the number of its pairs; *has_codes tells whether a
// weight has codes of its own.
static int count_in_plan(struct msc_graph *g, bool *has_codes) {
    struct msc_plan *plan;
    struct msc_backend *backend;
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    int32_t output = msc_graph_output(g, 0);
    int n_pairs = 0;
    assert_ok(msc_backend_open(&backend, "cpu", &options));
    assert_ok(msc_plan_create(&plan, g, backend, &output, 1));
    *has_codes = false;
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *s = &plan->steps[i];
        n_pairs += s->quant != NULL;
        assert_int_equal(s->quant == NULL, s->undone == MSC_NO_ID);
        *has_codes = *has_codes || (s->n_weight_slots > 0 && s->own_edits[0]);
    }
    msc_plan_destroy(plan);
    msc_backend_close(backend);
    return n_pairs;
}

static int count_pairs(const struct fault *fault, bool *has_codes) {
    struct network n;
    struct msc_graph *g;
    open_network(&n, fault);
    assert_ok(msc_graph_clone(&g, n.g));
    close_network(&n);
    return count_in_plan(g, has_codes);
}

static void test_kernels_pairs__are_found(void **state) {
    bool has_codes;
    (void)state;
    assert_int_equal(count_pairs(&(struct fault){.scale = 1.0f}, &has_codes), 2);
    assert_true(has_codes);
    assert_int_equal(count_pairs(&(struct fault){.scale = 1.01f}, &has_codes), 1);
    assert_true(has_codes);
    assert_int_equal(count_pairs(&(struct fault){.scale = 1.0f, .is_by_channel = true}, &has_codes),
                     1);
    assert_true(has_codes);
    assert_int_equal(count_pairs(&(struct fault){.scale = 1.0f, .has_no_codes = true}, &has_codes),
                     2);
    assert_false(has_codes);
}

// Models of make_cases.py.
static void test_kernels_pairs__are_imported(void **state) {
    static const char *const models[] = {
        MSC_TESTS_FOLDER "/kernels/cases/test_quantised_conv/model.onnx",
        MSC_TESTS_FOLDER "/kernels/cases/test_quantised_matmul/model.onnx"};
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct msc_graph *g;
        bool has_codes;
        assert_ok(msc_graph_load(&g, models[i]));
        assert_int_equal(count_in_plan(g, &has_codes), 2);
        assert_true(has_codes);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_pairs__run_as_integers),
        cmocka_unit_test(test_kernels_pairs__are_found),
        cmocka_unit_test(test_kernels_pairs__are_imported),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

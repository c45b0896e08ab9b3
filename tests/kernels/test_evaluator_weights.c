// Steps with several weights, each with its own edits, through the evaluator on the `cpu`
// backend. Expected results come from the reference kernels. The kernel of `cpu` for recurrent
// layers rounds differently; a layer with a clip runs in the reference kernel, so all bits are
// equal.
#include "kernels/backend.h"
#include "kernels/engine/evaluator.h"

#include "graph/reference/reference.h"
#include "kernels/engine/backends.h"
#include "tests/msc_test.h"

#include <math.h>

enum {
    TIMES = 5,
    BATCH = 2,
    IN = 6,
    HIDDEN = 3,
    ROWS = 4 * HIDDEN,
    N_OUT = TIMES * BATCH * HIDDEN
};

static struct msc_array *random_array(int64_t a, int64_t b, int64_t c, uint64_t seed) {
    const int64_t dims[3] = {a, b, c};
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, 3, dims));
    for (int64_t i = 0; i < a * b * c; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((float *)msc_array_data(array))[i] = (float)(seed >> 40) / (float)(1 << 23) - 1.0f;
    }
    return array;
}

static const char *clip = ""; // the layer's clip, which has no effect on these numbers

static void check_values(const float values[N_OUT], const float expected[N_OUT]) {
    if (clip[0] != '\0') {
        assert_memory_equal(values, expected, N_OUT * sizeof(values[0]));
    }
    for (int i = 0; i < N_OUT; i++) {
        assert_true(fabsf(values[i] - expected[i]) < 1e-5f);
    }
}

// x -> lstm with these weights; b may be NULL.
static struct msc_graph *make_graph(struct msc_array *w, struct msc_array *r, struct msc_array *b) {
    const int64_t dims[3] = {TIMES, BATCH, IN};
    struct msc_graph *g;
    int32_t x, joint, weights[3] = {0};
    assert_ok(msc_graph_create(&g, "main"));
    assert_ok(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F32, "", 3, dims));
    assert_ok(msc_graph_add_weight(&weights[0], g, "w", NULL, "", w));
    assert_ok(msc_graph_add_weight(&weights[1], g, "r", NULL, "", r));
    if (b) {
        assert_ok(msc_graph_add_weight(&weights[2], g, "b", NULL, "", b));
    }
    const struct msc_weight_spec specs[3] = {
        {"weight", weights[0]}, {"recurrence", weights[1]}, {"bias", weights[2]}};
    const struct msc_attr attrs[2] = {{"clip", clip}, {"hidden_size", "3"}};
    const struct msc_joint_spec spec = {.op = MSC_OP_LSTM,
                                        .name = "lstm",
                                        .n_inputs = 1,
                                        .inputs = &x,
                                        .n_weights = b ? 3 : 2,
                                        .weights = specs,
                                        .n_attrs = 2,
                                        .attrs = attrs};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    assert_ok(msc_graph_set_outputs(g, 1, &msc_graph_joint(g, joint)->outputs[0]));
    assert_ok(msc_graph_finalize(g));
    return g;
}

struct found {
    float values[4][N_OUT]; // output values by trial
};

static enum msc_status keep(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    struct found *f = payload;
    (void)batch;
    memcpy(f->values[trial], values[0].data, sizeof(f->values[trial]));
    return MSC_OK;
}

// The expected output by the reference kernels. A weight is rounded if its bit of the trial's
// number is set.
static void expect(float out[N_OUT], struct msc_array *weights[2], const struct msc_edit edits[2],
                   size_t trial, const struct msc_array *x) {
    struct msc_array *rounded[2], *y;
    for (int i = 0; i < 2; i++) {
        if (trial >> i & 1) {
            assert_ok(msc_edit_apply(&rounded[i], weights[i], &edits[i]));
        } else {
            rounded[i] = msc_array_retain(weights[i]);
        }
    }
    struct msc_graph *g = make_graph(rounded[0], rounded[1], NULL);
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_reference_run_graph(&y, g, &x, &wanted, 1, NULL));
    memcpy(out, msc_array_data(y), N_OUT * sizeof(out[0]));
    msc_array_release(y);
    msc_graph_destroy(g);
    msc_array_release(rounded[0]);
    msc_array_release(rounded[1]);
}

// Trials that edit no weight, one weight, the other, or both are independent of each other. The
// same edit of two different weights is treated as two edits.
static void check_edits(void) {
    static const float scale = 0.25f;
    static const int32_t zero = 0;
    struct msc_edit quantise[2];
    struct msc_array *weights[2] = {random_array(1, ROWS, IN, 1), random_array(1, ROWS, HIDDEN, 2)};
    struct msc_array *x = random_array(TIMES, BATCH, IN, 3);
    struct msc_graph *g = make_graph(weights[0], weights[1], NULL);
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 3, .dims = {TIMES, BATCH, IN}};
    struct msc_backend_options backend_options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    const struct msc_edit *edits[4][3] = {{NULL}};
    struct msc_eval_trial trials[4] = {{.edits = NULL}};
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    struct found found;
    float expected[N_OUT];
    for (int i = 0; i < 2; i++) {
        quantise[i] = msc_edit_quantize((struct msc_quant){.bits = 4,
                                                           .low = -7,
                                                           .high = 7,
                                                           .axis = -1,
                                                           .n = 1,
                                                           .scales = &scale,
                                                           .zero_points = &zero});
    }
    assert_ok(msc_dataset_create(&data, &spec, &x, 1, NULL, 1));
    assert_ok(msc_backend_open(&options.backend, "cpu", &backend_options));
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_evaluator_create(&ev, g, data, &wanted, 1, &options));
    assert_int_equal(msc_evaluator_sites(ev)->n_slots, 3); // the input's slot comes first
    for (size_t t = 0; t < 4; t++) {
        for (int i = 0; i < 2; i++) {
            edits[t][1 + i] = t >> i & 1 ? &quantise[i] : NULL;
        }
        trials[t].edits = edits[t];
    }
    const struct msc_sink sink = {.batch = keep, .payload = &found};
    assert_ok(msc_evaluator_run(ev, trials, 4, &sink, 0));
    for (size_t t = 0; t < 4; t++) {
        assert_int_equal(trials[t].status, MSC_OK);
        expect(expected, weights, quantise, t, x);
        check_values(found.values[t], expected);
        assert_true(t == 0 || memcmp(found.values[t], found.values[t - 1], sizeof(expected)) != 0);
    }
    msc_evaluator_destroy(ev);
    msc_backend_close(options.backend);
    msc_dataset_destroy(data);
    msc_graph_destroy(g);
    msc_array_release(weights[0]);
    msc_array_release(weights[1]);
    msc_array_release(x);
}

static void test_kernels_evaluator_weights__edits(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        clip = i == 0 ? "" : "64";
        check_edits();
    }
}

// Edits the bias of a layer: the bias is replaced, then rounded.
static void check_bias(void) {
    static const float step = 0.125f;
    struct msc_array *w = random_array(1, ROWS, IN, 1), *r = random_array(1, ROWS, HIDDEN, 2);
    struct msc_array *x = random_array(TIMES, BATCH, IN, 3), *b, *other, *rounded, *expected;
    const int64_t dims[2] = {1, 2 * ROWS};
    struct msc_array *numbers[2] = {random_array(1, 1, 2 * ROWS, 4),
                                    random_array(1, 1, 2 * ROWS, 5)};
    assert_ok(msc_array_create_from(&b, MSC_DTYPE_F32, 2, dims, msc_array_data(numbers[0])));
    assert_ok(msc_array_create_from(&other, MSC_DTYPE_F32, 2, dims, msc_array_data(numbers[1])));
    assert_ok(msc_array_create(&rounded, MSC_DTYPE_F32, 2, dims));
    for (int i = 0; i < 2 * ROWS; i++) {
        float number = ((float *)msc_array_data(other))[i];
        // Exact, because the step is a power of two.
        ((float *)msc_array_data(rounded))[i] = rintf(number * 8) / 8;
    }
    struct msc_graph *g = make_graph(w, r, b), *g_rounded = make_graph(w, r, rounded);
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 3, .dims = {TIMES, BATCH, IN}};
    struct msc_backend_options backend_options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_edit round = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 1, .steps = &step}};
    msc_edit_seal(&round);
    struct msc_edit replace = {.kind = MSC_EDIT_REPLACE, .elements = other, .next = &round};
    msc_edit_seal(&replace);
    const struct msc_edit *edits[4] = {NULL, NULL, NULL, &replace};
    struct msc_eval_trial trial = {.edits = edits};
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    struct found found;
    assert_ok(msc_dataset_create(&data, &spec, &x, 1, NULL, 1));
    assert_ok(msc_backend_open(&options.backend, "cpu", &backend_options));
    int32_t wanted = msc_graph_output(g, 0), same = msc_graph_output(g_rounded, 0);
    assert_ok(msc_evaluator_create(&ev, g, data, &wanted, 1, &options));
    assert_int_equal(msc_evaluator_sites(ev)->n_slots, 4); // the bias comes last
    const struct msc_sink sink = {.batch = keep, .payload = &found};
    assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
    assert_int_equal(trial.status, MSC_OK);
    assert_ok(msc_reference_run_graph(&expected, g_rounded, (const struct msc_array *const *)&x,
                                      &same, 1, NULL));
    check_values(found.values[0], msc_array_data(expected));
    struct msc_array *all[] = {w, r, x, b, other, rounded, expected, numbers[0], numbers[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        msc_array_release(all[i]);
    }
    msc_evaluator_destroy(ev);
    msc_backend_close(options.backend);
    msc_dataset_destroy(data);
    msc_graph_destroy(g);
    msc_graph_destroy(g_rounded);
}

static void test_kernels_evaluator_weights__bias(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        clip = i == 0 ? "" : "64";
        check_bias();
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_weights__edits),
        cmocka_unit_test(test_kernels_evaluator_weights__bias),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

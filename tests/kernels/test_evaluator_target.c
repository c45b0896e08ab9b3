// Trials with the slots of a target's sites. A site covers all uses of a value that the target
// passes on as integers. Expected results are calculated joint by joint (eval_case.h).
#include "eval_bench.h"

// Compares results bit by bit with results computed joint by joint. Runs one trial and several,
// with and without the cache, and with and without steps that write quantised variants.
static void check_trials(const char *target, bool quantizes) {
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct eval_bench b;
        eval_open_bench(&b);
        eval_open_net(&b.c, 5, 2);
        eval_set_target(&b.c, target);
        b.fake.quantizes = b.fake.moves = quantizes;
        eval_draw_all(&b);
        b.ev = eval_create(&b, n_threads, (uint64_t)1 << 24);
        eval_run_and_check(&b, b.ev, 0, N_TRIALS);
        for (size_t t = 0; t < 4; t++) {
            eval_run_and_check(&b, b.ev, t, 1);
        }
        eval_close_bench(&b);
    }
}

static void test_kernels_evaluator_target__onnxruntime(void **state) {
    (void)state;
    check_trials("onnxruntime", false);
    check_trials("onnxruntime", true);
}

static void test_kernels_evaluator_target__others(void **state) {
    (void)state;
    check_trials("tflite", true);
    check_trials("openvino", true);
}

// Trial 1 has one edit for all slots of the site that "product" reads. The backend moves bytes.
static void open_moved(struct eval_bench *b) {
    eval_open_bench(b);
    eval_open_net(&b->c, 1, 1);
    eval_set_target(&b->c, "onnxruntime");
    eval_draw_all(b);
    b->fake.moves = true;
    int32_t slot = eval_slot(&b->c, "product", 0);
    memset(&b->edits[1], 0, sizeof(b->edits[1]));
    for (int32_t i = 0; i < b->c.sites.n_sites; i++) {
        const struct msc_site *site = &b->c.sites.sites[i];
        for (int32_t k = 0; k < site->n_slots; k++) {
            for (int32_t s = 0; site->slots[k] == slot && s < site->n_slots; s++) {
                b->edits[1].edits[site->slots[s]] = &b->c.quants[site->slots[0]][0].edit;
            }
        }
    }
}

// Moved values remain bytes: the split's input and both halves are quantised, but the transposed
// half is not quantised again.
static void test_kernels_evaluator_target__moved_once(void **state) {
    struct eval_bench b;
    (void)state;
    open_moved(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 24);
    eval_run_and_check(&b, b.ev, 1, 1);
    assert_int_equal(b.fake.n_quantised, 3);
    eval_close_bench(&b);
}

// Checks that noise changes trial 1 little: for each wanted tensor, the squared differences are
// small relative to the squares.
static void assert_noise_is_small(struct eval_bench *b) {
    struct eval_results plain;
    eval_results_init(&b->results, &b->c);
    eval_run_edits(b, 2);
    plain = b->results;
    eval_results_init(&b->results, &b->c);
    b->trials[1].noise_seed = 3;
    eval_run_edits(b, 2);
    for (size_t w = 0; w < b->c.n_wanted; w++) {
        const struct msc_array *x = plain.values[1][0][w], *y = b->results.values[1][0][w];
        double moved = 0, power = 0;
        for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
            double value = msc_array_get_double(x, i), other = msc_array_get_double(y, i);
            moved += (value - other) * (value - other);
            power += value * value;
        }
        assert_true(moved <= 0.01 * power);
    }
    eval_results_finish(&plain);
    eval_results_finish(&b->results);
}

// Bytes are moved and then read under another quantisation. Noise is added to the numbers that the
// bytes represent.
static void test_kernels_evaluator_target__noise(void **state) {
    struct eval_bench b;
    (void)state;
    open_moved(&b);
    int32_t slot = eval_slot(&b.c, "product", 1);
    // The new step is not a multiple of the site's step, so few numbers are at a tie of both steps.
    struct msc_quant quant = b.c.quants[slot][0].edit.quant;
    const float scale = quant.scales[0] * 1.1f;
    quant.scales = &scale;
    const struct msc_edit other = msc_edit_quantize(quant);
    b.edits[1].edits[slot] = &other;
    b.ev = eval_create(&b, 1, (uint64_t)1 << 24);
    assert_noise_is_small(&b);
    eval_close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_target__onnxruntime),
        cmocka_unit_test(test_kernels_evaluator_target__others),
        cmocka_unit_test(test_kernels_evaluator_target__moved_once),
        cmocka_unit_test(test_kernels_evaluator_target__noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Trials with the slots of a target's sites: every use of what it passes on as integers.
#include "eval_bench.h"

// Against the walk over the graph, bit by bit: alone and together, with a cache and without, where
// steps write quantised variants themselves and where they do not.
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

// What is moved stays in bytes: the values that the split reads are quantised, and both halves, but
// not the transposition of one.
static void test_kernels_evaluator_target__moved_once(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_net(&b.c, 1, 1);
    eval_set_target(&b.c, "onnxruntime");
    eval_draw_all(&b);
    memset(&b.edits[1], 0, sizeof(b.edits[1]));
    int32_t slot = eval_slot(&b.c, "product", 0);
    for (int32_t i = 0; i < b.c.sites.n_sites; i++) {
        const struct msc_site *site = &b.c.sites.sites[i];
        for (int32_t k = 0; k < site->n_slots; k++) {
            if (site->slots[k] == slot) {
                for (int32_t s = 0; s < site->n_slots; s++) {
                    b.edits[1].edits[site->slots[s]] = &b.c.quants[site->slots[0]][0].edit;
                }
            }
        }
    }
    b.fake.moves = true;
    b.ev = eval_create(&b, 1, (uint64_t)1 << 24);
    eval_run_and_check(&b, b.ev, 1, 1);
    assert_int_equal(b.fake.n_quantised, 3);
    eval_close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_target__onnxruntime),
        cmocka_unit_test(test_kernels_evaluator_target__others),
        cmocka_unit_test(test_kernels_evaluator_target__moved_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

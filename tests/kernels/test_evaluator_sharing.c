// Work that trials share is done once: a fake backend counts its calls. Expected counts are
// worked out by hand in the comments.
#include "eval_bench.h"

#include "base/alloc.h"

static void assert_counts(struct eval_bench *b, int n_runs, int n_quantised, int n_packed) {
    assert_int_equal(b->fake.n_runs, n_runs);
    assert_int_equal(b->fake.n_quantised, n_quantised);
    assert_int_equal(b->fake.n_packed, n_packed);
    b->fake.n_runs = b->fake.n_quantised = b->fake.n_packed = 0;
}

static void assert_near(double found, double expected) {
    double d = found - expected;
    assert_true(d < 1e-12 && d > -1e-12);
}

static void test_kernels_evaluator_sharing__shares_exactly(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    // Multiply-accumulates: 2 samples of 25 pixels with 9 taps, times 2*3, 3*4 and 4*2 channels.
    const double macs[3] = {450 * 6, 450 * 12, 450 * 8};
    const double all = macs[0] + macs[1] + macs[2];
    // Only the float model.
    eval_run_edits(&b, 1);
    assert_counts(&b, 3, 0, 3);
    assert_near(b.trials[0].reuse_ratio, 0);
    assert_int_equal(eval_stats_of(b.ev).steps_run, 3);
    assert_int_equal(eval_stats_of(b.ev).steps_reused, 0);
    assert_near(eval_stats_of(b.ev).macs_run, all);
    // The float model in two trials: everything comes from the cache.
    eval_run_edits(&b, 2);
    assert_counts(&b, 0, 0, 0);
    assert_near(b.trials[0].reuse_ratio, 1);
    assert_near(b.trials[1].reuse_ratio, 1);
    // Three trials with different weights in the last layer: only that layer runs.
    for (size_t t = 0; t < 3; t++) {
        eval_edit_slot(&b, t, "conv3", 1, (int)t);
    }
    eval_run_edits(&b, 3);
    assert_counts(&b, 3, 0, 3);
    for (size_t t = 0; t < 3; t++) {
        assert_near(b.trials[t].reuse_ratio, 1 - macs[2] / all);
    }
    // In addition, the input of the second layer is quantised, equally in all three trials. The
    // quantisation and the second layer run once, for the first trial. Then the third layers run,
    // whose weights are already packed.
    for (size_t t = 0; t < 3; t++) {
        eval_edit_slot(&b, t, "conv2", 0, 1);
    }
    eval_run_edits(&b, 3);
    assert_counts(&b, 4, 1, 0);
    assert_near(b.trials[0].reuse_ratio, macs[0] / all);
    assert_near(b.trials[1].reuse_ratio, 1 - macs[2] / all);
    assert_int_equal(eval_stats_of(b.ev).steps_run, 3 + 3 + 4);
    assert_int_equal(eval_stats_of(b.ev).steps_reused, 6 + 6 + 5);
    assert_near(eval_stats_of(b.ev).macs_asked, all * 9);
    eval_close_bench(&b);
}

static enum msc_status ignore_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                   int32_t slot, const struct msc_view *value) {
    (void)part;
    (void)payload;
    (void)trial;
    (void)batch;
    (void)slot;
    (void)value;
    return MSC_OK;
}

// Steps that no wanted value depends on do not run and are not counted.
static void test_kernels_evaluator_sharing__counts_what_is_wanted(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_chain(&b.c, 4, 2);
    b.c.wanted[0] = msc_graph_find_tensor(b.c.g, "conv1:0");
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    eval_edit_slot(&b, 1, "conv3", 1, 0);
    eval_run_edits(&b, 2);
    // One layer on two batches. Its weights are packed once for all batches of a plan.
    assert_counts(&b, 2, 0, 1);
    assert_near(b.trials[0].reuse_ratio, 0);
    assert_near(b.trials[1].reuse_ratio, 1);
    assert_int_equal(eval_stats_of(b.ev).steps_run, 2);
    assert_int_equal(eval_stats_of(b.ev).steps_reused, 2);
    // With slot values the second layer is needed, too.
    struct msc_sink sink = {.slot = ignore_slot};
    assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &sink, 0));
    assert_counts(&b, 2, 0, 1);
    eval_close_bench(&b);
}

// A tensor that two joints read through slots is quantised once if the edits are equal.
static void test_kernels_evaluator_sharing__quantises_once(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_net(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    eval_run_edits(&b, 1);
    int n_steps = b.fake.n_runs;
    assert_counts(&b, n_steps, 0, b.fake.n_packed);
    // "product" reads half of the split twice: as it is, and with swapped axes.
    eval_edit_slot(&b, 0, "product", 0, 0);
    eval_edit_slot(&b, 0, "product", 1, 0);
    eval_run_edits(&b, 1);
    assert_counts(&b, 1, 2, 0);
    eval_edit_slot(&b, 0, "conv1", 0, 0);
    b.edits[1] = b.edits[0];
    eval_run_edits(&b, 2);
    // Everything from conv1 on: conv1, conv2, wide, plus_three, clip and its followers, split,
    // pool, head, softmax, swapped, product; each once for both trials.
    assert_counts(&b, 11, 3, 0);
    eval_close_bench(&b);
}

// If steps quantise their outputs, only the graph's inputs are quantised from memory, and values
// with only quantised consumers are not stored as floats.
static void test_kernels_evaluator_sharing__steps_quantise(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    b.fake.quantizes = true;
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    // The chain is conv1, conv2, conv3. Two trials read conv2's input in different bit widths, and
    // a third trial reads it as floats.
    eval_edit_slot(&b, 1, "conv2", 0, 0);
    eval_edit_slot(&b, 2, "conv2", 0, 1);
    eval_run_edits(&b, 3);
    assert_int_equal(b.fake.n_quantised, 0);
    assert_int_equal(b.fake.n_fused, 2);
    assert_int_equal(b.fake.n_unstored, 0);
    // conv1's float result was kept, so new quantised variants are made from memory.
    eval_edit_slot(&b, 0, "conv2", 0, 2);
    eval_run_edits(&b, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    // A new conv1 whose result is read only quantised. In a call with few trials the cache keeps
    // the floats, too.
    b.fake.n_fused = b.fake.n_quantised = 0;
    for (int t = 0; t < 3; t++) {
        eval_edit_slot(&b, t, "conv1", 1, 0);
        eval_edit_slot(&b, t, "conv2", 0, t);
    }
    eval_run_edits(&b, 2);
    assert_int_equal(b.fake.n_fused, 2);
    assert_int_equal(b.fake.n_unstored, 0);
    b.fake.n_runs = 0;
    eval_edit_slot(&b, 0, "conv2", 0, 2);
    eval_run_edits(&b, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    assert_int_equal(b.fake.n_runs, 2); // conv2 and conv3
    // In a call with many trials the cache does not keep the floats.
    b.fake.n_fused = b.fake.n_quantised = 0;
    for (int t = 0; t < 8; t++) {
        eval_edit_slot(&b, t, "conv1", 1, 1);
        eval_edit_slot(&b, t, "conv2", 0, t % 3);
    }
    eval_run_edits(&b, 8);
    assert_int_equal(b.fake.n_quantised, 0);
    assert_int_equal(b.fake.n_fused, 3);
    assert_int_equal(b.fake.n_unstored, 1);
    eval_close_bench(&b);
}

// A step that moves elements moves the integers of its input, which is quantised once. The step
// moves the floats only if the floats have a consumer.
static void test_kernels_evaluator_sharing__moves_integers(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    b.fake.moves = true;
    eval_open_net(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    // "product" reads half of the split twice: as it is, and with swapped axes.
    int32_t left = eval_slot(&b.c, "product", 0), right = eval_slot(&b.c, "product", 1);
    eval_edit_slot(&b, 0, "product", 0, 0);
    b.edits[0].edits[right] = b.edits[0].edits[left];
    eval_run_edits(&b, 1);
    assert_int_equal(b.fake.n_moved, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    // 16-bit integers do not fit a byte, so the floats are moved.
    eval_edit_slot(&b, 0, "product", 1, 2);
    eval_run_edits(&b, 1);
    assert_int_equal(b.fake.n_moved, 1);
    // Floats are moved, too, if noise is added before quantising.
    eval_edit_slot(&b, 0, "product", 1, 1);
    b.trials[0].noise_seed = 5;
    struct msc_sink none = {.payload = NULL};
    b.trials[0].edits = b.edits[0].edits;
    assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &none, 0));
    assert_int_equal(b.trials[0].status, MSC_OK);
    assert_int_equal(b.fake.n_moved, 1);
    eval_close_bench(&b);
}

// A backend that takes several calls at a time gets all calls of a step at once, with one wait.
static void test_kernels_evaluator_sharing__runs_together(void **state) {
    enum { TRIALS = 6 };
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    fake_run_together(&b.fake); // up to seven calls at a time
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    // One conv1, three conv2, six conv3.
    for (int t = 0; t < TRIALS; t++) {
        eval_edit_slot(&b, t, "conv2", 1, t % 3);
        eval_edit_slot(&b, t, "conv3", 1, t / 3);
    }
    eval_run_and_check(&b, b.ev, 0, TRIALS);
    assert_int_equal(b.fake.n_runs, 1 + 3 + 6);
    assert_int_equal(b.fake.n_launches, 3);
    assert_int_equal(b.fake.n_waits, 1);
    // Eight calls are one more than may run at a time.
    for (int t = 0; t < 8; t++) {
        eval_edit_slot(&b, t, "conv1", 1, t % 3);
        eval_edit_slot(&b, t, "conv3", 0, t / 3);
    }
    msc_evaluator_drop_cache(b.ev);
    b.fake.n_runs = b.fake.n_launches = 0;
    eval_run_and_check(&b, b.ev, 0, 8);
    assert_int_equal(b.fake.n_launches, 1 + 1 + 2);
    eval_close_bench(&b);
}

// At most 32 MiB are downloaded to the host at a time.
static void test_kernels_evaluator_sharing__brings_in_groups(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    fake_run_together(&b.fake); // up to seven calls at a time
    eval_open_large(&b.c);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    eval_run_and_check(&b, b.ev, 0, 7);
    // A result has a little more than 8 MiB, so the seven results come in groups of 3, 3 and 1.
    assert_int_equal(b.fake.n_waits, 3);
    eval_close_bench(&b);
}

// Values that a sink has received of slots: their hashes by trial, batch and slot.
struct slot_values {
    int32_t wanted; // MSC_NO_ID: all slots
    struct msc_hash hashes[2][EVAL_MAX_BATCHES][EVAL_MAX_SLOTS];
};

static enum msc_status hash_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                 int32_t slot, const struct msc_view *value) {
    struct slot_values *v = payload;
    (void)part;
    v->hashes[trial][batch][slot] =
        msc_hash_bytes(value->data, (size_t)msc_view_n_elements(value) * sizeof(float));
    return MSC_OK;
}

static bool wants_one(void *payload, int32_t slot) {
    return slot == ((const struct slot_values *)payload)->wanted;
}

// Runs the float model and a trial, a call for each slot of an activation and a call for the
// results. Returns the number of steps that ran.
static int run_slots(struct eval_bench *b, struct slot_values *v, unsigned flags) {
    const struct msc_sink sink = {.slot = hash_slot, .wants_slot = wants_one, .payload = v};
    b->ev = eval_create(b, 1, (uint64_t)1 << 30);
    b->fake.n_runs = 0;
    for (int32_t i = 0; i < b->c.sites.n_slots; i++) {
        v->wanted = i;
        if (b->c.sites.slots[i].kind == MSC_SITE_ACTIVATION) {
            assert_ok(msc_evaluator_run(b->ev, b->trials, 2, &sink, flags));
        }
    }
    eval_run_edits(b, 2);
    eval_check_all(b, 0, 2);
    return b->fake.n_runs;
}

// Calls that go onward run each step once, and hold less than calls that keep everything.
static void check_onward(bool quantizes) {
    struct eval_bench b;
    struct slot_values all = {0}, some = {0};
    eval_open_bench(&b);
    b.fake.quantizes = quantizes;
    eval_open_net(&b.c, 4, 1);
    eval_results_init(&b.results, &b.c);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    b.trials[1].edits = b.edits[1].edits;
    const struct msc_sink sink = {.slot = hash_slot, .payload = &all};
    assert_ok(msc_evaluator_run(b.ev, b.trials, 2, &sink, 0));
    int n_runs = b.fake.n_runs;
    msc_evaluator_destroy(b.ev);
    assert_int_equal(run_slots(&b, &some, MSC_EVAL_ONWARD), n_runs);
    assert_memory_equal(some.hashes, all.hashes, sizeof all.hashes);
    uint64_t peak = eval_stats_of(b.ev).bytes_peak;
    msc_evaluator_destroy(b.ev);
    eval_results_finish(&b.results);
    eval_results_init(&b.results, &b.c);
    run_slots(&b, &some, MSC_EVAL_KEEP);
    assert_true(peak < eval_stats_of(b.ev).bytes_peak);
    eval_close_bench(&b);
}

static void test_kernels_evaluator_sharing__goes_onward(void **state) {
    (void)state;
    check_onward(false);
    check_onward(true);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_sharing__shares_exactly),
        cmocka_unit_test(test_kernels_evaluator_sharing__counts_what_is_wanted),
        cmocka_unit_test(test_kernels_evaluator_sharing__quantises_once),
        cmocka_unit_test(test_kernels_evaluator_sharing__steps_quantise),
        cmocka_unit_test(test_kernels_evaluator_sharing__moves_integers),
        cmocka_unit_test(test_kernels_evaluator_sharing__runs_together),
        cmocka_unit_test(test_kernels_evaluator_sharing__brings_in_groups),
        cmocka_unit_test(test_kernels_evaluator_sharing__goes_onward),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "eval_case.h"
#include "fake_backend.h"

#include "base/alloc.h"

enum { N_TRIALS = 24 };

struct bench {
    struct fake_backend fake;
    struct eval_case c;
    struct eval_edits edits[EVAL_MAX_TRIALS];
    struct msc_eval_trial trials[EVAL_MAX_TRIALS];
    struct eval_results results;
    struct msc_evaluator *ev;
};

static struct msc_evaluator *create(struct bench *b, int n_threads, uint64_t memory_bytes) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    o.backend = &b->fake.base;
    o.n_threads = n_threads;
    o.memory_bytes = memory_bytes;
    assert_ok(msc_evaluator_create(&ev, b->c.g, b->c.data, b->c.wanted, b->c.n_wanted, &o));
    return ev;
}

static void open_bench(struct bench *b) {
    memset(b, 0, sizeof(*b));
    fake_open(&b->fake, 4);
}

// Trials 0 (float) and so on, with edits drawn from their numbers.
static void draw_all(struct bench *b) {
    for (uint64_t t = 0; t < EVAL_MAX_TRIALS; t++) {
        eval_draw_edits(&b->c, t, &b->edits[t]);
    }
    eval_results_init(&b->results, &b->c);
}

static void close_bench(struct bench *b) {
    eval_results_finish(&b->results);
    msc_evaluator_destroy(b->ev);
    eval_close(&b->c);
    fake_close(&b->fake);
}

static void check_all(struct bench *b, size_t first, size_t n) {
    for (size_t t = 0; t < n; t++) {
        assert_int_equal(b->trials[t].status, MSC_OK);
        assert_int_equal(b->results.ends[t], 1);
        assert_true(b->trials[t].reuse_ratio >= 0 && b->trials[t].reuse_ratio <= 1);
        eval_check(&b->c, &b->results, t, &b->edits[first + t]);
    }
    eval_results_finish(&b->results);
}

static void run_and_check(struct bench *b, struct msc_evaluator *ev, size_t first, size_t n) {
    assert_ok(eval_run(ev, &b->results, b->edits + first, b->trials, n));
    check_all(b, first, n);
}

static struct msc_evaluator_stats stats_of(const struct msc_evaluator *ev) {
    struct msc_evaluator_stats s;
    msc_evaluator_get_stats(ev, &s);
    return s;
}

// ---- Results ----------------------------------------------------------------------------------

// Whatever the threads, the budget and the way a backend works: what the walk over the graph gives.
static void test_kernels_evaluator__results(void **state) {
    static const struct {
        int n_threads;
        uint64_t memory_bytes;
        bool fuses, uses_last, hides_memory, quantizes, moves, runs_together;
    } rows[] = {
        {1, (uint64_t)1 << 30, true, false, false, false, false, false},
        {2, (uint64_t)1 << 30, true, true, false, true, true, false},
        {4, (uint64_t)1 << 30, false, true, true, true, false, false},
        {1, (uint64_t)1 << 30, true, true, true, true, true, true},
        {2, (uint64_t)1 << 30, true, false, true, false, false, true},
        {1, 1 << 16, true, true, true, false, true, false},
        {2, 1 << 16, false, false, false, true, true, false},
        {4, 1 << 16, true, true, false, true, false, false},
        {4, 1 << 16, true, true, true, true, false, true},
        {4, 0, true, true, false, true, true, false},
        {1, 0, true, true, true, true, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench b;
        open_bench(&b);
        b.fake.fuses = rows[i].fuses;
        b.fake.uses_last = rows[i].uses_last;
        b.fake.quantizes = rows[i].quantizes;
        b.fake.moves = rows[i].moves;
        if (rows[i].hides_memory) {
            fake_hide_memory(&b.fake);
        }
        if (rows[i].runs_together) {
            fake_run_together(&b.fake);
        }
        // Two plans: the last batch is short.
        eval_open_net(&b.c, 5, 2);
        draw_all(&b);
        b.ev = create(&b, rows[i].n_threads, rows[i].memory_bytes);
        assert_int_equal(msc_evaluator_sites(b.ev)->n_slots, b.c.sites.n_slots);
        assert_ptr_not_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 2));
        assert_ptr_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 1));
        run_and_check(&b, b.ev, 0, N_TRIALS);
        // Again, in other company, alone, and with an empty cache.
        run_and_check(&b, b.ev, 7, 9);
        run_and_check(&b, b.ev, 3, 1);
        msc_evaluator_drop_cache(b.ev);
        assert_int_equal(stats_of(b.ev).bytes_held, 0);
        run_and_check(&b, b.ev, 20, 20);
        assert_true((b.fake.n_moved > 0) == rows[i].moves);
        close_bench(&b);
    }
}

static void test_kernels_evaluator__batches_of_other_widths(void **state) {
    static const int64_t widths[] = {6, 4, 6, 5, 4, 6};
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_widths(&b.c, widths, 6);
    draw_all(&b);
    b.ev = create(&b, 2, (uint64_t)1 << 30);
    // A plan for each width, not for each change of width.
    assert_ptr_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 5));
    assert_ptr_equal(msc_evaluator_plan(b.ev, 1), msc_evaluator_plan(b.ev, 4));
    assert_ptr_not_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 3));
    run_and_check(&b, b.ev, 0, N_TRIALS);
    run_and_check(&b, b.ev, 11, 3);
    close_bench(&b);
}

// ---- Sharing ----------------------------------------------------------------------------------

static void edit_slot(struct bench *b, size_t trial, const char *joint, int32_t operand,
                      int choice) {
    int32_t slot = eval_slot(&b->c, joint, operand);
    b->edits[trial].edits[slot] = &b->c.quants[slot][choice].quant;
}

static void assert_counts(struct bench *b, int n_runs, int n_quantised, int n_packed) {
    assert_int_equal(b->fake.n_runs, n_runs);
    assert_int_equal(b->fake.n_quantised, n_quantised);
    assert_int_equal(b->fake.n_packed, n_packed);
    b->fake.n_runs = b->fake.n_quantised = b->fake.n_packed = 0;
}

static void assert_near(double found, double expected) {
    double d = found - expected;
    assert_true(d < 1e-12 && d > -1e-12);
}

static void run_edits(struct bench *b, size_t n) {
    for (size_t t = 0; t < n; t++) {
        b->trials[t].edits = b->edits[t].edits;
    }
    assert_ok(msc_evaluator_run(b->ev, b->trials, n, &b->results.sink, 0));
}

static void test_kernels_evaluator__shares_exactly(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    // Multiply-accumulates: 2 samples of 25 pixels with 9 taps, times 2*3, 3*4 and 4*2.
    const double macs[3] = {450 * 6, 450 * 12, 450 * 8};
    const double all = macs[0] + macs[1] + macs[2];
    // The float model alone.
    run_edits(&b, 1);
    assert_counts(&b, 3, 0, 3);
    assert_near(b.trials[0].reuse_ratio, 0);
    assert_int_equal(stats_of(b.ev).steps_run, 3);
    assert_int_equal(stats_of(b.ev).steps_reused, 0);
    assert_near(stats_of(b.ev).macs_run, all);
    // It again, twice: all from the cache.
    run_edits(&b, 2);
    assert_counts(&b, 0, 0, 0);
    assert_near(b.trials[0].reuse_ratio, 1);
    assert_near(b.trials[1].reuse_ratio, 1);
    // Each of three trials has another weight in the last layer, which alone runs.
    for (size_t t = 0; t < 3; t++) {
        edit_slot(&b, t, "conv3", 1, (int)t);
    }
    run_edits(&b, 3);
    assert_counts(&b, 3, 0, 3);
    for (size_t t = 0; t < 3; t++) {
        assert_near(b.trials[t].reuse_ratio, 1 - macs[2] / all);
    }
    // The same with a quantised input of the second layer, equal in all three: the quantisation
    // and the second layer run once, for the first trial; then the third layers, on known weights.
    for (size_t t = 0; t < 3; t++) {
        edit_slot(&b, t, "conv2", 0, 1);
    }
    run_edits(&b, 3);
    assert_counts(&b, 4, 1, 0);
    assert_near(b.trials[0].reuse_ratio, macs[0] / all);
    assert_near(b.trials[1].reuse_ratio, 1 - macs[2] / all);
    assert_int_equal(stats_of(b.ev).steps_run, 3 + 3 + 4);
    assert_int_equal(stats_of(b.ev).steps_reused, 6 + 6 + 5);
    assert_near(stats_of(b.ev).macs_asked, all * 9);
    close_bench(&b);
}

// Work that nothing wanted depends on is neither done nor counted.
static enum msc_status ignore_slot(void *payload, size_t trial, size_t batch, int32_t slot,
                                   const struct msc_view *value) {
    (void)payload;
    (void)trial;
    (void)batch;
    (void)slot;
    (void)value;
    return MSC_OK;
}

static void test_kernels_evaluator__counts_what_is_wanted(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_chain(&b.c, 4, 2);
    b.c.wanted[0] = msc_graph_find_tensor(b.c.g, "conv1:0");
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    edit_slot(&b, 1, "conv3", 1, 0);
    run_edits(&b, 2);
    // One layer on two batches; its weights once, as for every batch of a plan.
    assert_counts(&b, 2, 0, 1);
    assert_near(b.trials[0].reuse_ratio, 0);
    assert_near(b.trials[1].reuse_ratio, 1);
    assert_int_equal(stats_of(b.ev).steps_run, 2);
    assert_int_equal(stats_of(b.ev).steps_reused, 2);
    // With slot values the second layer is needed too.
    struct msc_sink sink = {.slot = ignore_slot};
    assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &sink, 0));
    assert_counts(&b, 2, 0, 1);
    close_bench(&b);
}

// A tensor that two joints read through slots is quantised once where the edits agree.
static void test_kernels_evaluator__quantises_once(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_net(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    run_edits(&b, 1);
    int n_steps = b.fake.n_runs;
    assert_counts(&b, n_steps, 0, b.fake.n_packed);
    // "product" reads a half of the split twice: as it is and with its axes swapped.
    edit_slot(&b, 0, "product", 0, 0);
    edit_slot(&b, 0, "product", 1, 0);
    run_edits(&b, 1);
    assert_counts(&b, 1, 2, 0);
    edit_slot(&b, 0, "conv1", 0, 0);
    b.edits[1] = b.edits[0];
    run_edits(&b, 2);
    // All that depends on conv1: conv1, conv2, wide, plus_three, clip and its followers, split,
    // pool, head, softmax, swapped, product; each once for both trials.
    assert_counts(&b, 11, 3, 0);
    close_bench(&b);
}

// Where steps quantise what they write, nothing is quantised from memory but the graph's inputs,
// and what only quantised readers read is not stored.
static void test_kernels_evaluator__steps_quantise(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    b.fake.quantizes = true;
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    // The chain is conv1, conv2, conv3. The input of conv2 in two widths, beside a float reader.
    edit_slot(&b, 1, "conv2", 0, 0);
    edit_slot(&b, 2, "conv2", 0, 1);
    run_edits(&b, 3);
    assert_int_equal(b.fake.n_quantised, 0);
    assert_int_equal(b.fake.n_fused, 2);
    assert_int_equal(b.fake.n_unstored, 0);
    // What conv1 gave is kept: other forms of it are made from memory.
    edit_slot(&b, 0, "conv2", 0, 2);
    run_edits(&b, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    // A new conv1 that nobody reads but through slots: in a call of few trials it is kept as well.
    b.fake.n_fused = b.fake.n_quantised = 0;
    for (int t = 0; t < 3; t++) {
        edit_slot(&b, t, "conv1", 1, 0);
        edit_slot(&b, t, "conv2", 0, t);
    }
    run_edits(&b, 2);
    assert_int_equal(b.fake.n_fused, 2);
    assert_int_equal(b.fake.n_unstored, 0);
    b.fake.n_runs = 0;
    edit_slot(&b, 0, "conv2", 0, 2);
    run_edits(&b, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    assert_int_equal(b.fake.n_runs, 2); // conv2 and conv3
    // Not in a call of many.
    b.fake.n_fused = b.fake.n_quantised = 0;
    for (int t = 0; t < 8; t++) {
        edit_slot(&b, t, "conv1", 1, 1);
        edit_slot(&b, t, "conv2", 0, t % 3);
    }
    run_edits(&b, 8);
    assert_int_equal(b.fake.n_quantised, 0);
    assert_int_equal(b.fake.n_fused, 3);
    assert_int_equal(b.fake.n_unstored, 1);
    close_bench(&b);
}

// A step that moves elements moves the integers of its input, which are quantised but once: not its
// floats, unless somebody reads those.
static void test_kernels_evaluator__moves_integers(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    b.fake.moves = true;
    eval_open_net(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    // "product" reads a half of the split twice: as it is and with its axes swapped.
    int32_t left = eval_slot(&b.c, "product", 0), right = eval_slot(&b.c, "product", 1);
    edit_slot(&b, 0, "product", 0, 0);
    b.edits[0].edits[right] = b.edits[0].edits[left];
    run_edits(&b, 1);
    assert_int_equal(b.fake.n_moved, 1);
    assert_int_equal(b.fake.n_quantised, 1);
    // 16 bits are not integers of a byte: floats are moved.
    edit_slot(&b, 0, "product", 1, 2);
    run_edits(&b, 1);
    assert_int_equal(b.fake.n_moved, 1);
    // Nor are they where noise is added to what is quantised.
    edit_slot(&b, 0, "product", 1, 1);
    b.trials[0].noise_seed = 5;
    struct msc_sink none = {.payload = NULL};
    b.trials[0].edits = b.edits[0].edits;
    assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &none, 0));
    assert_int_equal(b.trials[0].status, MSC_OK);
    assert_int_equal(b.fake.n_moved, 1);
    close_bench(&b);
}

// A backend that runs several calls at a time gets all that a step has, and is waited for once.
static void test_kernels_evaluator__runs_together(void **state) {
    enum { TRIALS = 6 };
    struct bench b;
    (void)state;
    open_bench(&b);
    fake_run_together(&b.fake); // up to seven
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    // One conv1, three conv2, six conv3.
    for (int t = 0; t < TRIALS; t++) {
        edit_slot(&b, t, "conv2", 1, t % 3);
        edit_slot(&b, t, "conv3", 1, t / 3);
    }
    run_and_check(&b, b.ev, 0, TRIALS);
    assert_int_equal(b.fake.n_runs, 1 + 3 + 6);
    assert_int_equal(b.fake.n_launches, 3);
    assert_int_equal(b.fake.n_waits, 1);
    // Eight are more than seven.
    for (int t = 0; t < 8; t++) {
        edit_slot(&b, t, "conv1", 1, t % 3);
        edit_slot(&b, t, "conv3", 0, t / 3);
    }
    msc_evaluator_drop_cache(b.ev);
    b.fake.n_runs = b.fake.n_launches = 0;
    run_and_check(&b, b.ev, 0, 8);
    assert_int_equal(b.fake.n_launches, 1 + 1 + 2);
    close_bench(&b);
}

// A tight budget only costs work; what is held stays near it.
static void test_kernels_evaluator__budget(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_net(&b.c, 8, 1);
    draw_all(&b);
    b.ev = create(&b, 1, 1 << 16);
    run_and_check(&b, b.ev, 0, N_TRIALS);
    struct msc_evaluator_stats tight = stats_of(b.ev);
    msc_evaluator_destroy(b.ev);
    assert_true(tight.bytes_held <= 1 << 16);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    run_and_check(&b, b.ev, 0, N_TRIALS);
    struct msc_evaluator_stats roomy = stats_of(b.ev);
    // Within one call everything is shared, whatever the budget.
    assert_int_equal(tight.steps_run, roomy.steps_run);
    assert_true((long long)roomy.bytes_peak >= b.fake.peak_bytes);
    // With few trials a call, all is kept.
    for (size_t t = 0; t < N_TRIALS; t += 4) {
        run_and_check(&b, b.ev, t, 4);
    }
    assert_true(tight.bytes_peak < stats_of(b.ev).bytes_peak / 4);
    close_bench(&b);
}

// Among many trials, what several want is kept for the next call, and what one has for itself is
// not.
static void test_kernels_evaluator__keeps_what_is_shared(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    for (size_t t = 0; t < 8; t++) {
        edit_slot(&b, t, "conv3", 1, (int)(t % 3));
        edit_slot(&b, t, "conv3", 0, (int)(t / 3));
    }
    // Two convolutions for all, and the third for each; then that again.
    run_edits(&b, 8);
    assert_int_equal(b.fake.n_runs, 2 + 8);
    b.fake.n_runs = 0;
    run_edits(&b, 8);
    assert_int_equal(b.fake.n_runs, 8);
    b.fake.n_runs = 0;
    // Of a few trials everything is kept.
    run_edits(&b, 3);
    assert_int_equal(b.fake.n_runs, 3);
    run_edits(&b, 3);
    assert_int_equal(b.fake.n_runs, 3);
    close_bench(&b);
}

static uint64_t peak_after_two_calls(int64_t n_samples) {
    struct bench b;
    open_bench(&b);
    eval_open_net(&b.c, n_samples, 1);
    draw_all(&b);
    b.ev = create(&b, 1, 1 << 16);
    run_and_check(&b, b.ev, 0, EVAL_MAX_TRIALS);
    run_and_check(&b, b.ev, 0, EVAL_MAX_TRIALS);
    uint64_t peak = stats_of(b.ev).bytes_peak;
    close_bench(&b);
    return peak;
}

// What a call finds in the cache is held for a few batches at a time: a longer dataset needs no
// more.
static void test_kernels_evaluator__windows(void **state) {
    (void)state;
    assert_true(EVAL_MAX_TRIALS >= 32);
    assert_true(peak_after_two_calls(8) <= peak_after_two_calls(2) * 5 / 4);
}

// The least memory lies between what one step holds and what a call with all it likes does; it is
// the same whatever was cached.
static void test_kernels_evaluator__least_memory(void **state) {
    struct bench b;
    uint64_t least, again;
    (void)state;
    open_bench(&b);
    fake_hide_memory(&b.fake); // of the backend alone, not of the process
    eval_open_net(&b.c, 6, 1);
    draw_all(&b);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    assert_ok(msc_evaluator_measure_memory(b.ev, b.edits[4].edits, &least));
    run_and_check(&b, b.ev, 0, 6);
    assert_ok(msc_evaluator_measure_memory(b.ev, b.edits[4].edits, &again));
    assert_int_equal(least, again);
    // The image with 3 channels and the first result with 4, of 6 by 6 pixels.
    assert_true(least >= (3 + 4) * 36 * sizeof(float));
    assert_true(least < stats_of(b.ev).bytes_peak / 2);
    close_bench(&b);
}

// Latency runs: all anew, nothing kept.
static void test_kernels_evaluator__fresh(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    draw_all(&b);
    b.ev = create(&b, 1, (uint64_t)1 << 30);
    b.trials[0].edits = b.edits[5].edits;
    for (int i = 0; i < 3; i++) {
        b.fake.n_runs = 0;
        assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &b.results.sink, MSC_EVAL_FRESH));
        assert_int_equal(b.fake.n_runs, 3);
        check_all(&b, 5, 1);
    }
    close_bench(&b);
}

// ---- Noise and slot values --------------------------------------------------------------------

static void copy_outputs(const struct bench *b, size_t trial, float out[], size_t n) {
    const struct msc_array *a = b->results.values[trial][0][0];
    assert_int_equal(msc_array_n_elements(a), n);
    memcpy(out, msc_array_data(a), n * sizeof(float));
}

// Equal seeds give equal bits in any company; other seeds others, and noise only acts where
// something is quantised.
static void test_kernels_evaluator__noise(void **state) {
    // So many that some values are within 2^-22 of a rounding tie.
    enum { N_SAMPLES = 32, N = N_SAMPLES * 2 * 25 };
    float plain[N], first[N], again[N], other[N];
    struct bench b;
    (void)state;
    open_bench(&b);
    eval_open_chain(&b.c, N_SAMPLES, N_SAMPLES);
    eval_results_init(&b.results, &b.c);
    b.ev = create(&b, 2, (uint64_t)1 << 30);
    for (size_t t = 0; t < 4; t++) {
        edit_slot(&b, t, "conv2", 0, 2);
        edit_slot(&b, t, "conv3", 0, 2);
        b.trials[t].noise_seed = t == 3 ? 1 : t;
    }
    run_edits(&b, 4);
    copy_outputs(&b, 0, plain, N);
    copy_outputs(&b, 1, first, N);
    copy_outputs(&b, 2, other, N);
    copy_outputs(&b, 3, again, N);
    assert_memory_equal(first, again, sizeof(first));
    assert_memory_not_equal(first, plain, sizeof(first));
    assert_memory_not_equal(first, other, sizeof(first));
    for (int i = 0; i < N; i++) {
        assert_true(first[i] - plain[i] < 0.01f && plain[i] - first[i] < 0.01f);
    }
    eval_results_finish(&b.results);
    msc_evaluator_drop_cache(b.ev);
    b.trials[0].noise_seed = 1;
    run_edits(&b, 1);
    copy_outputs(&b, 0, again, N);
    assert_memory_equal(first, again, sizeof(first));
    // Nothing quantised: the float model, bit by bit.
    eval_results_finish(&b.results);
    memset(&b.edits[0], 0, sizeof(b.edits[0]));
    run_edits(&b, 1);
    check_all(&b, 0, 1);
    close_bench(&b);
}

struct slots_seen {
    const struct bench *b;
    int n_batches, n_slots;
};

static enum msc_status count_batch(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    (void)trial;
    (void)batch;
    assert_non_null(values[0].data);
    ((struct slots_seen *)payload)->n_batches++;
    return MSC_OK;
}

static enum msc_status look_at_slot(void *payload, size_t trial, size_t batch, int32_t slot,
                                    const struct msc_view *v) {
    struct slots_seen *seen = payload;
    const struct eval_case *c = &seen->b->c;
    const struct msc_plan *plan = msc_evaluator_plan(seen->b->ev, batch);
    (void)trial;
    seen->n_slots++;
    assert_int_not_equal(c->sites.slots[slot].kind, MSC_SITE_WEIGHT);
    // Before quantisation, in the layout of the plan.
    const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->sites.slots[slot].tensor);
    assert_non_null(v->data);
    assert_null(v->quant);
    assert_int_equal(v->dtype, MSC_DTYPE_F32);
    assert_int_equal(v->layout, plan->values[plan->slot_values[slot]].layout);
    assert_int_equal(v->n_dims, t->n_dims);
    assert_memory_equal(v->dims, t->dims, sizeof(t->dims[0]) * (size_t)t->n_dims);
    return MSC_OK;
}

static int count_activation_slots(const struct msc_sites *sites) {
    int n = 0;
    for (int32_t i = 0; i < sites->n_slots; i++) {
        n += sites->slots[i].kind != MSC_SITE_WEIGHT;
    }
    return n;
}

static void test_kernels_evaluator__slot_values(void **state) {
    struct bench b;
    struct slots_seen seen = {&b, 0, 0};
    struct msc_sink sink = {.batch = count_batch, .slot = look_at_slot, .payload = &seen};
    (void)state;
    for (int is_hidden = 0; is_hidden < 2; is_hidden++) {
        open_bench(&b);
        b.fake.uses_last = true;
        if (is_hidden) {
            fake_hide_memory(&b.fake);
        }
        eval_open_net(&b.c, 3, 2);
        draw_all(&b);
        b.ev = create(&b, 1, (uint64_t)1 << 30);
        b.trials[0].edits = b.edits[4].edits;
        b.trials[1].edits = NULL;
        assert_ok(msc_evaluator_run(b.ev, b.trials, 2, &sink, 0));
        assert_int_equal(seen.n_batches, 4);
        assert_int_equal(seen.n_slots, 4 * count_activation_slots(&b.c.sites));
        seen.n_batches = seen.n_slots = 0;
        close_bench(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator__results),
        cmocka_unit_test(test_kernels_evaluator__batches_of_other_widths),
        cmocka_unit_test(test_kernels_evaluator__shares_exactly),
        cmocka_unit_test(test_kernels_evaluator__counts_what_is_wanted),
        cmocka_unit_test(test_kernels_evaluator__quantises_once),
        cmocka_unit_test(test_kernels_evaluator__steps_quantise),
        cmocka_unit_test(test_kernels_evaluator__moves_integers),
        cmocka_unit_test(test_kernels_evaluator__runs_together),
        cmocka_unit_test(test_kernels_evaluator__budget),
        cmocka_unit_test(test_kernels_evaluator__keeps_what_is_shared),
        cmocka_unit_test(test_kernels_evaluator__windows),
        cmocka_unit_test(test_kernels_evaluator__least_memory),
        cmocka_unit_test(test_kernels_evaluator__fresh),
        cmocka_unit_test(test_kernels_evaluator__noise),
        cmocka_unit_test(test_kernels_evaluator__slot_values),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

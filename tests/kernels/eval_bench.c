// The bench declared in eval_bench.h.
#include "eval_bench.h"

struct msc_evaluator *eval_create(struct eval_bench *b, int n_threads, uint64_t memory_bytes) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    o.backend = &b->fake.base;
    o.n_threads = n_threads;
    o.memory_bytes = memory_bytes;
    o.target = b->c.sites.scheme.target;
    assert_ok(msc_evaluator_create(&ev, b->c.g, b->c.data, b->c.wanted, b->c.n_wanted, &o));
    return ev;
}

void eval_open_bench(struct eval_bench *b) {
    memset(b, 0, sizeof(*b));
    fake_open(&b->fake, 4);
}

// Draws the edits of each trial from its number; trial 0 has none.
void eval_draw_all(struct eval_bench *b) {
    for (uint64_t t = 0; t < EVAL_MAX_TRIALS; t++) {
        eval_draw_edits(&b->c, t, &b->edits[t]);
    }
    eval_results_init(&b->results, &b->c);
}

void eval_close_bench(struct eval_bench *b) {
    eval_results_finish(&b->results);
    msc_evaluator_destroy(b->ev);
    eval_close(&b->c);
    fake_close(&b->fake);
}

void eval_check_all(struct eval_bench *b, size_t first, size_t n) {
    for (size_t t = 0; t < n; t++) {
        assert_int_equal(b->trials[t].status, MSC_OK);
        assert_int_equal(b->results.ends[t], 1);
        assert_true(b->trials[t].reuse_ratio >= 0 && b->trials[t].reuse_ratio <= 1);
        eval_check(&b->c, &b->results, t, &b->edits[first + t]);
    }
    eval_results_finish(&b->results);
}

void eval_run_and_check(struct eval_bench *b, struct msc_evaluator *ev, size_t first, size_t n) {
    assert_ok(eval_run(ev, &b->results, b->edits + first, b->trials, n));
    eval_check_all(b, first, n);
}

struct msc_evaluator_stats eval_stats_of(const struct msc_evaluator *ev) {
    struct msc_evaluator_stats s;
    msc_evaluator_get_stats(ev, &s);
    return s;
}

void eval_edit_slot(struct eval_bench *b, size_t trial, const char *joint, int32_t operand,
                    int choice) {
    int32_t slot = eval_slot(&b->c, joint, operand);
    b->edits[trial].edits[slot] = &b->c.quants[slot][choice].edit;
}

void eval_run_edits(struct eval_bench *b, size_t n) {
    for (size_t t = 0; t < n; t++) {
        b->trials[t].edits = b->edits[t].edits;
    }
    assert_ok(msc_evaluator_run(b->ev, b->trials, n, &b->results.sink, 0));
}

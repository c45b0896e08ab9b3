// The evaluator's results, noise and slot values. Expected results are computed joint by joint
// (eval_case.h).
#include "eval_bench.h"

#include "base/alloc.h"
#include "graph/cost.h"

// ---- Results ----------------------------------------------------------------------------------

// Results do not depend on threads, the memory budget or the abilities of the backend.
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
        struct eval_bench b;
        eval_open_bench(&b);
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
        // Two plans, because the last batch is smaller.
        eval_open_net(&b.c, 5, 2);
        eval_draw_all(&b);
        b.ev = eval_create(&b, rows[i].n_threads, rows[i].memory_bytes);
        assert_int_equal(msc_evaluator_sites(b.ev)->n_slots, b.c.sites.n_slots);
        assert_ptr_not_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 2));
        assert_ptr_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 1));
        eval_run_and_check(&b, b.ev, 0, N_TRIALS);
        // Runs again with other trials, one by one, and with an empty cache.
        eval_run_and_check(&b, b.ev, 7, 9);
        eval_run_and_check(&b, b.ev, 3, 1);
        msc_evaluator_drop_cache(b.ev);
        assert_int_equal(eval_stats_of(b.ev).bytes_held, 0);
        eval_run_and_check(&b, b.ev, 20, 20);
        assert_true((b.fake.n_moved > 0) == rows[i].moves);
        eval_close_bench(&b);
    }
}

static void test_kernels_evaluator__batches_of_other_widths(void **state) {
    static const int64_t widths[] = {6, 4, 6, 5, 4, 6};
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_widths(&b.c, widths, 6);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 2, (uint64_t)1 << 30);
    // One plan per width, even if widths alternate.
    assert_ptr_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 5));
    assert_ptr_equal(msc_evaluator_plan(b.ev, 1), msc_evaluator_plan(b.ev, 4));
    assert_ptr_not_equal(msc_evaluator_plan(b.ev, 0), msc_evaluator_plan(b.ev, 3));
    eval_run_and_check(&b, b.ev, 0, N_TRIALS);
    eval_run_and_check(&b, b.ev, 11, 3);
    eval_close_bench(&b);
}

// Costs are counted on the outline, which is one sample of the first batch, whatever the batch
// size.
static void test_kernels_evaluator__outline_of_a_sample(void **state) {
    static const int64_t batches[] = {1, 2, 5};
    double macs[3] = {0, 0, 0};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct eval_bench b;
        struct msc_outline outline, again;
        eval_open_bench(&b);
        eval_open_net(&b.c, 5, batches[i]);
        b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
        assert_ok(msc_evaluator_outline(&outline, b.ev));
        assert_ok(msc_evaluator_outline(&again, b.ev));
        assert_ptr_equal(outline.plan, again.plan);
        const struct msc_graph *g = outline.plan->graph;
        assert_true(outline.n_samples == 1);
        assert_int_equal(msc_graph_tensor(g, msc_graph_input(g, 0))->dims[0], 1);
        assert_int_equal(outline.plan->n_steps, 0);
        assert_int_equal(outline.plan->n_slots, b.c.sites.n_slots);
        for (int32_t s = 0; s < b.c.sites.n_slots; s++) {
            assert_int_not_equal(outline.plan->bound_slots[s], MSC_NO_ID);
        }
        for (int32_t j = 0; j < msc_graph_n_joints(g); j++) {
            macs[i] += msc_joint_macs(g, msc_graph_joint(g, j));
        }
        assert_true(macs[i] > 0 && macs[i] == macs[0]);
        eval_close_bench(&b);
    }
}

// ---- Noise and slot values --------------------------------------------------------------------

static void copy_outputs(const struct eval_bench *b, size_t trial, float out[], size_t n) {
    const struct msc_array *a = b->results.values[trial][0][0];
    assert_int_equal(msc_array_n_elements(a), n);
    memcpy(out, msc_array_data(a), n * sizeof(float));
}

// Equal seeds give equal bits whatever other trials run; different seeds give different bits. Noise
// affects only quantised values.
static void test_kernels_evaluator__noise(void **state) {
    // Enough samples that some values are within 2^-22 of a rounding tie.
    enum { N_SAMPLES = 32, N = N_SAMPLES * 2 * 25 };
    float plain[N], first[N], again[N], other[N];
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_chain(&b.c, N_SAMPLES, N_SAMPLES);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 2, (uint64_t)1 << 30);
    for (size_t t = 0; t < 4; t++) {
        eval_edit_slot(&b, t, "conv2", 0, 2);
        eval_edit_slot(&b, t, "conv3", 0, 2);
        b.trials[t].noise_seed = t == 3 ? 1 : t;
    }
    eval_run_edits(&b, 4);
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
    eval_run_edits(&b, 1);
    copy_outputs(&b, 0, again, N);
    assert_memory_equal(first, again, sizeof(first));
    // If nothing is quantised, the results have the same bits as the float model's.
    eval_results_finish(&b.results);
    memset(&b.edits[0], 0, sizeof(b.edits[0]));
    eval_run_edits(&b, 1);
    eval_check_all(&b, 0, 1);
    eval_close_bench(&b);
}

struct slots_seen {
    const struct eval_bench *b;
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

static enum msc_status look_at_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                    int32_t slot, const struct msc_view *v) {
    assert_int_equal(part, 0);
    struct slots_seen *seen = payload;
    const struct eval_case *c = &seen->b->c;
    const struct msc_plan *plan = msc_evaluator_plan(seen->b->ev, batch);
    (void)trial;
    seen->n_slots++;
    assert_int_not_equal(c->sites.slots[slot].kind, MSC_SITE_WEIGHT);
    // The value before quantisation, in the plan's layout.
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
    struct eval_bench b;
    struct slots_seen seen = {&b, 0, 0};
    struct msc_sink sink = {.batch = count_batch, .slot = look_at_slot, .payload = &seen};
    (void)state;
    for (int is_hidden = 0; is_hidden < 2; is_hidden++) {
        eval_open_bench(&b);
        b.fake.uses_last = true;
        if (is_hidden) {
            fake_hide_memory(&b.fake);
        }
        eval_open_net(&b.c, 3, 2);
        eval_draw_all(&b);
        b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
        b.trials[0].edits = b.edits[4].edits;
        b.trials[1].edits = NULL;
        assert_ok(msc_evaluator_run(b.ev, b.trials, 2, &sink, 0));
        assert_int_equal(seen.n_batches, 4);
        assert_int_equal(seen.n_slots, 4 * count_activation_slots(&b.c.sites));
        seen.n_batches = seen.n_slots = 0;
        eval_close_bench(&b);
    }
}

// ---- Every kind of edit -----------------------------------------------------------------------

// Edits before the drawn quantisations: replaced elements and masks. There are two of each, so that
// some trials share edits.
enum { KINDS = 2 };
struct chains {
    struct msc_array *others[EVAL_MAX_SLOTS][KINDS];
    bool is_kept[KINDS][EVAL_CHANNELS];
    struct msc_edit edits[EVAL_MAX_TRIALS][EVAL_MAX_SLOTS][2];
};

static void open_chains(struct chains *c, struct eval_case *of) {
    memset(c, 0, sizeof(*c));
    for (int i = 0; i < KINDS * EVAL_CHANNELS; i++) {
        c->is_kept[i % KINDS][i / KINDS] = msc_rng_below(&of->rng, 3) > 0;
    }
    for (int i = 0; i < KINDS * of->sites.n_site_slots; i++) {
        const struct msc_slot *slot = &of->sites.slots[i / KINDS];
        const struct msc_tensor *t = msc_graph_tensor(of->g, slot->tensor);
        struct msc_array **a = &c->others[i / KINDS][i % KINDS];
        if (slot->kind == MSC_SITE_WEIGHT) {
            assert_ok(msc_array_create(a, MSC_DTYPE_F32, t->n_dims, t->dims));
            for (int64_t k = 0; k < msc_array_n_elements(*a); k++) {
                ((float *)msc_array_data(*a))[k] = (float)(msc_rng_double(&of->rng) * 2 - 1);
            }
        }
    }
}

static void close_chains(struct chains *c) {
    for (int i = 0; i < KINDS * EVAL_MAX_SLOTS; i++) {
        msc_array_release(c->others[i / KINDS][i % KINDS]);
    }
}

// Draws a mask along the channel axis of an activation or along any axis of a weight.
static struct msc_edit draw_mask(const struct chains *c, const struct eval_case *of, int32_t slot,
                                 struct msc_rng *rng) {
    const struct msc_slot *s = &of->sites.slots[slot];
    const struct msc_tensor *t = msc_graph_tensor(of->g, s->tensor);
    bool is_weight = s->kind == MSC_SITE_WEIGHT;
    int32_t axis = is_weight ? (int32_t)msc_rng_below(rng, (uint64_t)t->n_dims) : 1;
    return (struct msc_edit){
        .kind = MSC_EDIT_KEEP_CHANNELS,
        .mask = {axis, (int32_t)t->dims[axis], c->is_kept[msc_rng_below(rng, KINDS)]}};
}

static const struct msc_edit *put_before(const struct msc_edit *next, struct msc_edit *at,
                                         struct msc_edit edit) {
    *at = edit;
    at->next = next;
    msc_edit_seal(at);
    return at;
}

static void draw_chains(struct chains *c, struct eval_bench *b) {
    eval_draw_all(b);
    for (uint64_t t = 1; t < EVAL_MAX_TRIALS; t++) {
        struct msc_rng rng;
        msc_rng_seed(&rng, t, 98);
        for (int32_t s = 0; s < b->c.sites.n_site_slots; s++) {
            const struct msc_edit **edit = &b->edits[t].edits[s];
            struct msc_array *other = c->others[s][msc_rng_below(&rng, KINDS)];
            if (msc_rng_below(&rng, 3) == 0) {
                *edit = put_before(*edit, &c->edits[t][s][0], draw_mask(c, &b->c, s, &rng));
            }
            if (other && msc_rng_below(&rng, 3) == 0) {
                const struct msc_edit replace = {.kind = MSC_EDIT_REPLACE, .elements = other};
                *edit = put_before(*edit, &c->edits[t][s][1], replace);
            }
        }
    }
}

// The results are the expected ones, whatever other trials have left in the cache.
static void test_kernels_evaluator__edits(void **state) {
    static struct chains chains;
    static struct eval_bench b;
    (void)state;
    for (int i = 0; i < 16; i++) {
        eval_open_bench(&b);
        b.fake.fuses = i % 2 == 0;
        b.fake.uses_last = b.fake.moves = i / 2 % 2 == 0;
        b.fake.quantizes = i / 4 % 2 == 0;
        if (i / 8 % 2 == 0) {
            fake_hide_memory(&b.fake);
            fake_run_together(&b.fake);
        }
        eval_open_net(&b.c, 3, 2);
        open_chains(&chains, &b.c);
        draw_chains(&chains, &b);
        b.ev = eval_create(&b, 1 + i % 2, (uint64_t)1 << 30);
        eval_run_and_check(&b, b.ev, 0, N_TRIALS);
        eval_run_and_check(&b, b.ev, 7, 9);
        eval_run_and_check(&b, b.ev, 3, 1);
        msc_evaluator_drop_cache(b.ev);
        eval_run_and_check(&b, b.ev, 20, 20);
        eval_close_bench(&b);
        close_chains(&chains);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator__results),
        cmocka_unit_test(test_kernels_evaluator__batches_of_other_widths),
        cmocka_unit_test(test_kernels_evaluator__outline_of_a_sample),
        cmocka_unit_test(test_kernels_evaluator__noise),
        cmocka_unit_test(test_kernels_evaluator__slot_values),
        cmocka_unit_test(test_kernels_evaluator__edits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

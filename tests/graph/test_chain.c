// Chains of groups in random graphs, checked against their definition.
#include "tests/graph/onnx_files.h"

#include "base/rng.h"
#include "graph/passes/chain.h"
#include "graph/passes/extract.h"

enum { MOST = 24 };

// A graph of sums, each of two of the three tensors before it, with a function after some of them.
static struct msc_graph *make_graph(struct msc_rng *rng, int n) {
    struct msc_graph *g;
    int32_t tensors[MOST + 1];
    assert_ok(msc_graph_create(&g, "random"));
    tensors[0] = add_input(g, "x", "", 1, DIMS(3));
    for (int i = 0; i < n; i++) {
        int reach = i < 3 ? i + 1 : 3;
        int32_t a = tensors[i - (int)msc_rng_below(rng, (uint64_t)reach)];
        int32_t b = tensors[i - (int)msc_rng_below(rng, (uint64_t)reach)];
        enum msc_op op = msc_rng_below(rng, 2) ? MSC_OP_ADD : MSC_OP_SOFTMAX;
        tensors[i + 1] =
            add_joint(g, &(struct msc_joint_spec){
                             .op = op, .n_inputs = op == MSC_OP_ADD ? 2 : 1, .inputs = IDS(a, b)});
    }
    assert_ok(msc_graph_set_outputs(g, 1, IDS(tensors[n])));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// How many tensors that joints up to `joint` compute are read by later ones.
static int count_crossing(const struct msc_graph *g, int32_t joint) {
    int n = 0;
    for (int32_t t = 0; t < msc_graph_n_tensors(g); t++) {
        int32_t producer = msc_graph_producer(g, t);
        const int32_t *readers;
        bool crosses = false;
        if (producer < 0 || producer > joint || msc_graph_is_shared(g, producer)) {
            continue;
        }
        for (int32_t k = 0, n_readers = msc_graph_consumers(g, t, &readers); k < n_readers; k++) {
            crosses = crosses || readers[k] > joint;
        }
        n += crosses;
    }
    return n;
}

static bool is_follower(const struct msc_graph *g, int32_t joint) {
    return msc_op_is_elementwise(msc_graph_joint(g, joint)->op);
}

// Groups are numbered in order without gaps; `cuts` has the joints after which one ends.
static int32_t count_groups(const struct msc_graph *g, const int32_t groups[], bool cuts[]) {
    int32_t last = -1, previous = -1;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        cuts[i] = false;
        if (msc_graph_is_shared(g, i)) {
            assert_int_equal(groups[i], -1);
            continue;
        }
        assert_true(groups[i] == last || groups[i] == last + 1);
        if (previous >= 0) {
            cuts[previous] = groups[i] != last;
        }
        last = groups[i];
        previous = i;
    }
    return last + 1;
}

static void test_graph_chain__cuts_at_single_tensors(void **state) {
    (void)state;
    struct msc_rng rng;
    int n_cut = 0, n_uncut = 0;
    msc_rng_seed(&rng, 5, 0);
    for (int round = 0; round < 300; round++) {
        struct msc_graph *g = make_graph(&rng, 2 + (int)msc_rng_below(&rng, MOST - 2));
        int32_t groups[MOST + 2], n_groups;
        bool cuts[MOST + 2];
        assert_ok(msc_graph_chain(groups, &n_groups, g, MOST));
        assert_int_equal(count_groups(g, groups, cuts), n_groups);
        for (int32_t i = 0; i + 1 < msc_graph_n_joints(g); i++) {
            if (!msc_graph_is_shared(g, i)) {
                assert_int_equal(cuts[i], count_crossing(g, i) == 1);
                n_cut += cuts[i];
                n_uncut += !cuts[i];
            }
        }
        msc_graph_destroy(g);
    }
    assert_true(n_cut > 300 && n_uncut > 300);
}

// With fewer groups, cuts remain single tensors, and no element-wise joint begins a group.
static void test_graph_chain__keeps_patterns_and_limits(void **state) {
    (void)state;
    struct msc_rng rng;
    int n_limited = 0;
    msc_rng_seed(&rng, 6, 0);
    for (int round = 0; round < 300; round++) {
        struct msc_graph *g = make_graph(&rng, MOST);
        int32_t groups[MOST + 2], n_groups, n_all, most = 1 + (int32_t)msc_rng_below(&rng, 6);
        bool cuts[MOST + 2];
        assert_ok(msc_graph_chain(groups, &n_all, g, MOST));
        assert_ok(msc_graph_chain(groups, &n_groups, g, most));
        assert_int_equal(count_groups(g, groups, cuts), n_groups);
        assert_true(n_groups <= most);
        n_limited += n_groups == most && n_all > most;
        for (int32_t i = 0; i + 1 < msc_graph_n_joints(g); i++) {
            if (cuts[i]) {
                assert_int_equal(count_crossing(g, i), 1);
                assert_true(n_all <= most || !is_follower(g, i + 1));
            }
        }
        msc_graph_destroy(g);
    }
    assert_true(n_limited > 50);
}

// Constants and inputs of the graph may be read anywhere.
static void test_graph_chain__inputs_do_not_count(void **state) {
    (void)state;
    struct msc_graph *g;
    int32_t groups[8], n_groups;
    assert_ok(msc_graph_create(&g, "masked"));
    int32_t x = add_input(g, "x", "", 1, DIMS(3)), mask = add_input(g, "mask", "", 1, DIMS(3));
    int32_t t = x;
    for (int i = 0; i < 3; i++) {
        t = add_joint(
            g, &(struct msc_joint_spec){.op = MSC_OP_ADD, .n_inputs = 2, .inputs = IDS(t, mask)});
    }
    assert_ok(msc_graph_set_outputs(g, 1, IDS(t)));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_graph_chain(groups, &n_groups, g, 8));
    assert_int_equal(n_groups, 3);
    msc_graph_chain_join(groups, g, (const int32_t[]){0, 0, 1});
    assert_int_equal(groups[msc_graph_n_joints(g) - 1], 1);
    assert_int_equal(groups[msc_graph_n_joints(g) - 2], 0);
    msc_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_chain__cuts_at_single_tensors),
        cmocka_unit_test(test_graph_chain__keeps_patterns_and_limits),
        cmocka_unit_test(test_graph_chain__inputs_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

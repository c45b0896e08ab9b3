// Partitions of random graphs, checked against their definition, and graphs of pieces.
#include "tests/graph/onnx_files.h"

#include "base/rng.h"
#include "graph/passes/extract.h"
#include "graph/reference/reference.h"

#include <string.h>

enum { MOST = 24 };

// A random graph of sums: each joint reads two earlier tensors.
static struct msc_graph *make_graph(struct msc_rng *rng, int n) {
    struct msc_graph *g;
    int32_t tensors[MOST + 1], outputs[MOST];
    assert_ok(msc_graph_create(&g, "random"));
    tensors[0] = add_input(g, "x", "", 1, DIMS(3));
    for (int i = 0; i < n; i++) {
        int32_t a = tensors[msc_rng_below(rng, (uint64_t)i + 1)];
        int32_t b = tensors[msc_rng_below(rng, (uint64_t)i + 1)];
        tensors[i + 1] = add_joint(
            g, &(struct msc_joint_spec){.op = MSC_OP_ADD, .n_inputs = 2, .inputs = IDS(a, b)});
        outputs[i] = tensors[i + 1];
    }
    assert_ok(msc_graph_set_outputs(g, n, outputs));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// reach[a][b]: a path leads from piece a to piece b, with at least one edge between pieces.
static void find_paths(bool reach[MOST][MOST], const struct msc_graph *g, const int32_t pieces[],
                       int32_t n_pieces) {
    memset(reach, 0, sizeof(bool) * MOST * MOST);
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_children && pieces[i] >= 0; k++) {
            if (pieces[j->children[k]] != pieces[i]) {
                reach[pieces[i]][pieces[j->children[k]]] = true;
            }
        }
    }
    for (int32_t m = 0; m < n_pieces; m++) {
        for (int32_t a = 0; a < n_pieces; a++) {
            for (int32_t b = 0; b < n_pieces; b++) {
                reach[a][b] = reach[a][b] || (reach[a][m] && reach[m][b]);
            }
        }
    }
}

static bool has_cycle(const struct msc_graph *g, const int32_t pieces[], int32_t n_pieces) {
    bool reach[MOST][MOST], has = false;
    find_paths(reach, g, pieces, n_pieces);
    for (int32_t a = 0; a < n_pieces; a++) {
        has = has || reach[a][a];
    }
    return has;
}

// Joins every pair of neighbours of one color for a try: each must make a cycle.
static void check_maximal(const struct msc_graph *g, const int32_t pieces[], int32_t n_pieces,
                          const int32_t colors[]) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_children && pieces[i] >= 0; k++) {
            int32_t child = j->children[k], joined[MOST + 1];
            if (pieces[i] == pieces[child] || colors[i] != colors[child]) {
                continue;
            }
            for (int32_t m = 0; m < msc_graph_n_joints(g); m++) {
                joined[m] = pieces[m] == pieces[child] ? pieces[i] : pieces[m];
            }
            assert_true(has_cycle(g, joined, n_pieces));
        }
    }
}

static void test_graph_extract__partition(void **state) {
    struct msc_rng rng;
    int n_split = 0;
    (void)state;
    msc_rng_seed(&rng, 41, 0);
    for (int round = 0; round < 300; round++) {
        int n = 2 + (int)msc_rng_below(&rng, MOST - 2);
        int32_t colors[MOST + 1], pieces[MOST + 1], n_pieces;
        struct msc_graph *g = make_graph(&rng, n);
        for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
            colors[i] = (int32_t)msc_rng_below(&rng, 3);
        }
        assert_ok(msc_graph_partition(pieces, &n_pieces, g, colors));
        for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
            const struct msc_joint *j = msc_graph_joint(g, i);
            assert_int_equal(pieces[i] < 0, msc_graph_is_shared(g, i));
            for (int32_t k = 0; k < msc_graph_n_joints(g); k++) {
                assert_true(pieces[i] != pieces[k] || pieces[i] < 0 || colors[i] == colors[k]);
            }
            for (int32_t k = 0; k < j->n_children && pieces[i] >= 0; k++) {
                assert_true(pieces[i] <= pieces[j->children[k]]); // the order in which they run
            }
        }
        assert_false(has_cycle(g, pieces, n_pieces));
        check_maximal(g, pieces, n_pieces, colors);
        n_split += n_pieces > 1;
        msc_graph_destroy(g);
    }
    assert_true(n_split > 200);
}

// Runs the pieces one after another; values are by alias.
static void run_pieces(struct msc_array *values[], const struct msc_graph *g,
                       const int32_t pieces[], int32_t n_pieces) {
    for (int32_t p = 0; p < n_pieces; p++) {
        struct msc_graph *piece;
        const struct msc_array *inputs[MOST + 1];
        struct msc_array *outputs[MOST + 1];
        int32_t wanted[MOST + 1];
        assert_ok(msc_graph_extract(&piece, g, pieces, p, "piece"));
        for (int32_t i = 0; i < msc_graph_n_inputs(piece); i++) {
            const char *label =
                msc_tensor_label(msc_graph_tensor(piece, msc_graph_input(piece, i)));
            inputs[i] = values[msc_graph_find_tensor(g, label)];
            assert_non_null(inputs[i]);
        }
        int32_t n = msc_graph_n_outputs(piece);
        for (int32_t i = 0; i < n; i++) {
            wanted[i] = msc_graph_output(piece, i);
        }
        assert_ok(msc_reference_run_graph(outputs, piece, inputs, wanted, (size_t)n, NULL));
        for (int32_t i = 0; i < n; i++) {
            const char *label = msc_tensor_label(msc_graph_tensor(piece, wanted[i]));
            values[msc_graph_find_tensor(g, label)] = outputs[i];
        }
        msc_graph_destroy(piece);
    }
}

static void test_graph_extract__chain(void **state) {
    struct msc_rng rng;
    const float numbers[] = {1, -2, 0.5f};
    (void)state;
    msc_rng_seed(&rng, 42, 0);
    for (int round = 0; round < 20; round++) {
        int32_t colors[MOST + 1], pieces[MOST + 1], n_pieces, wanted[MOST];
        struct msc_array *values[2 * MOST] = {NULL}, *whole[MOST], *x;
        struct msc_graph *g = make_graph(&rng, MOST - 2);
        for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
            colors[i] = (int32_t)msc_rng_below(&rng, 2);
        }
        assert_ok(msc_graph_partition(pieces, &n_pieces, g, colors));
        assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 1, DIMS(3), numbers));
        values[msc_graph_input(g, 0)] = msc_array_retain(x);
        run_pieces(values, g, pieces, n_pieces);
        int32_t n = msc_graph_n_outputs(g);
        for (int32_t i = 0; i < n; i++) {
            wanted[i] = msc_graph_output(g, i);
        }
        assert_ok(msc_reference_run_graph(whole, g, (const struct msc_array *const[]){x}, wanted,
                                          (size_t)n, NULL));
        for (int32_t i = 0; i < n; i++) {
            assert_non_null(values[wanted[i]]);
            assert_memory_equal(msc_array_data(values[wanted[i]]), msc_array_data(whole[i]),
                                sizeof numbers);
            msc_array_release(whole[i]);
        }
        for (int32_t i = 0; i < 2 * MOST; i++) {
            msc_array_release(values[i]);
        }
        msc_array_release(x);
        msc_graph_destroy(g);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_extract__partition),
        cmocka_unit_test(test_graph_extract__chain),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

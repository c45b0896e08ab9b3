// Cuts of variants of a network: where joints go that the tensor at a cut does not reach, and what
// is refused.
#include "tests/graph/graph_samples.h"

#include "env/placement/runs.h"
#include "graph/passes/chain.h"

#include <string.h>

enum { MOST_JOINTS = 16, N_CHAIN = 3 };

static int32_t add_named(struct msc_graph *g, enum msc_op op, const char *name, int n_inputs,
                         const int32_t inputs[]) {
    return add_joint(g, &(struct msc_joint_spec){.op = op,
                                                 .name = name,
                                                 .n_inputs = n_inputs,
                                                 .inputs = inputs,
                                                 .aliases = &(const char *){name}});
}

struct form {
    int aside_at; // number of joints of the chain before h and s
    bool skips;   // the last joint of the chain reads the first one's output, too
    int64_t length;
    enum msc_dtype dtype;
};

// x -> a -> b -> c, and y = c + h, where h = tanh(gain) comes from a second input. Another output
// is s = sigmoid(x).
static struct msc_graph *make_graph(const struct form *form) {
    struct msc_graph *g;
    int32_t chain[N_CHAIN + 1], x, gain, h = MSC_NO_ID, s = MSC_NO_ID;
    static const char *const names[N_CHAIN] = {"a", "b", "c"};
    assert_ok(msc_graph_create(&g, "variant"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, form->dtype, "", 2, DIMS(1, form->length)));
    assert_ok(msc_graph_add_input(&gain, g, "gain", NULL, form->dtype, "", 2, DIMS(1, 1)));
    chain[0] = x;
    for (int i = 0; i <= N_CHAIN; i++) {
        if (i == form->aside_at) {
            h = add_named(g, MSC_OP_TANH, "h", 1, IDS(gain));
            s = add_named(g, MSC_OP_SIGMOID, "s", 1, IDS(x));
        }
        bool skips = form->skips && i == N_CHAIN - 1;
        if (i < N_CHAIN) {
            chain[i + 1] = skips ? add_named(g, MSC_OP_ADD, names[i], 2, IDS(chain[i], chain[1]))
                                 : add_named(g, MSC_OP_RELU, names[i], 1, IDS(chain[i]));
        }
    }
    int32_t y = add_named(g, MSC_OP_ADD, "y", 2, IDS(chain[N_CHAIN], h));
    assert_ok(msc_graph_set_outputs(g, 2, IDS(y, s)));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// Cuts the second graph as the first; *n_cuts: how many cuts both have.
static enum msc_status cut(size_t *n_cuts, struct msc_place_network networks[2], bool is_cut[],
                           struct msc_arena *arena) {
    int32_t n_groups;
    assert_ok(msc_graph_chain(networks[0].groups, &n_groups, networks[0].g, MOST_JOINTS));
    for (int32_t i = 0; i < n_groups; i++) {
        is_cut[i] = true;
    }
    MSC_TRY(msc_place_cut_variant(&networks[1], is_cut, &networks[0], (size_t)n_groups,
                                  "small.onnx", arena));
    *n_cuts = 0;
    for (int32_t i = 0; i + 1 < n_groups; i++) {
        *n_cuts += is_cut[i];
    }
    return MSC_OK;
}

static int32_t group_of(const struct msc_place_network *network, const char *joint) {
    return network->groups[msc_graph_find_joint(network->g, joint)];
}

// The groups of a network with only the cuts that are kept.
static int32_t kept_group(const struct msc_place_network *network, const bool is_cut[],
                          const char *joint) {
    int32_t group = 0;
    for (int32_t i = 0; i < group_of(network, joint); i++) {
        group += is_cut[i];
    }
    return group;
}

// Wherever the joints beside the chain are in either file, pieces of both give the same outputs,
// and nothing but the chain's tensors passes between them.
static void test_env_variants__joints_beside_the_chain(void **state) {
    (void)state;
    for (int i = 0; i < (N_CHAIN + 1) * (N_CHAIN + 1); i++) {
        const struct form forms[2] = {
            {.aside_at = i % (N_CHAIN + 1), .length = 4, .dtype = MSC_DTYPE_F32},
            {.aside_at = i / (N_CHAIN + 1), .length = 4, .dtype = MSC_DTYPE_F32}};
        struct msc_graph *g[2] = {make_graph(&forms[0]), make_graph(&forms[1])};
        int32_t groups[MOST_JOINTS];
        struct msc_place_network networks[2] = {{.g = g[0], .groups = groups}, {.g = g[1]}};
        struct msc_arena arena = {0};
        bool is_cut[MOST_JOINTS];
        size_t n_cuts;
        assert_ok(cut(&n_cuts, networks, is_cut, &arena));
        // The network cannot be cut between h and y, except where h alone passes.
        assert_int_equal(n_cuts, forms[0].aside_at > 0 ? forms[0].aside_at : 1);
        for (int k = 0; k < 5; k++) {
            const char *joint = ((const char *const[]){"a", "b", "c", "y", "s"})[k];
            assert_int_equal(group_of(&networks[1], joint),
                             kept_group(&networks[0], is_cut, joint));
        }
        msc_arena_finish(&arena);
        msc_graph_destroy(g[0]);
        msc_graph_destroy(g[1]);
    }
}

// Where a second tensor would pass, the variant is not cut.
static void test_env_variants__a_skip_has_no_cut(void **state) {
    (void)state;
    const struct form plain = {.aside_at = N_CHAIN, .length = 4, .dtype = MSC_DTYPE_F32};
    const struct form skip = {
        .aside_at = N_CHAIN, .length = 4, .dtype = MSC_DTYPE_F32, .skips = true};
    struct msc_graph *g[2] = {make_graph(&plain), make_graph(&skip)};
    int32_t groups[MOST_JOINTS];
    struct msc_place_network networks[2] = {{.g = g[0], .groups = groups}, {.g = g[1]}};
    struct msc_arena arena = {0};
    bool is_cut[MOST_JOINTS];
    size_t n_cuts;
    assert_ok(cut(&n_cuts, networks, is_cut, &arena));
    assert_int_equal(n_cuts, N_CHAIN - 1);
    assert_true(is_cut[0] && !is_cut[1] && is_cut[2]);
    msc_arena_finish(&arena);
    msc_graph_destroy(g[0]);
    msc_graph_destroy(g[1]);
}

static void test_env_variants__other_inputs_are_refused(void **state) {
    (void)state;
    const struct form plain = {.aside_at = N_CHAIN, .length = 4, .dtype = MSC_DTYPE_F32};
    const struct form others[] = {
        {.aside_at = N_CHAIN, .length = 5, .dtype = MSC_DTYPE_F32},
        {.aside_at = N_CHAIN, .length = 4, .dtype = MSC_DTYPE_F16},
    };
    for (size_t i = 0; i < 2; i++) {
        struct msc_graph *g[2] = {make_graph(&plain), make_graph(&others[i])};
        int32_t groups[MOST_JOINTS];
        struct msc_place_network networks[2] = {{.g = g[0], .groups = groups}, {.g = g[1]}};
        struct msc_arena arena = {0};
        bool is_cut[MOST_JOINTS];
        size_t n_cuts;
        assert_int_equal(cut(&n_cuts, networks, is_cut, &arena), MSC_E_INVALID);
        assert_non_null(strstr(msc_status_message(), "small.onnx: it is not a variant"));
        assert_non_null(strstr(msc_status_message(), "input 0"));
        msc_arena_finish(&arena);
        msc_graph_destroy(g[0]);
        msc_graph_destroy(g[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_variants__joints_beside_the_chain),
        cmocka_unit_test(test_env_variants__a_skip_has_no_cut),
        cmocka_unit_test(test_env_variants__other_inputs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

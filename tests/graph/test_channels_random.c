// Random networks of convolutions, sums, concatenations, slices, gates, attention heads and
// shuffles. For any set of pruned units the masked network and the pruned one must give the same
// outputs.
#include "tests/graph/channels_case.h"

#include <stdio.h>

enum { N_NETS = 60, N_LAYERS = 9, SIDE = 4 };

struct maker {
    struct net net;
    int n_made;
    int32_t x;
};

// Returns a unique name such as "conv3".
static const char *name_of(struct maker *m, const char *kind) {
    static char text[4][32];
    char *out = text[m->n_made % 4];
    snprintf(out, sizeof text[0], "%s%d", kind, m->n_made++);
    return out;
}

static int64_t pick(struct maker *m, int64_t first, int64_t count) {
    return first + (int64_t)msc_rng_below(&m->net.rng, (uint64_t)count);
}

static int64_t channels(const struct maker *m, int32_t x) {
    return msc_graph_tensor(m->net.g, x)->dims[1];
}

static void add_plain(struct maker *m) {
    m->x = net_conv(&m->net, name_of(m, "conv"), m->x, 2 * pick(m, 1, 5), pick(m, 0, 2) * 2 + 1, 1);
}

static void add_deep(struct maker *m) {
    int64_t n = channels(m, m->x);
    m->x = net_conv(&m->net, name_of(m, "deep"), m->x, n * pick(m, 1, 2), 3, n);
}

static void add_grouped(struct maker *m) {
    m->x = channels(m, m->x) % 2 != 0
               ? m->x
               : net_conv(&m->net, name_of(m, "grouped"), m->x, 2 * pick(m, 1, 4), 3, 2);
}

static void add_norm(struct maker *m) {
    m->x = net_batch_norm(&m->net, name_of(m, "norm"), m->x);
}

static void add_function(struct maker *m) {
    static const enum msc_op ops[] = {MSC_OP_RELU, MSC_OP_SIGMOID, MSC_OP_COS, MSC_OP_SOFTPLUS,
                                      MSC_OP_TANH};
    m->x = add_unary(m->net.g, ops[pick(m, 0, 5)], name_of(m, "function"), m->x);
}

static void add_pool(struct maker *m) {
    enum msc_op op = pick(m, 0, 2) ? MSC_OP_MAX_POOL2D : MSC_OP_AVG_POOL2D;
    m->x =
        net_unary(&m->net, op, name_of(m, "pool"), m->x, "pool_size", "3,3", "padding", "1,1,1,1");
}

static void add_residual(struct maker *m) {
    int32_t branch = net_conv(&m->net, name_of(m, "branch"), m->x, channels(m, m->x), 3, 1);
    m->x = net_joint(&m->net, MSC_OP_ADD, name_of(m, "sum"), 2, IDS(m->x, branch), NULL, NULL);
}

static void add_dense(struct maker *m) {
    int32_t more = net_conv(&m->net, name_of(m, "more"), m->x, 2, 3, 1);
    m->x = net_joint(&m->net, MSC_OP_CONCAT, name_of(m, "dense"), 2, IDS(more, m->x), "axis", "1");
}

static void add_cut(struct maker *m) {
    char begin[16], end[16];
    int64_t n = channels(m, m->x), first = pick(m, 0, n - 1);
    snprintf(begin, sizeof begin, "%d,", (int)first);
    snprintf(end, sizeof end, "%d,", (int)(first + pick(m, 1, n - first)));
    const struct msc_attr attrs[] = {{"axes", "1,"}, {"begin", begin}, {"end", end}};
    m->x = add_joint(m->net.g, &(struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                                        .name = name_of(m, "cut"),
                                                        .n_inputs = 1,
                                                        .inputs = &m->x,
                                                        .n_attrs = 3,
                                                        .attrs = attrs});
}

static void add_gate(struct maker *m) {
    int32_t pooled = add_unary(m->net.g, MSC_OP_GLOBAL_AVG_POOL, name_of(m, "pooled"), m->x);
    int32_t a = net_conv(&m->net, name_of(m, "narrow"), pooled, 3, 1, 1);
    int32_t b = net_conv(&m->net, name_of(m, "wide"), a, channels(m, m->x), 1, 1);
    m->x = net_joint(&m->net, MSC_OP_MULTIPLY, name_of(m, "gated"), 2, IDS(m->x, b), NULL, NULL);
}

static void add_padding(struct maker *m) {
    m->x = net_unary(&m->net, MSC_OP_PAD, name_of(m, "pad"), m->x, "pad_width", "0,1,0,0,0,1,0,0",
                     "pad_value", "0.5");
}

static int32_t reshape(struct maker *m, int32_t x, int n, const int64_t dims[]) {
    char text[96];
    int length = 0;
    for (int i = 0; i < n; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%d,", (int)dims[i]);
    }
    return net_unary(&m->net, MSC_OP_RESHAPE, name_of(m, "reshape"), x, "shape", text, NULL, NULL);
}

static void add_shuffle(struct maker *m) {
    int64_t n = channels(m, m->x), groups = n % 3 == 0 ? 3 : n % 2 == 0 ? 2 : 1;
    int32_t parts = reshape(m, m->x, 5, DIMS(1, groups, n / groups, SIDE, SIDE));
    int32_t turned = net_unary(&m->net, MSC_OP_PERMUTE_DIMS, name_of(m, "turn"), parts, "axes",
                               "0,2,1,3,4", NULL, NULL);
    m->x = reshape(m, turned, 4, DIMS(1, n, SIDE, SIDE));
}

// Attention between positions, with two heads.
static void add_attention(struct maker *m) {
    int32_t parts[3];
    static const char *const axes[] = {"0,1,3,2", "0,1,2,3", "0,1,2,3"};
    for (int i = 0; i < 3; i++) {
        int32_t a = net_conv(&m->net, name_of(m, "part"), m->x, 4, 1, 1);
        int32_t heads = reshape(m, a, 4, DIMS(1, 2, 2, SIDE * SIDE));
        parts[i] = net_unary(&m->net, MSC_OP_PERMUTE_DIMS, name_of(m, "turn"), heads, "axes",
                             axes[i], NULL, NULL);
    }
    int32_t scores = net_joint(&m->net, MSC_OP_MATMUL, name_of(m, "scores"), 2,
                               IDS(parts[0], parts[1]), NULL, NULL);
    int32_t soft =
        net_unary(&m->net, MSC_OP_SOFTMAX, name_of(m, "soft"), scores, "axis", "-1", NULL, NULL);
    int32_t turned = net_unary(&m->net, MSC_OP_PERMUTE_DIMS, name_of(m, "turn"), parts[2], "axes",
                               "0,1,3,2", NULL, NULL);
    int32_t mixed =
        net_joint(&m->net, MSC_OP_MATMUL, name_of(m, "mixed"), 2, IDS(soft, turned), NULL, NULL);
    int32_t back = net_unary(&m->net, MSC_OP_PERMUTE_DIMS, name_of(m, "turn"), mixed, "axes",
                             "0,1,3,2", NULL, NULL);
    m->x = reshape(m, back, 4, DIMS(1, 4, SIDE, SIDE));
}

static void (*const layers[])(struct maker *m) = {
    add_plain, add_deep, add_grouped, add_norm,    add_function, add_pool,      add_residual,
    add_dense, add_cut,  add_gate,    add_padding, add_shuffle,  add_attention,
};

static void make_and_check(uint64_t seed) {
    struct maker m = {.net = net_begin(seed)};
    m.x = add_input(m.net.g, "x", "NCHW", 4, DIMS(1, 3, SIDE, SIDE));
    add_plain(&m);
    for (int i = 0; i < N_LAYERS; i++) {
        layers[pick(&m, 0, sizeof(layers) / sizeof(layers[0]))](&m);
    }
    int32_t flat = net_unary(&m.net, MSC_OP_FLATTEN, "flat", m.x, NULL, NULL, NULL, NULL);
    net_end(&m.net, 1, IDS(net_linear(&m.net, "out", flat, 3)));
    check_masked_and_pruned(m.net.g, seed);
    msc_graph_destroy(m.net.g);
}

static void test_graph_channels_random__masks_and_surgery(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < N_NETS; seed++) {
        make_and_check(seed);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_channels_random__masks_and_surgery),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Finding, masking and pruning channels when memory runs out: every allocation fails once and
// must be reported as MSC_E_NOMEM.
#include "tests/graph/channels_case.h"
#include "tests/short_memory.h"

static struct msc_graph *sample;
static struct msc_sites sites;

static enum msc_status use(const struct msc_channels *c, const bool is_gone[]) {
    struct msc_channel_masks masks;
    struct msc_channel_cost cost;
    struct msc_graph *small;
    MSC_TRY(msc_channels_cost(&cost, c, sample, is_gone));
    MSC_TRY(msc_channels_mask(&masks, c, sample, &sites, is_gone));
    msc_channel_masks_finish(&masks);
    MSC_TRY(msc_graph_prune(&small, sample, c, is_gone, NULL));
    msc_graph_destroy(small);
    return MSC_OK;
}

static enum msc_status find_and_use(void) {
    static const bool is_gone[8] = {false, true, true};
    struct msc_channels channels;
    MSC_TRY(msc_channels_find(&channels, sample, &sites));
    enum msc_status status = use(&channels, is_gone);
    msc_channels_finish(&channels);
    return status;
}

static void test_graph_channels_memory__all(void **state) {
    (void)state;
    run_failing(find_and_use, 1);
}

// The network has a channel shuffle, a slice and a reshape, so that pruning also rewrites
// attributes and indices.
static int set_up(void **state) {
    (void)state;
    struct net n = net_begin(1);
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(2, 2, 3, 3));
    int32_t a = net_batch_norm(&n, "norm", net_conv(&n, "a", x, 6, 3, 1));
    int32_t s = net_unary(&n, MSC_OP_RESHAPE, "s", a, "shape", "2,2,3,3,3", NULL, NULL);
    int32_t t = net_unary(&n, MSC_OP_PERMUTE_DIMS, "t", s, "axes", "0,2,1,3,4", NULL, NULL);
    int32_t m = net_unary(&n, MSC_OP_RESHAPE, "m", t, "shape", "2,6,3,3", NULL, NULL);
    int32_t p = net_unary(&n, MSC_OP_PAD, "p", m, "pad_width", "0,0,1,1,0,0,1,1", NULL, NULL);
    int32_t f = net_unary(&n, MSC_OP_RESHAPE, "f", p, "shape", "2,150", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "b", f, 2)));
    sample = n.g;
    return msc_sites_find(&sites, sample, NULL) == MSC_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    msc_sites_finish(&sites);
    msc_graph_destroy(sample);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_channels_memory__all),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

// Fuses x * clip(x + 3, 0, 6) / 6, as PyTorch and Paddle export it, into nn.hard_swish. The two
// limits may be joints of their own.
#include "graph/passes/fuse_internal.h"

// The product, if `clipped` is x + 3 between 0 and 6.
#define SPELLINGS(clipped)                                                                         \
    "divide(multiply(x, " clipped "), 6)", "multiply(multiply(x, " clipped "), 0.16666667)",       \
        "multiply(x, divide(" clipped ", 6))", "multiply(x, multiply(" clipped ", 0.16666667))"

static const char *const patterns[] = {
    SPELLINGS("clip[min=0 max=6](add(x, 3))"),
    SPELLINGS("clip[min= max=6](clip[min=0 max=](add(x, 3)))"),
    SPELLINGS("clip[min=0 max=](clip[min= max=6](add(x, 3)))"),
    SPELLINGS("clip[min= max=6](nn.relu(add(x, 3)))"),
    "multiply(nn.hard_sigmoid[alpha=0.16666667 beta=0.5](x), x)",
};

enum msc_status msc_fuse_hard_swish(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    if (!msc_fuse__find(&m, f, patterns, sizeof(patterns) / sizeof(patterns[0]), joint)) {
        return MSC_OK;
    }
    int32_t x = msc_match_tensor(&m, "x");
    if (!msc_fuse__same_shape(f, x, joint)) {
        return MSC_OK;
    }
    struct msc_joint_spec spec = {.op = MSC_OP_HARD_SWISH, .n_inputs = 1, .inputs = &x};
    *done = true;
    return msc_fuse__replace(f, &m, joint, &spec);
}

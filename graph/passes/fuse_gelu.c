// Fuses x / 2 * (1 + erf(x / sqrt(2))), and its approximation by tanh, into nn.gelu.
#include "graph/passes/fuse_internal.h"

#include <string.h>

#define ERF "erf(divide(x, 1.4142135))"
#define ERF_BY_PRODUCT "erf(multiply(x, 0.70710678))"
// The argument of tanh is sqrt(2 / pi) * (x + 0.044715 * x^3).
#define CUBE "multiply(power(x, 3), 0.044715)"
#define CUBE_BY_PRODUCT "multiply(multiply(x, multiply(x, x)), 0.044715)"
#define CUBE_FROM_LEFT "multiply(multiply(multiply(x, 0.044715), x), x)"
#define TANH(cube) "tanh(multiply(add(x, " cube "), 0.79788456))"
#define TANH_OF_PRODUCT                                                                            \
    "tanh(multiply(multiply(x, 0.79788456), add(multiply(multiply(x, 0.044715), x), 1)))"

// x * (1 + inner) / 2, with the factor 1/2 at every place where exporters put it.
#define FORMS(inner)                                                                               \
    "multiply(multiply(x, add(" inner ", 1)), 0.5)", "divide(multiply(x, add(" inner ", 1)), 2)",  \
        "multiply(multiply(x, 0.5), add(" inner ", 1))",                                           \
        "multiply(x, multiply(add(" inner ", 1), 0.5))",                                           \
        "multiply(divide(x, 2), add(" inner ", 1))"

static const char *const exact[] = {FORMS(ERF), FORMS(ERF_BY_PRODUCT)};
static const char *const approximate[] = {FORMS(TANH(CUBE)), FORMS(TANH(CUBE_BY_PRODUCT)),
                                          FORMS(TANH(CUBE_FROM_LEFT)), FORMS(TANH_OF_PRODUCT)};

enum msc_status msc_fuse_gelu(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    enum msc_op op = f->graph->joints[joint]->joint.op;
    if (op != MSC_OP_MULTIPLY && op != MSC_OP_DIVIDE) {
        return MSC_OK;
    }
    bool is_exact = msc_fuse__find(&m, f, exact, sizeof(exact) / sizeof(exact[0]), joint);
    if (!is_exact &&
        !msc_fuse__find(&m, f, approximate, sizeof(approximate) / sizeof(approximate[0]), joint)) {
        return MSC_OK;
    }
    int32_t x = msc_match_tensor(&m, "x");
    if (!msc_fuse__same_shape(f, x, joint)) {
        return MSC_OK;
    }
    struct msc_attr attr = {"approximate", is_exact ? "none" : "tanh"};
    struct msc_joint_spec spec = {
        .op = MSC_OP_GELU, .n_inputs = 1, .inputs = &x, .n_attrs = 1, .attrs = &attr};
    *done = true;
    return msc_fuse__replace(f, &m, joint, &spec);
}

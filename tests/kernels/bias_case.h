// Quantised convolutions and linear layers with biases of all kinds, and the results that
// kernels/backend.h specifies, computed in int64.
//
//     struct bias_case c;
//     bias_case_init(&c, &bias_shapes[0]);
//     // run c.g over c.x under the edits c.trials[i].slots, and compare with c.trials[i].expected
//     bias_case_finish(&c);
#ifndef MSC_TESTS_BIAS_CASE_H
#define MSC_TESTS_BIAS_CASE_H

#include "base/rng.h"
#include "graph/edit.h"
#include "graph/graph.h"

#include "tests/msc_test.h"

enum bias_end {
    BIAS_END_NONE,
    BIAS_END_RELU,
    BIAS_END_ABS
}; // what follows the joint: nothing, a limit or an element-wise program

struct bias_shape {
    const char *name;
    enum msc_op op;
    int64_t n, in, height, width, out, kernel, stride, padding, groups;
    enum bias_end end;
};

// The last shape's sums are not exact in float32.
enum { BIAS_SHAPES = 8, BIAS_LONG_SUMS = BIAS_SHAPES - 1 };
extern const struct bias_shape bias_shapes[BIAS_SHAPES];
int64_t bias_count_y(const struct bias_shape *s);

enum bias_kind {
    BIAS_FLOAT, // a bias that is not rounded
    BIAS_SMALL,
    BIAS_LARGEST,   // the largest bias that may be added to the integer sums
    BIAS_TOO_LARGE, // one step of float32 larger than the largest
    BIAS_COARSE,    // rounded to another step than the step of the sums
    BIAS_KINDS
};
enum { BIAS_INPUTS = 4, BIAS_WEIGHTS = 3, BIAS_TRIALS = BIAS_INPUTS * BIAS_WEIGHTS * BIAS_KINDS };
enum { BIAS_MAX_CHANNELS = 12, BIAS_MAX_Y = 512 };

struct bias_range {
    int32_t low, high, zero;
};

// Trials are numbered ((input * BIAS_WEIGHTS) + weight) * BIAS_KINDS + kind.
struct bias_trial {
    const struct bias_range *x, *w;
    enum bias_kind kind;
    int32_t n_scales; // scales of the weight: one, or one per channel
    float x_scale, w_scales[BIAS_MAX_CHANNELS], steps[BIAS_MAX_CHANNELS];
    int32_t w_zeros[BIAS_MAX_CHANNELS];
    struct msc_array *weight, *bias;
    struct msc_edit x_edit, w_edits[2], b_edits[2];
    const struct msc_edit *slots[3]; // edits of input, weight and bias
    float expected[BIAS_MAX_Y];
};

struct bias_case {
    const struct bias_shape *shape;
    struct msc_graph *g;
    struct msc_array *x;
    struct msc_rng rng;
    struct bias_trial trials[BIAS_TRIALS];
};

void bias_case_init(struct bias_case *c, const struct bias_shape *shape);
void bias_case_finish(struct bias_case *c);

#endif

// The bytes draw a small network with edits. The `cpu` kernels run the network step by step as a
// plan, and each step in every way in which it may be called (tests/kernels/cpu_case.h). The
// reference kernels run the network joint by joint. Results must have the same bits, or differ only
// by rounding if the order of sums differs.
#include "base/str.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kernel_joints.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct cpu_edit_kind kinds[] = {
    {0, false, false}, {8, false, false}, {8, true, false},   {4, false, false},
    {3, true, false},  {16, true, false}, {12, false, false}, {2, true, false},
};

static bool is_integer(struct cpu_edit_kind kind) {
    return kind.bits >= 2 && kind.bits <= 8;
}

// Ranges of inputs: around 0, so that terms of sums cancel, or of one sign, so that they do not.
static void draw_range(struct kernel_draw *d) {
    static const float ranges[][2] = {{-2, 2}, {0, 2}, {1.9f, 2}, {-100, 100}, {-0.01f, 0.03f}};
    int k = kernel_below(d, (int)(sizeof ranges / sizeof ranges[0]));
    d->c->low = ranges[k][0];
    d->c->high = ranges[k][1];
}

// A result that is only close to the reference is not quantised, because it might round to another
// integer than the reference.
static int32_t draw_graph(struct kernel_draw *d, bool is_quantised, bool is_integer_case) {
    int32_t y = kernel_input(d);
    for (int n = kernel_below(d, 3); n > 0; n--) {
        y = kernel_joint(d, y);
    }
    bool was_close = d->is_close;
    int32_t before = y;
    if (!was_close || !is_quantised) {
        y = kernel_anchor(d, y);
    }
    d->is_close = d->is_close || (y != before && !is_integer_case);
    for (int n = kernel_below(d, 5); n > 0; n--) {
        y = kernel_joint(d, y);
    }
    return y;
}

// A NaN or an infinity spoils a sum in any order of its terms, so cases with such results are
// skipped.
static bool has_finite_result(struct cpu_case *c) {
    struct msc_array *expected;
    bool is_finite = true;
    cpu_expect(&expected, c, 0);
    for (int64_t i = 0; i < msc_array_n_elements(expected); i++) {
        is_finite = is_finite && isfinite(msc_array_get_double(expected, i));
    }
    msc_array_release(expected);
    return is_finite;
}

// MSC_FUZZ_SHOW=1 prints the network that was drawn.
static void show_graph(const struct msc_graph *g, struct cpu_edit_kind activations,
                       struct cpu_edit_kind weights) {
    struct msc_str text = {0};
    if (getenv("MSC_FUZZ_SHOW")) {
        msc_graph_print(g, &text);
        fprintf(stderr, "%sactivations %d bits%s, weights %d bits%s%s\n", msc_str_text(&text),
                activations.bits, activations.is_symmetric ? " symmetric" : "", weights.bits,
                weights.is_symmetric ? " symmetric" : "",
                weights.is_per_channel ? " by channel" : "");
    }
    msc_str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct cpu_case c;
    struct kernel_draw d = {.data = data, .n = n_bytes, .c = &c};
    if (n_bytes > 96) {
        return -1;
    }
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    cpu_case_init(&c, (uint64_t)kernel_below(&d, 256));
    draw_range(&d);
    c.options.n_threads = 1 + kernel_below(&d, 2);
    c.options.allow_int8 = kernel_below(&d, 4) != 1;
    struct cpu_edit_kind activations = kinds[kernel_below(&d, 8)];
    struct cpu_edit_kind weights = kinds[kernel_below(&d, 8)];
    weights.is_per_channel = kernel_below(&d, 2) == 1;
    bool has_edits = activations.bits > 0 || weights.bits > 0;
    int32_t y =
        draw_graph(&d, activations.bits > 0, is_integer(activations) && is_integer(weights));
    cpu_case_finish_graph(&c, y);
    show_graph(c.g, activations, weights);
    if (has_edits) {
        cpu_case_edit(&c, activations, weights);
    }
    if (!d.is_close) {
        cpu_check_equal(&c);
    } else if (has_finite_result(&c)) {
        cpu_check_conditioned(&c, 1e-9);
    }
    cpu_case_finish(&c);
    return 0;
}

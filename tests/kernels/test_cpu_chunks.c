// Steps whose chunks end within a row of the epilogue. The epilogue's operands are broadcast only
// along the batch, so positions and channels form one row. Results are compared with the reference
// kernels.
#include "tests/kernels/cpu_case.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct edits {
    struct cpu_edit_kind activations, weights;
};
static const struct edits edits[] = {
    {{0, false, false}, {0, false, false}},
    {{8, false, false}, {8, true, true}},
    {{8, false, false}, {8, false, true}},
};

// The shape of an operand relative to an output [batch, channels, height, width].
enum shape { IMAGE, ROW, ONE_ROW_EACH, SHAPE_COUNT };

static void set_dims(int64_t dims[4], enum shape shape, const struct msc_tensor *y) {
    dims[0] = 1;
    dims[1] = shape == ONE_ROW_EACH ? 1 : y->dims[1];
    dims[2] = shape == ROW ? 1 : y->dims[2];
    dims[3] = shape == ONE_ROW_EACH ? 1 : y->dims[3];
}

// Adds joints after the layer. If `is_chain`, they form a chain whose values stay in registers.
// Otherwise there are more joints and a residual, and they run as loops. `term` is a constant or an
// input.
static int32_t add_epilogue(struct cpu_case *c, int32_t y, enum shape shape, bool is_constant,
                            bool is_chain) {
    const struct msc_tensor *t = msc_graph_tensor(c->g, y);
    int64_t dims[4], all[4];
    memcpy(all, t->dims, sizeof(all));
    set_dims(dims, shape, t);
    int32_t term = is_constant ? cpu_constant(c, 4, dims, NULL) : cpu_input(c, "", 4, dims);
    if (is_chain) {
        y = cpu_joint(c, MSC_OP_ADD, 2, IDS(y, term), "", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_RELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    }
    int32_t gate = cpu_joint(c, MSC_OP_SIGMOID, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, term), "", MSC_NO_ID, MSC_NO_ID);
    y = cpu_joint(c, MSC_OP_SUBTRACT, 2, IDS(y, gate), "", MSC_NO_ID, MSC_NO_ID);
    int32_t other = cpu_input(c, "", 4, all);
    return cpu_joint(c, MSC_OP_ADD, 2, IDS(y, other), "", MSC_NO_ID, MSC_NO_ID);
}

static void check(struct cpu_case *c, int32_t output) {
    cpu_case_finish_graph(c, output);
    for (size_t i = 0; i < COUNT(edits); i++) {
        cpu_case_edit(c, edits[i].activations, edits[i].weights);
        if (i == 0) {
            cpu_check_close(c, 1e-11);
        } else {
            cpu_check_equal(c);
        }
    }
    cpu_case_finish(c);
}

// Convolutions in chunks of 72 positions (1.5 images, or 4.5 rows of an image), with many channels
// and with a single channel. Also convolutions in bands of 8 rows of an image.
static void check_conv(const struct kernel_case *row) {
    for (int i = 0; i < 2 * SHAPE_COUNT; i++) {
        struct cpu_case c;
        enum shape shape = (enum shape)(i / 2);
        bool is_constant = i % 2 == 0;
        cpu_case_init(&c, 31);
        int32_t y = cpu_case_add(&c, row);
        check(&c, add_epilogue(&c, y, shape, is_constant, is_constant == (shape != ROW)));
    }
}

// A linear layer [batch, length, channels] with an operand for each position.
static void check_linear(const struct kernel_case *row) {
    for (int is_constant = 0; is_constant < 2; is_constant++) {
        struct cpu_case c;
        cpu_case_init(&c, 32);
        int32_t y = cpu_case_add(&c, row);
        const int64_t *dims = msc_graph_tensor(c.g, y)->dims;
        int64_t all[] = {1, dims[1], dims[2]};
        int32_t place =
            is_constant ? cpu_constant(&c, 2, all + 1, NULL) : cpu_input(&c, "", 3, all);
        check(&c, cpu_joint(&c, MSC_OP_ADD, 2, IDS(y, place), "", MSC_NO_ID, MSC_NO_ID));
    }
}

static void test_kernels_cpu_chunks__epilogues(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "chunks"))) {
        if (row->op == MSC_OP_LINEAR) {
            check_linear(row);
        } else {
            check_conv(row);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_chunks__epilogues),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

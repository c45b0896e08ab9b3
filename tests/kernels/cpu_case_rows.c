// Turns rows of the table of kernel cases into cases, as declared in cpu_case.h.
#include "tests/kernels/cpu_case.h"

// Fills an operand with random elements in its own range or the case's range.
static void fill_operand(void *payload, const struct kernel_operand *o, float x[], int64_t n) {
    struct cpu_case *c = payload;
    float low = o->has_range ? o->low : c->low, high = o->has_range ? o->high : c->high;
    for (int64_t i = 0; i < n; i++) {
        x[i] = low + (high - low) * (float)msc_rng_double(&c->rng);
    }
    if (c->adjust) {
        c->adjust(o, x, n);
    }
}

int32_t cpu_case_add(struct cpu_case *c, const struct kernel_case *row) {
    struct kernel_builder b = {.graph = c->g,
                               .fill = fill_operand,
                               .payload = c,
                               .is_last = c->is_last,
                               .is_constant = c->is_constant};
    int32_t joint;
    assert_int_equal(c->n_inputs, 0);
    c->row = row;
    assert_ok(kernel_case_build(&joint, &b, row));
    memcpy(c->inputs, b.inputs, sizeof(b.inputs));
    c->n_inputs = b.n_inputs;
    return msc_graph_joint(c->g, joint)->outputs[0];
}

void cpu_check_row(struct cpu_case *c) {
    if (c->row->bound > 0) {
        cpu_check_close(c, c->row->bound);
    } else {
        cpu_check_equal(c);
    }
}

static void check_row(const struct kernel_case *row, bool is_last) {
    struct cpu_case c;
    cpu_case_init(&c, 31);
    c.is_last = is_last;
    cpu_case_finish_graph(&c, cpu_case_add(&c, row));
    cpu_check_row(&c);
    cpu_case_finish(&c);
}

void cpu_check_cases(const char *reader) {
    const struct kernel_case *row = NULL;
    while ((row = kernel_case_next(row, reader))) {
        check_row(row, false);
    }
}

void cpu_check_layouts(const char *reader) {
    struct kernel_operand operands[KERNEL_MAX_OPERANDS];
    cpu_check_cases(reader);
    const struct kernel_case *row = NULL;
    while ((row = kernel_case_next(row, reader))) {
        kernel_case_operands(operands, row);
        if (operands[0].n_dims == 4) {
            check_row(row, true);
        }
    }
}

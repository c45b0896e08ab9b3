// Declarations that the files of cpu_case share. cpu_case.c builds graphs and computes expected
// values, cpu_case_run.c runs a graph's plan, cpu_case_variants.c runs its steps in other ways.
#ifndef MSC_TESTS_CPU_CASE_INTERNAL_H
#define MSC_TESTS_CPU_CASE_INTERNAL_H

#include "tests/kernels/cpu_case.h"

struct cpu_runner {
    struct cpu_case *c;
    struct msc_backend *b;
    struct msc_plan *plan;
    void **data; // memory of the plan's values, [n_values]
};

// With MSC_TEST_DEVICE=vulkan, opens that device or skips the test.
void cpu__open_device(void);
// Returns false for a device that flushes numbers below 2^-126 to zero.
bool cpu__keeps_denormals(void);

// Sets an edit of `kind` for the range of `x`, or for the range of each channel along `axis` if
// `kind` has scales per channel.
void cpu__set_quant(struct cpu_quant *q, struct cpu_edit_kind kind, const struct msc_array *x,
                    int axis, bool is_weight);

void cpu__fill_with_junk(struct msc_backend *b, void *memory, size_t n_bytes);

// Each function below runs a step in other ways, after the step was run with `call`, and compares
// the results.
//
// Quantised variants of output 0, with or without the floats, must equal the quantised floats.
void cpu__check_quantizing(const struct cpu_runner *r, const struct msc_step *s,
                           const struct msc_call *call);
// A step that moves elements must make a variant of its output from the same variant of its input.
void cpu__check_moving(const struct cpu_runner *r, const struct msc_step *s,
                       const struct msc_call *call);
// Float32 inputs given as integers, each with its own quantisation, must give the same bits as the
// floats that they represent. This includes quantised variants of the output.
void cpu__check_integers(const struct cpu_runner *r, const struct msc_step *s,
                         const struct msc_call *call);
// Calls with different formats and weights must give the same results together as one by one.
// `call` is one of these calls; the others read floats and the float weights.
void cpu__check_together(const struct cpu_runner *r, const struct msc_step *s,
                         const struct msc_call *call);

#endif

// What the files of cpu_case share: cpu_case.c builds graphs and computes what is expected,
// cpu_case_run.c runs the plan of a graph, cpu_case_variants.c runs its steps in other ways.
#ifndef MSC_TESTS_CPU_CASE_INTERNAL_H
#define MSC_TESTS_CPU_CASE_INTERNAL_H

#include "tests/kernels/cpu_case.h"

struct cpu_runner {
    struct cpu_case *c;
    struct msc_backend *b;
    struct msc_plan *plan;
    void **data; // [n_values]
};

// With MSC_TEST_DEVICE=vulkan, opens that device, or skips the test.
void cpu__open_device(void);
// False of a device that takes numbers below 2^-126 for zero.
bool cpu__keeps_denormals(void);

// An edit of `kind` over the range that `x` has, by channel of `axis` where the kind says so.
void cpu__set_quant(struct cpu_quant *q, struct cpu_edit_kind kind, const struct msc_array *x,
                    int axis, bool is_weight);

void cpu__fill_with_junk(struct msc_backend *b, void *memory, size_t n_bytes);

// Each runs a step whose `call` was run already in other ways, and compares.
//
// Quantised variants of output 0, alone or beside the floats, are what quantising the floats gives.
void cpu__check_quantizing(const struct cpu_runner *r, const struct msc_step *s,
                           const struct msc_call *call);
// Steps that move elements give the variant of the output from that of the inputs.
void cpu__check_moving(const struct cpu_runner *r, const struct msc_step *s,
                       const struct msc_call *call);
// Float32 inputs that come as integers, each of a quantisation of its own, give the bits of the floats
// that these stand for, quantised variants included.
void cpu__check_integers(const struct cpu_runner *r, const struct msc_step *s,
                         const struct msc_call *call);
// Calls that differ in formats and weights give the same together as alone. `call` is one of them;
// the other reads floats and the float weights.
void cpu__check_together(const struct cpu_runner *r, const struct msc_step *s,
                         const struct msc_call *call);

#endif

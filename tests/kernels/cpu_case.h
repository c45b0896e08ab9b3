// Small graphs for tests of the backends, built in a few lines with random elements. They run step
// by step through a plan. To get the expected values, they run joint by joint through the reference
// kernels.
//
//     struct cpu_case c;
//     cpu_case_init(&c, 1);
//     int32_t x = cpu_input(&c, "NCHW", 4, DIMS(1, 3, 8, 8));
//     int32_t w = cpu_weight(&c, "OIHW", 4, DIMS(4, 3, 3, 3));
//     int32_t y = cpu_joint(&c, MSC_OP_CONV2D, 1, &x, "padding=1,1,1,1", w, MSC_NO_ID);
//     cpu_case_finish_graph(&c, y);
//     cpu_check_close(&c, 1e-10);
//     cpu_case_finish(&c);
//
// cpu_case_add adds a row of the table of kernel cases. A reader is a test or tool that uses some
// rows of that table. Readers that only check their rows call cpu_check_cases, which builds, runs
// and checks all of them.
#ifndef MSC_TESTS_CPU_CASE_H
#define MSC_TESTS_CPU_CASE_H

#include "base/rng.h"
#include "kernels/backend.h"

#include "tests/kernels/kernel_cases.h"
#include "tests/msc_test.h"

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }
#define IDS(...)                                                                                   \
    (const int32_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

#define CPU_CASE_MAX 16
#define CPU_CASE_CHANNELS 512 // most channels of an edit with a scale per channel

struct cpu_quant { // an edit with memory for its parameters
    struct msc_edit edit;
    float scales[CPU_CASE_CHANNELS];
    int32_t zero_points[CPU_CASE_CHANNELS];
};

struct cpu_case {
    struct msc_graph *g;
    struct msc_rng rng;
    float low, high; // range of the random elements that are drawn
    float noise;     // relative noise added to the values that the reference kernels read
    struct msc_array *inputs[CPU_CASE_MAX];
    // Quantisation of inputs given as integers; NULL: float inputs.
    const struct msc_quant *input_quants[CPU_CASE_MAX];
    int n_inputs;
    struct msc_sites sites;
    struct cpu_quant *quants;                   // edits with their parameters, [n_slots]
    const struct msc_edit *edits[CPU_CASE_MAX]; // [n_slots]
    struct msc_backend_options options;
    const struct kernel_case *row; // the row added last, for messages; NULL: none
    // Inputs that have 4 dims come from another joint, in channels-last layout.
    bool is_last;
    bool is_constant; // all inputs of rows except the first are constants
    // Optional: changes the elements of a row's operand after they were drawn.
    void (*adjust)(const struct kernel_operand *o, float x[], int64_t n);
    int n_steps;       // number of steps of the last plan, without aliases
    bool is_at_limits; // steps may lack a shader, and each step runs in only one way
    int n_on_host;     // number of the last plan's steps that ran on the host (vulkan)
};

// Returns whether cases run on a device instead of the cpu (MSC_TEST_DEVICE).
bool cpu_is_on_device(void);
// Returns whether steps run in every way instead of in a sample of ways (MSC_TEST_VARIANTS).
bool cpu_runs_all_variants(void);

void cpu_case_init(struct cpu_case *c, uint64_t seed);
void cpu_case_finish(struct cpu_case *c);

struct msc_array *cpu_random(struct cpu_case *c, int n_dims, const int64_t dims[]);
int32_t cpu_input(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]);
// Random integers in [low, high], of type `dtype`.
int32_t cpu_whole_input(struct cpu_case *c, const char *dtype, int low, int high, int n_dims,
                        const int64_t dims[]);
int32_t cpu_whole_constant(struct cpu_case *c, enum msc_dtype dtype, int low, int high, int n_dims,
                           const int64_t dims[]);
int32_t cpu_weight(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]);
// The output of a constant joint; if `elements` is NULL they are random.
int32_t cpu_constant(struct cpu_case *c, int n_dims, const int64_t dims[], const float *elements);
// Adds a joint. Attributes are "key=value;key=value". `weight` and `bias` may be MSC_NO_ID.
// Returns output 0.
int32_t cpu_joint(struct cpu_case *c, enum msc_op op, int32_t n_inputs, const int32_t inputs[],
                  const char *attributes, int32_t weight, int32_t bias);
int32_t cpu_joint_weights(struct cpu_case *c, enum msc_op op, int32_t n_inputs,
                          const int32_t inputs[], const char *attributes, int32_t n_weights,
                          const struct msc_weight_spec weights[]);
// Adds a row of the table of kernel cases and returns output 0 of its joint.
int32_t cpu_case_add(struct cpu_case *c, const struct kernel_case *row);
// Finalises the graph with one output, or with n outputs.
void cpu_case_finish_graph(struct cpu_case *c, int32_t output);
void cpu_case_finish_outputs(struct cpu_case *c, int32_t n, const int32_t outputs[]);

struct cpu_edit_kind {
    int bits;
    bool is_symmetric;
    bool is_per_channel;
};
// Adds an edit at every slot, with ranges taken from the float model. Slots whose kind has `bits` 0
// get no edit.
void cpu_case_edit(struct cpu_case *c, struct cpu_edit_kind activations,
                   struct cpu_edit_kind weights);

// Runs the plan and returns output `index` of the graph under the edits. The caller owns *out.
void cpu_run(struct msc_array **out, struct cpu_case *c, int index);
// Like cpu_run, but with the reference kernels; quantised joints use
// graph/reference/reference_quant.h.
void cpu_expect(struct msc_array **out, struct cpu_case *c, int index);

void cpu_check_equal(struct cpu_case *c);
// Checks sum (a - b)^2 <= bound * sum b^2.
void cpu_check_close(struct cpu_case *c, double bound);
// Like cpu_check_close, but a larger root mean square error is allowed if terms cancel. The limit
// is a hundred times the error that appears if all values that joints read change in their last
// bit.
void cpu_check_conditioned(struct cpu_case *c, double bound);
// Checks for equality or closeness, as the last added row specifies.
void cpu_check_row(struct cpu_case *c);
// Runs every row that `reader` uses. cpu_check_layouts runs rows whose first input has 4 dims once
// more in channels-last layout.
void cpu_check_cases(const char *reader);
void cpu_check_layouts(const char *reader);
// Returns whether all elements have the same bits, and prints the first difference. Denormals
// equal zeros on a device that flushes them.
bool cpu_is_equal(const struct msc_array *a, const struct msc_array *b);

#endif

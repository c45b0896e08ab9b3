// Small graphs for tests of the backends: built in a few lines with random elements, run step by
// step through a plan, and run joint by joint through the reference kernels.
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
// Rows of the table of kernel cases are added by cpu_case_add; cpu_check_cases runs all rows of a
// test that need nothing else.
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
#define CPU_CASE_CHANNELS 512 // at most, of edits by channel

struct cpu_quant { // an edit with room for its parameters
    struct msc_edit edit;
    float scales[CPU_CASE_CHANNELS];
    int32_t zero_points[CPU_CASE_CHANNELS];
};

struct cpu_case {
    struct msc_graph *g;
    struct msc_rng rng;
    float low, high; // of random elements
    float noise;     // what the reference reads is off by up to this share of itself
    struct msc_array *inputs[CPU_CASE_MAX];
    const struct msc_quant *input_quants[CPU_CASE_MAX]; // they come as these integers; NULL: floats
    int n_inputs;
    struct msc_sites sites;
    struct cpu_quant *quants;                   // [n_slots]
    const struct msc_edit *edits[CPU_CASE_MAX]; // [n_slots]
    struct msc_backend_options options;
    const struct kernel_case *row; // the last that was added, for messages; NULL: none
    bool is_last;                  // computed inputs of rows, with 4 dims, come with channels last
    bool is_constant;              // inputs of rows except the first are constants
    // Optional: changes the elements of an operand of a row, after they were drawn.
    void (*adjust)(const struct kernel_operand *o, float x[], int64_t n);
    int n_steps;       // of the last plan, without aliases
    bool is_at_limits; // steps may have no shader, and are run as they are, no more
    int n_on_host;     // of the last plan, on vulkan
};

// Are cases run on a device in place of the cpu (MSC_TEST_DEVICE)?
bool cpu_is_on_device(void);
// Is everything run in every way, and not a sample (MSC_TEST_VARIANTS)?
bool cpu_runs_all_variants(void);

void cpu_case_init(struct cpu_case *c, uint64_t seed);
void cpu_case_finish(struct cpu_case *c);

struct msc_array *cpu_random(struct cpu_case *c, int n_dims, const int64_t dims[]);
int32_t cpu_input(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]);
// Random integers in [low, high] as `dtype`.
int32_t cpu_whole_input(struct cpu_case *c, const char *dtype, int low, int high, int n_dims,
                        const int64_t dims[]);
int32_t cpu_whole_constant(struct cpu_case *c, enum msc_dtype dtype, int low, int high, int n_dims,
                           const int64_t dims[]);
int32_t cpu_weight(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]);
// The output of a constant joint; `elements` NULL: random.
int32_t cpu_constant(struct cpu_case *c, int n_dims, const int64_t dims[], const float *elements);
// Attributes as "key=value;key=value". `weight` and `bias` may be MSC_NO_ID. Returns output 0.
int32_t cpu_joint(struct cpu_case *c, enum msc_op op, int32_t n_inputs, const int32_t inputs[],
                  const char *attributes, int32_t weight, int32_t bias);
int32_t cpu_joint_weights(struct cpu_case *c, enum msc_op op, int32_t n_inputs,
                          const int32_t inputs[], const char *attributes, int32_t n_weights,
                          const struct msc_weight_spec weights[]);
// Adds a row of the table of kernel cases and returns output 0 of its joint.
int32_t cpu_case_add(struct cpu_case *c, const struct kernel_case *row);
// Finalizes the graph with this output, or these.
void cpu_case_finish_graph(struct cpu_case *c, int32_t output);
void cpu_case_finish_outputs(struct cpu_case *c, int32_t n, const int32_t outputs[]);

struct cpu_edit_kind {
    int bits;
    bool is_symmetric;
    bool is_per_channel;
};
// Edits at every slot, with ranges taken from the float model. bits 0: none.
void cpu_case_edit(struct cpu_case *c, struct cpu_edit_kind activations,
                   struct cpu_edit_kind weights);

// Output `index` of the graph under the edits. *out is owned by the caller.
void cpu_run(struct msc_array **out, struct cpu_case *c, int index);
// The same by the reference kernels; quantised joints by graph/reference/reference_quant.h.
void cpu_expect(struct msc_array **out, struct cpu_case *c, int index);

void cpu_check_equal(struct cpu_case *c);
// sum (a - b)^2 <= bound * sum b^2
void cpu_check_close(struct cpu_case *c, double bound);
// The same; or, where terms cancel, at most a hundred times as far off (root mean square) as the result
// moves when all that a joint reads is off by the last bit of a float.
void cpu_check_conditioned(struct cpu_case *c, double bound);
// Equal or close, as the row that was added says.
void cpu_check_row(struct cpu_case *c);
// Runs every row that has this reader. In cpu_check_layouts, rows whose first input has 4 dims run
// once more with channels last.
void cpu_check_cases(const char *reader);
void cpu_check_layouts(const char *reader);
// All elements equal bit by bit, or (printing the first that differs) not. Denormals count as zeros
// on a device that takes them for such.
bool cpu_is_equal(const struct msc_array *a, const struct msc_array *b);

#endif

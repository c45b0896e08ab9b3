// The table of kernel cases (kernel_cases.def), and graphs built from its rows.
//
//     const struct kernel_case *k = NULL;
//     while ((k = kernel_case_next(k, "softmax"))) {
//         struct kernel_builder b = {.graph = g, .fill = fill, .payload = &rng};
//         MSC_TRY(kernel_case_build(&joint, &b, k));
//         ...
//     }
//
// Tests use it through tests/kernels/cpu_case.h; bench_kernels and kernel_tool use it directly.
#ifndef MSC_TESTS_KERNEL_CASES_H
#define MSC_TESTS_KERNEL_CASES_H

#include "graph/graph.h"

struct kernel_case {
    const char *name; // "": unnamed
    enum msc_op op;
    const char *attributes, *operands;
    double bound; // bound of sum (a - b)^2 / sum b^2 for float results; 0: every bit is equal
    const char *readers;
};
extern const struct kernel_case kernel_cases[];
extern const size_t kernel_n_cases;

bool kernel_case_has_reader(const struct kernel_case *k, const char *reader);
// The next row that `reader` uses, or NULL at the end. If `after` is NULL, the first such row. A
// reader is a test or a tool; it must use at least one row.
const struct kernel_case *kernel_case_next(const struct kernel_case *after, const char *reader);

// A convolution's or linear layer's row without its last operand, the bias.
struct kernel_plain {
    struct kernel_case row;
    char operands[160]; // memory for the row's operands
};
const struct kernel_case *kernel_case_drop_bias(struct kernel_plain *out,
                                                const struct kernel_case *row);

enum { KERNEL_MAX_OPERANDS = 9 };

struct kernel_operand {
    char role[16]; // role of a weight; "": an input
    char layout[8];
    enum msc_dtype dtype;
    bool is_constant, is_last;
    bool has_range;
    float low, high;
    int32_t zero_point;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};

// Reads the operands of a row and returns their number. A malformed row fails an assertion.
int kernel_case_operands(struct kernel_operand out[KERNEL_MAX_OPERANDS],
                         const struct kernel_case *k);

// Like msc_graph_add_joint, but with attributes as text (tests/joint_attrs.h).
enum msc_status kernel_add_joint(int32_t *joint, struct msc_graph *g, enum msc_op op,
                                 int32_t n_inputs, const int32_t inputs[], const char *attributes,
                                 int32_t n_weights, const struct msc_weight_spec weights[]);

struct kernel_builder {
    struct msc_graph *graph;
    // Sets the n elements of an operand, as float32 before conversion to its type.
    void (*fill)(void *payload, const struct kernel_operand *o, float x[], int64_t n);
    void *payload;
    bool is_last;      // all computed inputs with 4 dims have channels-last layout
    bool is_constant;  // all inputs except the first are constants
    bool has_no_pools; // the word `last` of a row has no effect
    // Elements of the graph's inputs, always float32; the caller releases them.
    struct msc_array *inputs[KERNEL_MAX_OPERANDS];
    int n_inputs;
};

// Adds a row's joint and operands to the graph. Operands of another type are float32 inputs
// followed by a cast; integers are rounded before the cast.
enum msc_status kernel_case_build(int32_t *joint, struct kernel_builder *b,
                                  const struct kernel_case *k);

#endif

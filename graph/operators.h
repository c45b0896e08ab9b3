// Plug-ins that compute operators of a domain of one's own (graph/external.h).
//
// A plug-in is a shared library that exports `msc_operators_plugin`, a pointer to its definition:
//
//     static enum msc_status rotate_compute(const struct msc_operator_call *call) {
//         int64_t step;
//         MSC_TRY(msc_operator_int(&step, call, "step", 1));
//         const float *x = call->inputs[0].data;
//         float *y = call->outputs[0].data;
//         ...
//         return MSC_OK;
//     }
//     static const struct msc_operator_def operators[] = {
//         {.domain = "my.domain", .op = "Rotate", .compute = rotate_compute},
//     };
//     static const struct msc_operators_def definition = {
//         .abi = MSC_OPERATORS_ABI, .name = "mine", .summary = "operators of my.domain",
//         .n_operators = 1, .operators = operators};
//     const struct msc_operators_def *const msc_operators_plugin = &definition;
//
// Build it like a plug-in for agents (docs/operators.md has the command), and pass it with
// --operators or name it in the configuration.
#ifndef MSC_GRAPH_OPERATORS_H
#define MSC_GRAPH_OPERATORS_H

#include "data/array.h"

MSC_PUBLIC_BEGIN

// The version of the binary interface between the program and a plug-in for operators. It covers
// the structs and functions of this header, data/dtype.h, base/status.h, the values of their
// enumerations and MSC_MAX_DIMS. It increases with any change that would make the program misread
// an older library. A library with another number is refused.
#define MSC_OPERATORS_ABI 1u

// The elements are in C order. Operands that are absent have dtype MSC_DTYPE_NONE.
struct msc_operator_tensor {
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    void *data; // NULL during `infer`
};

// An attribute of the node, as text (graph/external.h): type "int", "float", "string", "ints",
// "floats", "strings" (a JSON list) or "proto" (base64 of ONNX's AttributeProto).
struct msc_operator_attr {
    const char *name;
    const char *type;
    const char *value;
};

struct msc_operator_call {
    const char *joint; // name, for messages
    const char *domain;
    const char *op;
    int64_t version; // of the domain's operator set
    int n_attrs;
    const struct msc_operator_attr *attrs;
    // The node's inputs, followed by the values that graphs in its attributes read.
    int n_inputs;
    const struct msc_operator_tensor *inputs;
    int n_outputs;
    struct msc_operator_tensor *outputs;
    // For `compute`: if a length of an output was not known before, its `data` is NULL and its
    // length -1. Then this function allocates the output with these dims and sets its members.
    enum msc_status (*allocate)(const struct msc_operator_call *call, int output,
                                const int64_t dims[]);
    void *host; // the program's own
};

// One operator. Failing functions return MSC_FAIL(...); the program adds the joint and the plug-in.
struct msc_operator_def {
    const char *domain; // "" is ONNX's own
    const char *op;
    // Optional: without it, types and shapes are those that the model states (its value_info). Sets
    // dtype, n_dims and dims of every output. A length below 0 is unknown: copy the length of an
    // input to say that both are equal, or set -1 if it is known only after computing.
    enum msc_status (*infer)(const struct msc_operator_call *call);
    // Computes the outputs. The result must depend on inputs and attributes only, bit by bit,
    // because a search computes equal values once. Several threads call it at the same time.
    enum msc_status (*compute)(const struct msc_operator_call *call);
};

struct msc_operators_def {
    unsigned abi;        // MSC_OPERATORS_ABI
    const char *name;    // of the plug-in, for messages
    const char *summary; // one line
    int n_operators;
    const struct msc_operator_def *operators;
};

// Read attributes. If the node lacks the attribute, *out is `otherwise`; MSC_E_INVALID if its type
// differs. Texts are borrowed from the call.
enum msc_status msc_operator_int(int64_t *out, const struct msc_operator_call *call,
                                 const char *name, int64_t otherwise);
enum msc_status msc_operator_float(float *out, const struct msc_operator_call *call,
                                   const char *name, float otherwise);
enum msc_status msc_operator_text(const char **out, const struct msc_operator_call *call,
                                  const char *name, const char *otherwise);
// Read at most `max` elements; *n is the length of the list, -1 if the node lacks the attribute.
enum msc_status msc_operator_ints(int64_t out[], int *n, const struct msc_operator_call *call,
                                  const char *name, int max);
enum msc_status msc_operator_floats(float out[], int *n, const struct msc_operator_call *call,
                                    const char *name, int max);
int64_t msc_operator_n_elements(const struct msc_operator_tensor *t); // -1 if a length is unknown

MSC_PUBLIC_END

#endif

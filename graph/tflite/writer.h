// Internals of the writer of .tflite files, shared by graph/tflite/*.c.
//
// A tensor of the graph may be present in the file in several forms: with the graph's order of axes
// or as NHWC, as floats or as int8. A function that writes a joint asks for its operands in the
// form that it needs (msc_tflite__want), which adds a TRANSPOSE, QUANTIZE or DEQUANTIZE if the form
// is missing, and writes its result with msc_tflite__emit.
#ifndef MSC_GRAPH_TFLITE_WRITER_H
#define MSC_GRAPH_TFLITE_WRITER_H

#include "base/alloc.h"
#include "graph/onnx/onnx.h"

enum msc_tflite_op {
#define MSC_TFLITE_OP(name, code, version, int8_version, options, activation) MSC_TFLITE_##name,
#include "graph/tflite/operators.def"
#undef MSC_TFLITE_OP
    MSC_TFLITE_OP_COUNT
};

struct msc_tflite_op_info {
    int32_t code, version, int8_version, options, activation;
};
const struct msc_tflite_op_info *msc_tflite__info(enum msc_tflite_op op);

// Values of TensorFlow Lite's enumerations.
enum msc_tflite_activation {
    MSC_TFLITE_NO_ACTIVATION,
    MSC_TFLITE_TO_RELU,
    MSC_TFLITE_TO_RELU_N1_TO_1,
    MSC_TFLITE_TO_RELU6,
};
enum msc_tflite_padding { MSC_TFLITE_SAME, MSC_TFLITE_VALID };

struct msc_tflite_quant {
    int32_t n, axis; // axis: that of the scales, if n is above 1
    const float *scales;
    const int64_t *zero_points; // [n]
};

struct msc_tflite_tensor {
    const char *name;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: symbolic
    const struct msc_tflite_quant *quant;
    const void *data; // NULL for an activation
    size_t n_bytes;
};

enum { MSC_TFLITE_MOST_OPTIONS = 8, MSC_TFLITE_MOST_INPUTS = 4 };

struct msc_tflite_option {
    enum { MSC_TFLITE_BYTE, MSC_TFLITE_INT, MSC_TFLITE_FLOAT } type;
    int field;
    int32_t value;
    float number;
};

struct msc_tflite_operator {
    enum msc_tflite_op op;
    bool is_integer;
    size_t n_inputs;
    int32_t inputs[MSC_TFLITE_MOST_INPUTS]; // tensors of the file
    const int32_t *many;                    // [n_inputs], in place of `inputs` if not NULL
    int32_t output;
    int n_options;
    struct msc_tflite_option options[MSC_TFLITE_MOST_OPTIONS];
};

enum msc_tflite_order { MSC_TFLITE_PLAIN, MSC_TFLITE_NHWC };
#define MSC_TFLITE_ORDERS 2

struct msc_tflite_writer {
    struct msc_arena arena;
    const struct msc_graph *g;
    const struct msc_onnx_export_options *options;
    struct msc_tflite_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    struct msc_tflite_operator *operators;
    size_t n_operators, operators_capacity;
    // By tensor of the graph: its quantisation, or NULL; and the tensor of the file that has it in
    // the form [order][is int8], or MSC_NO_ID.
    const struct msc_tflite_quant **quants;
    int32_t (*forms)[MSC_TFLITE_ORDERS][2];
    bool *is_done;    // by joint: it is fused into an earlier one
    int32_t *ends[2]; // the file's tensors that are the graph's inputs and outputs
};

// ---- The file's tensors and operators (writer_model.c) ----------------------------------------

// Adds a tensor with the dims, data and quantisation of `t`.
enum msc_status msc_tflite__add(int32_t *out, struct msc_tflite_writer *w,
                                const struct msc_tflite_tensor *t);
// A quantisation with one scale.
enum msc_status msc_tflite__quant(const struct msc_tflite_quant **out, struct msc_tflite_writer *w,
                                  float scale, int64_t zero_point);
// Adds a constant vector of int32.
enum msc_status msc_tflite__integers(int32_t *out, struct msc_tflite_writer *w, int n,
                                     const int64_t values[]);
// Adds a constant of int32 with n rows of two numbers.
enum msc_status msc_tflite__pairs(int32_t *out, struct msc_tflite_writer *w, int n,
                                  const int64_t pairs[]);
enum msc_status msc_tflite__push(struct msc_tflite_writer *w, const struct msc_tflite_operator *op);
void msc_tflite__byte(struct msc_tflite_operator *op, int field, int32_t value);
void msc_tflite__int(struct msc_tflite_operator *op, int field, int64_t value);
void msc_tflite__float(struct msc_tflite_operator *op, int field, float value);
enum msc_status msc_tflite__write(struct msc_tflite_writer *w, const char *path);

// ---- Tensors of the graph (writer_forms.c) ----------------------------------------------------

// Axis i of NHWC is axis msc_tflite__nhwc[i] of the graph.
extern const int msc_tflite__nhwc[4];

// Fails with MSC_E_UNSUPPORTED: names the joint and the reason.
enum msc_status msc_tflite__refuse(const struct msc_joint *j, const char *format, ...)
    MSC_PRINTF(2, 3);
// Copies the elements into another order of axes: axis i of the result is axis perm[i] of `data`.
enum msc_status msc_tflite__permute(const void **out, struct msc_tflite_writer *w, const void *data,
                                    size_t element_bytes, int n_dims, const int64_t dims[],
                                    const int perm[]);
// The file's tensor that has the graph's tensor in this form.
enum msc_status msc_tflite__want(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                 enum msc_tflite_order order, bool is_integer);
// Makes `made`, floats in this order, a form of the graph's tensor. If the tensor is quantised,
// adds a QUANTIZE, since all consumers read the quantised values.
enum msc_status msc_tflite__store(struct msc_tflite_writer *w, int32_t tensor,
                                  enum msc_tflite_order order, int32_t made);
// NHWC if the tensor has 4 dims and is present as NHWC.
enum msc_tflite_order msc_tflite__order(const struct msc_tflite_writer *w, int32_t tensor);
// The position of an axis of the graph's tensor in this order; a negative axis counts from the end.
int msc_tflite__axis(const struct msc_tensor *t, int64_t axis, enum msc_tflite_order order);
// True for an image whose elements have the same order as NHWC: it has one channel or one pixel.
bool msc_tflite__is_flat(const struct msc_tensor *t);
// True if all activations that the joint reads, and its outputs, are quantised.
bool msc_tflite__is_integer(const struct msc_tflite_writer *w, const struct msc_joint *j);
// Also true only if they have the same scale, for kernels that move or select elements.
bool msc_tflite__is_moved_integer(const struct msc_tflite_writer *w, const struct msc_joint *j);

struct msc_tflite_result {
    const struct msc_joint *joint;
    int32_t output; // position among the joint's outputs
    enum msc_tflite_order order;
    bool is_integer;
    // The quantisation that the kernel gives its result; NULL: any, so that of the edits.
    const struct msc_tflite_quant *own;
};
// Adds the operator, whose `output` it sets, and the clips that follow the joint: fused as an
// activation if the operator has one.
enum msc_status msc_tflite__emit(struct msc_tflite_writer *w, struct msc_tflite_operator *op,
                                 const struct msc_tflite_result *r);
// Adds the operator with a new output that is not a tensor of the graph.
enum msc_status msc_tflite__emit_between(int32_t *out, struct msc_tflite_writer *w,
                                         struct msc_tflite_operator *op, const char *name,
                                         int n_dims, const int64_t dims[],
                                         const struct msc_tflite_quant *quant);
// Adds a constant with one element: a float, or int8 with this quantisation.
enum msc_status msc_tflite__scalar(int32_t *out, struct msc_tflite_writer *w, float value,
                                   const struct msc_tflite_quant *quant);
// True if all operands but the first are absent, so that the joint's parameters are attributes.
bool msc_tflite__has_one_operand(const struct msc_joint *j);
// The clip bounds of a RELU or CLIP; false if they are not constant.
bool msc_tflite__bounds(const struct msc_joint *j, float *low, float *high);
// Adds MAXIMUM and MINIMUM after a tensor of the file; the result has its dims and quantisation.
enum msc_status msc_tflite__clip(int32_t *x, struct msc_tflite_writer *w, float low, float high);
// The activation with these bounds; false if there is none.
bool msc_tflite__activation(enum msc_tflite_activation *out, float low, float high);

// ---- Weights (writer_weights.c) ---------------------------------------------------------------

// True if the weight is stored as int8 with a zero point of 0.
bool msc_tflite__is_int8_weight(const struct msc_tflite_writer *w, const struct msc_joint *j,
                                int32_t operand);
// Adds the weight with its axes in the order `perm`. If the weight is quantised and the joint
// computes with floats, adds a DEQUANTIZE.
enum msc_status msc_tflite__weight(int32_t *out, struct msc_tflite_writer *w,
                                   const struct msc_joint *j, int32_t operand, const int perm[],
                                   bool is_integer);
// Adds the bias: floats, or int32 in steps of the scale of the input times that of the weight. If
// the joint has no bias, it is 0 for all n channels.
enum msc_status msc_tflite__bias(int32_t *out, struct msc_tflite_writer *w,
                                 const struct msc_joint *j, int32_t operand, int64_t n,
                                 int32_t input, int32_t weight, bool is_integer);

// ---- Joints -----------------------------------------------------------------------------------

typedef enum msc_status (*msc_tflite_write_fn)(struct msc_tflite_writer *w,
                                               const struct msc_joint *j);
enum msc_status msc_tflite__write_conv(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_linear(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_matmul(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_pool(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_mean(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_resize(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_softmax(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_unary(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_clip(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_hard_sigmoid(struct msc_tflite_writer *w,
                                               const struct msc_joint *j);
enum msc_status msc_tflite__write_batch_norm(struct msc_tflite_writer *w,
                                             const struct msc_joint *j);
enum msc_status msc_tflite__write_binary(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_concat(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_slice(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_split(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_pad(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_reshape(struct msc_tflite_writer *w, const struct msc_joint *j);
enum msc_status msc_tflite__write_permute(struct msc_tflite_writer *w, const struct msc_joint *j);

#endif

// Shared by the reference kernels: attributes, single elements of any type, walks over strided
// rows. Only the reference kernels include this header, and backends that plan their own kernels
// with the same shapes and strides.
//
// Two files are mutually recursive: reference_run.c runs the joints of a graph, and
// reference_control.c runs control flow and attention, whose bodies are graphs.
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_INTERNAL_H
#define MSC_GRAPH_REFERENCE_REFERENCE_INTERNAL_H

#include "graph/reference/reference.h"

// Attributes and parameters. The message of MSC_E_INVALID names the joint and the key.

enum msc_status msc_reference__get_i64(int64_t *out, const struct msc_reference_call *call,
                                       const char *key);
enum msc_status msc_reference__get_float(float *out, const struct msc_reference_call *call,
                                         const char *key);
enum msc_status msc_reference__get_bool(bool *out, const struct msc_reference_call *call,
                                        const char *key);
// The string is borrowed; "" if absent.
const char *msc_reference__get_text(const struct msc_reference_call *call, const char *key);
// Fails with MSC_E_UNSUPPORTED and a message with the value of a text attribute.
enum msc_status msc_reference__fail_text(const struct msc_reference_call *call, const char *key);
// Reads an axis attribute. A negative axis counts back from `n_dims`.
enum msc_status msc_reference__get_axis(int *out, const struct msc_reference_call *call,
                                        const char *key, int n_dims);

// Reads a parameter from the attribute `key`, else from the operand with role `role`. *n is 0 if
// neither exists. More than `max` numbers are an error.
enum msc_status msc_reference__param_ints(int64_t out[], int *n,
                                          const struct msc_reference_call *call, const char *key,
                                          const char *role, int max);
enum msc_status msc_reference__param_floats(float out[], int *n,
                                            const struct msc_reference_call *call, const char *key,
                                            const char *role, int max);

// True if there is an operand at this position. Trailing optional operands may be missing.
static inline bool msc_reference__has(const struct msc_reference_call *call, int position) {
    return position < call->n_operands && call->operands[position].dtype != MSC_DTYPE_NONE;
}

// Allocates output `output` with these dims. If the output is already allocated, checks that it has
// these dims.
enum msc_status msc_reference__allocate(const struct msc_reference_call *call, int output,
                                        int n_dims, const int64_t dims[]);

// Unless all operands and output 0 are float32, fails with "joint conv2d_1: nn.conv2d supports
// only float32, found int64".
enum msc_status msc_reference__need_f32(const struct msc_reference_call *call);

// True if operands and outputs are float32. For other float types, through_f32 runs a float32
// kernel on converted operands and converts the outputs back.
bool msc_reference__is_f32(const struct msc_reference_call *call);
enum msc_status msc_reference__through_f32(const struct msc_reference_call *call,
                                           msc_reference_fn kernel);

// Converts all elements between float32 and a 16-bit float type. False for other pairs of types.
bool msc_reference__convert(const struct msc_view *to, const struct msc_view *from);

// Single elements of any type. Storing a double truncates towards zero and saturates, like all
// casts in the program (NaN becomes 0). Storing an integer wraps, like integer arithmetic.
double msc_reference__get_double_at(const struct msc_view *v, int64_t i);
int64_t msc_reference__get_i64_at(const struct msc_view *v, int64_t i);
void msc_reference__set_double_at(const struct msc_view *v, int64_t i, double value);
void msc_reference__set_i64_at(const struct msc_view *v, int64_t i, int64_t value);
// Limits a coordinate to the range of an integer. A coordinate beyond that range, or NaN, becomes a
// position far outside the tensor.
static inline double msc_reference__within_reach(double place) {
    const double far = 1e9; // equals the constant in kernels/vulkan/shaders/reach.glsl
    return place > -far ? (place < far ? place : far) : -far;
}
// Fails with MSC_E_UNSUPPORTED for uint64 values above INT64_MAX, which would be read as negative.
enum msc_status msc_reference__check_u64(const struct msc_reference_call *call);

// The arithmetic that an element-wise joint is computed in.
enum msc_reference_kind {
    MSC_REFERENCE_F32,
    MSC_REFERENCE_DOUBLE, // float64, float16, bfloat16
    MSC_REFERENCE_INT,    // everything else, in int64
};
enum msc_reference_kind msc_reference__kind(enum msc_dtype dtype);

#define MSC_REFERENCE_CHUNK 512
union msc_reference_chunk {
    float f32[MSC_REFERENCE_CHUNK];
    double real[MSC_REFERENCE_CHUNK];
    int64_t integer[MSC_REFERENCE_CHUNK];
};
// Returns the n elements offset, offset + stride, ... of a view as contiguous numbers of kind
// `kind`: the elements themselves if they are already contiguous numbers of this kind, else a copy
// in `buffer`.
const void *msc_reference__load_chunk(union msc_reference_chunk *buffer, const struct msc_view *v,
                                      int64_t offset, int64_t stride, int64_t n,
                                      enum msc_reference_kind kind);
// The reverse of load_chunk: stores n numbers of kind `kind` in contiguous elements of a view.
void msc_reference__store_chunk(const struct msc_view *v, int64_t offset, const void *numbers,
                                int64_t n, enum msc_reference_kind kind);

// A tensor as a set of lines along one axis.
struct msc_reference_lines {
    int64_t n;
    int64_t outer, length, inner; // n = outer * inner; the elements of a line are `inner` apart
};
struct msc_reference_lines msc_reference__lines(const struct msc_view *x, int axis);
// The first element of a line.
int64_t msc_reference__line_first(const struct msc_reference_lines *lines, int64_t line);

// A walk visits several views of the same index space together, row by row in C order. A row is the
// last axis. For each view, `offsets` has the row's first element, and `steps` the distance between
// the row's elements (both in elements).
//
//     struct msc_walk w;
//     msc_reference__walk_init(&w, out->n_dims, out->dims);
//     msc_reference__walk_add(&w, out_strides);
//     msc_reference__walk_add(&w, in_strides);
//     for (bool more = msc_reference__walk_first(&w); more; more = msc_reference__walk_next(&w)) {
//         ... w.length elements at w.offsets[0] + i * w.steps[0] ...
//     }
#define MSC_WALK_DIMS (2 * MSC_MAX_DIMS)
#define MSC_WALK_VIEWS 4

struct msc_walk {
    int n_dims;
    int n_views;
    int64_t dims[MSC_WALK_DIMS];
    int64_t strides[MSC_WALK_VIEWS][MSC_WALK_DIMS];
    int64_t length;
    int64_t steps[MSC_WALK_VIEWS];
    int64_t offsets[MSC_WALK_VIEWS];
    int64_t index[MSC_WALK_DIMS];
};

void msc_reference__walk_init(struct msc_walk *w, int n_dims, const int64_t dims[]);
void msc_reference__walk_add(struct msc_walk *w, const int64_t strides[]);
// Merges axes that are contiguous in every view, and moves to the first row. False if there are
// no elements.
bool msc_reference__walk_first(struct msc_walk *w);
bool msc_reference__walk_next(struct msc_walk *w);

// Strides of a dense plain view, in elements.
void msc_reference__strides(int64_t strides[], int n_dims, const int64_t dims[]);
// Strides of `v` after broadcasting to these dims (numpy's rule).
void msc_reference__broadcast_strides(int64_t strides[], const struct msc_view *v, int n_dims,
                                      const int64_t dims[]);

// Copies n elements of `bytes` bytes; steps are in elements.
void msc_reference__copy_row(void *to, int64_t to_step, const void *from, int64_t from_step,
                             int64_t n, size_t bytes);
// Copies view 1 of the walk (`in`) to view 0 (`out`), starting at the given elements.
void msc_reference__copy_walk(struct msc_walk *w, const struct msc_view *out, int64_t out_first,
                              const struct msc_view *in, int64_t in_first);

// Sliding windows of convolutions and pools over 1 to 3 spatial axes. Missing axes come first and
// have length 1 and stride 0. Strides are in elements of the plain view, so any order of axes
// works.
struct msc_window {
    int n_axes;
    int64_t in[3], out[3], kernel[3];
    int64_t step[3], dilation[3], pad_begin[3], pad_end[3];
    int64_t in_strides[3], out_strides[3], kernel_strides[3];
    int64_t n_batches, in_channels, out_channels; // channels over all groups
    int64_t in_batch_stride, in_channel_stride;
    int64_t out_batch_stride, out_channel_stride;
};
// Initialises a window from operand 0, output 0 and the attributes strides, padding and dilation.
// `layout` names the axes of input and output ("NCHW"). `kernel` has one length per spatial axis.
enum msc_status msc_reference__window_init(struct msc_window *w,
                                           const struct msc_reference_call *call,
                                           const char *layout, const int64_t kernel[],
                                           int n_kernel);

struct msc_conv {
    struct msc_window window;
    int64_t groups;
    bool is_transposed;
    int64_t weight_out_stride; // distance to the next output channel of a group
    int64_t weight_in_stride;
    int64_t weight_group_stride; // distance between groups, along O (along I if transposed)
};
enum msc_status msc_reference__conv_init(struct msc_conv *c, const struct msc_reference_call *call);
// The input coordinate along spatial axis `a` that tap `k` (position of the kernel) reads for
// output coordinate `o`; -1 outside the input.
int64_t msc_reference__conv_source(const struct msc_conv *c, int a, int64_t o, int64_t k);

// Sums of products for MSC_DOT_WIDTH columns at once: out[p] = sum over k of a[k * step] *
// tile[k][p], added in the order of k.
#define MSC_DOT_WIDTH 64
#define MSC_DOT_ROWS 4 // rows that msc_reference__dot_tiles computes together
void msc_reference__dot_tile(float out[MSC_DOT_WIDTH], const float a[], int64_t step,
                             const float tile[], int64_t depth);
// The same for several rows of `a`, which are `a_row` apart; each sum is added in the same order.
// Rows of `out` are MSC_DOT_WIDTH apart.
void msc_reference__dot_tiles(float out[], const float a[], int64_t a_row, int64_t step,
                              int64_t n_rows, const float tile[], int64_t depth);

// The kernels named in ops.def (graph/reference/reference_<family>.c), and functions that they
// share.
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    enum msc_status msc_reference__##kernel(const struct msc_reference_call *call);
#include "graph/ops.def"
#undef MSC_OP

enum msc_status msc_reference__real_conv(const struct msc_reference_call *call);
enum msc_status msc_reference__any_matmul(const struct msc_reference_call *call);

#endif

// What graph/infer*.c share: one function for each family of operators, and helpers that read
// attributes and operands with errors that name the joint.
#ifndef MSC_GRAPH_INFER_INTERNAL_H
#define MSC_GRAPH_INFER_INTERNAL_H

#include "graph/infer.h"

// MSC_E_INVALID with "joint 'conv2d' (nn.conv2d): " before the text.
enum msc_status msc_infer__fail(const struct msc_infer *call, const char *format, ...)
    MSC_PRINTF(2, 3);

static inline struct msc_dim msc_infer__number(int64_t value) {
    return (struct msc_dim){value, MSC_NO_ID};
}
static inline bool msc_infer__is_number(struct msc_dim d) {
    return d.prim == MSC_NO_ID;
}
static inline bool msc_infer__same_dim(struct msc_dim a, struct msc_dim b) {
    return a.prim == b.prim && (a.prim != MSC_NO_ID || a.value == b.value);
}

// Type, shape and layout, without contents.
void msc_infer__copy(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// The same with contents.
void msc_infer__copy_all(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// "[N,3,8]" for error texts; returns `text`.
#define MSC_INFER_TEXT_BYTES 256
const char *msc_infer__shape_text(char text[MSC_INFER_TEXT_BYTES], const struct msc_infer *call,
                                  const struct msc_infer_tensor *t);

// Attributes. An axis counts from the end when negative and must be below `rank`.
enum msc_status msc_infer__int(int64_t *out, const struct msc_infer *call, const char *key);
enum msc_status msc_infer__axis(int *out, const struct msc_infer *call, const char *key, int rank);
enum msc_status msc_infer__check_axis(int *out, const struct msc_infer *call, int64_t axis,
                                      int rank);
bool msc_infer__bool(const struct msc_infer *call, const char *key); // false when absent
// Exactly n numbers.
enum msc_status msc_infer__ints(int64_t out[], const struct msc_infer *call, const char *key,
                                int n);
const char *msc_infer__text(const struct msc_infer *call, const char *key); // "" when absent

// A list parameter given as an attribute, or as an operand whose contents may be known.
enum msc_infer_state {
    MSC_INFER_ABSENT,
    MSC_INFER_UNKNOWN, // an operand without known contents
    MSC_INFER_KNOWN,
};
struct msc_infer_list {
    enum msc_infer_state state;
    int n; // length when KNOWN, or UNKNOWN with a known length; else -1
    struct msc_dim values[MSC_INFER_MAX_VALUES];
};
enum msc_status msc_infer__list(struct msc_infer_list *out, const struct msc_infer *call,
                                const char *key);
// The same where every element must be a number: an axis list. `rank` as for msc_infer__axis.
enum msc_status msc_infer__axes(bool is_axis[MSC_MAX_DIMS], bool *is_given,
                                const struct msc_infer *call, int rank);

// The dimension `dim` of output `output` is new and unknown: a symbol named after the joint.
enum msc_status msc_infer__fresh(struct msc_dim *out, const struct msc_infer *call, int output,
                                 int dim);
// Product of dims [first, last).
enum msc_status msc_infer__product(struct msc_dim *out, const struct msc_infer *call,
                                   const struct msc_dim dims[], int first, int last);
enum msc_status msc_infer__require_rank(const struct msc_infer *call, int operand, int rank);
// One element, or as many along one dimension; an operand that is absent is fine. What is symbolic
// fits.
enum msc_status msc_infer__require_count(const struct msc_infer *call, int operand,
                                         struct msc_dim many);
// Numbers are equal; what is symbolic fits anything.
bool msc_infer__agree(struct msc_dim a, struct msc_dim b);
enum msc_status msc_infer__require_float(const struct msc_infer *call, int operand);

// Adds a letter that `layout` has not yet, at its end: the next one of NCHWD when it has exactly
// the first of these, else the first unused one of the alphabet.
void msc_infer__add_letter(char layout[MSC_MAX_DIMS + 4]);
// Layout of a transposed tensor: out[i] = in[axes[i]].
void msc_infer__permute_layout(char out[MSC_MAX_DIMS + 4], const char *in, const int64_t axes[],
                               int n);
// Layout after a reshape, axes matched by cumulative products; "" when nothing matches.
void msc_infer__reshape_layout(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);

// The functions that ops.def names (graph/infer_<family>.c).
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    enum msc_status msc_infer__##infer(const struct msc_infer *call);
#include "graph/ops.def"
#undef MSC_OP

// One axis of a slice, all in numbers: *begin comes in as given and goes out as the first element;
// *count is how many elements it takes. `stride` is not 0.
void msc_infer__slice_range(int64_t *begin, int64_t *count, int64_t length, int64_t end,
                            int64_t stride);

// Shape of operands combined by broadcasting; false (with a message) when they do not fit.
enum msc_status msc_infer__broadcast(struct msc_infer_tensor *out, const struct msc_infer *call,
                                     const struct msc_infer_tensor *a,
                                     const struct msc_infer_tensor *b);

#endif

// Declarations shared by the files of graph/infer/: a function for each family of operators, and
// helpers that read attributes and operands. Their errors name the joint (operands.c).
#ifndef MSC_GRAPH_INFER_INFER_INTERNAL_H
#define MSC_GRAPH_INFER_INFER_INTERNAL_H

#include "graph/infer.h"

// Returns MSC_E_INVALID with a message that begins with the joint, such as "joint 'conv2d'
// (nn.conv2d): ".
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

// Copies type, shape and layout, but not the elements.
void msc_infer__copy(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// Copies type, shape, layout and elements.
void msc_infer__copy_all(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// Writes a shape for error messages, such as "[N,3,8]". Returns `text`.
#define MSC_INFER_TEXT_BYTES 256
const char *msc_infer__shape_text(char text[MSC_INFER_TEXT_BYTES], const struct msc_infer *call,
                                  const struct msc_infer_tensor *t);

// Read attributes. An axis must be below `rank`; a negative axis counts from the end.
enum msc_status msc_infer__int(int64_t *out, const struct msc_infer *call, const char *key);
enum msc_status msc_infer__axis(int *out, const struct msc_infer *call, const char *key, int rank);
enum msc_status msc_infer__check_axis(int *out, const struct msc_infer *call, int64_t axis,
                                      int rank);
bool msc_infer__bool(const struct msc_infer *call, const char *key); // false if absent
// Reads a list attribute that must have n numbers.
enum msc_status msc_infer__ints(int64_t out[], const struct msc_infer *call, const char *key,
                                int n);
const char *msc_infer__text(const struct msc_infer *call, const char *key); // "" if absent

// A list parameter: an attribute, or an operand whose elements may be known.
enum msc_infer_state {
    MSC_INFER_ABSENT,
    MSC_INFER_UNKNOWN, // an operand whose elements are unknown
    MSC_INFER_KNOWN,
};
struct msc_infer_list {
    enum msc_infer_state state;
    int n; // number of elements; -1 if unknown (never if state is KNOWN)
    struct msc_dim values[MSC_INFER_MAX_VALUES];
};
enum msc_status msc_infer__list(struct msc_infer_list *out, const struct msc_infer *call,
                                const char *key);
// Reads the list parameter "axis". Its elements must be numbers below `rank`; negative numbers
// count from the end. *is_given is true if the list is not empty.
enum msc_status msc_infer__axes(bool is_axis[MSC_MAX_DIMS], bool *is_given,
                                const struct msc_infer *call, int rank);

// Makes a new symbol for dimension `dim` of output `output`, named after the joint.
enum msc_status msc_infer__fresh(struct msc_dim *out, const struct msc_infer *call, int output,
                                 int dim);
// Product of dims[first] to dims[last - 1].
enum msc_status msc_infer__product(struct msc_dim *out, const struct msc_infer *call,
                                   const struct msc_dim dims[], int first, int last);
enum msc_status msc_infer__require_rank(const struct msc_infer *call, int operand, int rank);
// Requires that the operand, unless absent, is a scalar or a list of `many` elements. A symbolic
// length is accepted.
enum msc_status msc_infer__require_count(const struct msc_infer *call, int operand,
                                         struct msc_dim many);
// True if the numbers are equal or either is symbolic.
bool msc_infer__agree(struct msc_dim a, struct msc_dim b);
enum msc_status msc_infer__require_float(const struct msc_infer *call, int operand);

// Appends a letter that `layout` does not contain: the next letter of "NCHWD" if `layout` consists
// of the letters before it, else the first unused letter of the alphabet.
void msc_infer__add_letter(char layout[MSC_MAX_DIMS + 4]);
// Computes the layout after a reshape. Input and output axes are matched by the products of their
// lengths. "" if the input has no layout.
void msc_infer__reshape_layout(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);

// The functions named in ops.def (graph/infer/<family>.c).
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    enum msc_status msc_infer__##infer(const struct msc_infer *call);
#include "graph/ops.def"
#undef MSC_OP

// Computes the shape that two operands are broadcast to. MSC_E_INVALID if the shapes do not fit.
enum msc_status msc_infer__broadcast(struct msc_infer_tensor *out, const struct msc_infer *call,
                                     const struct msc_infer_tensor *a,
                                     const struct msc_infer_tensor *b);

#endif

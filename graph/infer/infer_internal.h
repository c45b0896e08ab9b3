// Shared by the files of graph/infer/: one function for each family of operators, and helpers that read
// attributes and operands and name the joint in their errors (operands.c).
#ifndef MSC_GRAPH_INFER_INFER_INTERNAL_H
#define MSC_GRAPH_INFER_INFER_INTERNAL_H

#include "graph/infer.h"

// Returns MSC_E_INVALID; the message begins with "joint 'conv2d' (nn.conv2d): ".
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

// Copies type, shape and layout, but not contents.
void msc_infer__copy(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// Copies the contents as well.
void msc_infer__copy_all(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);
// "[N,3,8]" for error texts; returns `text`.
#define MSC_INFER_TEXT_BYTES 256
const char *msc_infer__shape_text(char text[MSC_INFER_TEXT_BYTES], const struct msc_infer *call,
                                  const struct msc_infer_tensor *t);

// Attributes. A negative axis counts from the end. An axis must be below `rank`.
enum msc_status msc_infer__int(int64_t *out, const struct msc_infer *call, const char *key);
enum msc_status msc_infer__axis(int *out, const struct msc_infer *call, const char *key, int rank);
enum msc_status msc_infer__check_axis(int *out, const struct msc_infer *call, int64_t axis,
                                      int rank);
bool msc_infer__bool(const struct msc_infer *call, const char *key); // false if absent
// Reads exactly n numbers.
enum msc_status msc_infer__ints(int64_t out[], const struct msc_infer *call, const char *key,
                                int n);
const char *msc_infer__text(const struct msc_infer *call, const char *key); // "" if absent

// A list parameter: an attribute, or an operand whose contents may be known.
enum msc_infer_state {
    MSC_INFER_ABSENT,
    MSC_INFER_UNKNOWN, // an operand with unknown contents
    MSC_INFER_KNOWN,
};
struct msc_infer_list {
    enum msc_infer_state state;
    int n; // the length if known (always if KNOWN), else -1
    struct msc_dim values[MSC_INFER_MAX_VALUES];
};
enum msc_status msc_infer__list(struct msc_infer_list *out, const struct msc_infer *call,
                                const char *key);
// Reads the list parameter "axis", whose elements must be numbers below `rank`; negative ones
// count from the end. *is_given: the list is not empty.
enum msc_status msc_infer__axes(bool is_axis[MSC_MAX_DIMS], bool *is_given,
                                const struct msc_infer *call, int rank);

// Names a new symbol after the joint, for the unknown dimension `dim` of output `output`.
enum msc_status msc_infer__fresh(struct msc_dim *out, const struct msc_infer *call, int output,
                                 int dim);
// Product of dims [first, last).
enum msc_status msc_infer__product(struct msc_dim *out, const struct msc_infer *call,
                                   const struct msc_dim dims[], int first, int last);
enum msc_status msc_infer__require_rank(const struct msc_infer *call, int operand, int rank);
// Requires a scalar or a list of `many` elements; an absent operand is accepted. A symbolic
// length fits.
enum msc_status msc_infer__require_count(const struct msc_infer *call, int operand,
                                         struct msc_dim many);
// True if the numbers are equal or either is symbolic.
bool msc_infer__agree(struct msc_dim a, struct msc_dim b);
enum msc_status msc_infer__require_float(const struct msc_infer *call, int operand);

// Appends a letter that `layout` does not contain: the next one of NCHWD if it is a prefix of
// that, else the first unused letter of the alphabet.
void msc_infer__add_letter(char layout[MSC_MAX_DIMS + 4]);
// Layout after a reshape: axes are matched by cumulative products; "" if none match.
void msc_infer__reshape_layout(struct msc_infer_tensor *out, const struct msc_infer_tensor *in);

// The functions named in ops.def (graph/infer/<family>.c).
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    enum msc_status msc_infer__##infer(const struct msc_infer *call);
#include "graph/ops.def"
#undef MSC_OP

// Shape of operands combined by broadcasting. MSC_E_INVALID if they do not fit.
enum msc_status msc_infer__broadcast(struct msc_infer_tensor *out, const struct msc_infer *call,
                                     const struct msc_infer_tensor *a,
                                     const struct msc_infer_tensor *b);

#endif

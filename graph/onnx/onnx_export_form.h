// Forms: node patterns that a runtime fuses into integer kernels. Some runtimes
// (msc_target.has_forms) match QDQ pairs and the joints between them. The usual nodes of a joint
// compute the same result as its form, but such a runtime does not match them, or matches a slower
// or less exact kernel. Models for other targets, and models without edits, have no forms.
//
// The form of a dynamic product needs no fusing, so models for any target have it.
//
// A pair is a QuantizeLinear and the DequantizeLinear after it. A tail (graph/tail.h) is a chain of
// scalings, shifts and clips after a joint; if a pair follows, the joint and the pair do its work.
//
//     file of onnx_export_*    forms
//     form_store.c             activations as unsigned bytes, followed by one Clip of the bytes for
//                              narrower ranges and for a tail's clips; constants that float kernels
//                              read, converted to floats at load
//     form_take.c              a Take whose table stays stored as integers
//     form_conv.c              average pooling and batch normalisation as depthwise convolutions,
//                              means over images as global pooling
//     form_activation.c        a hard sigmoid as a saturating addition, a hard swish as a product
//                              with a saturated factor
//     form_move.c              a channel shuffle as one Gather, padding of bytes, images resized in
//                              the model's layout
//     form_block.c             MatMulNBits and GatherBlockQuantized, for targets that have them
//     form_dynamic.c           products of an activation that is quantised dynamically
//     moved.c                  moves of integers, for targets that need no pairs around moves
//     blocks.c                 4-bit weights in groups that multiply float activations
//     form.c                   shields: nodes without effect that keep the runtime from matching a
//                              float joint with an integer kernel
//
// onnx_export_form_edits.c finds the edits and tails that forms depend on; onnx_export_form.c
// selects the form of a joint.
#ifndef MSC_GRAPH_ONNX_ONNX_EXPORT_FORM_H
#define MSC_GRAPH_ONNX_ONNX_EXPORT_FORM_H

#include "graph/onnx/onnx_export_internal.h"
#include "graph/tail.h"

// True if joints are written as forms: the model has edits and the target has forms.
bool msc_onnx__has_forms(const struct msc_onnx_export *e);

// Marks in e->is_unread the joints whose outputs no written joint reads.
enum msc_status msc_onnx__find_unread(struct msc_onnx_export *e);
// True if the form of the joint reads this operand.
bool msc_onnx__is_read(const struct msc_onnx_export *e, const struct msc_joint *j, int32_t operand);
// Writes a joint in a form. If *is_written remains false, the caller must use the joint's usual
// writer. The joint's `inputs` need not be filled before the call.
enum msc_status msc_onnx__write_form(bool *is_written, struct msc_onnx_joint *j);
// Call after all joints are written. Removes the DequantizeLinear of a pair if only the pair's
// bytes are read. Otherwise the runtime would compute a value that nothing reads.
enum msc_status msc_onnx__drop_unread_pairs(struct msc_onnx_export *e);
// onnx_export_norm.c: writes Euclidean norms as one node each.
enum msc_status msc_onnx__fuse_norms(struct msc_onnx_export *e);
// Removes initialisers that no node reads.
enum msc_status msc_onnx__drop_initializers(struct msc_onnx_export *e);
// Add the shields before and after a joint that has no form.
enum msc_status msc_onnx__shield_input(struct msc_onnx_joint *j);
enum msc_status msc_onnx__shield_output(struct msc_onnx_joint *j);

// True if the joint resizes images of bytes. With contiguous channels (the layout of convolutions)
// this is many times slower; a Reshape to the same dims prevents that layout. Images of floats do
// not have this problem.
bool msc_onnx__resizes_image(const struct msc_onnx_joint *j);
// True if the joint shrinks an image by cubic interpolation. ONNX Runtime supports this only in the
// model's layout. However, it changes the layout around integer joints and then rejects the model.
bool msc_onnx__shrinks_by_cubes(const struct msc_onnx_joint *j);
enum msc_status msc_onnx__keep_layout(struct msc_onnx_joint *j);

// True if the edit is only a quantisation to 8-bit integers without groups, whose scales are known;
// false for NULL.
bool msc_onnx__is_byte(const struct msc_edit *edit);
// The edit of a slot, or NULL.
const struct msc_edit *msc_onnx__edit_at(const struct msc_onnx_export *e, int32_t joint,
                                         int32_t operand);
// The edit of a slot if msc_onnx__is_byte holds for it; else NULL.
const struct msc_edit *msc_onnx__byte_edit(const struct msc_onnx_export *e, int32_t joint,
                                           int32_t operand);
// The 8-bit edit that all consumers of a tensor share, not counting those that read its shape. NULL
// if the edits differ or there is none.
const struct msc_edit *msc_onnx__byte_edit_of(const struct msc_onnx_export *e, int32_t tensor);
// The role of the joint for the target of the export.
enum msc_target_role msc_onnx__role_of(const struct msc_onnx_export *e, const struct msc_joint *j);
// True if the target computes the joint in integer arithmetic under the export's edits.
bool msc_onnx__computes_integers(const struct msc_onnx_export *e, const struct msc_joint *j);
// True if the joint multiplies an activation that is quantised dynamically by a weight of bytes.
bool msc_onnx__is_dynamic_product(const struct msc_onnx_export *e, const struct msc_joint *j);
// Replaces *value, which holds the tensor, by its dynamically quantised value.
enum msc_status msc_onnx__quantize_dynamically(const char **value, struct msc_onnx_export *e,
                                               int32_t tensor);
// True if the joint takes rows of a table that is stored as integers, which products may read, too.
bool msc_onnx__takes_integers(const struct msc_onnx_export *e, const struct msc_joint *j);
// True if a float consumer reads the constant, so that it should become float at load.
bool msc_onnx__is_folded(const struct msc_onnx_export *e, int32_t constant);
// Finds the tail (graph/tail.h) that ends in the tensor, if the pair after the tensor replaces the
// tail.
bool msc_onnx__tail_to(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor);
// Finds the tail after the joint that produces the tensor.
bool msc_onnx__tail_behind(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor);
// The 8-bit edit of the tensor at the end of the producer's tail, or of `tensor` itself if the
// producer has no tail. NULL if there is no such edit.
const struct msc_edit *msc_onnx__edit_behind(const struct msc_onnx_export *e, int32_t tensor);
// True if the summand of a tail can become part of the bias of the convolution before the tail.
bool msc_onnx__takes_shift(const struct msc_onnx_export *e, const struct msc_tail *tail);
// The rounding of a convolution's bias; NULL if there is no bias or it is not rounded.
const struct msc_bias_rounding *msc_onnx__bias_rounding(const struct msc_onnx_export *e,
                                                        const struct msc_joint *j);
// The scale of a convolution's integer sums for output channel c.
float msc_onnx__step_of(const struct msc_onnx_export *e, const struct msc_joint *j, int64_t c);
// If a tail with a summand follows the joint, adds the summand to the joint's bias.
enum msc_status msc_onnx__shift_bias(struct msc_onnx_joint *j);
// Finds the clip bounds [low, high] that the pair after the tensor must enforce, because the joints
// that clip are not written. False if there are no such joints.
bool msc_onnx__limits_of(float limits[2], const struct msc_onnx_export *e, int32_t tensor);
// True if the joint is a hard sigmoid that becomes an addition.
bool msc_onnx__is_saturated_sum(const struct msc_onnx_export *e, const struct msc_joint *j);
// True if the joint is part of a tail that the pair after it replaces.
bool msc_onnx__is_dropped(const struct msc_onnx_export *e, const struct msc_joint *j);

// True if the tensor is passed on as integers: all its consumers have the same 8-bit edit, and the
// target needs no pairs around moves (msc_target.pairs_moves).
bool msc_onnx__passes_integers(const struct msc_onnx_export *e, int32_t tensor);
// The dequantised value of a tensor for which msc_onnx__passes_integers holds.
enum msc_status msc_onnx__dequantize_moved(const char **out, struct msc_onnx_export *e,
                                           int32_t tensor);
// Call before writing a joint. If the joint only moves elements, and msc_onnx__passes_integers
// holds for its operands and outputs with one edit, the joint moves integers: `inputs` gets the
// integers of the operands, and the outputs are integers. Otherwise nothing changes.
enum msc_status msc_onnx__move_integers(struct msc_onnx_joint *j);

// Applies an edit of 8 bits and one scale to *value, which holds the tensor.
enum msc_status msc_onnx__quantize_bytes(const char **value, struct msc_onnx_export *e,
                                         int32_t tensor, const struct msc_edit *edit);
// The DequantizeLinear that produces an edited value; NULL if another kind of node produces the
// value.
const Onnx__NodeProto *msc_onnx__pair_of(const struct msc_onnx_export *e, const char *value);
// True if the weight is stored in 4-bit blocks. All its consumers then multiply float activations
// by it, as MatMulNBits requires.
bool msc_onnx__is_blocks(const struct msc_onnx_export *e, int32_t weight,
                         const struct msc_edit *edit);
// True if the joint's weight is stored in 4-bit blocks (msc_onnx__is_blocks). The weight is [O,I]
// in the graph, but [I,O] in the file.
bool msc_onnx__is_turned(const struct msc_onnx_export *e, const struct msc_joint *j);
// ONNX Runtime 1.32 makes no MatMulNBits of a product before certain nodes. True if the joint is
// such a product: its weight is in blocks and a Relu or Clip follows, or the model itself stores
// the weight in 4 bits and a quantisation follows, directly or after a Relu or Clip.
bool msc_onnx__has_limited_blocks(const struct msc_onnx_export *e, const struct msc_joint *j);
enum msc_status msc_onnx__store_blocks(const char *result, struct msc_onnx_export *e,
                                       int32_t weight, const struct msc_array *elements,
                                       const struct msc_quant *q);
// Writes nodes that compute the weight `result` from its integers; the runtime folds these nodes at
// load. *is_done remains false if the groups do not divide their axis.
enum msc_status msc_onnx__fold_weight(bool *is_done, const char *result, struct msc_onnx_export *e,
                                      int32_t weight, const struct msc_array *elements,
                                      const struct msc_quant *q);
// Like msc_onnx__fold_weight, for a bias. `inputs`: integers and their scales.
enum msc_status msc_onnx__scale_bias(const char *result, struct msc_onnx_export *e,
                                     const char *base, const char *const inputs[2]);
// Dims of the integers and of their scales. An axis with groups becomes two axes, groups and
// elements, so that the scales broadcast.
struct msc_onnx_folded {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS], scale_dims[MSC_MAX_DIMS];
};
// False if the groups do not divide their axis.
bool msc_onnx__describe_folded(struct msc_onnx_folded *f, const struct msc_tensor *t,
                               const struct msc_quant *q);
struct msc_onnx_factors {
    const char *zero_points; // NULL: all are 0
    const char *scales;
};
enum msc_status msc_onnx__add_factors(struct msc_onnx_factors *out, struct msc_onnx_export *e,
                                      const char *base, const struct msc_quant *q, int n_dims,
                                      const int64_t dims[]);
// Adds nodes that compute (q - z) * s in floats. The last node produces *value.
enum msc_status msc_onnx__scale_integers(const char **value, struct msc_onnx_export *e,
                                         const char *base, const struct msc_onnx_factors *factors);

// Writers of forms. Each leaves *is_written false if its form does not apply.
enum msc_status msc_onnx__form_block_product(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_block_table(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_dynamic(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_take(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_hard_sigmoid(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_hard_swish(bool *is_written, struct msc_onnx_joint *j);
// Writes the sum of a scalar and an activation.
enum msc_status msc_onnx__form_sum(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_pool(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_batch_norm(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_mean(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_pad(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_move(bool *is_written, struct msc_onnx_joint *j);

#endif

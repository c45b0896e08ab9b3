// Forms that fuse: how joints between quantised tensors are written for a runtime that makes
// integer kernels of Q/DQ pairs by matching them (msc_target.has_forms). A joint's usual nodes
// compute the same, but are not matched, or matched with something slower or less exact. Models
// for other targets, and models without edits, have none of these.
//
//     bytes      activations are unsigned bytes, narrower ranges a Clip of the bytes, limits before
//                them (Relu, Clip) part of that range          onnx_export_form_store.c
//     stored     constants that only float kernels read become floats once, at load; tables are
//                taken from as integers                        onnx_export_form_store.c
//     convs      average pooling and batch normalisation as depthwise convolutions, means over
//                images as global pooling                      onnx_export_form_conv.c
//     gates      hard sigmoids as an addition that saturates, hard swishes as a product with what
//                saturates                                     onnx_export_form_activation.c
//     moves      shuffles of channels as one Gather, padding as that of bytes, images resized in the
//                model's layout
//                                                              onnx_export_form_move.c
//     moved      for targets that pass integers on: moves of integers   onnx_export_moved.c
//     blocks     weights of 4 bits in groups, for products with floats    onnx_export_blocks.c
//     shields    nodes without effect, where what stays float would be matched
//                                                              onnx_export_form.c
#ifndef MSC_GRAPH_ONNX_ONNX_EXPORT_FORM_H
#define MSC_GRAPH_ONNX_ONNX_EXPORT_FORM_H

#include "graph/onnx/onnx_export_internal.h"
#include "graph/tail.h"

// Does the model take forms at all?
bool msc_onnx__has_forms(const struct msc_onnx_export *e);

// Marks the joints that nothing which is written reads: e->is_unread.
enum msc_status msc_onnx__find_unread(struct msc_onnx_export *e);
// Does a form of the joint read this operand?
bool msc_onnx__is_read(const struct msc_onnx_export *e, const struct msc_joint *j, int32_t operand);
// Writes a joint in a form, or leaves it to its writer (*is_written stays false); `inputs` are not
// filled yet.
enum msc_status msc_onnx__write_form(bool *is_written, struct msc_onnx_joint *j);
// Once all joints are written: without the DequantizeLinear of pairs whose bytes alone are read,
// which would be computed all the same.
enum msc_status msc_onnx__drop_unread_pairs(struct msc_onnx_export *e);
// Without the initialisers that nothing reads.
enum msc_status msc_onnx__drop_initializers(struct msc_onnx_export *e);
// Before and behind a joint that is written as usual.
enum msc_status msc_onnx__shield_input(struct msc_onnx_joint *j);
enum msc_status msc_onnx__shield_output(struct msc_onnx_joint *j);

// Does it resize images of bytes? Moving those of channels which lie side by side, as convolutions
// have them, is many times slower: a Reshape to the same dims keeps the layout. Interpolating floats
// is not.
bool msc_onnx__resizes_image(const struct msc_onnx_joint *j);
// Does it make an image smaller by cubic interpolation? ONNX Runtime turns the images of integer
// joints, and then refuses the model: it knows that for the model's layout only.
bool msc_onnx__shrinks_by_cubes(const struct msc_onnx_joint *j);
enum msc_status msc_onnx__keep_layout(struct msc_onnx_joint *j);

// Is the edit, NULL included, nothing but a quantisation to integers of a byte, without groups?
bool msc_onnx__is_byte(const struct msc_edit *edit);
// The edit of a slot, or NULL.
const struct msc_edit *msc_onnx__edit_at(const struct msc_onnx_export *e, int32_t joint,
                                         int32_t operand);
// The same where it is such; else NULL.
const struct msc_edit *msc_onnx__byte_edit(const struct msc_onnx_export *e, int32_t joint,
                                           int32_t operand);
// That of all that read a tensor, but for its shape; NULL where they differ or it has none.
const struct msc_edit *msc_onnx__byte_edit_of(const struct msc_onnx_export *e, int32_t tensor);
// Does the target compute the joint over integers under these edits?
bool msc_onnx__computes_integers(const struct msc_onnx_export *e, const struct msc_joint *j);
// Should the constant be made float at load, as some of its readers stay float?
bool msc_onnx__is_folded(const struct msc_onnx_export *e, int32_t constant);
// The tail that ends in the tensor, where the pair behind it takes its place.
bool msc_onnx__tail_to(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor);
// That behind the joint which makes the tensor.
bool msc_onnx__tail_behind(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor);
// The edit of the bytes that a tensor is written as, behind its maker's tail; NULL: of none.
const struct msc_edit *msc_onnx__edit_behind(const struct msc_onnx_export *e, int32_t tensor);
// Can what is added in a tail be part of the bias of the convolution before it?
bool msc_onnx__takes_shift(const struct msc_onnx_export *e, const struct msc_tail *tail);
// Adds it, where the joint has such a tail.
enum msc_status msc_onnx__shift_bias(struct msc_onnx_joint *j);
// The range that a tensor's elements lie in for the pair behind it: that of the limits which the pair
// takes the place of. False where there is none.
bool msc_onnx__limits_of(float limits[2], const struct msc_onnx_export *e, int32_t tensor);
// Is the joint a hard sigmoid that becomes an addition?
bool msc_onnx__is_saturated_sum(const struct msc_onnx_export *e, const struct msc_joint *j);
// Is the joint part of a tail that the pair behind takes the place of?
bool msc_onnx__is_dropped(const struct msc_onnx_export *e, const struct msc_joint *j);

// Does all that reads the tensor read it under one edit of a byte, for a target that passes integers
// on?
bool msc_onnx__passes_integers(const struct msc_onnx_export *e, int32_t tensor);
// The value of such a tensor under its edit.
enum msc_status msc_onnx__dequantize_moved(const char **out, struct msc_onnx_export *e,
                                           int32_t tensor);
// Before a joint is written that only moves such tensors: it reads and writes integers, those of
// `inputs` that it moves are filled. Of others nothing is.
enum msc_status msc_onnx__move_integers(struct msc_onnx_joint *j);

// *value, which holds the tensor, becomes it under the edit, of a byte and one scale.
enum msc_status msc_onnx__quantize_bytes(const char **value, struct msc_onnx_export *e,
                                         int32_t tensor, const struct msc_edit *edit);
// The DequantizeLinear that makes an edited value; NULL: something else does.
const Onnx__NodeProto *msc_onnx__pair_of(const struct msc_onnx_export *e, const char *value);
// Is the weight stored in blocks of 4 bits that only products with floats read, as MatMulNBits wants it?
bool msc_onnx__is_blocks(const struct msc_onnx_export *e, int32_t weight,
                         const struct msc_edit *edit);
// Is the joint's weight, [O,I] in the graph, stored so and therefore [I,O]?
bool msc_onnx__is_turned(const struct msc_onnx_export *e, const struct msc_joint *j);
// Does a Relu or Clip read what the joint makes of such a weight? ONNX Runtime 1.32 then makes no
// MatMulNBits of it where another product follows.
bool msc_onnx__has_limited_blocks(const struct msc_onnx_export *e, const struct msc_joint *j);
enum msc_status msc_onnx__store_blocks(const char *result, struct msc_onnx_export *e,
                                       int32_t weight, const struct msc_array *elements,
                                       const struct msc_quant *q);
// Makes `result` of integers by operators on constants; *is_done stays false where groups do not
// divide their axis.
enum msc_status msc_onnx__fold_weight(bool *is_done, const char *result, struct msc_onnx_export *e,
                                      int32_t weight, const struct msc_array *elements,
                                      const struct msc_quant *q);
// The same of a bias, {integers, steps}.
enum msc_status msc_onnx__scale_bias(const char *result, struct msc_onnx_export *e,
                                     const char *base, const char *const inputs[2]);
// Forms; each leaves *is_written false where it does not fit.
enum msc_status msc_onnx__form_take(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_hard_sigmoid(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_hard_swish(bool *is_written, struct msc_onnx_joint *j);
// Of a number and an activation.
enum msc_status msc_onnx__form_sum(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_pool(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_batch_norm(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_mean(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_pad(bool *is_written, struct msc_onnx_joint *j);
enum msc_status msc_onnx__form_move(bool *is_written, struct msc_onnx_joint *j);

#endif

// Properties of joints and layouts that families and backends query while planning.
#ifndef MSC_KERNELS_LOWERING_LOWERING_H
#define MSC_KERNELS_LOWERING_LOWERING_H

#include "graph/graph.h"
#include "kernels/backend.h"

// The elements of operand `position` if it is a weight or the result of a constant joint; NULL if
// it is computed at run time or absent.
const struct msc_array *msc_lowering_constant(const struct msc_graph *g,
                                              const struct msc_joint *joint, int position);
// True if operand `position` is present and computed at run time.
bool msc_lowering_is_computed(const struct msc_graph *g, const struct msc_joint *joint,
                              int position);
// The tensor of operand `position`, or NULL if it is absent.
const struct msc_tensor *msc_lowering_operand(const struct msc_graph *g,
                                              const struct msc_joint *joint, int position);
const struct msc_tensor *msc_lowering_output(const struct msc_graph *g,
                                             const struct msc_joint *joint);
// True if output 0 and all present operands are float32.
bool msc_lowering_is_f32(const struct msc_graph *g, const struct msc_joint *joint);
// An axis attribute, counted from the front; -1 if the attribute is absent or out of range.
int msc_lowering_axis(const struct msc_joint *joint, const char *key, int n_dims);

enum msc_reduction_kind { // numbered as in kernels/vulkan/shaders/reduce.comp
    MSC_REDUCTION_SUM,
    MSC_REDUCTION_MAX,
    MSC_REDUCTION_MIN,
};

// A sum, mean, maximum or minimum over axes, or a global pool.
struct msc_reduction {
    enum msc_reduction_kind kind;
    bool is_mean; // divide the sum by the number of elements
    bool is_reduced[MSC_MAX_DIMS];
};

// Describes the reduction of an input with n_dims dims. False if the axes are not constant or are
// out of range.
bool msc_lowering_describe_reduction(struct msc_reduction *out, const struct msc_joint *joint,
                                     int n_dims);

// Finds the output axis of each input axis; -1 for a reduced axis.
void msc_lowering_map_axes(int to[MSC_MAX_DIMS], int n_dims, const bool is_reduced[], int n_out);

bool msc_lowering_same_shape(const struct msc_tensor *a, const struct msc_tensor *b);

// True if both layouts of these dims give the same order of elements.
bool msc_lowering_layouts_coincide(int n_dims, const int64_t dims[]);
// The layout to request for an input if `wanted` is preferred. A tensor whose elements have the
// same order in both layouts keeps its layout. A tensor with fewer than 3 dims is NCHW.
enum msc_layout msc_lowering_ask_layout(const struct msc_tensor *t, enum msc_layout wanted,
                                        enum msc_layout coming);
// Requests layouts for the inputs of the joints `first`, `first` + 1, … of an element-wise chain,
// to match the `layout` of the step's output.
void msc_lowering_follow_layout(const struct msc_graph *g, const struct msc_step *step,
                                int32_t first, enum msc_layout layout,
                                const enum msc_layout coming[], struct msc_step_layouts *out);
// Sets the layouts of a step whose outputs have the layout and the rank of operand 0.
void msc_lowering_keep_layout(const struct msc_graph *g, const struct msc_step *step,
                              const enum msc_layout coming[], struct msc_step_layouts *out);
// The position in memory of each axis.
void msc_lowering_positions(int positions[MSC_MAX_DIMS], int n_dims, enum msc_layout layout);
// The stride of each axis, in elements.
void msc_lowering_strides(int64_t strides[MSC_MAX_DIMS], int n_dims, const int64_t dims[],
                          enum msc_layout layout);

#endif

// Movements: strided copies between two arrays, for transposes, slices, joins and changes of
// layout.
//
//     struct msc_movement m;
//     msc_movement_init(&m, sizeof(float));
//     msc_movement_add(&m, 4, 1, 100);     // dims from outermost: length, strides in and out
//     msc_movement_add(&m, 100, 4, 1);
//     msc_movement_finish(&m);
//     msc_cpu_movement_run(&m, out, in); // [100, 4] -> [4, 100]
#ifndef MSC_KERNELS_LOWERING_MOVEMENT_H
#define MSC_KERNELS_LOWERING_MOVEMENT_H

#include "kernels/plan.h"

struct msc_movement {
    size_t bytes; // size of an element
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    int64_t in[MSC_MAX_DIMS], out[MSC_MAX_DIMS]; // strides in elements
    int64_t n;                                   // number of elements
};

void msc_movement_init(struct msc_movement *m, size_t element_bytes);
// Adds a dim; dims are added in the output's memory order. An input stride may be 0 or negative.
void msc_movement_add(struct msc_movement *m, int64_t length, int64_t in, int64_t out);
// Merges neighbouring dims that are contiguous in both arrays.
void msc_movement_finish(struct msc_movement *m);
// Sets a whole movement, which visits `dims` in the memory order of `layout`. `in` and `out` are
// the strides of each axis.
void msc_movement_set(struct msc_movement *m, size_t element_bytes, int n_dims,
                      const int64_t dims[], enum msc_layout layout, const int64_t in[],
                      const int64_t out[]);
// Sets the movement of a depth-to-space or space-to-depth joint. False if the joint's attributes
// are missing.
bool msc_movement_set_depth_space(struct msc_movement *m, const struct msc_joint *joint,
                                  const struct msc_value *x, const struct msc_value *y);

// Reads the axes of a transpose, counted from the front. False unless each axis occurs once.
bool msc_movement_read_axes(int64_t axes[MSC_MAX_DIMS], const struct msc_joint *joint, int n_dims);
// Sets the movement of a transpose that MSC_FAMILY_PERMUTE accepts or, if joint is NULL, of a
// change of layout.
void msc_movement_set_permute(struct msc_movement *m, const struct msc_joint *joint,
                              const struct msc_value *x, const struct msc_value *y);

// Sets a movement between a joined tensor (`whole`) and one of its parts: from the part to the
// joined tensor if is_joined, otherwise from the joined tensor to the part. The part begins at
// index `at` of `axis`. Returns the offset of the part in the joined tensor, in elements.
int64_t msc_movement_set_part(struct msc_movement *m, const struct msc_value *whole,
                              const struct msc_value *part, int axis, int64_t at, bool is_joined);

struct msc_slice {
    int n;
    int64_t begin[MSC_MAX_DIMS], axes[MSC_MAX_DIMS], steps[MSC_MAX_DIMS];
};
// Reads the parameters of a slice. False if a parameter is computed at run time or out of range.
bool msc_movement_read_slice(struct msc_slice *s, const struct msc_joint *joint, int n_dims);
// Sets the movement of a slice that MSC_FAMILY_SLICE accepts. Returns the offset of the slice in
// the input, in elements.
int64_t msc_movement_set_slice(struct msc_movement *m, const struct msc_joint *joint,
                               const struct msc_value *x, const struct msc_value *y);

// Reads the parameters of a pad joint that pads float32 with a constant `value`. `widths` are the
// widths at the beginning of all axes, then the widths at the end. False for other kinds of
// padding.
bool msc_movement_read_pad(int64_t widths[2 * MSC_MAX_DIMS], float *value,
                           const struct msc_joint *joint, int n_dims);

#endif

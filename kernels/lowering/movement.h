// Copies between two arrays by strides: what transposes, slices, joins and changes of layout are.
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
    size_t bytes; // of an element
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    int64_t in[MSC_MAX_DIMS], out[MSC_MAX_DIMS]; // strides in elements
    int64_t n;                                   // elements
};

void msc_movement_init(struct msc_movement *m, size_t element_bytes);
// Dims in the order in which the output lies in memory. An input stride may be 0 or negative.
void msc_movement_add(struct msc_movement *m, int64_t length, int64_t in, int64_t out);
// Joins dims that lie behind each other in both.
void msc_movement_finish(struct msc_movement *m);
// All of that for `dims` visited in the order in which `layout` puts them; strides by axis.
void msc_movement_set(struct msc_movement *m, size_t element_bytes, int n_dims,
                      const int64_t dims[], enum msc_layout layout, const int64_t in[],
                      const int64_t out[]);
// The same of a joint that lays blocks of channels out in space, or gathers them again. False when
// it does not say how.
bool msc_movement_set_depth_space(struct msc_movement *m, const struct msc_joint *joint,
                                  const struct msc_value *x, const struct msc_value *y);

// The axes of a transpose, counted from the front. False when they do not say each once.
bool msc_movement_read_axes(int64_t axes[MSC_MAX_DIMS], const struct msc_joint *joint, int n_dims);
// Of an accepted transpose; of a change of layout where joint is NULL.
void msc_movement_set_permute(struct msc_movement *m, const struct msc_joint *joint,
                              const struct msc_value *x, const struct msc_value *y);

// A part of a joined tensor that begins at `at` along `axis`, copied into it (`is_joined`) or out of
// it. Returns the element of the whole that it begins at.
int64_t msc_movement_set_part(struct msc_movement *m, const struct msc_value *whole,
                              const struct msc_value *part, int axis, int64_t at, bool is_joined);

struct msc_slice {
    int n;
    int64_t begin[MSC_MAX_DIMS], axes[MSC_MAX_DIMS], steps[MSC_MAX_DIMS];
};
// False when something is computed or does not fit.
bool msc_movement_read_slice(struct msc_slice *s, const struct msc_joint *joint, int n_dims);
// Of an accepted slice. Returns the element of the input that it begins at.
int64_t msc_movement_set_slice(struct msc_movement *m, const struct msc_joint *joint,
                               const struct msc_value *x, const struct msc_value *y);

// Widths of all axes, begins then ends, of float32 padding with one number. False: of another kind.
bool msc_movement_read_pad(int64_t widths[2 * MSC_MAX_DIMS], float *value,
                           const struct msc_joint *joint, int n_dims);

#endif

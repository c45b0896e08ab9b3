// Copies between two arrays by strides: what transposes, slices, joins and changes of layout are.
//
//     struct msc_movement m;
//     msc_movement_init(&m, sizeof(float));
//     msc_movement_add(&m, 4, 1, 100);     // dims from outermost: length, strides in and out
//     msc_movement_add(&m, 100, 4, 1);
//     msc_movement_finish(&m);
//     msc_movement_run(&m, out, in);       // [100, 4] -> [4, 100]
#ifndef MSC_KERNELS_LOWERING_MOVEMENT_H
#define MSC_KERNELS_LOWERING_MOVEMENT_H

#include "kernels/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

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
// Copies the elements; the arrays do not overlap.
void msc_movement_run(const struct msc_movement *m, void *out, const void *in);

#ifdef __cplusplus
}
#endif

#endif

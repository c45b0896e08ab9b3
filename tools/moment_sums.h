// Accumulates a second moment (tools/second_moment.h): products of a fixed number of rows are
// summed in float32, and these sums in float64. The result depends on the rows and their order,
// but not on how many are added per call.
//
//     MSC_TRY(msc_moment_sums_init(&s, n_groups, n_columns, false));
//     msc_moment_sums_add(&s, rows, NULL, n_rows);
//     MSC_TRY(msc_moment_sums_end(&moment, &s));
//     msc_moment_sums_finish(&s);
#ifndef MSC_TOOLS_MOMENT_SUMS_H
#define MSC_TOOLS_MOMENT_SUMS_H

#include "tools/second_moment.h"

// The two sides of a moment: rows X and, under a plan, the float model's rows F.
enum { MSC_MOMENT_X, MSC_MOMENT_F, MSC_MOMENT_SIDES };

struct msc_moment_sums {
    int64_t n_groups, n_columns, n_rows;
    int64_t n_in_chunk;              // rows whose products are not yet summed
    float *chunk[MSC_MOMENT_SIDES];  // [n_groups, rows, n_columns]
    float *products;                 // [n_columns, n_columns] of one chunk
    double *sums;                    // [n_groups] upper triangles of X'X, row by row
    double *cross;                   // [n_groups, n_columns, n_columns] F'X; NULL without a plan
    double *means[MSC_MOMENT_SIDES]; // [n_groups, n_columns]; before msc_moment_sums_end, sums
                                     // instead of means
};

// Memory of one accumulator.
uint64_t msc_moment_sums_bytes(int64_t n_groups, int64_t n_columns, bool has_cross);
// May fail with MSC_E_NOMEM; finish `s` even then.
enum msc_status msc_moment_sums_init(struct msc_moment_sums *s, int64_t n_groups, int64_t n_columns,
                                     bool has_cross);
// Adds the rows x and f, each [n_groups, n_rows, n_columns]; f is NULL without a plan.
void msc_moment_sums_add(struct msc_moment_sums *s, const float x[], const float f[],
                         int64_t n_rows);
// Sets *out to the moment of all rows, owned by the caller (msc_moment_finish). May fail with
// MSC_E_NOMEM.
enum msc_status msc_moment_sums_end(struct msc_moment *out, struct msc_moment_sums *s);
void msc_moment_sums_finish(struct msc_moment_sums *s); // accepts zeros

#endif

// Measures points of a placement whole, in one process that keeps running: each point as a chain,
// in turn with the whole network on one backend.
//
//     MSC_TRY(msc_place_bench_open(&bench, table, "placement.json", cancel));
//     MSC_TRY(msc_place_bench_run(&us, bench, choices));
//     msc_place_bench_close(bench);
#ifndef MSC_ENV_PLACEMENT_WHOLE_H
#define MSC_ENV_PLACEMENT_WHOLE_H

#include "env/placement/place_table.h"

struct msc_cancel;
struct msc_place_bench;

// Loads the network of the table, and its variants, and starts mscgym-runtime. `path` is the
// table's. The table is borrowed. *out is owned by the caller. MSC_E_INVALID: the table is of
// another network.
enum msc_status msc_place_bench_open(struct msc_place_bench **out, const struct msc_place_table *p,
                                     const char *path, const struct msc_cancel *cancel);
// The latency of a point, in microseconds: the median over the table's rounds, relative to that of
// the whole network on one backend in the same round, times that network's latency in the table.
// NaN: a backend refuses a piece, which `*why` (borrowed until the bench is closed) explains.
enum msc_status msc_place_bench_run(double *us, const char **why, struct msc_place_bench *bench,
                                    const uint32_t choices[]);
void msc_place_bench_close(struct msc_place_bench *bench); // accepts NULL

#endif

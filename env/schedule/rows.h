// Measures every variant of every class of steps, without a search.
//
//     MSC_TRY(msc_schedule_rows(rows, bench, MSC_SCHEDULE_ALL, 5));   // [msc_schedule_bench_n]
#ifndef MSC_ENV_SCHEDULE_ROWS_H
#define MSC_ENV_SCHEDULE_ROWS_H

#include "env/schedule/bench.h"

struct msc_schedule_row {
    // [variants.n] microseconds of the class's steps under each variant or, if the device does not
    // tell the time of a step, of the whole network; each relative to the choice by rule, which was
    // measured in turn.
    double us[MSC_MOST_VARIANTS];
    int best; // the fastest, if it takes at least 2 % less than the choice by rule; else that
};

#define MSC_SCHEDULE_ALL SIZE_MAX

// Fills the rows of all classes, or only row `only`. If the device tells the time of steps, each
// run measures one variant of every class.
enum msc_status msc_schedule_rows(struct msc_schedule_row rows[], struct msc_schedule_bench *bench,
                                  size_t only, int64_t n_rounds);

#endif

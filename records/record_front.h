// The Pareto front of a stream of lines, in memory proportional to the front.
//
//     struct msc_record_front front = {.n_objectives = goal->n_objectives};
//     ... MSC_TRY_OUT(msc_record_front_offer(&front, line)) for each line ...
//     MSC_TRY_OUT(msc_record_front_settle(&front));       // front.ids [front.n]
//     out: msc_record_front_finish(&front);
#ifndef MSC_RECORDS_RECORD_FRONT_H
#define MSC_RECORDS_RECORD_FRONT_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_record_front { // zero-initialise, then set n_objectives
    size_t n_objectives;
    int64_t *ids;
    struct msc_outcome *outcomes; // outcomes of `ids`, without metrics and reason
    size_t n, n_settled, capacity;
};

// Offers a line; repeats and lines left out are ignored. May fail with MSC_E_NOMEM.
enum msc_status msc_record_front_offer(struct msc_record_front *front,
                                       const struct msc_record_line *line);
// Reduces the ids to the front of everything offered, sorted by the first objective; of lines with
// equal outcomes, the first is kept. More lines may be offered afterwards.
enum msc_status msc_record_front_settle(struct msc_record_front *front);
void msc_record_front_finish(struct msc_record_front *front);

MSC_PUBLIC_END

#endif

// The Pareto front of lines that come one by one, in memory of the front itself.
//
//     struct msc_record_front front = {.n_objectives = goal->n_objectives};
//     ... MSC_TRY_OUT(msc_record_front_offer(&front, line)) for each line ...
//     MSC_TRY_OUT(msc_record_front_settle(&front));       // front.ids [front.n]
//     out: msc_record_front_finish(&front);
#ifndef MSC_RECORDS_RECORD_FRONT_H
#define MSC_RECORDS_RECORD_FRONT_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_record_front { // zero-initialise but for n_objectives
    size_t n_objectives;
    int64_t *ids;
    struct msc_outcome *outcomes; // of ids: state and objectives; metrics and reason are not held
    size_t n, n_settled, capacity;
};

// Takes the line unless it is a repeat or left out. MSC_E_NOMEM.
enum msc_status msc_record_front_offer(struct msc_record_front *front,
                                       const struct msc_record_line *line);
// Leaves the front of what was offered, by the first objective; of equal ones the first. More may be
// offered after it.
enum msc_status msc_record_front_settle(struct msc_record_front *front);
void msc_record_front_finish(struct msc_record_front *front);

MSC_PUBLIC_END

#endif

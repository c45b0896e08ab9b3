// What choices do alone and in pairs, as a page shows it: as measured (search/analysis.h), or where most were
// not measured alone, by a model of all trials (report/additive.h).
#ifndef MSC_REPORT_EFFECTS_H
#define MSC_REPORT_EFFECTS_H

#include "records/record.h"

struct cJSON;

// The members of msc_analysis_describe, its lists cut. By a model also `fitted`, {"trials", "explained"}, and
// `alone` lists the differences that it gives from the choices of a plan: `task`, `choice`,
// `difference`, those that do most first. *out is owned by the caller.
enum msc_status msc_effects_describe(struct cJSON **out, const struct msc_record *record,
                                     const uint32_t plan[]); // NULL: there is none

#endif

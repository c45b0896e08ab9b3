// Effects of single choices and of pairs, in the form that a report's page shows. Effects are
// measured (results/analysis.h) or, if most choices were not measured singly, estimated by a model
// of all trials (results/additive.h).
#ifndef MSC_RESULTS_EFFECTS_H
#define MSC_RESULTS_EFFECTS_H

#include "records/record.h"

struct cJSON;

// Makes the members of msc_analysis_describe, with shortened lists. If a model was fitted, there is
// also `fitted`, {"trials", "explained"}, and `alone` lists the effects that the model estimates:
// by how much a choice differs from the choice of `plan` (`task`, `choice`, `difference`), greatest
// first. *out is owned by the caller.
enum msc_status msc_effects_describe(struct cJSON **out, const struct msc_record *record,
                                     const uint32_t plan[]); // NULL: no plan

#endif

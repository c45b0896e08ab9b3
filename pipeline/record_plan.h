// Makes a strategy from a record: the delivered result, or the plan of any trial.
//
//     struct msc_record_plan plan = {0};
//     MSC_TRY_OUT(msc_record_plan_open(&plan, "digits.jsonl", -1, &options));
//     MSC_TRY_OUT(msc_record_plan_make(&plan));
//     ... plan.strategy, msc_processor_graph(plan.processor) ...
//     out: msc_record_plan_close(&plan);
#ifndef MSC_PIPELINE_RECORD_PLAN_H
#define MSC_PIPELINE_RECORD_PLAN_H

#include "pipeline/processor.h"
#include "records/record.h"
#include "tools/strategy.h"

struct msc_record_plan {
    struct msc_record *record;
    struct msc_processor *processor;
    struct msc_trial trial;        // the chosen trial of the record
    struct msc_strategy *strategy; // NULL until it is made
    bool is_delivered;             // true: the winner, as changed by the stages after the search
    const struct msc_log *log;
};

// Reads only the record. `trial` < 0: the winner. MSC_E_STATE: no trial has a result.
// MSC_E_INVALID: there is no such trial. Close the plan even if this fails.
enum msc_status msc_record_plan_open(struct msc_record_plan *plan, const char *path, int64_t trial,
                                     const struct msc_processor_options *options);
// Loads the model and makes the strategy. Warns if the trial does not meet its bounds.
// MSC_E_UNSUPPORTED: the record's environment has no model. MSC_E_STATE: the model's weights have
// changed.
enum msc_status msc_record_plan_make(struct msc_record_plan *plan);
void msc_record_plan_close(struct msc_record_plan *plan); // accepts a zeroed struct

#endif

// The plans of a search that are measured together: some of its trials, the uniform plans and the
// float model. Their results go into the search's report.
//
//     MSC_TRY(msc_delivery_plans_init(&list, record, ids, n_ids));
//     ... list.plans[i].found ...
//     MSC_TRY(msc_delivery_plans_report(&list, report));
//     msc_delivery_plans_finish(&list);
#ifndef MSC_PIPELINE_DELIVERY_PLANS_H
#define MSC_PIPELINE_DELIVERY_PLANS_H

#include "pipeline/delivery.h"
#include "records/record.h"

#define MSC_DELIVERY_FLOAT_ID (-1)

struct msc_delivery_plans {
    struct msc_arena arena;
    struct msc_delivery_plan *plans;  // [n]; `found` is owned
    struct msc_delivery_plan **order; // [n] pointers to `plans`, for msc_delivery_latency
    size_t n;
};

// Lists the trials `ids` in their order, then up to 8 uniform plans that are not among these
// trials, then the float model. `list` must be zeroed. The record must remain open, because its
// lines hold the choices.
enum msc_status msc_delivery_plans_init(struct msc_delivery_plans *list,
                                        const struct msc_record *record, const int64_t ids[],
                                        size_t n_ids);
void msc_delivery_plans_finish(struct msc_delivery_plans *list); // accepts a zeroed struct

// Adds the results to `examined` of the matching rows of a report: winner, baselines, reference.
enum msc_status msc_delivery_plans_report(const struct msc_delivery_plans *list,
                                          struct cJSON *report);

#endif

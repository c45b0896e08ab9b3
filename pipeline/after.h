// Runs the steps that follow a search: its report, the delivery of the winner, and the stages that
// the entry requests. A table in after.c lists these steps in order.
#ifndef MSC_PIPELINE_AFTER_H
#define MSC_PIPELINE_AFTER_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"
#include "pipeline/publisher.h"

// Adds the report of a finished search to the result. If a stage is cancelled, the search counts as
// cancelled and keeps all results that it has.
enum msc_status msc_after_search(struct msc_session *s, struct msc_publisher *publisher,
                                 struct msc_news *news, struct msc_processor_result *result,
                                 struct msc_search_result *found);

#endif

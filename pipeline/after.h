// What follows a search: its report, the winner on disk, and the stages that the entry wants, row
// by row of a table.
#ifndef MSC_PIPELINE_AFTER_H
#define MSC_PIPELINE_AFTER_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"
#include "pipeline/publisher.h"

// Adds the report of a search that has ended to the result. If a stage was stopped, the search
// counts as stopped, with all that it found before.
enum msc_status msc_after_search(struct msc_session *s, struct msc_publisher *publisher,
                                 struct msc_news *news, struct msc_processor_result *result,
                                 struct msc_search_result *found);

#endif

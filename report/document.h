// All that a page shows of records, as one JSON document: what its tables are written from, and what its
// charts are drawn from.
//
//     cJSON *document;
//     MSC_TRY(msc_document_create(&document, &(struct msc_document_options){.paths = paths, .n = n}));
//
// {"schema": "mscgym.page.1", "program", "records": [...]}, each record with
//
//     name, path    of the file
//     numbers       what a report says (search/report.h), without lists
//     delivered     the row of the plan that is delivered: the first of those that were reranked, else the
//                   winner; with all that was measured of its trial. null: nothing was found
//     plan          its choices over the network (report/plan_layers.h)
//     effects       what choices do alone and in pairs (report/effects.h)
//     trials        figures over the trials (report/trial_figures.h)
//     graph         the network with the places of its joints; or `missing`, why there is none
//     env, config   as the header has them
//     verdict       in words, from all of these (report/verdict.h)
//
// and, of several, `verdict`, what they mean together (report/verdict_compare.h).
#ifndef MSC_REPORT_DOCUMENT_H
#define MSC_REPORT_DOCUMENT_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

struct msc_document_options {
    const char *const *paths; // of records
    size_t n;
    const struct msc_log *log; // is told what was passed over
};

// *out is owned by the caller. Errors are those of msc_record_open.
enum msc_status msc_document_create(struct cJSON **out, const struct msc_document_options *options);

#endif

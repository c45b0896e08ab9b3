// Collects everything that a page shows of one or more records into one JSON document, from which
// the page's tables and charts are made.
//
//     cJSON *document;
//     const struct msc_document_options options = {.paths = paths, .n = n};
//     MSC_TRY(msc_document_create(&document, &options));
//
// {"schema": "mscgym.page.1", "program", "records": [...]}. Each record has
//
//     name, path    of the file
//     numbers       the report (results/report.h) without its lists
//     delivered     the row of the plan that is delivered: the best reranked trial, or else the
//                   winner, with everything measured for that trial; null: there is no such plan
//     plan          the delivered plan's choices over the network (results/plan_layers.h)
//     effects       effects of single choices and of pairs (results/effects.h)
//     trials        figures over the trials (results/trial_figures.h)
//     graph         the network with the positions of its joints, or `missing`: why there is none
//     layers        the delivered plan layer by layer (model/layers.h), if asked for
//     env, config   copied from the record's header
//     verdict       a summary in words (results/verdict.h)
//
// If there are several records, `verdict` compares them (results/verdict_compare.h).
#ifndef MSC_REPORT_DOCUMENT_H
#define MSC_REPORT_DOCUMENT_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
struct msc_layers_options;

struct msc_document_options {
    const char *const *paths; // paths of records
    size_t n;
    const struct msc_layers_options *layers; // adds `layers`; NULL: no
    const struct msc_log *log; // receives a warning for each part of a record that is left out
};

// *out is owned by the caller. Errors are those of msc_record_open and msc_report_layers.
enum msc_status msc_document_create(struct cJSON **out, const struct msc_document_options *options);

#endif

// What commands are pointed at by one word: a network as it is, or compressed by something.
//
//     MODEL             ONNX, or MSCGraph JSON
//     STRATEGY          a strategy file: the model that it is given with, compressed as it says
//     RECORD, RECORD:N  the model of a search, compressed as was delivered of it, or as its trial N
//     CONFIG, CONFIG:STAGE   of a configuration that was run: "baseline", the model as it is; the name of
//                       a search ("prune", "quantize[1]"), what was delivered of it; "export", the file
//                       that was written. Without a stage the last search.
//
//     struct msc_subject s = {0};
//     MSC_TRY_OUT(msc_subject_open(&s, "digits.jsonl:17", &options));
//     ... s.model, s.strategy, s.config ...
//     out: msc_subject_close(&s);
#ifndef MSC_PIPELINE_SUBJECT_H
#define MSC_PIPELINE_SUBJECT_H

#include "pipeline/record_plan.h"

struct msc_subject {
    struct msc_arena arena;
    const char *model;                   // path; NULL: of a strategy file
    const struct msc_strategy *strategy; // NULL: the model as it is
    const struct msc_config *config;     // of the record or configuration, or NULL
    struct msc_strategy *own;            // of a strategy file
    struct msc_processor *processor;     // of a configuration
    struct msc_record_plan plan;         // of a record
};

// MSC_E_NOT_FOUND, MSC_E_FORMAT and others: what it names cannot be read; MSC_E_INVALID: there is no
// such trial or stage. On failure, too, it is to be closed.
enum msc_status msc_subject_open(struct msc_subject *subject, const char *word,
                                 const struct msc_processor_options *options);
void msc_subject_close(struct msc_subject *subject); // accepts a zeroed one

#endif

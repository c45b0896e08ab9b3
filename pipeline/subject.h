// The network that a command's argument names: a model, unmodified or compressed.
//
//     MODEL             ONNX, or MSCGraph JSON
//     STRATEGY          a strategy file: compresses the model that is given with it
//     RECORD, RECORD:N  the model of a search with its delivered result, or with trial N
//     CONFIG, CONFIG:STAGE
//                       a stage of a configuration that has run: "baseline", the unmodified model;
//                       the name of a search ("prune", "quantize[1]"), its delivered result;
//                       "export", the written file. Without a stage, the last search.
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
    const char *model;                   // path; NULL: strategy files do not name their model
    const struct msc_strategy *strategy; // NULL: the unmodified model
    const struct msc_config *config;     // the named configuration, or the record's; or NULL
    struct msc_strategy *own;            // set for a strategy file
    struct msc_processor *processor;     // set for a configuration
    struct msc_record_plan plan;         // set for a record
};

// MSC_E_NOT_FOUND, MSC_E_FORMAT and others: the file cannot be read. MSC_E_INVALID: there is no
// such trial or stage. Close the subject even if this fails.
enum msc_status msc_subject_open(struct msc_subject *subject, const char *word,
                                 const struct msc_processor_options *options);
void msc_subject_close(struct msc_subject *subject); // accepts a zeroed struct
// Samples for comparing networks: the first MSC_SUBJECT_SAMPLES of the configuration (NULL: none
// yet), without labels. They run one by one, which every model allows; sequences run as a whole.
#define MSC_SUBJECT_SAMPLES 16
struct msc_config_dataset msc_subject_dataset(const struct msc_config *config);

#endif

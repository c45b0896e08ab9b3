// Orders trials by measurements of their exported models. Without measurements, keeps the search's
// order.
#ifndef MSC_RECORDS_RERANK_H
#define MSC_RECORDS_RERANK_H

#include "env/api/trial.h"

struct cJSON;

struct msc_rerank_row {
    const struct msc_trial *trial;
    size_t rank; // rank in the search, from 1
    // Measurements (docs/record.md, `examined`): file_bytes, runtime, score (the number of a
    // command); may be NULL.
    const struct cJSON *examined;
    bool has_failed;
    double held_out_violation; // of bounds by drop, on the validation samples; 0: none
    // Set by msc_rerank_sort:
    double value;     // value by which rows are ordered; NaN: not measured
    double violation; // violation of the bounds, by measured values
};

struct msc_rerank_by {
    char name[64]; // name of the key: "score", "runtime.validation.distill_loss", "size_bytes"
    bool is_maximised;
    size_t n_measured; // rows with a value; 0: the search's order is kept
};

// True for a metric that runtimes measure. The numbers of such a metric in the record come from
// other kernels. If by.name is such a metric without a prefix, no runtime has measured it.
bool msc_rerank_is_of_runtime(const char *metric);

// Sorts rows, which must be in the search's order. If there is a command, its number is the key.
// Else the key is the first objective. It is the runtime's measurement, on the validation samples
// if there are any, else on the search's samples. If no runtime measures it, the recorded value is
// used. Bounds use measurements on the search's samples. Plans that break bounds follow the others,
// by violation. Plans that failed or lack a needed value come last. Ties keep the search's order.
void msc_rerank_sort(struct msc_rerank_by *by, struct msc_rerank_row rows[], size_t n,
                     const struct msc_goal *goal, const struct msc_space *space, bool has_command,
                     bool command_is_maximised);

#endif

// In which order trials come by what was measured of their exported models, where that is known, in
// place of what the search has measured.
#ifndef MSC_SEARCH_RERANK_H
#define MSC_SEARCH_RERANK_H

#include "env/api/trial.h"

struct cJSON;

struct msc_rerank_row {
    const struct msc_trial *trial;
    size_t rank; // by the search, from 1
    // What was measured (docs/record.md, `examined`): file_bytes, runtime, score (the number of a command); may be NULL.
    const struct cJSON *examined;
    bool has_failed;
    // Results
    double value;     // what it is ordered by; NaN: not measured
    double violation; // of the bounds, by what was measured
};

struct msc_rerank_by {
    char name[64]; // of the value: "score", "runtime.validation.distill_loss", "size_bytes"
    bool is_maximised;
    size_t n_measured; // rows with a value; 0: they stay in the search's order
};

// Is it a metric that runtimes measure? The record's numbers of these are of other kernels, and no
// order of `by` such a name alone was measured.
bool msc_rerank_is_of_runtime(const char *metric);

// Sorts rows that are in the search's order. A command's number decides, where there is a command;
// else the first objective as it was measured: in the runtime on the validation samples, where there
// are any, else on those of the search; a metric that no runtime measures, as recorded. Bounds count
// as they were measured on the samples of the search. What breaks bounds comes behind what does not,
// by the violation, and what failed, has no value or lacks that of a bound last; ties stay in the
// search's order.
void msc_rerank_sort(struct msc_rerank_by *by, struct msc_rerank_row rows[], size_t n,
                     const struct msc_goal *goal, const struct msc_space *space, bool has_command,
                     bool command_is_maximised);

#endif

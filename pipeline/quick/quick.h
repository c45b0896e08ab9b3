// Finds a good 8-bit model without a search. A few plans, each with one choice for all weights and
// one for all activations, are measured on held-back samples. Then the best plan is improved as
// long as the loss on these samples falls: the tensors that cause most of the loss are left float,
// and the weights are improved. The best plan is written.
//
//     struct msc_quick_options o = {.model = "digits.onnx", .inputs = "inputs.npz",
//                                   .output = "small.onnx", .n_float = -1};
//     MSC_TRY(msc_quick_quantize(&report, &o));
//     cJSON_Delete(report);
//
// Writes only the output and, if asked for, the strategy: no record and no workspace.
#ifndef MSC_PIPELINE_QUICK_QUICK_H
#define MSC_PIPELINE_QUICK_QUICK_H

#include "pipeline/processor.h"

struct cJSON;

struct msc_quick_names {
    const char *const *items;
    size_t n;
};

struct msc_quick_options {
    const char *model;   // path, as in a configuration
    const char *inputs;  // samples, as `dataset.inputs`; the last fifth is held back
    int64_t sequence;    // token ids per sample, as `dataset.sequence`; <= 0: not given
    const char *loss;    // as `env.loss`; NULL: kl for scores of tokens, else mse
    const char *imatrix; // importance file of llama.cpp, as `env.imatrix`; NULL: none
    // Labels file, to measure the accuracy; MSC_LABELS_NEXT: the next tokens; NULL: none.
    const char *labels;
    // The most by which the accuracy on the held-back samples may drop from the float model's.
    // Needs labels.
    bool has_accuracy_drop;
    double accuracy_drop;
    const char *output;        // the ONNX file to write
    const char *save_strategy; // the strategy file to write as well; NULL: none
    const char *target;        // NULL: the default
    const char *sites;         // NULL: all that the target requantises
    const char *effort;        // fast, default or best; NULL: default
    int64_t n_float;           // most tensors that may be left float; < 0: a tenth of all
    // As in a configuration: tensors to compare (default: "auto" of `env.loss_tensors`), tensors
    // after which nothing is quantised, and patterns of tensors that stay float. A string that
    // begins with [ or { is JSON, as in a configuration; otherwise commas separate several names.
    struct msc_quick_names loss_tensors, outputs, exclude;
    int64_t batch;    // samples that run together; <= 0: from the model's shapes
    const char *atol; // tolerance for checking the backend; NULL: the default
    // Device, threads, memory, bindings, log, cancel, and `measuring` with its payload; other
    // members are ignored.
    struct msc_processor_options host;
};

// *out is owned by the caller. It has
//
//     "effort", "target", "samples", "held_back"
//     "model"      the written file
//     "sameness"   as in a search's report (docs/record.md), if there is something to report
//     "plans"      the best first, with
//         "weights", "activations"   labels of the choices
//         "float"                    number of tensors left float
//         "improved"                 number of weights that the stage `distill` improved
//         "plain"                    true: ranges of all values, rounded to nearest
//         "metrics", "examined"      as in a search's report: costs, and the loss on held-back
//                                    samples. With labels, the best and the plain plan have all
//                                    metrics on these samples.
//     "accuracy_drop"  as in the options, if given
//     "reference"  the uncompressed model
//     "metadata"   number of entries of the model's metadata that the file keeps, unless 0
//     "runtime"    if the target has one
//
// MSC_E_INVALID: an option or a file is wrong. MSC_E_STATE: no plan keeps the accuracy; nothing is
// written. MSC_E_CANCELLED: cancelled; nothing is written.
enum msc_status msc_quick_quantize(struct cJSON **out, const struct msc_quick_options *options);

#endif

// The best model of 8 bits without a search: a few plans, each with one choice for all weights and one
// for all activations, are measured on samples that were held back, and the best of them is written.
//
//     struct msc_quick_options o = {.model = "digits.onnx", .inputs = "inputs.npz",
//                                   .output = "small.onnx"};
//     MSC_TRY(msc_quick_quantize(&report, &o));
//     cJSON_Delete(report);
//
// Nothing but the output is written: there is no record and no workspace.
#ifndef MSC_PIPELINE_QUICK_H
#define MSC_PIPELINE_QUICK_H

#include "pipeline/processor.h"

struct cJSON;

struct msc_quick_options {
    const char *model;  // as in a configuration
    const char *inputs; // samples, as `dataset.inputs`; the last fifth is held back
    const char *labels; // for the accuracy; NULL: none
    const char *output; // the ONNX file to write
    const char *target; // NULL: the default
    const char *sites;  // NULL: all that the target requantises
    // Device, threads, memory, bindings, log, cancel, and `measuring` with its payload; the rest is
    // not read.
    struct msc_processor_options host;
};

// What MSC_QUICK_PLAIN says of a plan's `weights` and `activations`: ranges from the least to the
// greatest value, rounded to nearest.
#define MSC_QUICK_PLAIN "8 minmax"

// *out, owned by the caller, has "target", "samples", "held_back" and "model", the file; "plans", from
// the best on: {"weights", "activations"}, labels of choices, "metrics" on the samples and "examined",
// as in a search's report (docs/record.md); "reference", the uncompressed model; and "runtime", where
// the target has one. MSC_E_INVALID: an option or a file is wrong; MSC_E_CANCELLED: stopped, and nothing
// is written.
enum msc_status msc_quick_quantize(struct cJSON **out, const struct msc_quick_options *options);

#endif

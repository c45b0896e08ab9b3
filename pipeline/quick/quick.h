// The best model of 8 bits without a search: a few plans, each with one choice for all weights and one
// for all activations, are measured on samples that were held back; of the best one those tensors are
// left float that lose most, where that pays; its weights are improved, where that lowers the loss on
// these samples, too; and the best of all is written.
//
//     struct msc_quick_options o = {.model = "digits.onnx", .inputs = "inputs.npz",
//                                   .output = "small.onnx", .n_float = -1};
//     MSC_TRY(msc_quick_quantize(&report, &o));
//     cJSON_Delete(report);
//
// Nothing but the output is written: there is no record and no workspace.
#ifndef MSC_PIPELINE_QUICK_QUICK_H
#define MSC_PIPELINE_QUICK_QUICK_H

#include "pipeline/processor.h"

struct cJSON;

struct msc_quick_names {
    const char *const *items;
    size_t n;
};

struct msc_quick_options {
    const char *model;  // as in a configuration
    const char *inputs; // samples, as `dataset.inputs`; the last fifth is held back
    const char *labels; // for the accuracy; NULL: none
    const char *output; // the ONNX file to write
    const char *target; // NULL: the default
    const char *sites;  // NULL: all that the target requantises
    int64_t n_float;    // tensors that may be left float at most; < 0: a tenth of all
    // As a configuration has them: names of tensors to compare ("auto" of `env.loss_tensors` unless given),
    // where what is quantised ends, and patterns of tensors that stay float. A name that begins with [ or
    // { is JSON, as in a configuration; else commas separate several.
    struct msc_quick_names loss_tensors, outputs, exclude;
    int64_t batch;    // samples that run together; <= 0: by the model's shapes
    const char *atol; // of the check of the backend; NULL: the default
    // Device, threads, memory, bindings, log, cancel, and `measuring` with its payload; the rest is
    // not read.
    struct msc_processor_options host;
};

// *out, owned by the caller, has "target", "samples", "held_back" and "model", the file; "sameness", as of a
// search's report (docs/record.md), where there is something to say; "plans", from
// the best on: {"weights", "activations"}, labels of choices, "float", how many tensors are left alone,
// "improved", how many weights are better than by their choice, "plain", whether it has the ranges of
// all values, rounded to nearest, "metrics" and "examined", as in a search's report (docs/record.md):
// of the best plan and the plain one all of them, of the others what they cost and the loss on the
// samples held back; "reference", the uncompressed model; "metadata", how many entries of the model's
// metadata the file keeps, unless there are none; and "runtime", where the target has one.
// MSC_E_INVALID: an option or a file is wrong; MSC_E_CANCELLED: stopped, and nothing is written.
enum msc_status msc_quick_quantize(struct cJSON **out, const struct msc_quick_options *options);

#endif

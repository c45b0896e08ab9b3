// Writes the first configuration for a model: YAML or TOML with comments, for people to edit.
//
//     struct msc_first_config_options o = {.model = "model.onnx", .inputs = "inputs.npz",
//                                          .output = "search.yaml", .time = "8h"};
//     MSC_TRY(msc_first_config(&found, &o));
//     cJSON_Delete(found);
#ifndef MSC_PIPELINE_FIRST_CONFIG_H
#define MSC_PIPELINE_FIRST_CONFIG_H

#include "pipeline/processor.h"

struct cJSON;

struct msc_first_config_options {
    const char *model;  // path, as in a configuration
    const char *inputs; // samples, as `dataset.inputs`
    const char *labels; // labels file; NULL: none
    const char *target; // NULL: the default of this machine
    const char *time;   // budget, such as "8h"
    const char *output; // the file to write, .yaml, .yml or .toml; it must not exist
    // Device, threads, memory, bindings, log and cancel; other members are ignored.
    struct msc_processor_options host;
};

// Opens the model with its samples, which must fit each other, and writes a search of the bits of
// all tensors. The bound on the size lies halfway between 8 and 4 bits everywhere or, for a target
// that takes only 8 bits, lets some tensors stay float. For a runtime of a target that takes fewer
// bits, activations may also be dynamic or float, within a bound on the bit operations. *out is
// owned by the caller. It has
//
//     "config"   the written file
//     "tasks", "samples"   their numbers; the last fifth of the samples is for validation
//     "size_ratio"  {"8", "4", "bound"}  without "4" if the target takes only 8 bits, without
//                   "bound" if the size depends too little on the bits
//     "bit_ops_ratio"  {"bound"}  if activations may stay float
//     "runtime"  {"name", "version"} or {"name", "missing"}; absent if the target has no runtime
//
// MSC_E_INVALID: an option or a file is wrong. Nothing is written on failure.
enum msc_status msc_first_config(struct cJSON **out,
                                 const struct msc_first_config_options *options);

#endif

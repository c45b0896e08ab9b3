// Guards outputs of commands: they may replace neither a file that the command reads nor an
// existing file of another kind.
//
//     struct msc_file_set files = {0};
//     MSC_TRY_OUT(msc_output_read_model(&files, "digits.onnx"));
//     MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_MODEL, "the output", "small.onnx"));
#ifndef MSC_MODEL_OUTPUT_H
#define MSC_MODEL_OUTPUT_H

#include "base/file_set.h"

enum msc_output {
    MSC_OUTPUT_MODEL,    // ONNX, or TensorFlow Lite
    MSC_OUTPUT_GGUF,     // GGUF
    MSC_OUTPUT_TYPES,    // list of types for llama-quantize
    MSC_OUTPUT_STRATEGY, // strategy file
    MSC_OUTPUT_GRAPH,    // MSCGraph as JSON or text; its weights are written next to it
    MSC_OUTPUT_LOG,      // log file
    MSC_OUTPUT_JOURNAL,  // Optuna journal without lines of other writers
    MSC_OUTPUT_PAGE,     // HTML of a report
    MSC_OUTPUT_FIGURE,   // SVG of a report
    MSC_OUTPUT_ANY,
};

// Pages of reports begin with this; other pages hardly ever do.
#define MSC_OUTPUT_PAGE_BEGINNING                                                                  \
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                      \
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "

// Figures of reports begin with this; other drawings hardly ever do.
#define MSC_OUTPUT_FIGURE_BEGINNING                                                                \
    "<svg xmlns=\"http://www.w3.org/2000/svg\" data-mscgym=\"figure\""

// Adds a model to the files that are read, with the files that hold its weights.
enum msc_status msc_output_read_model(struct msc_file_set *files, const char *path);
// Adds `path` to the files that are written. MSC_E_INVALID: it is already in the set, or it exists,
// is not empty and is of another kind. NULL is ignored.
enum msc_status msc_output_claim(struct msc_file_set *files, enum msc_output kind, const char *what,
                                 const char *path);
// Like msc_output_claim for MSC_OUTPUT_GRAPH, together with the weights file next to it. An
// existing weights file may be replaced only together with its graph.
enum msc_status msc_output_claim_graph(struct msc_file_set *files, const char *what,
                                       const char *path);
// *out: true if the file is absent or, as far as can be checked, all of it is of that kind.
enum msc_status msc_output_is_whole(bool *out, enum msc_output kind, const char *path);
// A .npz or .safetensors file may be replaced by one with arrays of the same names (or NAME/0,
// NAME/1, ... if the samples of NAME have different shapes). MSC_E_INVALID: the file at `path`
// holds anything else.
enum msc_status msc_output_check_arrays(const char *path, const char *const names[], size_t n);

#endif

// Where outputs may go: not over what a command reads, nor over what is nothing of their kind.
//
//     struct msc_file_set files = {0};
//     MSC_TRY_OUT(msc_output_read_model(&files, "digits.onnx"));
//     MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_MODEL, "the output", "small.onnx"));
#ifndef MSC_MODEL_OUTPUT_H
#define MSC_MODEL_OUTPUT_H

#include "base/file_set.h"

enum msc_output {
    MSC_OUTPUT_MODEL,    // ONNX
    MSC_OUTPUT_STRATEGY, // strategy file
    MSC_OUTPUT_GRAPH,    // MSCGraph JSON; its weights go beside it
    MSC_OUTPUT_LOG,      // log file
    MSC_OUTPUT_JOURNAL,  // of Optuna, with nothing in it that others have added
    MSC_OUTPUT_PAGE,     // HTML of a report
    MSC_OUTPUT_ANY,
};

// What pages of reports begin with, and hardly any other.
#define MSC_OUTPUT_PAGE_BEGINNING                                                                  \
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                      \
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "

// A model is read, and with it the files that hold its weights.
enum msc_status msc_output_read_model(struct msc_file_set *files, const char *path);
// The file at `path` will be written. MSC_E_INVALID: it is in the set, or it exists, holds something
// and is of another kind. NULL is passed over.
enum msc_status msc_output_claim(struct msc_file_set *files, enum msc_output kind, const char *what,
                                 const char *path);
// *out: the file is not there, or is one of that kind from beginning to end, as far as can be told.
enum msc_status msc_output_is_whole(bool *out, enum msc_output kind, const char *path);
// A .npz or .safetensors may be replaced by one that has arrays of the same names (or of NAME/0, NAME/1,
// ... where the samples of NAME have different shapes). MSC_E_INVALID: the file at `path` holds
// anything else.
enum msc_status msc_output_check_arrays(const char *path, const char *const names[], size_t n);

#endif

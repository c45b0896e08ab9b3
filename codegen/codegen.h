// Writes a program that runs a network: its source, the weights, recorded inputs and outputs, and a
// test that compares the program's outputs with the recorded ones. The program needs only this
// folder, and the library that it is written for.
//
//     struct msc_codegen_options o = {.kind = MSC_CODEGEN_C, .model = "digits.onnx",
//                                     .inputs = "calibration.npz", .batch = 1, .folder = "digits"};
//     MSC_TRY(msc_codegen(&o));
//
// docs/codegen.md describes the folder.
#ifndef MSC_CODEGEN_CODEGEN_H
#define MSC_CODEGEN_CODEGEN_H

#include "model/model.h"

struct msc_strategy;

enum msc_codegen_kind {
    MSC_CODEGEN_C,           // C, for libmscgym: builds the graph joint by joint
    MSC_CODEGEN_ONNXRUNTIME, // C++, for ONNX Runtime: runs the exported model
};

struct msc_codegen_options {
    enum msc_codegen_kind kind;
    const char *model;                   // path
    const struct msc_strategy *strategy; // compresses the model; NULL: none
    const char *inputs; // samples, as in a configuration; NULL: random (model/latency.h)
    int64_t batch;      // samples in the recorded inputs, if the model takes any number of them
    const struct msc_binding *bindings;
    size_t n_bindings;
    const struct msc_log *log;
    const char *folder; // created if it does not exist
};

// The folder gets all files or none. MSC_E_INVALID: the folder has such a file already, or the
// options do not fit the model. MSC_E_UNSUPPORTED: the program cannot hold the model's types.
enum msc_status msc_codegen(const struct msc_codegen_options *options);

#endif

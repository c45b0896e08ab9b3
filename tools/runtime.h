// Models in runtimes of others, onnxruntime or openvino, by the program mscgym-runtime
// (tools/mscgym-runtime), which speaks JSON lines. docs/runtime.md has its protocol.
//
//     struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
//     MSC_TRY(msc_runtime_start(&runtime, &options));
//     struct msc_runtime_job job = MSC_RUNTIME_JOB_INIT;
//     job.runtime = "onnxruntime";
//     job.models = (const char *const[]){"float.onnx", "small.onnx"};
//     job.n_models = 2;
//     MSC_TRY_OUT(msc_runtime_latency(runtime, &job, &latency));
//     out: msc_runtime_stop(runtime);
//
// The program is, in this order: the command of the options; $MSCGYM_RUNTIME, a file, or a command
// with blanks between its words; the file beside this program; the one in PATH. It ends with the
// thread that started it. Where it dies, hangs or answers nonsense, it is ended, the text says what
// it did last, and every later call is MSC_E_STATE.
#ifndef MSC_TOOLS_RUNTIME_H
#define MSC_TOOLS_RUNTIME_H

#include "graph/graph.h"
#include "tools/latency.h"
#include "tools/profile.h"

#include <stdint.h>

struct msc_arena;
struct msc_cancel;
struct msc_runtime;

struct msc_runtime_options {
    const char *const *command;      // NULL-terminated; NULL: found as said above
    double timeout_s;                // that it may be silent; every model loaded is a word of it
    const struct msc_cancel *cancel; // polled while waiting; may be NULL
};

#define MSC_RUNTIME_OPTIONS_INIT                                                                   \
    { .timeout_s = 300.0 }

// Open structures, borrowed from the runtime.
struct msc_runtime_found {
    const char *name;
    const char *version; // NULL: it cannot be used
    const char *missing; // why not, and what to do; NULL when it can
};
struct msc_runtime_host {
    const char *processor;
    const char **features; // instructions of interest, as Linux names them: "avx512_vnni"
    size_t n_features;
    int n_threads;
    struct msc_runtime_found *found;
    size_t n_found;
};

// Starts the program and asks what it has. *out is owned by the caller (msc_runtime_stop).
// MSC_E_NOT_FOUND: there is no such program.
enum msc_status msc_runtime_start(struct msc_runtime **out,
                                  const struct msc_runtime_options *options);
void msc_runtime_stop(struct msc_runtime *runtime); // accepts NULL
const struct msc_runtime_host *msc_runtime_host(const struct msc_runtime *runtime);
// False once it has failed, and was ended.
bool msc_runtime_is_alive(const struct msc_runtime *runtime);
// MSC_E_INVALID when nobody knows the name, MSC_E_DEVICE when it is not installed.
enum msc_status msc_runtime_find(const struct msc_runtime_found **out,
                                 const struct msc_runtime *runtime, const char *name);

// What is to be run. Everything is borrowed for the call.
struct msc_runtime_job {
    const char *runtime; // by name
    const char *const *models;
    size_t n_models;
    const char *inputs; // .npz of the inputs' samples (data/dataset.h); NULL: random ones
    int64_t batch;      // samples of one run, where the model takes any number
    const struct msc_binding *bindings; // lengths of random inputs; 1 where none is given
    size_t n_bindings;
    int n_threads;
    int64_t n_rounds; // of a latency or a profile
};

#define MSC_RUNTIME_JOB_INIT                                                                       \
    { .batch = 1, .n_threads = 1, .n_rounds = 20 }

// Latencies of the job's models on the first batch; `latency` must be zero and is owned by the
// caller. MSC_E_STATE with the program's words when it refuses, a model say.
enum msc_status msc_runtime_latency(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    struct msc_latency *latency);
// What the job's models and their kernels take on the first batch, into profiles [n_models]: the
// least of all runs, which is what takes nobody's time else. All live in the arena.
enum msc_status msc_runtime_profile(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    struct msc_profile profiles[], struct msc_arena *arena);
// The outputs of the job's only model on all samples of its inputs, which may not be NULL, as the
// .npz `path`: an array for each output, batch after batch along its first axis. A file of before is
// removed first. MSC_E_STATE as above; MSC_E_FORMAT: it wrote nothing, but may be asked again.
enum msc_status msc_runtime_outputs(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    const char *path);

#endif

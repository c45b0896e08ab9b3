// Runs models in other runtimes, onnxruntime or openvino, through the program mscgym-runtime
// (tools/mscgym-runtime), which exchanges JSON lines. docs/runtime.md describes the protocol.
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
// The program is the first of these that exists: the command in the options; $MSCGYM_RUNTIME (a
// file, or a command with words separated by blanks); mscgym-runtime next to this program;
// mscgym-runtime in PATH. The program ends with the thread that started it. If it dies, hangs or
// answers nonsense, it is ended, the error quotes its last note, and every later call fails with
// MSC_E_STATE.
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
    const char *const *command;      // NULL-terminated; NULL: found as described above
    double timeout_s;                // longest silence; the program sends a note per loaded model
    const struct msc_cancel *cancel; // polled while waiting; may be NULL
    bool has_own;                    // mscgym's own library is loaded, too
};

#define MSC_RUNTIME_OPTIONS_INIT                                                                   \
    { .timeout_s = 300.0 }

// Open structures, borrowed from the runtime.
struct msc_runtime_found {
    const char *name;
    const char *version; // NULL: not usable
    const char *missing; // why it is not usable, and what to do; NULL: usable
    bool runs_chains;    // takes pieces of networks (tools/runtime_chains.h)
    bool is_slow;        // takes minutes to load a model, so it is used only if it is named
};
struct msc_runtime_host {
    const char *processor;
    const char **features; // relevant instruction sets, as Linux names them: "avx512_vnni"
    size_t n_features;
    int n_threads;
    struct msc_runtime_found *found;
    size_t n_found;
    struct msc_runtime_found own; // mscgym's own library; name NULL: not asked for, or the
                                  // program does not say
};

// Starts the program and queries its runtimes. *out is owned by the caller (msc_runtime_stop).
// MSC_E_NOT_FOUND: there is no such program.
enum msc_status msc_runtime_start(struct msc_runtime **out,
                                  const struct msc_runtime_options *options);
void msc_runtime_stop(struct msc_runtime *runtime); // accepts NULL
const struct msc_runtime_host *msc_runtime_host(const struct msc_runtime *runtime);
// False after the program failed and was ended.
bool msc_runtime_is_alive(const struct msc_runtime *runtime);
// MSC_E_INVALID if the name is unknown, MSC_E_DEVICE if the runtime is not installed.
enum msc_status msc_runtime_find(const struct msc_runtime_found **out,
                                 const struct msc_runtime *runtime, const char *name);

// The models to run, and how. Everything is borrowed for the call.
struct msc_runtime_job {
    const char *runtime; // name of the runtime
    const char *const *models;
    size_t n_models;
    const char *inputs; // .npz of the inputs' samples (data/dataset.h); NULL: random inputs
    int64_t batch;      // samples per run, if the model accepts any number
    const struct msc_binding *axes;     // the axis of samples of each input that has one; none: the
    size_t n_axes;                      // program finds them by the lengths' names
    const struct msc_binding *bindings; // lengths of random inputs' symbolic axes; default 1
    size_t n_bindings;
    int n_threads;
    int64_t n_rounds; // only for latencies and profiles
};

#define MSC_RUNTIME_JOB_INIT                                                                       \
    { .batch = 1, .n_threads = 1, .n_rounds = 20 }

// Latencies of the job's models on the first batch; `latency` must be zeroed by the caller, who
// owns its contents. MSC_E_STATE, with the program's message, if the program reports an error, such
// as an unsupported model.
enum msc_status msc_runtime_latency(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    struct msc_latency *latency);
// Fills profiles [n_models] with the times of the job's models and their kernels on the first
// batch: the minimum over runs, which is disturbed least by other load. Arrays and strings are in
// the arena.
enum msc_status msc_runtime_profile(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    struct msc_profile profiles[], struct msc_arena *arena);
// Writes the outputs of the job's only model on all samples of its inputs (not NULL) to the .npz
// `path`: an array for each output, with batches joined along the first axis. An existing file is
// removed first. MSC_E_STATE as above; MSC_E_FORMAT: the program wrote no file, but remains usable.
enum msc_status msc_runtime_outputs(struct msc_runtime *runtime, const struct msc_runtime_job *job,
                                    const char *path);

#endif

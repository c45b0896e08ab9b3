// Latencies of chains: pieces of a network that run one after another in one process, each in a
// backend of its own (docs/placement.md). A chain of one piece measures that piece.
//
//     const struct msc_runtime_piece values = {.model = "net.onnx", .backend = "onnxruntime"};
//     const struct msc_runtime_piece piece = {"net.onnx", "cpu", names, 1, 0};
//     struct msc_runtime_chain chain = {.pieces = &piece, .n_pieces = 1};
//     struct msc_runtime_chains job = MSC_RUNTIME_CHAINS_INIT;
//     ... job.values = &values; job.chains = &chain; ...
//     MSC_TRY(msc_runtime_chains(&latency, runtime, &job));       // latency.us[chain, round]
#ifndef MSC_TOOLS_RUNTIME_CHAINS_H
#define MSC_TOOLS_RUNTIME_CHAINS_H

#include "tools/runtime.h"

struct msc_runtime_piece {
    const char *model;
    const char *backend; // a runtime's name, or a device of mscgym: "cpu", "vulkan", "vulkan:1"
    const char *const *outputs; // [n_outputs] names of its outputs; not read for values
    size_t n_outputs;
    bool may_fail; // of values: later pieces compute its outputs if every backend refuses it
    int copy;      // pieces of one request with equal model, backend and copy share their weights
};

// A piece of a chain that is divided: it is timed in its place, from the end of the piece before it
// to its own end.
struct msc_runtime_part {
    const char *missing; // in the arena: why it was left out of the chain; NULL: measured
    double error;        // of its outputs, as that of a chain; 0 if the backend refuses it
    double bytes;        // of its outputs
    double *us;          // [n_rounds] given by the caller; the median of the runs in a round
};

struct msc_runtime_chain {
    const struct msc_runtime_piece *pieces;
    size_t n_pieces;
    // [n_pieces] given by the caller, for a divided chain; NULL: only the whole chain is timed. A
    // piece that its backend refuses, or whose error is above most_error, is left out, as the
    // values after it are known.
    struct msc_runtime_part *parts;
    double most_error;
    // Results. `missing`, in the arena: why a backend cannot run it; NULL: measured. `error`: the
    // largest error of the last piece's outputs, relative to the values' root mean square.
    const char *missing;
    double error;
};

struct msc_runtime_chains {
    // Pieces that compute every value between pieces once, in order. A piece whose backend refuses
    // it runs in the first of `others` [n_others] that takes it.
    const struct msc_runtime_piece *values;
    size_t n_values;
    const char *const *others;
    size_t n_others;
    struct msc_runtime_chain *chains;
    size_t n_chains;
    const char *inputs; // .npz of the whole network's inputs; NULL: random inputs
    int64_t batch;
    const struct msc_binding *bindings; // lengths of random inputs' symbolic axes; default 1
    size_t n_bindings;
    int n_threads;
    int64_t n_rounds;
    struct msc_arena *arena; // for the results' texts
};

#define MSC_RUNTIME_CHAINS_INIT                                                                    \
    { .batch = 1, .n_threads = 1, .n_rounds = 20 }

// Measures the chains in turn. `latency` must be zeroed; it has a row for each chain (zeros for a
// chain that is missing) and is owned by the caller. MSC_E_STATE, with the program's message, if no
// backend can compute the values.
enum msc_status msc_runtime_chains(struct msc_latency *latency, struct msc_runtime *runtime,
                                   const struct msc_runtime_chains *job);

#endif

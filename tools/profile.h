// What the kernels of a model took in a runtime, and what of the network they are: for tables of
// latency.
//
// Runtimes fuse joints, split them, put conversions between them and give all of that names of their
// own, which begin with those of the model that they were given: "conv1_nchwc", "y_quantized_2". So
// a kernel is that joint's or tensor's whose name is the longest beginning of one of its names, the
// rest beginning with a character between words.
//
//     MSC_TRY(msc_runtime_profile(runtime, &job, profiles, &arena));
//     MSC_TRY(msc_profile_attribute(&times, graph, &profiles[0], &arena));
//     times.compute_us[joint], times.quantize_us[tensor]
#ifndef MSC_TOOLS_PROFILE_H
#define MSC_TOOLS_PROFILE_H

#include "graph/graph.h"

struct msc_arena;

enum msc_profile_kind {
    MSC_PROFILE_COMPUTE,
    MSC_PROFILE_QUANTIZE,   // makes integers of floats, changes of layout with it included
    MSC_PROFILE_DEQUANTIZE, // the reverse
};

// Open structures.
struct msc_profile_kernel {
    const char *const *names; // [n_names] the likeliest first
    size_t n_names;
    enum msc_profile_kind kind;
    double us; // with what timing it adds
};
struct msc_profile {
    double us; // of the whole model, without timing its kernels
    struct msc_profile_kernel *kernels;
    size_t n_kernels;
};

// Microseconds of one run; in all they are the whole model's.
struct msc_profile_times {
    double us;
    double *compute_us;                  // [n_joints]
    double *quantize_us, *dequantize_us; // [n_tensors]
    double other_us;                     // of kernels without a name that the graph knows
};

// The kernels of a model by the joints and tensors of the graph that it was written from; arrays
// live in the arena. What timing adds to each kernel is taken off: as much of all of them as makes
// their sum the whole model's, or nothing where that took longer, disturbed.
enum msc_status msc_profile_attribute(struct msc_profile_times *out, const struct msc_graph *g,
                                      const struct msc_profile *profile, struct msc_arena *arena);

#endif

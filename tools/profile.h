// Attributes the kernel times of a runtime to joints and tensors of the graph, for latency
// tables.
//
// Runtimes fuse joints, split them, insert conversions and rename all of them, but the new names
// begin with names of the model: "conv1_nchwc", "y_quantized_2". A kernel therefore belongs to
// the joint or tensor whose name is the longest prefix of one of the kernel's names, if the rest of
// the kernel's name begins with a separator.
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
    MSC_PROFILE_QUANTIZE,   // converts floats to integers, including a change of layout
    MSC_PROFILE_DEQUANTIZE, // converts integers to floats, including a change of layout
};

// Open structures.
struct msc_profile_kernel {
    const char *const *names; // [n_names] likeliest name first
    size_t n_names;
    enum msc_profile_kind kind;
    double us; // including the overhead of timing
};
struct msc_profile {
    double us; // of the whole model, without timing its kernels
    struct msc_profile_kernel *kernels;
    size_t n_kernels;
};

// Microseconds of one run. The times of all joints, tensors and other kernels sum to `us`, the time
// of the whole model.
struct msc_profile_times {
    double us;
    double *compute_us;                  // [n_joints]
    double *quantize_us, *dequantize_us; // [n_tensors]
    double other_us;                     // of kernels whose names the graph does not know
};

// Attributes kernels to the joints and tensors of the graph that the model was exported from;
// arrays are in the arena. The overhead of timing is subtracted equally from all kernels, so that
// their times sum to the time of the whole model. Nothing is subtracted if the untimed run was
// disturbed and took longer than the kernels together.
enum msc_status msc_profile_attribute(struct msc_profile_times *out, const struct msc_graph *g,
                                      const struct msc_profile *profile, struct msc_arena *arena);

#endif

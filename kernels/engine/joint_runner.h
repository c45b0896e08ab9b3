// Runs single joints with the kernels of the backend `cpu`, for joints whose shapes become known
// only while a network runs. Each run plans the joint for the lengths at hand and packs its
// weights, so only joints with many multiply-accumulates are worth it.
//
//     struct msc_joint_runner runner = {0};
//     MSC_TRY(msc_joint_runner_run(&runner, &out, graph, joint, operands, limits));
//     msc_joint_runner_finish(&runner);
#ifndef MSC_KERNELS_ENGINE_JOINT_RUNNER_H
#define MSC_KERNELS_ENGINE_JOINT_RUNNER_H

#include "graph/reference/reference.h"
#include "kernels/backend.h"

// One runner serves one thread at a time.
struct msc_joint_runner {
    struct msc_backend *backend; // opened at the first run
    uint64_t packed_bytes;       // most bytes of packed weights in any run so far
};

void msc_joint_runner_finish(struct msc_joint_runner *runner);

// Computes output 0 of a joint of `graph`. `operands` [the joint's n_operands] are its elements;
// NULL for an absent operand. *out is owned by the caller. It is NULL if the joint has several
// outputs, has few multiply-accumulates, or has no kernel in the backend: the reference kernel is
// the right choice then.
enum msc_status msc_joint_runner_run(struct msc_joint_runner *runner, struct msc_array **out,
                                     const struct msc_graph *graph, int32_t joint,
                                     const struct msc_array *const operands[],
                                     const struct msc_reference_limits *limits);

#endif

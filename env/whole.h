// The whole model, for a search that starts from a strategy that removes channels. The
// environment's graph (msc_env_host) then lacks these channels, but losses, ratios and metrics of
// the float model refer to the whole model. Without such a strategy both are the same graph.
//
//     MSC_TRY(msc_whole_compute_reference(distill, env));
//     MSC_TRY(msc_whole_run(&run, distill, env));
//     MSC_TRY(msc_whole_measure_cost(&cost, distill, env));
#ifndef MSC_ENV_WHOLE_H
#define MSC_ENV_WHOLE_H

#include "env/distill.h"

// Whether the whole model has more channels than the environment's graph.
bool msc_whole_is_more(const struct msc_env *env);
// Like msc_distill_compute_reference, but with the whole model. MSC_E_INVALID: a compared tensor
// has another shape in the whole model.
enum msc_status msc_whole_compute_reference(struct msc_distill *d, const struct msc_env *env);
// Runs the whole model without edits. The loss must have its reference.
enum msc_status msc_whole_run(struct msc_distill_run *run, struct msc_distill *d,
                              const struct msc_env *env);

// The cost of the whole model. Symbolic dimensions have the lengths of the first sample that the
// loss is computed on.
struct msc_whole_cost {
    double n_bytes; // bytes of weights
    double macs;    // multiply-accumulates for one sample
};
enum msc_status msc_whole_measure_cost(struct msc_whole_cost *out, const struct msc_distill *d,
                                       const struct msc_env *env);

#endif

// The whole model, where a search starts from a strategy that takes channels away: its environment is
// given what is left (msc_env_host), but losses, ratios and what is said of the float model are all
// against the model as it was. Without such a strategy the two are one.
//
//     MSC_TRY(msc_whole_compute_reference(distill, env));
//     MSC_TRY(msc_whole_run(&run, distill, env));
//     MSC_TRY(msc_whole_measure_cost(&cost, distill, env));
#ifndef MSC_ENV_WHOLE_H
#define MSC_ENV_WHOLE_H

#include "env/distill.h"

// Is there more of it than the environment's graph has?
bool msc_whole_is_more(const struct msc_env *env);
// As msc_distill_compute_reference: outputs of the whole model on the loss's samples. MSC_E_INVALID: a
// tensor that is compared has other lengths there.
enum msc_status msc_whole_compute_reference(struct msc_distill *d, const struct msc_env *env);
// One run of the whole model without edits; the loss has its reference.
enum msc_status msc_whole_run(struct msc_distill_run *run, struct msc_distill *d,
                              const struct msc_env *env);

// What it costs, in lengths as the loss's first sample has them.
struct msc_whole_cost {
    double n_bytes; // of weights
    double macs;    // multiply-accumulates for one sample
};
enum msc_status msc_whole_measure_cost(struct msc_whole_cost *out, const struct msc_distill *d,
                                       const struct msc_env *env);

#endif

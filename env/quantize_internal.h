// What the quantize environment's sources share.
#ifndef MSC_ENV_QUANTIZE_INTERNAL_H
#define MSC_ENV_QUANTIZE_INTERNAL_H

#include "base/json.h"
#include "env/env.h"
#include "env/loss_options.h"
#include "env/quantize_latency.h"
#include "env/quantize_metrics.h"
#include "env/trial_runs.h"
#include "tools/bias_edits.h"
#include "tools/command.h"

struct msc_quantize {
    // Parameters. Those of the quantizer are read by msc_quantizer_read_options.
    struct msc_loss_options loss;
    const char *target, *sites, *group;
    const cJSON *choices, *observers, *weights, *activations, *include, *exclude, *fix;
    const cJSON *asked_command;

    struct msc_command command; // where a metric asks for it
    struct msc_quantizer_options quantizer_options;
    struct msc_distill_options distill_options;
    struct msc_quantizer *quantizer;
    struct msc_bias_edits *bias_edits;
    struct msc_trial_runs runs;
    struct msc_quantize_space space;
    const struct msc_edit **fixed; // [runs.n_slots] edits of slots that are no task
    bool asks_for_latency;
    struct msc_quantize_latency latency; // where it is asked for
    // Of scales, zero points, reference outputs and the table of latencies.
    struct msc_hash parameters;
};

// The environment's parameters; offsets are into struct msc_quantize.
extern const struct msc_param msc_quantize__params[];

// Fills the options of the quantizer and of the loss from the parameters.
enum msc_status msc_quantize__read_options(struct msc_env *env, struct msc_quantize *z);

// The environment's `complete`.
enum msc_status msc_quantize__complete(cJSON *config);

// Fills `fixed`, once scales are there.
enum msc_status msc_quantize__build_fixed(struct msc_env *env, struct msc_quantize *z);
// Scales, zero points, reference outputs and, where it is asked for, the table of latencies: read
// from the host's parameters file if there is one, else computed and written there. Sets `fixed`,
// `bias_edits` and `parameters`.
enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z);
// Of names and elements, in their order.
struct msc_hash msc_quantize__hash_list(const struct msc_array_list *list);

// What a site's choice is to the quantizer at a point: one that is fixed or searched, or MSC_NO_ID
// and MSC_FIXED_FLOAT.
int32_t msc_quantize__choice_of_site(const struct msc_quantize *z, int32_t site,
                                     const uint32_t choices[]);
// The edits of a point over those that the search started from. *out is owned by the caller.
enum msc_status msc_quantize__make_strategy(struct msc_strategy **out, const struct msc_env *env,
                                            const uint32_t choices[]);

// What the user's program says of a trial with these edits, NULL: of the float model.
enum msc_status msc_quantize__run_command(double *out, const struct msc_env *env,
                                          const struct msc_edit *const edits[]);

#endif

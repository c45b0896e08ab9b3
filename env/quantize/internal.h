// What the quantize environment's sources share.
#ifndef MSC_ENV_QUANTIZE_INTERNAL_H
#define MSC_ENV_QUANTIZE_INTERNAL_H

#include "base/json.h"
#include "env/env.h"
#include "env/loss_options.h"
#include "env/quantize/latency.h"
#include "env/quantize/metrics.h"
#include "env/trial_runs.h"
#include "tools/bias_edits.h"
#include "tools/command.h"

// What another environment prepares, and keeps in the same file as scales. The combined environment keeps its
// orders of channels so.
struct msc_quantize_more {
    enum msc_status (*prepare)(struct msc_env *env, void *payload); // after scales are found
    enum msc_status (*save)(const void *payload, struct msc_array_list *list);
    enum msc_status (*load)(void *payload, const struct msc_array_list *list);
    void *payload;
};

struct msc_quantize {
    // Parameters. Those of the quantizer are read by msc_quantizer_read_options.
    struct msc_loss_options loss;
    const char *target, *sites, *group;
    const cJSON *choices, *observers, *weights, *activations, *include, *exclude, *fix, *rules,
        *outputs;
    const cJSON *asked_command;

    struct msc_command command;           // where a metric asks for it
    const struct msc_quantize_more *more; // NULL: only scales
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

// Rows of the quantizer's parameters for a struct msc_quantize at `base` of a state.
#define MSC_QUANTIZE_FIELD(base, member) ((base) + offsetof(struct msc_quantize, member))
// clang-format off
#define MSC_QUANTIZE_PARAMS(base) \
    {.name = "target", \
     .help = "runtime that the model is for: onnxruntime, onnxruntime_avx2, openvino, tensorrt, " \
             "tflite, or " \
             "generic", \
     .offset = MSC_QUANTIZE_FIELD(base, target), \
     .type = MSC_PARAM_TEXT, \
     .text = "onnxruntime"}, \
    {.name = "sites", \
     .help = \
         "what is quantised: all that the target passes on as integers, or the inputs of joints " \
         "(default: all, inputs for generic)", \
     .offset = MSC_QUANTIZE_FIELD(base, sites), \
     .type = MSC_PARAM_WORD}, \
    {.name = "group", \
     .help = "what shares a decision: tensor, site (each use) or joint", \
     .offset = MSC_QUANTIZE_FIELD(base, group), \
     .type = MSC_PARAM_TEXT, \
     .text = "tensor"}, \
    {.name = "choices", \
     .help = "list of {bits, group_size, observer, percentile, scale, rounding, correct}, {type} or " \
             "{float} (default: 8 bits with the range scaled by 0.8, 0.9, 1, 1.1, 1.2)", \
     .offset = MSC_QUANTIZE_FIELD(base, choices), \
     .type = MSC_PARAM_JSON}, \
    {.name = "observers", \
     .help = "{weights, activations}: what finds the range where a choice does not say: minmax, " \
             "percentile, mse, hessian (of weights), or auto, which goes by the bits (default: " \
             "auto)", \
     .offset = MSC_QUANTIZE_FIELD(base, observers), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "weights", \
     .help = "{per_channel, symmetric, float} (default: true, true, false)", \
     .offset = MSC_QUANTIZE_FIELD(base, weights), \
     .type = MSC_PARAM_JSON}, \
    {.name = "activations", \
     .help = "{per_channel, symmetric, float} (default: false; false, true for tensorrt; false); " \
             "per_channel: of what depthwise convolutions alone read, where the target takes it", \
     .offset = MSC_QUANTIZE_FIELD(base, activations), \
     .type = MSC_PARAM_JSON}, \
    {.name = "include", \
     .help = "name patterns of the tensors to quantise (default: all)", \
     .offset = MSC_QUANTIZE_FIELD(base, include), \
     .type = MSC_PARAM_JSON}, \
    {.name = "exclude", \
     .help = "name patterns of the tensors to leave float", \
     .offset = MSC_QUANTIZE_FIELD(base, exclude), \
     .type = MSC_PARAM_JSON}, \
    {.name = "fix", \
     .help = "name patterns and the choice that they take without a search", \
     .offset = MSC_QUANTIZE_FIELD(base, fix), \
     .type = MSC_PARAM_JSON}, \
    {.name = "rules", \
     .help = "list of {kind, name, op, producer, consumer, choices}: the first that fits a tensor says " \
             "which choices, by their labels, it has", \
     .offset = MSC_QUANTIZE_FIELD(base, rules), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "outputs", \
     .help = "list of tensors where the part ends that is searched: they are compared unless " \
             "loss_tensors says otherwise, and what they do not need stays float", \
     .offset = MSC_QUANTIZE_FIELD(base, outputs), \
     .type = MSC_PARAM_OBJECT}
// clang-format on

// The environment's parameters; offsets are into struct msc_quantize.
extern const struct msc_param msc_quantize__params[];

// Fills the options of the quantizer and of the loss from the parameters.
enum msc_status msc_quantize__read_options(struct msc_env *env, struct msc_quantize *z);

// The environment's `complete`.
enum msc_status msc_quantize__complete(cJSON *config);

// Leaves sites float that the loss does not depend on, where what comes before outputs is compared, and
// those that edits cannot reach on the dataset, and tells of these.
enum msc_status msc_quantize__leave_constants(struct msc_quantize *z,
                                              const struct msc_env_host *host);
// Warns of choices that are no better than others for the target.
void msc_quantize__tell_dominated(const struct msc_quantize *z, const struct msc_log *log);
// The edits [n_slots] of sites at a point, biases as they are.
void msc_quantize__fill_sites(const struct msc_quantize *z, const uint32_t choices[],
                              const struct msc_edit *edits[]);
// All edits of a point; and those of one task.
enum msc_status msc_quantize__fill(struct msc_quantize *z, const uint32_t choices[],
                                   const struct msc_edit *edits[]);
enum msc_status msc_quantize__fill_alone(struct msc_quantize *z, const uint32_t choices[],
                                         size_t task, const struct msc_edit *edits[]);
// What biases become beside the edits of a point. Made once more, those of before are gone.
enum msc_status msc_quantize__make_bias_edits(struct msc_env *env, struct msc_quantize *z);
// Fills `fixed`, once scales are there.
enum msc_status msc_quantize__build_fixed(struct msc_env *env, struct msc_quantize *z);
// Scales, zero points, reference outputs and, where it is asked for, the table of latencies: read
// from the host's parameters file if there is one, else computed and written there. Sets `fixed`,
// `bias_edits` and `parameters`.
enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z);

// What a site's choice is to the quantizer at a point: one that is fixed or searched, or MSC_NO_ID
// and MSC_FIXED_FLOAT.
int32_t msc_quantize__choice_of_site(const struct msc_quantize *z, int32_t site,
                                     const uint32_t choices[]);
// The environment's `identity`, `describe` and `finish`, for a state that begins with a struct msc_quantize.
struct msc_hash msc_quantize__identity(const struct msc_env *env);
enum msc_status msc_quantize__describe(const struct msc_env *env, cJSON *object);
void msc_quantize__finish(struct msc_env *env);
// The edits of a point over those that the search started from. *out is owned by the caller.
enum msc_status msc_quantize__make_strategy(struct msc_strategy **out, const struct msc_env *env,
                                            const uint32_t choices[]);

#endif

// State and functions shared by the sources of the `quantize` environment and by the combined
// environment.
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

// Additional preparation by another environment, stored in the same file as the scales. The
// combined environment stores its orders of channels this way.
struct msc_quantize_more {
    enum msc_status (*prepare)(struct msc_env *env, void *payload); // called after scales are known
    enum msc_status (*save)(const void *payload, struct msc_array_list *list);
    enum msc_status (*load)(void *payload, const struct msc_array_list *list);
    void *payload;
};

struct msc_quantize {
    // Parameters. Those of the quantizer are read by msc_quantizer_read_options.
    struct msc_loss_options loss;
    const char *target, *sites, *group;
    const cJSON *choices, *observers, *weights, *activations, *include, *exclude, *fix, *rules,
        *outputs, *moments;
    const char *imatrix;
    const cJSON *asked_command;

    struct msc_command command;           // from asked_command
    const struct msc_quantize_more *more; // NULL: nothing in addition to scales
    struct msc_quantizer_options quantizer_options;
    struct msc_distill_options distill_options;
    struct msc_quantizer *quantizer;
    struct msc_bias_edits *bias_edits;
    struct msc_trial_runs runs;
    struct msc_quantize_space space;
    const struct msc_edit **fixed; // [runs.n_slots], edits of slots without a task
    bool asks_for_latency;
    struct msc_quantize_latency latency; // valid if asks_for_latency
    // Hash of scales, zero points, reference outputs and the table of latencies.
    struct msc_hash parameters;
    bool is_new;             // the parameters are not in the host's file yet
    struct msc_array *alone; // losses of single choices (env/quantize/alone.h), or NULL; owned
};

// Rows of a parameter table for the quantizer's parameters, if a struct msc_quantize is at offset
// `base` of the state.
#define MSC_QUANTIZE_FIELD(base, member) ((base) + offsetof(struct msc_quantize, member))
// clang-format off
#define MSC_QUANTIZE_PARAMS(base) \
    {.name = "target", \
     .help = "runtime that the model is for, which decides what is computed in integers: " \
             "onnxruntime, onnxruntime_avx2, onnxruntime_nbits, openvino, tensorrt, tflite, or " \
             "generic", \
     .offset = MSC_QUANTIZE_FIELD(base, target), \
     .type = MSC_PARAM_TEXT, \
     .text = "onnxruntime"}, \
    {.name = "sites", \
     .help = \
         "tensors to quantise: all that the target keeps as integers, or only inputs of joints " \
         "(default: all; inputs for generic)", \
     .offset = MSC_QUANTIZE_FIELD(base, sites), \
     .type = MSC_PARAM_WORD}, \
    {.name = "group", \
     .help = "what gets a choice of its own: tensor, site (each use) or joint (all operands)", \
     .offset = MSC_QUANTIZE_FIELD(base, group), \
     .type = MSC_PARAM_TEXT, \
     .text = "tensor"}, \
    {.name = "choices", \
     .help = "list of choices: {bits, dynamic, group_size, observer, percentile, scale, rounding, " \
             "correct}, {type} or {float} (default: 8 bits with the range scaled by 0.8, 0.9, 1, 1.1, 1.2)", \
     .offset = MSC_QUANTIZE_FIELD(base, choices), \
     .type = MSC_PARAM_JSON}, \
    {.name = "observers", \
     .help = "{weights, activations}: how the range is found if a choice has no observer: minmax, " \
             "percentile, mse, hessian (weights only), or auto, which depends on the bits (default: " \
             "auto)", \
     .offset = MSC_QUANTIZE_FIELD(base, observers), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "weights", \
     .help = "scheme of weights: {per_channel, symmetric, float} (default: true, true, false)", \
     .offset = MSC_QUANTIZE_FIELD(base, weights), \
     .type = MSC_PARAM_JSON}, \
    {.name = "activations", \
     .help = "scheme of activations: {per_channel, symmetric, float} (default: false; false, true for tensorrt; false); " \
             "per_channel applies to tensors read by depthwise convolutions only, if the target supports it", \
     .offset = MSC_QUANTIZE_FIELD(base, activations), \
     .type = MSC_PARAM_JSON}, \
    {.name = "include", \
     .help = "name patterns of tensors to quantise (default: all)", \
     .offset = MSC_QUANTIZE_FIELD(base, include), \
     .type = MSC_PARAM_JSON}, \
    {.name = "exclude", \
     .help = "name patterns of tensors to leave float", \
     .offset = MSC_QUANTIZE_FIELD(base, exclude), \
     .type = MSC_PARAM_JSON}, \
    {.name = "fix", \
     .help = "object {name pattern: choice}: matching tensors get this choice without a search", \
     .offset = MSC_QUANTIZE_FIELD(base, fix), \
     .type = MSC_PARAM_JSON}, \
    {.name = "rules", \
     .help = "list of {kind, name, op, producer, consumer, choices}: the first rule that matches a " \
             "tensor restricts it to these labels of choices", \
     .offset = MSC_QUANTIZE_FIELD(base, rules), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "outputs", \
     .help = "tensors at the end of the part to search: they are compared unless loss_tensors is " \
             "given, and tensors that they do not depend on stay float", \
     .offset = MSC_QUANTIZE_FIELD(base, outputs), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "moments", \
     .help = "{rows, columns, least} of second moments for rounding: the most rows to sample " \
             "(default: 16384), the most columns per block (no limit), and the least rows per " \
             "column, with fewer only means are corrected (0)", \
     .offset = MSC_QUANTIZE_FIELD(base, moments), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "imatrix", \
     .help = "importance file of llama.cpp, relative to the configuration: importance of the inputs " \
             "of weights, in place of second moments", \
     .offset = MSC_QUANTIZE_FIELD(base, imatrix), \
     .type = MSC_PARAM_WORD}
// clang-format on

// The environment's parameters; offsets are into struct msc_quantize.
extern const struct msc_param msc_quantize__params[];

// Fills the options of the quantizer and of the loss from the parameters.
enum msc_status msc_quantize__read_options(struct msc_env *env, struct msc_quantize *z);

// The function `complete` of the environment's definition.
enum msc_status msc_quantize__complete(cJSON *config);

// Leaves two kinds of sites float: first, if tensors before outputs are compared, the sites that
// the loss does not depend on; second, the sites that are constant on the dataset, which are
// logged.
enum msc_status msc_quantize__leave_constants(struct msc_quantize *z,
                                              const struct msc_env_host *host);
// Warns of choices that have no advantage over another choice for the target.
void msc_quantize__tell_dominated(const struct msc_quantize *z, const struct msc_log *log);
// Fills the edits [n_slots] of sites at a point; biases are left out.
void msc_quantize__fill_sites(const struct msc_quantize *z, const uint32_t choices[],
                              const struct msc_edit *edits[]);
// Fills all edits of a point, or only those of one task.
enum msc_status msc_quantize__fill(struct msc_quantize *z, const uint32_t choices[],
                                   const struct msc_edit *edits[]);
enum msc_status msc_quantize__fill_alone(struct msc_quantize *z, const uint32_t choices[],
                                         size_t task, const struct msc_edit *edits[]);
// Creates `bias_edits`, which make the edits of biases that follow from a point. Edits of biases
// from an earlier call are freed.
enum msc_status msc_quantize__make_bias_edits(struct msc_env *env, struct msc_quantize *z);
// Fills `fixed`. Needs the scales.
enum msc_status msc_quantize__build_fixed(struct msc_env *env, struct msc_quantize *z);
// Gets scales, zero points, reference outputs and, if a metric asks for it, the table of latencies:
// reads the host's parameters file if it exists, else computes them. Sets `fixed`, `bias_edits`,
// `parameters` and `is_new`.
enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z);
// Writes new parameters, and `alone`, to the host's file if it keeps one.
enum msc_status msc_quantize__keep_parameters(struct msc_env *env, const struct msc_quantize *z);

// The quantizer's choice for a site at a point, fixed or searched; MSC_NO_ID or MSC_FIXED_FLOAT if
// the site stays float.
int32_t msc_quantize__choice_of_site(const struct msc_quantize *z, int32_t site,
                                     const uint32_t choices[]);
// The functions `identity`, `describe` and `finish` of a definition whose state begins with a
// struct msc_quantize.
struct msc_hash msc_quantize__identity(const struct msc_env *env);
enum msc_status msc_quantize__describe(const struct msc_env *env, cJSON *object);
void msc_quantize__finish(struct msc_env *env);
// The edits of a point merged into the strategy that the search started from. *out is owned by the
// caller.
enum msc_status msc_quantize__make_strategy(struct msc_strategy **out, const struct msc_env *env,
                                            const uint32_t choices[]);

#endif

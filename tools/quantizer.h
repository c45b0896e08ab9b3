// The quantizer: determines the sites to quantise and the choices of each. It computes the scale
// and zero point of every (site, choice) once, from the float model.
//
//     MSC_TRY(msc_quantizer_create(&q, graph, &options));           // sites and choices
//     MSC_TRY(msc_quantizer_calibrate(q, evaluator, progress));     // or msc_quantizer_load
//     edits[slot] = msc_quantizer_edit(q, site, choice);            // NULL: stays float
#ifndef MSC_TOOLS_QUANTIZER_H
#define MSC_TOOLS_QUANTIZER_H

#include "base/cancel.h"
#include "base/json.h"
#include "base/log.h"
#include "data/npy.h"
#include "kernels/engine/evaluator.h"
#include "tools/range.h"

MSC_PUBLIC_BEGIN

struct msc_arena;
struct msc_array_log;
struct msc_moment;
struct msc_quantizer;
struct msc_strategy_origin;

enum msc_site_group {
    MSC_GROUP_TENSOR, // one decision for each weight and each activation tensor
    MSC_GROUP_SITE,   // one decision for each weight and each use of an activation
    MSC_GROUP_JOINT,  // one decision for a joint's activation and weight together
};

#define MSC_LABEL_BYTES 64

// A value in "observers": a choice that does not name an observer gets one that suits its number of
// bits.
#define MSC_OBSERVER_AUTO "auto"

// One row of "choices".
struct msc_choice {
    bool is_float; // the tensor is not quantised
    // Activations: quantised dynamically (graph/quant.h), which only some sites support. Weights:
    // no difference.
    bool is_dynamic;
    enum msc_dtype type; // MSC_DTYPE_NONE: integers; else a 16-bit float type
    // Weights are stored in blocks of this type of GGUF, and activations stay float; NULL: not.
    const struct msc_gguf_block_type *blocks;
    int32_t bits;
    int32_t group_size; // for weights: elements that share a scale; 0: per channel or per tensor
    enum msc_observer observers[2]; // [kind of site] for weights and for activations
    double percentile;
    double range_scale;             // factor on the observed range
    enum msc_rounding rounding;     // for weights
    enum msc_correction correction; // for weights
    char label
        [MSC_LABEL_BYTES]; // "8", "6 mse", "8 x0.9", "4 g32", "4 descent affine", "float16", "q4_k"
};

struct msc_operand_scheme {
    bool is_symmetric;
    // For weights, one scale per output channel; for activations that only depthwise convolutions
    // read, one per channel.
    bool is_per_channel;
    bool is_float; // all such tensors stay float
};

struct msc_fixed_site {
    const char *pattern, *label;
};

// Restricts the sites that match all given fields to the choices in `allowed`. NULL and
// MSC_SITE_KINDS match all sites; patterns have * and ?.
struct msc_choice_rule {
    int kind;         // enum msc_site_kind
    const char *name; // name of the site or of its tensor
    const char *op;   // operator of a joint that reads it, MSC's name or ONNX's ("nn.relu", "Relu")
    const char *producer; // name or operator of the joint that produces the tensor
    const char *consumer; // name or operator of a joint that reads it; the same joint as for `op`
    uint64_t allowed;     // one bit per choice
};

struct msc_quantizer_options {
    const struct msc_target *target;
    bool all_sites; // true: the sites are all tensors that the target requantises, and biases are
                    // int32; false: the sites are the tensors that joints read
    enum msc_site_group group;
    size_t n_choices;
    const struct msc_choice *choices; // [n_choices], copied
    struct msc_operand_scheme weights, activations;
    // Name patterns with * and ?. A site is included if its name matches one of `include` (or
    // `include` is empty) and none of `exclude`.
    const char *const *include, *const *exclude;
    size_t n_include, n_exclude;
    // A site whose name matches a pattern is not searched: it takes the choice with that label. The
    // last match counts. "float" is always allowed.
    const struct msc_fixed_site *fixed;
    size_t n_fixed;
    // Names of tensors: sites that do not contribute to any of them stay float. Without names, no
    // site stays float for this reason.
    const char *const *outputs;
    size_t n_outputs;
    // Of the second moments for rounding weights (tools/second_moment.h): the most rows sampled,
    // and the most columns per block. 0: the usual rows; no limit on columns. A weight with fewer
    // rows per column than `least_rows` is rounded to nearest, and corrected by a shift only.
    int64_t moment_rows, moment_columns;
    double least_rows;
    // llama.cpp's importance file (tools/importance.h), in place of second moments of the weights
    // that it has; NULL: none. Choices with blocks then have the observer `hessian` by default.
    const char *imatrix;
    const struct msc_choice_rule
        *rules; // the first match counts; without a match all choices are allowed
    size_t n_rules;
};

// Reads the quantizer's keys of an environment's configuration ("target", "sites", "group",
// "choices", "observers", "weights", "activations", "include", "exclude", "fix", "rules",
// "outputs", "imatrix"); strings and lists are in the arena. MSC_E_INVALID: the target's runtime
// does not support a setting (graph/target.h). `target` is used if the object has no "target".
// Without "sites", sites are the tensors that joints read. A choice without an observer takes the
// observer that "observers" names for the kind of site; if "observers" names none for the kind, the
// choice takes "auto". Without "observers", it takes "minmax".
enum msc_status msc_quantizer_read_options(struct msc_quantizer_options *out, const cJSON *config,
                                           const char *target, struct msc_arena *arena);

// `graph` is borrowed until the quantizer is destroyed. *out is owned by the caller.
enum msc_status msc_quantizer_create(struct msc_quantizer **out, const struct msc_graph *graph,
                                     const struct msc_quantizer_options *options);
void msc_quantizer_destroy(struct msc_quantizer *q); // accepts NULL

// The sites in order. If the group is not MSC_GROUP_TENSOR, each use of an activation has a site of
// its own. Fixed sites already have their choice.
const struct msc_sites *msc_quantizer_sites(const struct msc_quantizer *q);
size_t msc_quantizer_n_choices(const struct msc_quantizer *q);
const struct msc_choice *msc_quantizer_choice(const struct msc_quantizer *q, size_t choice);
// The first choice that is equivalent to `choice` for sites of this kind. For example, activations
// ignore groups and rounding.
size_t msc_quantizer_first_choice(const struct msc_quantizer *q, enum msc_site_kind kind,
                                  size_t choice);
enum msc_site_group msc_quantizer_group(const struct msc_quantizer *q);
bool msc_quantizer_is_included(const struct msc_quantizer *q, int32_t site);
// The choice that a site is fixed to, MSC_FIXED_FLOAT, or MSC_NO_ID if the site is searched.
#define MSC_FIXED_FLOAT (-2)
int32_t msc_quantizer_fixed_choice(const struct msc_quantizer *q, int32_t site);
// The choices that rules allow a site: one bit per choice.
uint64_t msc_quantizer_allowed(const struct msc_quantizer *q, int32_t site);

// Excludes the sites that do not contribute to the named tensors; excluded sites stay float.
// MSC_E_INVALID: the model does not compute one of the named tensors.
enum msc_status msc_quantizer_keep_part(struct msc_quantizer *q, const char *const outputs[],
                                        size_t n);

// Excludes the sites that edits cannot reach on the evaluator's dataset, because the joints that
// read these sites are constant once lengths are known. Sets *n_left to the number of sites that
// this call excluded. MSC_E_INVALID: no site remains.
enum msc_status msc_quantizer_leave_constants(struct msc_quantizer *q, struct msc_evaluator *ev,
                                              int32_t *n_left);

// Did observation leave a site float? This happens if a value is infinite, which no scale can
// represent, or if a value is NaN and a later joint tests for NaN.
bool msc_quantizer_is_left(const struct msc_quantizer *q, int32_t site);

// Long stages of finding scales and integers. `progress` (may be NULL) receives the amount done in
// a stage and the stage's total. Only one thread at a time calls it.
enum msc_quantizer_stage {
    MSC_STAGE_PASSES,   // values of the float model that are observed
    MSC_STAGE_RANGES,   // sites whose ranges are found
    MSC_STAGE_MOMENTS,  // uses of weights whose second moments are measured
    MSC_STAGE_INTEGERS, // uses of weights that are rounded
    MSC_N_STAGES
};
typedef void (*msc_quantizer_progress)(void *payload, enum msc_quantizer_stage stage, size_t done,
                                       size_t all);

// Observes the float model over the dataset of `ev`, an evaluator of the same graph, and computes
// all quants. msc_quantizer_round completes choices that depend on the inputs of weights.
enum msc_status msc_quantizer_observe(struct msc_quantizer *q, struct msc_evaluator *ev,
                                      msc_quantizer_progress progress, void *payload);

// Hash of the importance file; zeros if there is none.
struct msc_hash msc_quantizer_importance_hash(const struct msc_quantizer *q);

// Does any choice depend on the inputs of weights?
bool msc_quantizer_has_rounding(const struct msc_quantizer *q);

struct msc_quantizer_rounding {
    uint64_t memory_bytes; // limit for second moments, but one use is always measured; 0: 256 MiB
    // A cache of second moments: cached moments are not measured again, and new ones are added. If
    // the file cannot be written or read, `log` gets a warning and the file is not used again.
    // NULL: no cache.
    struct msc_array_log *kept;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    msc_quantizer_progress progress;
    void *payload;
};

// Call after msc_quantizer_observe. Computes the scales and integers of choices that depend on the
// inputs of weights, and adjusts scales for targets. The result depends neither on memory nor on
// the cache. MSC_E_CANCELLED.
enum msc_status msc_quantizer_round(struct msc_quantizer *q, struct msc_evaluator *ev,
                                    const struct msc_quantizer_rounding *options);

// Observes and rounds.
enum msc_status msc_quantizer_calibrate(struct msc_quantizer *q, struct msc_evaluator *ev,
                                        msc_quantizer_progress progress, void *payload);

// A weight whose contents differ from the model's.
struct msc_quantizer_other {
    const struct msc_array *elements; // of the weight's shape, float32
    const struct msc_moment *moment;  // of the weight's inputs; NULL: round to nearest
    const struct msc_array *bias;     // replaces the bias of the weight's joint; NULL: the model's
};

// Quantises a weight with the contents `of`, by a choice that has scales. The scales of activations
// must be known. *out is owned by the caller (msc_quant_finish), sealed. Thread-safe. MSC_E_NOMEM;
// MSC_E_INVALID: the moments cannot be used for rounding.
enum msc_status msc_quantizer_fit(struct msc_quant *out, const struct msc_quantizer *q,
                                  int32_t site, int32_t choice,
                                  const struct msc_quantizer_other *of);

// What was left out of a choice of a weight because it only fits the samples. Each is simpler than
// the one before.
enum msc_fallback {
    MSC_FALLBACK_NONE,
    MSC_FALLBACK_NEAREST, // rounds to nearest
    MSC_FALLBACK_SHIFT,   // also has the scales without second moments, and no gain
    MSC_FALLBACK_ALL,     // also has no shift
    MSC_N_FALLBACKS
};

// How a choice of a weight was judged by msc_quantizer_round. If the samples have fewer than 8
// rows of inputs per input of an output, the last eighth of the sampled rows is held back, but at
// least 8, or half of fewer than 16. What of the choice, fitted to the other rows, has the least
// error of the outputs on these rows, is then fitted to all rows. With fewer than 4 rows held back,
// nothing is fitted.
struct msc_quantizer_held {
    int32_t n_held; // rows held back; 0: none
    enum msc_fallback fallback;
};
struct msc_quantizer_held msc_quantizer_held(const struct msc_quantizer *q, int32_t site,
                                             int32_t choice);

// Appends arrays "<site>/<choice>/scale" and "…/zero_point" to a list, "…/integers" if weights are
// not rounded to nearest, "…/shift" if there are shifts, and "…/held_back" [n_held, fallback] if
// rows were held back. The second function reads them back.
// MSC_E_STATE if one is missing: the list belongs to another configuration.
enum msc_status msc_quantizer_save(const struct msc_quantizer *q, struct msc_array_list *list);
enum msc_status msc_quantizer_load(struct msc_quantizer *q, const struct msc_array_list *list);

// The edit is borrowed from the quantizer; NULL for a float choice and MSC_FIXED_FLOAT.
const struct msc_edit *msc_quantizer_edit(const struct msc_quantizer *q, int32_t site,
                                          int32_t choice);
// The quantisation in the edit that msc_quantizer_edit returns; NULL if there is no edit.
const struct msc_quant *msc_quantizer_quant(const struct msc_quantizer *q, int32_t site,
                                            int32_t choice);
// How the scales of a choice were found; false for a choice without scales.
bool msc_quantizer_origin(struct msc_strategy_origin *out, const struct msc_quantizer *q,
                          int32_t site, int32_t choice);

MSC_PUBLIC_END

#endif

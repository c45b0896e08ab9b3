// The quantizer: which sites there are to quantise, what choices each has, and the scale and zero
// point of every (site, choice), computed once from the float model.
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
    MSC_GROUP_SITE,   // one for each use of an activation
    MSC_GROUP_JOINT,  // one for a joint's activation and weight together
};

#define MSC_LABEL_BYTES 64

// In "observers": for choices that name none, as the number of bits asks for.
#define MSC_OBSERVER_AUTO "auto"

// One row of "choices".
struct msc_choice {
    bool is_float;       // the tensor is left alone
    enum msc_dtype type; // MSC_DTYPE_NONE: integers; else a float type of 16 bits
    int32_t bits;
    int32_t group_size; // of weights: elements that share a scale; 0: a channel, or the tensor
    enum msc_observer observers[2]; // [kind of site] of weights and of activations
    double percentile;
    double range_scale;             // the observed range times this
    enum msc_rounding rounding;     // of weights
    enum msc_correction correction; // of weights
    char label[MSC_LABEL_BYTES]; // "8", "6 mse", "8 x0.9", "4 g32", "4 descent affine", "float16"
};

struct msc_operand_scheme {
    bool is_symmetric;
    // A scale for each output channel of a weight; of activations that depthwise convolutions alone
    // read, one for each channel.
    bool is_per_channel;
    bool is_float; // all of them are left alone
};

struct msc_fixed_site {
    const char *pattern, *label;
};

// Sites that all that is given fits may take these choices alone. NULL and MSC_SITE_KINDS fit all;
// patterns have * and ?.
struct msc_choice_rule {
    int kind;         // enum msc_site_kind
    const char *name; // the site's or the tensor's
    const char *op;   // operator of a joint that reads it, MSC's name or ONNX's ("nn.relu", "Relu")
    const char *producer; // name or operator of the joint that makes it
    const char *consumer; // name or operator of a joint that reads it; the same one as `op`
    uint64_t allowed;     // a bit for each choice
};

struct msc_quantizer_options {
    const struct msc_target *target;
    bool all_sites; // all that the target requantises, and int32 biases; else what joints read
    enum msc_site_group group;
    size_t n_choices;
    const struct msc_choice *choices; // [n_choices], copied
    struct msc_operand_scheme weights, activations;
    // Name patterns with * and ?; a site is in when one of `include` (or none is given) and none of
    // `exclude` matches its name.
    const char *const *include, *const *exclude;
    size_t n_include, n_exclude;
    // A site whose name matches is no task: it takes the choice with that label, of several
    // patterns by the last. "float" is always allowed.
    const struct msc_fixed_site *fixed;
    size_t n_fixed;
    // Names of tensors: what they are not computed from is left float. None: all is in.
    const char *const *outputs;
    size_t n_outputs;
    const struct msc_choice_rule
        *rules; // the first that fits a site says; without one, all are free
    size_t n_rules;
};

// Reads the keys of an environment's configuration that belong to the quantizer ("target", "sites",
// "group", "choices", "observers", "weights", "activations", "include", "exclude", "fix", "rules", "outputs"); text and
// lists are in the arena. A target refuses what its runtime cannot run (graph/target.h). `target` is
// used when the object names none; without "sites" they are what joints read. A choice
// that names no observer takes that of "observers", "auto" if that has none; without the key "minmax".
enum msc_status msc_quantizer_read_options(struct msc_quantizer_options *out, const cJSON *config,
                                           const char *target, struct msc_arena *arena);

// Names of the keys above, NULL-terminated.
extern const char *const msc_quantizer_keys[];

// `graph` is borrowed until the quantizer is destroyed. *out is owned by the caller.
enum msc_status msc_quantizer_create(struct msc_quantizer **out, const struct msc_graph *graph,
                                     const struct msc_quantizer_options *options);
void msc_quantizer_destroy(struct msc_quantizer *q); // accepts NULL

// Sites in order: by use where the group is not `tensor`. Fixed ones have a choice already.
const struct msc_sites *msc_quantizer_sites(const struct msc_quantizer *q);
size_t msc_quantizer_n_choices(const struct msc_quantizer *q);
const struct msc_choice *msc_quantizer_choice(const struct msc_quantizer *q, size_t choice);
// The first choice that is the same for weights, or for activations, which know neither groups
// nor rounding.
size_t msc_quantizer_first_choice(const struct msc_quantizer *q, enum msc_site_kind kind,
                                  size_t choice);
enum msc_site_group msc_quantizer_group(const struct msc_quantizer *q);
bool msc_quantizer_is_included(const struct msc_quantizer *q, int32_t site);
// The choice a site is fixed to, MSC_FIXED_FLOAT, or MSC_NO_ID: the search decides.
#define MSC_FIXED_FLOAT (-2)
int32_t msc_quantizer_fixed_choice(const struct msc_quantizer *q, int32_t site);
// The choices that rules leave a site: a bit for each.
uint64_t msc_quantizer_allowed(const struct msc_quantizer *q, int32_t site);

// Leaves sites float that tensors, by their names, are not computed from. MSC_E_INVALID: the model does
// not compute one of them.
enum msc_status msc_quantizer_keep_part(struct msc_quantizer *q, const char *const outputs[],
                                        size_t n);

// Leaves sites float that edits cannot reach on the evaluator's dataset: their joints are computed
// before anything runs once lengths are known. *n_left of them were included before.
// MSC_E_INVALID: none is left.
enum msc_status msc_quantizer_leave_constants(struct msc_quantizer *q, struct msc_evaluator *ev,
                                              int32_t *n_left);

// Is a site float, since it was observed, for what its tensor holds: infinity, which no step stands for, or
// NaN where a joint behind it asks for that?
bool msc_quantizer_is_left(const struct msc_quantizer *q, int32_t site);

// What takes long when scales and integers are found. `progress` (may be NULL) is told, of a stage, how
// much is done of all, by one thread at a time.
enum msc_quantizer_stage {
    MSC_STAGE_PASSES,   // values of the float model that are looked at
    MSC_STAGE_RANGES,   // sites
    MSC_STAGE_MOMENTS,  // uses of weights whose second moments are measured
    MSC_STAGE_INTEGERS, // uses of weights that are rounded
    MSC_N_STAGES
};
typedef void (*msc_quantizer_progress)(void *payload, enum msc_quantizer_stage stage, size_t done,
                                       size_t all);

// Observes the float model over the evaluator's dataset (of the same graph) and computes every quant
// but for what choices of weights take from what these are multiplied by.
enum msc_status msc_quantizer_observe(struct msc_quantizer *q, struct msc_evaluator *ev,
                                      msc_quantizer_progress progress, void *payload);

// Does any choice look at what weights are multiplied by?
bool msc_quantizer_has_rounding(const struct msc_quantizer *q);

struct msc_quantizer_rounding {
    uint64_t memory_bytes; // that second moments may take, those of one use at least; 0: 256 MiB
    // Second moments that are measured are added to it; those in it are not measured. One that cannot
    // be written or read is told of in `log`, and done without. NULL: none.
    struct msc_array_log *kept;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    msc_quantizer_progress progress;
    void *payload;
};

// After msc_quantizer_observe: scales and integers of such choices, and what targets need of scales.
// What is found depends neither on memory nor on what was kept. MSC_E_CANCELLED.
enum msc_status msc_quantizer_round(struct msc_quantizer *q, struct msc_evaluator *ev,
                                    const struct msc_quantizer_rounding *options);

// Both.
enum msc_status msc_quantizer_calibrate(struct msc_quantizer *q, struct msc_evaluator *ev,
                                        msc_quantizer_progress progress, void *payload);

// A weight that holds something else than the model has there.
struct msc_quantizer_other {
    const struct msc_array *elements; // of the weight's shape, float32
    const struct msc_moment *moment;  // of what multiplies them; NULL: none, they go to the nearest
    const struct msc_array *bias;     // of its joint, in place of its own; NULL: that
};

// What a choice with scales makes of it, once those of activations are there. *out is the caller's
// (msc_quant_finish), sealed. By several threads at once. MSC_E_NOMEM; MSC_E_INVALID: moments that
// no rounding can go by.
enum msc_status msc_quantizer_fit(struct msc_quant *out, const struct msc_quantizer *q,
                                  int32_t site, int32_t choice,
                                  const struct msc_quantizer_other *of);

// Appends "<site>/<choice>/scale" and "…/zero_point" arrays to a list, with "…/integers" where these
// are not rounded to nearest and "…/shift" where there are shifts, and reads them back.
// MSC_E_STATE when the list lacks one of them: it belongs to another configuration.
enum msc_status msc_quantizer_save(const struct msc_quantizer *q, struct msc_array_list *list);
enum msc_status msc_quantizer_load(struct msc_quantizer *q, const struct msc_array_list *list);

// Borrowed from the quantizer; NULL for a float choice and MSC_FIXED_FLOAT.
const struct msc_edit *msc_quantizer_edit(const struct msc_quantizer *q, int32_t site,
                                          int32_t choice);
// Its quantisation.
const struct msc_quant *msc_quantizer_quant(const struct msc_quantizer *q, int32_t site,
                                            int32_t choice);
// How its scales are found; false for a choice that has none.
bool msc_quantizer_origin(struct msc_strategy_origin *out, const struct msc_quantizer *q,
                          int32_t site, int32_t choice);

MSC_PUBLIC_END

#endif

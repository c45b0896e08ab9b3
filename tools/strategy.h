// A strategy: the edits that a search found, by tensor name. As a JSON file, it compresses the
// model again without a search. docs/strategy.md describes the fields.
//
//     {"schema": "mscgym.strategy.1", "graph": "<hash>", "weights": "<hash>", "edits": [
//        {"site": "conv1.weight", "tensor": "conv1.weight", "choice": "6 mse",
//         "observer": "mse", "symmetric": true, "bits": 6, "low": -31, "high": 31, "axis": 0,
//         "scales": [...], "zero_points": [...]},
//        {"site": "x:0-c-conv1", "tensor": "x:0", "joints": ["conv1"], ...}]}
//
// Optional members: "plain" identifies the record if the strategy comes from a section without
// searches. "prune", "replace" and "multiply" list the channels to remove, new elements of weights
// and factors of activations; edits then apply to the graph changed in this way. If there is a
// "target" and "sites" is "all", an edit of a tensor covers every tensor to which the target gives
// the same scale, and biases are rounded. "joints" limits an activation's edit to the joints that
// read it.
#ifndef MSC_TOOLS_STRATEGY_H
#define MSC_TOOLS_STRATEGY_H

#include "base/json.h"
#include "graph/channels.h"
#include "graph/edit.h"
#include "graph/site.h"
#include "tools/range.h"

MSC_PUBLIC_BEGIN

struct msc_evaluator;
struct msc_strategy;

// Makes an empty strategy for the sites of the scheme's target (`by_use` is ignored). `target`
// NULL: the sites are the tensors that joints read.
enum msc_status msc_strategy_create(struct msc_strategy **out,
                                    const struct msc_site_scheme *scheme);
void msc_strategy_destroy(struct msc_strategy *s); // accepts NULL

// How the scales of an edit were found, so that they can be recomputed.
struct msc_strategy_origin {
    enum msc_observer observer;
    double percentile;  // for MSC_OBSERVER_PERCENTILE
    double range_scale; // factor on the observed range
    bool is_symmetric;
    enum msc_rounding rounding; // how integers were found, if not rounded to nearest
    enum msc_correction correction;
};

// The choice at a site; msc_strategy_set copies it.
struct msc_strategy_choice {
    const char *label;
    const struct msc_quant *quant;            // NULL: float, which overrides earlier edits
    const struct msc_strategy_origin *origin; // NULL: unknown, or there are no scales
};

// The scheme of the sites that the strategy is for.
struct msc_site_scheme msc_strategy_scheme(const struct msc_strategy *s);

// Adds an edit, and removes the tensors and joints that it covers from existing edits.
enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site,
                                 const struct msc_strategy_choice *choice);
// Adds the edits of `later`, which override those of `s`. If `s` has no edits yet, `s` takes the
// sites of `later`, unless `later` has no edits either and `s` has a target. MSC_E_STATE: the two
// are for different sites.
enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later);
size_t msc_strategy_n_edits(const struct msc_strategy *s);

// Pruned channels, replaced elements of weights, and multiplied activations. They are applied
// before the edits, which are then for the graph that msc_strategy_prune returns.
//
// msc_strategy_prune_group sets the units of a group that are removed, is_gone [group->n_units];
// `label` is the label of the choice.
enum msc_status msc_strategy_prune_group(struct msc_strategy *s,
                                         const struct msc_channel_group *group, const char *label,
                                         const bool is_gone[]);
// Sets the elements of a weight, in its pruned shape (msc_graph_prune_array). Keeps a reference to
// them.
enum msc_status msc_strategy_replace(struct msc_strategy *s, const char *tensor,
                                     const struct msc_array *elements);
// Multiplies an activation, before convolutions and linear layers read it, by factors that
// broadcast to its shape. Keeps a reference to them.
enum msc_status msc_strategy_multiply(struct msc_strategy *s, const char *tensor,
                                      const struct msc_array *factors);
bool msc_strategy_prunes(const struct msc_strategy *s); // or replaces, or multiplies
// Do both strategies remove the same channels, replace weights by the same elements, and multiply
// activations by the same factors?
bool msc_strategy_prunes_as(const struct msc_strategy *s, const struct msc_strategy *other);
size_t msc_strategy_n_replaced(const struct msc_strategy *s);
const char *msc_strategy_replaced(const struct msc_strategy *s, size_t index); // the tensor's name
// Rebases `s`, found on the graph that `before` prunes, onto the original graph. `s` must replace
// every weight that `before` replaces. MSC_E_UNSUPPORTED: the units of a group that `before` keeps
// are not one group in `s`.
enum msc_status msc_strategy_prune_after(struct msc_strategy *s, const struct msc_strategy *before);
// Marks in is_gone [n_units] the units of a graph's channels that the strategy removes.
// MSC_E_STATE: the graph lacks these channels.
enum msc_status msc_strategy_mark(bool is_gone[], const struct msc_strategy *s,
                                  const struct msc_channels *channels);
// The graph without the pruned channels, with the replaced elements and the multiplications. *out
// is owned by the caller. MSC_E_STATE: the graph lacks these channels or weights, or the strategy
// was found with other weights.
enum msc_status msc_strategy_prune(struct msc_graph **out, const struct msc_strategy *s,
                                   const struct msc_graph *g);

// *out is owned by the caller (cJSON_Delete).
enum msc_status msc_strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                     cJSON **out);
// `name` begins error messages.
enum msc_status msc_strategy_from_json(struct msc_strategy **out, const cJSON *json,
                                       const char *name);
enum msc_status msc_strategy_load(struct msc_strategy **out, const char *path);
enum msc_status msc_strategy_save(const struct msc_strategy *s, const struct msc_graph *g,
                                  const char *path);

// Fills edits [sites->n_slots] with edits borrowed from the strategy; slots without an edit are
// unchanged. MSC_E_STATE: the graph lacks a tensor or joint, parameters do not fit its shape, the
// strategy was found with other weights, or the sites have another scheme. Also MSC_E_STATE if the
// strategy prunes, because its edits are then for another graph.
enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites, const struct msc_edit *edits[]);
// Like msc_strategy_apply, but for any weights; a strategy that prunes applies to the pruned graph.
enum msc_status msc_strategy_apply_to_any(const struct msc_strategy *s, const struct msc_graph *g,
                                          const struct msc_sites *sites,
                                          const struct msc_edit *edits[]);
// MSC_E_STATE: the strategy was found with other weights than the graph's.
enum msc_status msc_strategy_check_weights(const struct msc_strategy *s, const struct msc_graph *g);
// Recomputes every scale and zero point from the graph's weights and from runs of the float model
// over the dataset of `ev`, an evaluator of the same graph. Uses the observers that the edits name.
// Choices are kept. MSC_E_STATE: an edit does not have the origin of its scales.
enum msc_status msc_strategy_recalibrate(struct msc_strategy *s, const struct msc_graph *g,
                                         struct msc_evaluator *ev);
struct msc_hash msc_strategy_hash(const struct msc_strategy *s);
// If a section lists no searches, its strategy file identifies the record by a hash of the record's
// identity and the strategy's contents. msc_strategy_is_plain reads this hash from a strategy, or
// returns false if there is none. msc_strategy_plain_hash computes it.
bool msc_strategy_is_plain(struct msc_hash *out, const struct msc_strategy *s);
struct msc_hash msc_strategy_plain_hash(const struct msc_strategy *s, struct msc_hash record);

MSC_PUBLIC_END

#endif

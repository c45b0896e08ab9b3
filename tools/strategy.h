// A strategy: the edits that were found, by tensor name, as a JSON file that compresses the model
// again without a search. docs/strategy.md describes the fields.
//
//     {"schema": "mscgym.strategy.1", "graph": "<hash>", "weights": "<hash>", "edits": [
//        {"site": "conv1.weight", "tensor": "conv1.weight", "choice": "6 mse",
//         "observer": "mse", "symmetric": true, "bits": 6, "low": -31, "high": 31, "axis": 0,
//         "scales": [...], "zero_points": [...]},
//        {"site": "x:0-c-conv1", "tensor": "x:0", "joints": ["conv1"], ...}]}
//
// "plain", where present, says which record of a section without searches it is of. "prune" and "replace", where present, say which channels go and what weights hold then; edits are for
// what is left. "target" and "sites", "all", where present, say that a tensor's edit is for all that the target
// gives its scale, and that biases are rounded. "joints", where present, limits an activation's edit to those that read it.
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

// For sites of that scheme's target (`by_use` is nothing to it); NULL: for what joints read.
enum msc_status msc_strategy_create(struct msc_strategy **out,
                                    const struct msc_site_scheme *scheme);
void msc_strategy_destroy(struct msc_strategy *s); // accepts NULL

// How the scales of an edit were found, so that they can be found anew.
struct msc_strategy_origin {
    enum msc_observer observer;
    double percentile;  // of MSC_OBSERVER_PERCENTILE
    double range_scale; // the observed range times this
    bool is_symmetric;
    enum msc_rounding rounding; // of integers that are chosen
    enum msc_correction correction;
};

// What is done at a site. All of it is copied.
struct msc_strategy_choice {
    const char *label;
    const struct msc_quant *quant;            // NULL: it is float, whatever the strategy said of it
    const struct msc_strategy_origin *origin; // NULL: not known, or without scales
};

// The sites that it is for.
struct msc_site_scheme msc_strategy_scheme(const struct msc_strategy *s);

// Adds an edit over those that are there: what it is about is taken away from them.
enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site,
                                 const struct msc_strategy_choice *choice);
// Edits of `later` over those of `s`, which is for its sites where it has none yet. MSC_E_STATE:
// they are for other sites.
enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later);
size_t msc_strategy_n_edits(const struct msc_strategy *s);

// Channels that go, and elements of weights in place of their own, all of which comes before edits:
// these are then for what msc_strategy_prune makes of the graph.
//
// Which units of a group go, is_gone [group->n_units]; `label` is the choice.
enum msc_status msc_strategy_prune_group(struct msc_strategy *s,
                                         const struct msc_channel_group *group, const char *label,
                                         const bool is_gone[]);
// What a weight holds, of what is left of it (msc_graph_prune_array). A reference is kept.
enum msc_status msc_strategy_replace(struct msc_strategy *s, const char *tensor,
                                     const struct msc_array *elements);
bool msc_strategy_prunes(const struct msc_strategy *s);
// Do both take the same channels and put the same elements in place of weights?
bool msc_strategy_prunes_as(const struct msc_strategy *s, const struct msc_strategy *other);
size_t msc_strategy_n_replaced(const struct msc_strategy *s);
const char *msc_strategy_replaced(const struct msc_strategy *s, size_t index); // the tensor's name
// Of one that prunes what `before` leaves of a graph, and replaces all that `before` does: makes it one
// for that graph. MSC_E_UNSUPPORTED: what is left of a group is none of its groups.
enum msc_status msc_strategy_prune_after(struct msc_strategy *s, const struct msc_strategy *before);
// Which units of a graph's channels go, is_gone [n_units]. MSC_E_STATE: it does not have them.
enum msc_status msc_strategy_mark(bool is_gone[], const struct msc_strategy *s,
                                  const struct msc_channels *channels);
// The graph without these channels, with these elements. *out is the caller's. MSC_E_STATE: it does
// not have them, or the strategy was found with other weights.
enum msc_status msc_strategy_prune(struct msc_graph **out, const struct msc_strategy *s,
                                   const struct msc_graph *g);

// *out is owned by the caller (cJSON_Delete).
enum msc_status msc_strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                     cJSON **out);
// `name` begins error texts.
enum msc_status msc_strategy_from_json(struct msc_strategy **out, const cJSON *json,
                                       const char *name);
enum msc_status msc_strategy_load(struct msc_strategy **out, const char *path);
enum msc_status msc_strategy_save(const struct msc_strategy *s, const struct msc_graph *g,
                                  const char *path);

// Fills edits [sites->n_slots] with edits borrowed from the strategy; slots it does not name stay
// as they are. MSC_E_STATE names a tensor or joint that the graph does not have, parameters that do
// not fit its shape, or a strategy that was found with other weights; or the sites are of another
// scheme; or it prunes, and so is for another graph.
enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites, const struct msc_edit *edits[]);
// The same whatever the weights are, and of one that prunes, to the graph that it makes.
enum msc_status msc_strategy_apply_to_any(const struct msc_strategy *s, const struct msc_graph *g,
                                          const struct msc_sites *sites,
                                          const struct msc_edit *edits[]);
// MSC_E_STATE when it says so, and they are not those of the graph.
enum msc_status msc_strategy_check_weights(const struct msc_strategy *s, const struct msc_graph *g);
// Computes every scale and zero point anew, from the graph's weights and the float model over the
// evaluator's dataset (of the same graph), by the observers that the edits name; the choices stay.
// MSC_E_STATE: an edit does not say how its scales were found.
enum msc_status msc_strategy_recalibrate(struct msc_strategy *s, const struct msc_graph *g,
                                         struct msc_evaluator *ev);
struct msc_hash msc_strategy_hash(const struct msc_strategy *s);
// The strategy file of a section that lists no searches names the record that it is of: by this hash of the
// record's identity and of what the strategy does. False: it names none.
bool msc_strategy_is_plain(struct msc_hash *out, const struct msc_strategy *s);
struct msc_hash msc_strategy_plain_hash(const struct msc_strategy *s, struct msc_hash record);

MSC_PUBLIC_END

#endif

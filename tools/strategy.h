// A strategy: the edits that were found, by tensor name, as a JSON file that compresses the model
// again without a search. docs/strategy.md describes the fields.
//
//     {"schema": "mscgym.strategy.1", "graph": "<hash>", "edits": [
//        {"site": "conv1.weight", "tensor": "conv1.weight", "choice": "6 mse", "bits": 6,
//         "low": -31, "high": 31, "axis": 0, "scales": [...], "zero_points": [...]},
//        {"site": "x:0-c-conv1", "tensor": "x:0", "joints": ["conv1"], ...}]}
//
// "joints", where present, limits an activation's edit to those that read it.
#ifndef MSC_TOOLS_STRATEGY_H
#define MSC_TOOLS_STRATEGY_H

#include "base/json.h"
#include "graph/site.h"
#include "graph/edit.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_strategy;

enum msc_status msc_strategy_create(struct msc_strategy **out);
void msc_strategy_destroy(struct msc_strategy *s); // accepts NULL

// Adds an edit over those that are there: what it is about is taken away from them. The quant is
// copied; NULL makes the site float, whatever the strategy said of it.
enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site, const char *label,
                                 const struct msc_quant *quant);
// Edits of `later` over those of `s`.
enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later);
size_t msc_strategy_n_edits(const struct msc_strategy *s);

// *out is owned by the caller (cJSON_Delete).
enum msc_status msc_strategy_to_json(const struct msc_strategy *s, const struct msc_graph *g,
                                     cJSON **out);
// `name` begins error texts.
enum msc_status msc_strategy_from_json(struct msc_strategy **out, const cJSON *json,
                                       const char *name);
enum msc_status msc_strategy_load(struct msc_strategy **out, const char *path);
enum msc_status msc_strategy_save(const struct msc_strategy *s, const struct msc_graph *g,
                                  const char *path);

// Fills edits [sites->n_slots] with quants borrowed from the strategy; slots it does not name stay
// as they are. MSC_E_STATE names a tensor or joint that the graph does not have, or parameters that
// do not fit its shape.
enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites, const struct msc_quant *edits[]);
struct msc_hash msc_strategy_hash(const struct msc_strategy *s);

#ifdef __cplusplus
}
#endif

#endif

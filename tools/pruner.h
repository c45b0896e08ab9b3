// The pruner: ranks channels for removal and repairs the remaining weights. It can also remove
// single weights (tools/sparsity.h) of the channels that remain.
//
// A group of channels that must be removed together (graph/channels.h) keeps a share of its
// units. A criterion ranks the units, and the units of least worth are removed. Let W be a weight
// that reads the channels (a consumer), C the second moments of its inputs in the float model
// (tools/second_moment.h), centred if its joint has a bias, and c the columns of one unit:
//
//     l1, l2    sum of |w|, or of w^2, over the weights that produce the unit
//     energy    sum over consumers of tr(W_c C_cc W_c') / tr(W C W'): the unit's share of the
//               energy of their outputs
//     hessian   like energy, but counts only what other channels cannot compensate: each step
//               removes the unit of least tr(W_c ((C^-1)_cc)^-1 W_c') and updates W and C^-1
//               (B. Hassibi and D. Stork, "Second order derivatives for network pruning", NIPS
//               1992; E. Frantar and D. Alistarh, "Optimal Brain Compression", NeurIPS 2022)
//     loss      the distill loss with only this unit masked, as measured by the environment
//
// Consumers are then repaired by least squares. With k the remaining columns and g the removed
// ones:
//
//     W_k' = W_k + W_g C_gk (C_kk + d I)^-1,    b' = b + W_g m_g - (W_k' - W_k) m_k
//
// where m are the means and d = ridge times the mean of C's diagonal. If C is not definite, d is
// larger.
//
//     MSC_TRY(msc_pruner_create(&p, graph, &options, memory_bytes));
//     MSC_TRY(msc_pruner_prepare(p, evaluator, &preparation));     // or msc_pruner_load
//     MSC_TRY(msc_pruner_make(p, points, n));                      // edits of n points
//     msc_pruner_fill(p, points[0], edits);
#ifndef MSC_TOOLS_PRUNER_H
#define MSC_TOOLS_PRUNER_H

#include "base/json.h"
#include "base/log.h"
#include "data/npy.h"
#include "graph/channels.h"
#include "kernels/engine/evaluator.h"
#include "tools/sparsity.h"

struct msc_arena;
struct msc_array_log;
struct msc_pruner;

// One row of "choices": for groups of channels, or for single weights.
struct msc_prune_choice {
    bool is_sparse;
    double density;               // for groups: share of the units to keep, 0 < density <= 1
    struct msc_sparsity sparsity; // for weights
    enum msc_criterion criterion;
    const char *label; // "0.5", "0.5 l2", "sparsity 0.5", "2:4 energy"
};

// The fixed choice of parts whose name matches a pattern; these parts are not searched.
struct msc_prune_fixed {
    const char *pattern;
    int32_t choice; // index in choices [n_all]; MSC_NO_ID: the part stays whole
};

// The choices allowed for parts whose name matches a pattern: one bit per choice.
struct msc_prune_rule {
    const char *pattern;
    uint64_t allowed;
};

// Owned by the arena that it was read into.
struct msc_pruner_options {
    size_t n_choices, n_all;                // n_all also counts densities that only `fix` names
    const struct msc_prune_choice *choices; // [n_all]
    size_t n_fixed, n_rules;
    const struct msc_prune_fixed *fixed; // the first match counts
    const struct msc_prune_rule *rules;
    int64_t round_to; // channel counts are multiples of this, if possible; 1: any
    bool repairs;
    bool keeps_moments; // keep moments after preparation even if no repair uses them
    double ridge;       // > 0
    int64_t n_rows;     // rows sampled for second moments
    size_t n_include, n_exclude;
    const char *const *include, *const *exclude; // name patterns of groups and of weights
    // Edits are for the slots of this scheme; a channel is kept if its removal would have to mask a
    // slot that the scheme lacks. NULL: the slots of the operator table.
    const struct msc_site_scheme *scheme;
};

// Reads choices and patterns from the environment's JSON object.
enum msc_status msc_pruner_read_options(struct msc_pruner_options *out, const struct cJSON *config,
                                        struct msc_arena *arena);

// Borrows all its arguments. `memory_bytes` limits the memory of second moments and of cached
// repaired weights. MSC_E_INVALID: the choices can prune no part of the network, or no included
// part. *out is owned by the caller.
enum msc_status msc_pruner_create(struct msc_pruner **out, const struct msc_graph *g,
                                  const struct msc_pruner_options *options, uint64_t memory_bytes);
void msc_pruner_destroy(struct msc_pruner *p); // accepts NULL

const struct msc_channels *msc_pruner_channels(const struct msc_pruner *p);
const struct msc_sites *msc_pruner_sites(const struct msc_pruner *p);

// ---- Cuts: the effects of the choices on a part -----------------------------------------------

// Parts are the groups of channels in their order, then the weights that choices can make sparse
// (weights of convolutions and linear layers). If no choice is sparse, no weight is a part; if all
// choices are sparse, no group is included.
int32_t msc_pruner_n_parts(const struct msc_pruner *p);
// The weight tensor of a part that is not a group of channels.
int32_t msc_pruner_part_tensor(const struct msc_pruner *p, int32_t part);
// Bytes of one element of that weight in the model's own type.
double msc_pruner_element_bytes(const struct msc_pruner *p, int32_t part);

// A cut is the effect of a choice on a part. Choices that keep the same amount by the same
// criterion are equivalent and have the same cut. Index n_cuts stands for the whole part, and
// n_cuts + 1 for the fixed cut, if there is one.
struct msc_prune_cut {
    size_t choice;  // the first of the equivalent choices
    int32_t n_kept; // kept units of a group, or elements of a weight
    double stored;  // for a weight: its bytes relative to the dense weight
};

// Is the part searched?
bool msc_pruner_is_included(const struct msc_pruner *p, int32_t part);
// Can anything of the part be removed? False if it is excluded or fixed to stay whole.
bool msc_pruner_is_cut(const struct msc_pruner *p, int32_t part);
// The cut of a part that is not searched.
size_t msc_pruner_fixed_cut(const struct msc_pruner *p, int32_t part);
// Excludes from pruning every group that has channels of a tensor. Call this before any other
// function. MSC_E_INVALID: no group remains to be pruned, or one of these groups has a fixed cut.
enum msc_status msc_pruner_keep_whole(struct msc_pruner *p, int32_t tensor);
size_t msc_pruner_n_cuts(const struct msc_pruner *p, int32_t part);
const struct msc_prune_cut *msc_pruner_cut(const struct msc_pruner *p, int32_t part, size_t cut);
// The cut of a part for a choice. If the choice is for the other kind of part, returns the cut that
// keeps most.
size_t msc_pruner_cut_of(const struct msc_pruner *p, int32_t part, size_t choice);

// Warns of densities that have no effect on groups because channel counts are rounded to multiples
// of round_to: all units are kept, or none would be.
void msc_pruner_tell_rounded(const struct msc_pruner *p, const struct msc_log *log);

// ---- Preparation ------------------------------------------------------------------------------

// A cache file of moments and orders, filled as they are computed; cached data is not computed
// again. If the file cannot be written or read, `log` gets a warning and the file is not used
// again.
struct msc_pruner_kept {
    struct msc_array_log *kept; // NULL: none
    const struct msc_log *log;
};

struct msc_pruner_preparation {
    int n_threads;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    struct msc_pruner_kept *kept; // NULL: none
};

// Measures second moments and ranks units by every criterion that choices use, except `loss`. The
// evaluator must have the same graph, and sites of the options' scheme. Weights whose moments do
// not fit in memory are only masked, which is logged. MSC_E_CANCELLED, MSC_E_NOMEM.
enum msc_status msc_pruner_prepare(struct msc_pruner *p, struct msc_evaluator *ev,
                                   const struct msc_pruner_preparation *preparation);
bool msc_pruner_uses(const struct msc_pruner *p, enum msc_criterion criterion);
// Ranks the units of a group by scores [n_units]: units of lowest score are removed first.
enum msc_status msc_pruner_rank(struct msc_pruner *p, int32_t group, enum msc_criterion criterion,
                                const double scores[]);
// Read the order of a group's units by a criterion from the cache, and write it to the cache.
enum msc_status msc_pruner_recall_order(bool *found, struct msc_pruner *p, int32_t group,
                                        enum msc_criterion criterion, struct msc_pruner_kept *k);
enum msc_status msc_pruner_keep_order(struct msc_pruner_kept *k, const struct msc_pruner *p,
                                      int32_t group, enum msc_criterion criterion);
// Save the prepared moments and orders as arrays, and load them. MSC_E_STATE: the arrays belong to
// another configuration.
enum msc_status msc_pruner_save(const struct msc_pruner *p, struct msc_array_list *list);
enum msc_status msc_pruner_load(struct msc_pruner *p, const struct msc_array_list *list);

// ---- Points: cuts [n_parts], one for each part ------------------------------------------------

// Marks the units that a point removes: is_gone [channels.n_units].
void msc_pruner_mark(const struct msc_pruner *p, const uint32_t cuts[], bool is_gone[]);
// Makes the missing edits of points; the result does not depend on n_threads. MSC_E_NOMEM.
enum msc_status msc_pruner_make(struct msc_pruner *p, const uint32_t *const points[], size_t n,
                                int n_threads);
// The edits [n_slots] of a point that was made, borrowed until the next msc_pruner_forget.
void msc_pruner_fill(const struct msc_pruner *p, const uint32_t cuts[],
                     const struct msc_edit *edits[]);
// Do the edits exceed memory_bytes? Then call msc_pruner_forget, which invalidates all edits.
bool msc_pruner_is_full(const struct msc_pruner *p);
void msc_pruner_forget(struct msc_pruner *p);

// Calls `take` for each tensor whose elements a point replaces. The point must have been made.
enum msc_status msc_pruner_each_replaced(const struct msc_pruner *p, const uint32_t cuts[],
                                         enum msc_status (*take)(void *payload, int32_t tensor,
                                                                 const struct msc_array *elements),
                                         void *payload);

#endif

// The pruner: which channels go, in what order, and weights that make up for them; and weights that go
// alone, one by one (tools/sparsity.h), of what channels leave.
//
// A group of channels that go together (graph/channels.h) keeps a share of its units. Which, says a
// criterion; those of little worth go first. With W a weight that reads the channels (a consumer), C
// the second moments of its inputs in the float model (tools/second_moment.h), around their means
// where its joint has a bias, and c the columns of one unit:
//
//     l1, l2    sum of |w|, and of w^2, over the weights that make the unit
//     energy    sum over consumers of tr(W_c C_cc W_c') / tr(W C W'): the share of what they give
//     hessian   the same of what no other channel can make up for: units go one after the other, each
//               time that of the least tr(W_c ((C^-1)_cc)^-1 W_c'), and W and C^-1 become those of
//               what is left (B. Hassibi and D. Stork, "Second order derivatives for network
//               pruning", NIPS 1992; E. Frantar and D. Alistarh, "Optimal Brain Compression",
//               NeurIPS 2022)
//     loss      the distill loss with the unit alone masked: measured by the environment
//
// Consumers are then repaired by least squares: of the columns k that stay, and those that go, g,
//
//     W_k' = W_k + W_g C_gk (C_kk + d I)^-1,    b' = b + W_g m_g - (W_k' - W_k) m_k
//
// with m the means and d = ridge times the mean of C's diagonal, more where C is not definite.
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

// One row of "choices": of groups of channels, or of weights alone.
struct msc_prune_choice {
    bool is_sparse;
    double density;               // of groups: share of the units that stay, 0 < density <= 1
    struct msc_sparsity sparsity; // of weights
    enum msc_criterion criterion;
    const char *label; // "0.5", "0.5 l2", "sparsity 0.5", "2:4 energy"
};

// What a part whose name fits a pattern keeps without a search.
struct msc_prune_fixed {
    const char *pattern;
    int32_t choice; // of all; MSC_NO_ID: the part stays whole
};

// The choices that a part whose name fits a pattern has: a bit for each.
struct msc_prune_rule {
    const char *pattern;
    uint64_t allowed;
};

// In the arena they were read into.
struct msc_pruner_options {
    size_t n_choices, n_all; // those that are searched; with densities that are fixed alone
    const struct msc_prune_choice *choices; // [n_all]
    size_t n_fixed, n_rules;
    const struct msc_prune_fixed *fixed; // the first that fits counts
    const struct msc_prune_rule *rules;
    int64_t round_to; // counts of channels are multiples of it where that can be; 1: all may be
    bool repairs;
    bool keeps_moments; // where nothing is repaired by them, too
    double ridge;       // > 0
    int64_t n_rows;     // of second moments
    size_t n_include, n_exclude;
    const char *const *include, *const *exclude; // name patterns of groups, and of weights
    // Whose slots edits are for; where it has none that could be masked, channels stay. NULL: those of
    // the operator table.
    const struct msc_site_scheme *scheme;
};

// Choices and patterns, from the environment's JSON object.
enum msc_status msc_pruner_read_options(struct msc_pruner_options *out, const struct cJSON *config,
                                        struct msc_arena *arena);

// Borrows all that it is given. memory_bytes are for second moments, and for repaired weights that are
// kept in case they come again. MSC_E_INVALID: nothing of the network can go as choices have it, or
// nothing that is included. *out is owned by the caller.
enum msc_status msc_pruner_create(struct msc_pruner **out, const struct msc_graph *g,
                                  const struct msc_pruner_options *options, uint64_t memory_bytes);
void msc_pruner_destroy(struct msc_pruner *p); // accepts NULL

const struct msc_channels *msc_pruner_channels(const struct msc_pruner *p);
const struct msc_sites *msc_pruner_sites(const struct msc_pruner *p);

// ---- Cuts: what the choices are for a part ----------------------------------------------------

// Parts are groups of channels, in their order, and behind them weights that choices make sparse: those of
// convolutions and linear layers. Without such choices there are none of these, and without others no
// group is included.
int32_t msc_pruner_n_parts(const struct msc_pruner *p);
// The weight of a part behind the groups.
int32_t msc_pruner_part_tensor(const struct msc_pruner *p, int32_t part);

// A cut is what some choices, that keep as much by one criterion, make of a part. One more, whose index
// is the number of these, is the whole part; behind it is the one that is fixed, if there is one.
struct msc_prune_cut {
    size_t choice;  // the first of these
    int32_t n_kept; // units of a group, elements of a weight
    double stored;  // of a weight: its bytes over those that it has without zeros
};

// Is the part searched?
bool msc_pruner_is_included(const struct msc_pruner *p, int32_t part);
// Can anything of it go? Not where it is left out, or fixed to stay whole.
bool msc_pruner_is_cut(const struct msc_pruner *p, int32_t part);
// Of one that is not searched, the cut that it always has.
size_t msc_pruner_fixed_cut(const struct msc_pruner *p, int32_t part);
// Leaves groups whole that have channels of a tensor, from the beginning. MSC_E_INVALID: none is left,
// or one is fixed to less.
enum msc_status msc_pruner_keep_whole(struct msc_pruner *p, int32_t tensor);
size_t msc_pruner_n_cuts(const struct msc_pruner *p, int32_t part);
const struct msc_prune_cut *msc_pruner_cut(const struct msc_pruner *p, int32_t part, size_t cut);
// Which cut of the part a choice is; of one for parts of the other kind, the cut that keeps most.
size_t msc_pruner_cut_of(const struct msc_pruner *p, int32_t part, size_t choice);

// Tells the log of densities that come to nothing for groups, as counts of channels are whole and
// multiples of round_to: all stay, or none would.
void msc_pruner_tell_rounded(const struct msc_pruner *p, const struct msc_log *log);

// ---- Before the first trial -------------------------------------------------------------------

// Where moments and orders are kept as they come: those that are there are not worked out again. What
// cannot be written or read is told of in `log`, and done without.
struct msc_pruner_kept {
    struct msc_array_log *kept; // NULL: nothing is
    const struct msc_log *log;
};

struct msc_pruner_preparation {
    int n_threads;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    struct msc_pruner_kept *kept; // NULL: nothing is
};

// Second moments, and the order of units by every criterion that choices name, but for `loss`. The
// evaluator is of the same graph, its sites those of the scheme. Weights whose moments memory
// has no room for are masked alone, which the log is told. MSC_E_CANCELLED, MSC_E_NOMEM.
enum msc_status msc_pruner_prepare(struct msc_pruner *p, struct msc_evaluator *ev,
                                   const struct msc_pruner_preparation *preparation);
bool msc_pruner_uses(const struct msc_pruner *p, enum msc_criterion criterion);
// Orders the units of a group by scores [n_units]: the least go first.
enum msc_status msc_pruner_rank(struct msc_pruner *p, int32_t group, enum msc_criterion criterion,
                                const double scores[]);
// The order of a group by a criterion from what is kept, and to it.
enum msc_status msc_pruner_recall_order(bool *found, struct msc_pruner *p, int32_t group,
                                        enum msc_criterion criterion, struct msc_pruner_kept *k);
enum msc_status msc_pruner_keep_order(struct msc_pruner_kept *k, const struct msc_pruner *p,
                                      int32_t group, enum msc_criterion criterion);
// All of it as arrays, and from such. MSC_E_STATE: they are of something else.
enum msc_status msc_pruner_save(const struct msc_pruner *p, struct msc_array_list *list);
enum msc_status msc_pruner_load(struct msc_pruner *p, const struct msc_array_list *list);

// ---- Points: cuts [n_parts], one for each part ------------------------------------------------

// Which units go: is_gone [channels.n_units].
void msc_pruner_mark(const struct msc_pruner *p, const uint32_t cuts[], bool is_gone[]);
// Makes what the edits of points need and is not there yet, n_threads at a time; what comes of it
// does not depend on them. MSC_E_NOMEM.
enum msc_status msc_pruner_make(struct msc_pruner *p, const uint32_t *const points[], size_t n,
                                int n_threads);
// The edits [n_slots] of a point that was made, borrowed until the next msc_pruner_forget.
void msc_pruner_fill(const struct msc_pruner *p, const uint32_t cuts[],
                     const struct msc_edit *edits[]);
// Has what was made come to more than the memory? Then it is to be forgotten, edits and all.
bool msc_pruner_is_full(const struct msc_pruner *p);
void msc_pruner_forget(struct msc_pruner *p);

// The elements that a point replaces: calls `take` for each tensor. Of points that were made.
enum msc_status msc_pruner_each_replaced(const struct msc_pruner *p, const uint32_t cuts[],
                                         enum msc_status (*take)(void *payload, int32_t tensor,
                                                                 const struct msc_array *elements),
                                         void *payload);

#endif

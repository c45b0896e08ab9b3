// Internal to tools/: shared by the pruner's sources.
#ifndef MSC_TOOLS_PRUNER_INTERNAL_H
#define MSC_TOOLS_PRUNER_INTERNAL_H

#include "base/alloc.h"
#include "tools/pruner.h"
#include "tools/second_moment.h"
#include "tools/weight_rows.h"

// The edits of a consumer for one combination of cuts of the groups that it reads.
struct msc_prune_made {
    const uint32_t *cuts; // [n_groups] of the consumer
    bool has_edit, has_bias;
    struct msc_edit edit, bias;
    struct msc_array *elements[2]; // of the weight and its bias; NULL: only masked
    bool *is_kept;                 // along the consumer's axis
    struct msc_prune_made *next;
};

// A tensor multiplied along channels: a weight with all its uses, or an activation if both factors
// of a product are activations.
struct msc_consumer {
    int32_t tensor;
    int axis; // the axis that the product sums over
    int32_t n_slots;
    int32_t *slots;
    int32_t n_groups; // parts it depends on: the groups it reads, then its own part
    int32_t *groups;
    bool is_weight;
    // The part whose choices remove single elements of this weight, or MSC_NO_ID. If there is one,
    // the numbers below are the layout of the weight's rows as the joint multiplies them.
    int32_t part;
    int64_t n_row_groups, n_columns,
        n_taps;               // kernel positions; the columns of one channel are adjacent
    int32_t bias_slot;        // of the joint's bias, if nothing else reads it; else MSC_NO_ID
    struct msc_moment moment; // over all uses; n_groups 0: not measured
    double energy;            // tr(W C W')
    struct msc_prune_made *made;
};

// A part: a group of channels, or a weight. Weights use only the members up to `cut_of`.
struct msc_pruner_group {
    bool is_included;
    int32_t tensor; // the weight
    size_t n_cuts, fixed_cut;
    struct msc_prune_cut *cuts; // [n_cuts + 2]; the last two: the whole part, the fixed cut
    uint32_t *cut_of;           // [n_choices]
    // [criterion] the units in order of removal, numbered from the group's first unit. NULL: the
    // criterion is not used.
    int32_t *orders[MSC_N_CRITERIA];
    int32_t n_consumers;
    int32_t *consumers;
};

struct msc_pruner {
    const struct msc_graph *g;
    const struct msc_pruner_options *options;
    struct msc_arena arena, made; // `made`: memory of the points' edits
    struct msc_sites sites;
    struct msc_channels channels;
    struct msc_pruner_group *groups; // [n_parts]
    int32_t n_parts;
    int32_t n_consumers;
    struct msc_consumer *consumers;
    uint64_t made_bytes, memory_bytes;
};

// pruner_parts.c. Fills in sites, channels, parts and consumers.
enum msc_status msc_pruner__list_parts(struct msc_pruner *p);

// A consumer's weight and the moments of its inputs, prepared for sums over columns.
struct msc_pruner_rows {
    struct msc_weight_rows rows;
    bool is_centred;     // the moments are centred
    const int32_t *unit; // [n_columns], or MSC_NO_ID: the column is never removed
};
// Prepares the rows of a consumer, which must have moments or a part of its own (pruner_rows.c).
// Allocates in the arena.
enum msc_status msc_pruner__rows(struct msc_pruner_rows *out, const struct msc_pruner *p,
                                 const struct msc_consumer *c, struct msc_arena *arena);
// Element [k][l] of the moments C of one group.
static inline double msc_pruner__moment(const struct msc_pruner_rows *r,
                                        const struct msc_consumer *c, int64_t group, int64_t k,
                                        int64_t l) {
    const struct msc_moment *m = &c->moment;
    int64_t n = m->n_columns;
    double mean = r->is_centred ? m->means[group * n + k] * m->means[group * n + l] : 0;
    return (double)m->h[(group * n + k) * n + l] - mean;
}
// Copies the moments of columns [n] (NULL: the first n) into out [n, n], and adds `damping` to the
// diagonal.
void msc_pruner__fill_moments(double out[], const struct msc_pruner_rows *r,
                              const struct msc_consumer *c, int64_t group, const int64_t columns[],
                              int64_t n, double damping);
// If moments are not definite, the ridge is multiplied by ten, up to this many attempts.
enum { MSC_PRUNER_ATTEMPTS = 9 };
// The diagonal term d for a ridge.
double msc_pruner__damping(const struct msc_pruner_rows *r, const struct msc_consumer *c,
                           int64_t group, double ridge);

// The edits already made for a consumer under a point's cuts [n_groups]; NULL: none yet.
struct msc_prune_made *msc_pruner__find_made(const struct msc_consumer *c, const uint32_t cuts[]);
// pruner_kept.c
enum msc_status msc_pruner__recall_moment(bool *found, struct msc_pruner_kept *k,
                                          const struct msc_pruner *p, struct msc_consumer *c);
enum msc_status msc_pruner__keep_moment(struct msc_pruner_kept *k, const struct msc_consumer *c);

// pruner_rules.c. Reads `fix` and `rules` from the environment's JSON object; `choices` must be
// read.
enum msc_status msc_pruner__read_rules(struct msc_pruner_options *out, const cJSON *config,
                                       struct msc_arena *arena);
// The fixed choice of a part; NULL if it has none.
const struct msc_prune_fixed *msc_pruner__find_fixed(const struct msc_pruner *p, int32_t part);
// The choices that rules allow this part, among those for its kind: one bit per choice.
uint64_t msc_pruner__allowed(const struct msc_pruner *p, int32_t part);
// MSC_E_INVALID: a pattern matches no part; the message says how to list the parts.
enum msc_status msc_pruner__check_rules(const struct msc_pruner *p);

// Whether a density keeps no units, some units or all units of a group after rounding
// (pruner_parts.c).
enum msc_rounded { MSC_ROUNDED_TO_NONE, MSC_ROUNDED_TO_SOME, MSC_ROUNDED_TO_ALL };
enum msc_rounded msc_pruner__rounded(const struct msc_pruner *p, int32_t group, double density);

// Ranks the units of a group by the criteria in use (pruner_rank.c).
enum msc_status msc_pruner__rank_group(struct msc_pruner *p, int32_t group);
// Applies a choice that removes single weights to the columns that `is_gone` leaves. If the rows
// are repaired, adds to shifts [n_rows] the bias shifts that preserve the mean outputs of the rows
// (pruner_sparse.c).
enum msc_status msc_pruner__make_sparse(double shifts[], struct msc_pruner_rows *r,
                                        const struct msc_pruner *p, const struct msc_consumer *c,
                                        const struct msc_prune_choice *choice, const bool is_gone[],
                                        struct msc_arena *arena);
// Fills `made`, whose cuts are set (pruner_repair.c).
enum msc_status msc_pruner__repair(struct msc_prune_made *made, const struct msc_pruner *p,
                                   const struct msc_consumer *c, const bool is_gone[],
                                   struct msc_arena *arena);

#endif

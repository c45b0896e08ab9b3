// What the pruner's sources share.
#ifndef MSC_TOOLS_PRUNER_INTERNAL_H
#define MSC_TOOLS_PRUNER_INTERNAL_H

#include "base/alloc.h"
#include "tools/pruner.h"
#include "tools/second_moment.h"
#include "tools/weight_rows.h"

// Edits of a consumer for one cut of each group that it reads.
struct msc_prune_made {
    const uint32_t *cuts; // [n_groups] of the consumer
    bool has_edit, has_bias;
    struct msc_edit edit, bias;
    struct msc_array *elements[2]; // of the weight and its bias; NULL: it is masked
    bool *is_kept;                 // along the axis
    struct msc_prune_made *next;
};

// What reads channels: a weight with all its uses, or an activation where both factors are.
struct msc_consumer {
    int32_t tensor;
    int axis; // that is summed over
    int32_t n_slots;
    int32_t *slots;
    int32_t n_groups; // parts that it depends on: groups that it reads, and its own at last
    int32_t *groups;
    bool is_weight;
    // Of a weight with a part of its own, else MSC_NO_ID: its rows as they are multiplied.
    int32_t part;
    int64_t n_row_groups, n_columns,
        n_taps;               // taps: kernel positions, for which columns lie together
    int32_t bias_slot;        // of its joint, where the bias is its alone; MSC_NO_ID
    struct msc_moment moment; // of all uses; n_groups 0: none
    double energy;            // tr(W C W')
    struct msc_prune_made *made;
};

// A part: a group of channels, or a weight, which has no more than cuts.
struct msc_pruner_group {
    bool is_included;
    int32_t tensor; // the weight
    size_t n_cuts, fixed_cut;
    struct msc_prune_cut *cuts; // [n_cuts + 2]: then the whole, and the one that is fixed
    uint32_t *cut_of;           // [n_choices]
    // [criterion] units, counted from the group's first, in the order in which they go; NULL: not
    // asked for.
    int32_t *orders[MSC_N_CRITERIA];
    int32_t n_consumers;
    int32_t *consumers;
};

struct msc_pruner {
    const struct msc_graph *g;
    const struct msc_pruner_options *options;
    struct msc_arena arena, made; // `made`: what points need
    struct msc_sites sites;
    struct msc_channels channels;
    struct msc_pruner_group *groups; // [n_parts]
    int32_t n_parts;
    int32_t n_consumers;
    struct msc_consumer *consumers;
    uint64_t made_bytes, memory_bytes;
};

enum msc_status msc_pruner__no_memory(void);

// pruner_parts.c: fills sites, channels, parts and consumers.
enum msc_status msc_pruner__list_parts(struct msc_pruner *p);

// A consumer's weight and the moments of its inputs, ready for sums over its columns.
struct msc_pruner_rows {
    struct msc_weight_rows rows;
    bool is_centred;     // moments around the means
    const int32_t *unit; // [n_columns] or MSC_NO_ID: it stays
};
// For a consumer with moments or a part of its own. Memory is the arena's.
enum msc_status msc_pruner__rows(struct msc_pruner_rows *out, const struct msc_pruner *p,
                                 const struct msc_consumer *c, struct msc_arena *arena);
// C [k][l] of a moment's group.
static inline double msc_pruner__moment(const struct msc_pruner_rows *r,
                                        const struct msc_consumer *c, int64_t group, int64_t k,
                                        int64_t l) {
    const struct msc_moment *m = &c->moment;
    int64_t n = m->n_columns;
    double mean = r->is_centred ? m->means[group * n + k] * m->means[group * n + l] : 0;
    return (double)m->h[(group * n + k) * n + l] - mean;
}
// Those of some columns [n] (NULL: the first n) with d on the diagonal, into [n, n].
void msc_pruner__fill_moments(double out[], const struct msc_pruner_rows *r,
                              const struct msc_consumer *c, int64_t group, const int64_t columns[],
                              int64_t n, double damping);
// Where moments are not definite the ridge is ten times as much, so many times.
enum { MSC_PRUNER_ATTEMPTS = 9 };
// d of the ridge.
double msc_pruner__damping(const struct msc_pruner_rows *r, const struct msc_consumer *c,
                           int64_t group, double ridge);

// What was made of a consumer for these cuts [n_groups] of a point; NULL: nothing yet.
struct msc_prune_made *msc_pruner__find_made(const struct msc_consumer *c, const uint32_t cuts[]);
// pruner_kept.c
enum msc_status msc_pruner__recall_moment(bool *found, struct msc_pruner_kept *k,
                                          const struct msc_pruner *p, struct msc_consumer *c);
enum msc_status msc_pruner__keep_moment(struct msc_pruner_kept *k, const struct msc_consumer *c);

// pruner_rules.c: choices that names have, from the environment's JSON object; `choices` are there.
enum msc_status msc_pruner__read_rules(struct msc_pruner_options *out, const cJSON *config,
                                       struct msc_arena *arena);
// What the part is fixed to; NULL: it is not.
const struct msc_prune_fixed *msc_pruner__find_fixed(const struct msc_pruner *p, int32_t part);
// The choices of its kind that rules leave it: a bit for each.
uint64_t msc_pruner__allowed(const struct msc_pruner *p, int32_t part);
// MSC_E_INVALID: a pattern fits no part; all of them are listed.
enum msc_status msc_pruner__check_rules(const struct msc_pruner *p);

// What a density comes to for a group (pruner_parts.c).
enum msc_rounded { MSC_ROUNDED_TO_NONE, MSC_ROUNDED_TO_SOME, MSC_ROUNDED_TO_ALL };
enum msc_rounded msc_pruner__rounded(const struct msc_pruner *p, int32_t group, double density);

// The orders of a group by the criteria that are asked for (pruner_rank.c).
enum msc_status msc_pruner__rank_group(struct msc_pruner *p, int32_t group);
// Takes single weights from what `is_gone` leaves of rows, as a choice has it, and adds to the shifts
// [n_rows] of those that are repaired (pruner_sparse.c).
enum msc_status msc_pruner__make_sparse(double shifts[], struct msc_pruner_rows *r,
                                        const struct msc_pruner *p, const struct msc_consumer *c,
                                        const struct msc_prune_choice *choice, const bool is_gone[],
                                        struct msc_arena *arena);
// Fills `made`, whose cuts are there (pruner_repair.c).
enum msc_status msc_pruner__repair(struct msc_prune_made *made, const struct msc_pruner *p,
                                   const struct msc_consumer *c, const bool is_gone[],
                                   struct msc_arena *arena);

#endif

// The neighbourhood of the best observed point: points that differ from it in one or two tasks, in
// the order of the losses that they have if losses are additive. When a better point is observed,
// it becomes the centre. Only init allocates.
#ifndef MSC_AGENTS_GRID_AROUND_H
#define MSC_AGENTS_GRID_AROUND_H

#include "agents/exact_moves.h"
#include "agents/sampler.h"

// Numbers of neighbours listed for a centre, and of single changes that are paired with every other
// change.
#define MSC_AROUND_MOVES 512
#define MSC_AROUND_FIRSTS 32

// One task changed, or two.
struct msc_around_move {
    uint32_t entries[2]; // entries[1] is UINT32_MAX if only one task changes
    double loss;         // change of the loss if losses are additive
};

struct msc_grid_around {
    struct msc_exact_bounds *bounds; // borrowed
    struct msc_sampler seen;         // points that were proposed or observed
    uint32_t *tasks;                 // [n_entries], the task of an entry
    uint32_t *centre;                // [n_tasks], the best observed point
    double centre_loss;              // +inf: no usable point was observed
    int64_t centre_id;
    int64_t patience; // the mode ends after this many trials in a row without a better point
    int64_t n_in_vain;
    bool has_begun;
    bool is_listed; // `moves` belong to the current centre
    size_t n_moves, n_tried;
    struct msc_around_move moves[MSC_AROUND_MOVES];
};

enum msc_status msc_grid_around_init(struct msc_grid_around *around, struct msc_agent *agent,
                                     struct msc_exact_bounds *bounds, int64_t patience);
// Must be called for every trial, also for those before the first msc_grid_around_next.
void msc_grid_around_tell(struct msc_grid_around *around, const struct msc_trial *trial);
// The next point within the bounds on exact costs that was neither proposed nor observed. `losses`
// [n_entries] is what each choice adds to the summed loss; choices whose entry is NaN (unknown) are
// not tried. False if no point is left or the patience is used up.
bool msc_grid_around_next(struct msc_grid_around *around, const double losses[],
                          struct msc_proposal *out);

#endif

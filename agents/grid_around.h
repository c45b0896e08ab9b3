// The neighbourhood of the best point told: points of one task changed, and of two, in the order of
// what they lose as far as losses add up; around the next best point as soon as there is one. Nothing
// allocates after init.
#ifndef MSC_AGENTS_GRID_AROUND_H
#define MSC_AGENTS_GRID_AROUND_H

#include "agents/exact_moves.h"
#include "agents/sampler.h"

// Neighbours listed of a point, and changes of one task that are tried with every other.
#define MSC_AROUND_MOVES 512
#define MSC_AROUND_FIRSTS 32

// One task changed, or two.
struct msc_around_move {
    uint32_t entries[2]; // the second UINT32_MAX: none
    double loss;         // added, as far as losses add up
};

struct msc_grid_around {
    struct msc_exact_bounds *bounds; // borrowed
    struct msc_sampler seen;         // points proposed or told
    uint32_t *tasks;                 // [n_entries], whose choice an entry is
    uint32_t *centre;                // [n_tasks], the best point told
    double centre_loss;              // +inf: there is none
    int64_t centre_id;
    int64_t patience; // trials told without a better one, since it began, after which it ends
    int64_t n_in_vain;
    bool has_begun;
    bool is_listed; // the moves are those of the centre
    size_t n_moves, n_tried;
    struct msc_around_move moves[MSC_AROUND_MOVES];
};

enum msc_status msc_grid_around_init(struct msc_grid_around *around, struct msc_agent *agent,
                                     struct msc_exact_bounds *bounds, int64_t patience);
// Every trial, before it is first asked, too.
void msc_grid_around_tell(struct msc_grid_around *around, const struct msc_trial *trial);
// The next point that was neither proposed nor told, within the bounds on exact costs. `losses`
// [n_entries]: of each choice, what it adds to the sum; NaN: not known, and not tried. False at the
// end.
bool msc_grid_around_next(struct msc_grid_around *around, const double losses[],
                          struct msc_proposal *out);

#endif

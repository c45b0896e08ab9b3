#include "agents/grid_around.h"

#include "base/heap.h"

#include <math.h>
#include <string.h>

enum msc_status msc_grid_around_init(struct msc_grid_around *around, struct msc_agent *agent,
                                     struct msc_exact_bounds *bounds, int64_t patience) {
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    *around = (struct msc_grid_around){
        .bounds = bounds, .centre_loss = INFINITY, .centre_id = -1, .patience = patience};
    MSC_TRY(
        msc_sampler_init(&around->seen, arena, space, msc_agent_goal(agent), msc_agent_rng(agent)));
    around->tasks = msc_arena_array(arena, bounds->n_entries, sizeof *around->tasks);
    around->centre = msc_arena_array(arena, space->n_tasks, sizeof *around->centre);
    MSC_TRY(MSC_ALLOCATED(around->tasks && around->centre));
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            around->tasks[msc_exact_bounds_entry(bounds, t, c)] = (uint32_t)t;
        }
    }
    return MSC_OK;
}

void msc_grid_around_tell(struct msc_grid_around *around, const struct msc_trial *trial) {
    const uint32_t *choices = trial->proposal.choices;
    (void)msc_sampler_note(&around->seen, choices);
    around->n_in_vain++;
    if (trial->outcome.state == MSC_TRIAL_COMPLETE &&
        trial->outcome.objectives[0] < around->centre_loss) {
        memcpy(around->centre, choices, around->bounds->space->n_tasks * sizeof *choices);
        around->centre_loss = trial->outcome.objectives[0];
        around->centre_id = trial->id;
        around->n_in_vain = 0;
        around->is_listed = false;
    }
}

static bool is_more(const void *context, const void *left, const void *right) {
    (void)context;
    const struct msc_around_move *a = left;
    const struct msc_around_move *b = right;
    if (a->loss != b->loss) {
        return a->loss < b->loss;
    }
    return a->entries[0] != b->entries[0] ? a->entries[0] < b->entries[0]
                                          : a->entries[1] < b->entries[1];
}

// The change of the summed loss if the choice replaces the centre's choice of the same task; NaN if
// the change is unknown, or if the choice is the centre's own.
static double added(const struct msc_grid_around *around, const double losses[], size_t entry) {
    size_t t = around->tasks[entry];
    size_t here = msc_exact_bounds_entry(around->bounds, t, around->centre[t]);
    double loss = losses[entry] - losses[here];
    return entry != here && isfinite(loss) ? loss : NAN;
}

static uint32_t choice_of(const struct msc_grid_around *around, size_t entry) {
    return (uint32_t)(entry - around->bounds->offsets[around->tasks[entry]]);
}

static struct msc_heap heap_of(void *elements, struct msc_around_move *spare) {
    return (struct msc_heap){
        .elements = elements, .element_bytes = sizeof *spare, .spare = spare, .is_before = is_more};
}

// Offers to `heap` all pairs of changes within the bounds that combine `first` with a change of
// another task.
static void list_first(struct msc_grid_around *around, const double losses[],
                       const struct msc_around_move *first, const struct msc_heap *heap) {
    struct msc_exact_moves *moves = &around->seen.moves;
    size_t t = around->tasks[first->entries[0]];
    msc_exact_moves_start(moves, around->centre);
    msc_exact_moves_change(moves, t, choice_of(around, first->entries[0]));
    for (size_t entry = 0; entry < around->bounds->n_entries; entry++) {
        double more = added(around, losses, entry);
        if (around->tasks[entry] == t || isnan(more)) {
            continue;
        }
        double deltas[MSC_MAX_BOUNDS];
        msc_exact_moves_deltas(moves, around->tasks[entry], choice_of(around, entry), deltas);
        const struct msc_around_move move = {.entries = {first->entries[0], (uint32_t)entry},
                                             .loss = first->loss + more};
        if (msc_exact_moves_violation(moves, deltas) == 0.0) {
            msc_heap_offer(heap, &around->n_moves, MSC_AROUND_MOVES, &move);
        }
    }
}

// Lists the best neighbours of the centre in order. At least one change of a pair is among the
// MSC_AROUND_FIRSTS best single changes.
static void list_moves(struct msc_grid_around *around, const double losses[]) {
    struct msc_around_move firsts[MSC_AROUND_FIRSTS], spare, first_spare;
    const struct msc_heap heap = heap_of(around->moves, &spare);
    const struct msc_heap first_heap = heap_of(firsts, &first_spare);
    struct msc_exact_moves *moves = &around->seen.moves;
    size_t n_firsts = 0;
    around->n_moves = around->n_tried = 0;
    around->is_listed = true;
    msc_exact_moves_start(moves, around->centre);
    for (size_t entry = 0; entry < around->bounds->n_entries; entry++) {
        const struct msc_around_move move = {.entries = {(uint32_t)entry, UINT32_MAX},
                                             .loss = added(around, losses, entry)};
        if (isnan(move.loss)) {
            continue;
        }
        double deltas[MSC_MAX_BOUNDS];
        msc_exact_moves_deltas(moves, around->tasks[entry], choice_of(around, entry), deltas);
        msc_heap_offer(&first_heap, &n_firsts, MSC_AROUND_FIRSTS, &move);
        if (msc_exact_moves_violation(moves, deltas) == 0.0) {
            msc_heap_offer(&heap, &around->n_moves, MSC_AROUND_MOVES, &move);
        }
    }
    for (size_t i = 0; i < n_firsts; i++) {
        list_first(around, losses, &firsts[i], &heap);
    }
    msc_heap_sort(&heap, around->n_moves);
}

bool msc_grid_around_next(struct msc_grid_around *around, const double losses[],
                          struct msc_proposal *out) {
    if (!around->has_begun) {
        around->has_begun = true;
        around->n_in_vain = 0;
    }
    if (isinf(around->centre_loss) || around->n_in_vain >= around->patience) {
        return false;
    }
    if (!around->is_listed) {
        list_moves(around, losses);
    }
    while (around->n_tried < around->n_moves) {
        const struct msc_around_move *move = &around->moves[around->n_tried++];
        memcpy(out->choices, around->centre, around->bounds->space->n_tasks * sizeof *out->choices);
        for (int i = 0; i < 2 && move->entries[i] != UINT32_MAX; i++) {
            out->choices[around->tasks[move->entries[i]]] = choice_of(around, move->entries[i]);
        }
        if (msc_exact_bounds_hold(around->bounds, out->choices) &&
            msc_sampler_note(&around->seen, out->choices)) {
            out->parent = around->centre_id;
            return true;
        }
    }
    return false;
}

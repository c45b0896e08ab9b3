// Lagrangian relaxation for the search for plans (agents/plan_search.h).
#include "agents/plan_search_internal.h"

#include <math.h>

#define BISECTIONS 40

static uint32_t least_choice(const struct msc_plan_search *s, size_t task, double price) {
    size_t first = s->moves.bounds->offsets[task];
    const double *field = s->fields[0] + first, *loads = s->loads + first;
    uint32_t best = s->moves.point[task];
    double least = field[best] + price * loads[best];
    for (uint32_t c = 0; c < s->moves.bounds->space->tasks[task].n_choices; c++) {
        double here = field[c] + price * loads[c];
        if (here < least || (here == least && loads[c] < loads[best])) {
            best = c;
            least = here;
        }
    }
    return best;
}

// What the choice `entry` of a task adds to the value of a limit.
static double limit_delta(const struct msc_plan_search *s, size_t limit, size_t task,
                          size_t entry) {
    const double *field = s->fields[1 + limit];
    return field[entry] - field[msc_plan__entry(s, task, s->moves.point[task])];
}

// Adds the loads of the upper limits to those of the bounds. An infinite limit adds nothing.
static void add_limit_loads(struct msc_plan_search *s) {
    const struct msc_space *space = s->moves.bounds->space;
    for (size_t i = 0; s->relaxes_limits && i < s->n_limits; i++) {
        double size = fabs(s->limits[i].max);
        for (size_t t = 0; t < space->n_tasks; t++) {
            for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
                size_t entry = msc_plan__entry(s, t, c);
                s->loads[entry] += limit_delta(s, i, t, entry) / (size > 0.0 ? size : 1.0);
            }
        }
    }
}

// Whether the bounds hold if each task takes the choice of least value plus price times load. Costs
// and values of limits are treated as additive.
static bool holds_at(const struct msc_plan_search *s, double price) {
    double deltas[MSC_MAX_BOUNDS] = {0}, of_limits[MSC_MAX_BOUNDS] = {0};
    for (size_t t = 0; t < s->moves.bounds->space->n_tasks; t++) {
        size_t entry = msc_plan__entry(s, t, least_choice(s, t, price));
        for (size_t i = 0; s->relaxes_limits && i < s->n_limits; i++) {
            of_limits[i] += limit_delta(s, i, t, entry);
        }
        for (size_t i = 0; i < s->moves.bounds->n_items; i++) {
            deltas[i] += s->deltas[entry * MSC_MAX_BOUNDS + i];
        }
    }
    for (size_t i = 0; i < s->n_limits; i++) {
        if (s->relaxes_limits && s->values[1 + i] + of_limits[i] > s->limits[i].max) {
            return false;
        }
    }
    return msc_exact_moves_violation(&s->moves, deltas) == 0.0;
}

void msc_plan_search_relax(struct msc_plan_search *s, uint32_t choices[]) {
    const struct msc_space *space = s->moves.bounds->space;
    double low = 0.0, high = 1e-9;
    msc_plan__start_at(s, choices);
    add_limit_loads(s);
    if (holds_at(s, 0.0)) {
        high = 0.0;
    }
    for (int i = 0; i < 2 * BISECTIONS && high > 0.0 && !holds_at(s, high); i++) {
        low = high;
        high *= 4.0;
    }
    for (int i = 0; i < BISECTIONS && high > 0.0; i++) {
        double middle = 0.5 * (low + high);
        bool holds = holds_at(s, middle);
        high = holds ? middle : high;
        low = holds ? low : middle;
    }
    s->price = high;
    for (size_t t = 0; t < space->n_tasks; t++) {
        choices[t] = least_choice(s, t, high);
    }
}

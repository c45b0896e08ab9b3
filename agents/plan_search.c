#include "agents/plan_search_internal.h"

#include "base/cancel.h"

#include <math.h>
#include <string.h>

// Least gain of a change, above rounding.
#define LEAST_GAIN 1e-12
// Greatest number of pairs of changes that a step examines.
#define MOST_PAIRS 20000
// With more choices than this, a step takes the best pair of the first change that has one.
#define FEW_ENTRIES 100
// Tasks in a block; a block's least price is kept.
#define BLOCK_TASKS 32
// Greatest relative change of a steady price by rounding.
#define PRICE_SLACK 1e-7

static size_t count_blocks(const struct msc_exact_bounds *bounds) {
    return (bounds->space->n_tasks + BLOCK_TASKS - 1) / BLOCK_TASKS;
}

enum msc_status msc_plan_search_init(struct msc_plan_search *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds, size_t n_limits) {
    size_t n = bounds->n_entries;
    bool is_short = false;
    *s = (struct msc_plan_search){.n_limits = n_limits, .max_changed = SIZE_MAX};
    MSC_TRY(msc_exact_moves_init(&s->moves, arena, bounds));
    for (size_t i = 0; i <= n_limits; i++) {
        s->fields[i] = msc_arena_array(arena, n, sizeof(double));
        is_short = is_short || !s->fields[i];
    }
    s->loads = msc_arena_array(arena, n, sizeof *s->loads);
    s->shifted = msc_arena_array(arena, n, sizeof *s->shifted);
    s->deltas = msc_arena_array(arena, n * MSC_MAX_BOUNDS, sizeof *s->deltas);
    s->first_tasks = msc_arena_array(arena, MSC_PLAN_FIRSTS, sizeof *s->first_tasks);
    s->first_choices = msc_arena_array(arena, MSC_PLAN_FIRSTS, sizeof *s->first_choices);
    s->first_values = msc_arena_array(arena, MSC_PLAN_FIRSTS, sizeof *s->first_values);
    s->block_prices = msc_arena_array(arena, count_blocks(bounds), sizeof *s->block_prices);
    return is_short || !s->block_prices || !s->loads || !s->shifted || !s->deltas ||
                   !s->first_tasks || !s->first_choices || !s->first_values
               ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
               : MSC_OK;
}

// ---- Fields -----------------------------------------------------------------------------------

static const struct msc_pair_model *model_of(const struct msc_plan_search *s, size_t which) {
    return which == 0 ? s->model : s->limits[which - 1].model;
}

static void set_field(struct msc_plan_search *s, size_t which) {
    const struct msc_pair_model *m = model_of(s, which);
    const struct msc_exact_bounds *bounds = s->moves.bounds;
    double *field = s->fields[which];
    for (size_t e = 0; e < bounds->n_entries; e++) {
        field[e] = (m ? m->terms[e] : 0.0) + (which == 0 && s->weights ? s->weights[e] : 0.0);
    }
    for (size_t t = 0; m && t < bounds->space->n_tasks; t++) {
        msc_pair_model_add_terms(m, t, s->moves.point[t], 1.0, field);
    }
    s->values[which] = m ? msc_pair_model_value(m, s->moves.point) : 0.0;
    for (size_t t = 0; which == 0 && s->weights && t < bounds->space->n_tasks; t++) {
        s->values[0] += s->weights[msc_plan__entry(s, t, s->moves.point[t])];
    }
}

static void forget_prices(struct msc_plan_search *s) {
    for (size_t i = 0; i < count_blocks(s->moves.bounds); i++) {
        s->block_prices[i] = -INFINITY;
    }
}

static void change_field(struct msc_plan_search *s, size_t which, size_t task, uint32_t choice) {
    const struct msc_pair_model *m = model_of(s, which);
    size_t before = msc_plan__entry(s, task, s->moves.point[task]),
           after = msc_plan__entry(s, task, choice);
    double *field = s->fields[which];
    s->values[which] += field[after] - field[before];
    if (m && msc_pair_model_add_terms(m, task, choice, 1.0, field)) {
        msc_pair_model_add_terms(m, task, s->moves.point[task], -1.0, field);
        forget_prices(s);
    }
}

// The load of a change to the choice `entry`: the sum of each bounded cost's increase relative to
// its limit.
static double load_of(const struct msc_plan_search *s, size_t entry) {
    const double *deltas = s->deltas + entry * MSC_MAX_BOUNDS;
    double sum = 0.0;
    for (size_t i = 0; i < s->moves.bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &s->moves.bounds->items[i];
        bool has_max = !isinf(bound->max);
        double limit = fabs(has_max ? bound->max : bound->min);
        sum += (has_max ? 1.0 : -1.0) * deltas[i] / (limit > 0.0 ? limit : 1.0);
    }
    return sum;
}

static void set_deltas(struct msc_plan_search *s, size_t task) {
    for (uint32_t c = 0; c < s->moves.bounds->space->tasks[task].n_choices; c++) {
        size_t entry = msc_plan__entry(s, task, c);
        msc_exact_moves_deltas(&s->moves, task, c, s->deltas + entry * MSC_MAX_BOUNDS);
        s->loads[entry] = load_of(s, entry);
    }
}

// ---- Changes ----------------------------------------------------------------------------------

// One or two tasks' new choices.
struct change {
    size_t n;
    size_t tasks[2];
    uint32_t choices[2];
    double value; // increase of the minimised value
    double violation;
};

static double limits_violation(const struct msc_plan_search *s, const struct change *c) {
    double sum = 0.0;
    for (size_t i = 0; i < s->n_limits; i++) {
        const struct msc_plan_limit *limit = &s->limits[i];
        double value = s->values[1 + i];
        for (size_t k = 0; k < c->n; k++) {
            const double *field = s->fields[1 + i];
            value += field[msc_plan__entry(s, c->tasks[k], c->choices[k])] -
                     field[msc_plan__entry(s, c->tasks[k], s->moves.point[c->tasks[k]])];
        }
        double over = fmax(value - limit->max, limit->min - value);
        double size = fabs(isinf(limit->max) ? limit->min : limit->max);
        sum += over > 0.0 ? (size > 0.0 ? over / size : over) : 0.0;
    }
    return sum;
}

// The change in the number of tasks that differ from the start.
static int changes_more(const struct msc_plan_search *s, const struct change *c) {
    int more = 0;
    for (size_t k = 0; k < c->n; k++) {
        uint32_t first = s->start[c->tasks[k]];
        more += (c->choices[k] != first) - (s->moves.point[c->tasks[k]] != first);
    }
    return more;
}

static bool is_too_far(const struct msc_plan_search *s, const struct change *c) {
    int more = changes_more(s, c);
    return more > 0 && s->n_changed + (size_t)more > s->max_changed;
}

// Sets the value of a change of one task.
static void rate_value(const struct msc_plan_search *s, struct change *c) {
    c->value = s->fields[0][msc_plan__entry(s, c->tasks[0], c->choices[0])] -
               s->fields[0][msc_plan__entry(s, c->tasks[0], s->moves.point[c->tasks[0]])];
}

static void rate_violation(const struct msc_plan_search *s, struct change *c) {
    double deltas[MSC_MAX_BOUNDS] = {0};
    for (size_t k = 0; k < c->n; k++) {
        size_t entry = msc_plan__entry(s, c->tasks[k], c->choices[k]);
        for (size_t i = 0; i < s->moves.bounds->n_items; i++) {
            deltas[i] += s->deltas[entry * MSC_MAX_BOUNDS + i];
        }
    }
    c->violation = msc_exact_moves_violation(&s->moves, deltas) + limits_violation(s, c);
}

// Whether all bounds hold after the change.
static bool holds_after(const struct msc_plan_search *s, struct change *c) {
    for (size_t i = 0; i < s->moves.bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &s->moves.bounds->items[i];
        double value = s->moves.values[i];
        for (size_t k = 0; k < c->n; k++) {
            value += s->deltas[msc_plan__entry(s, c->tasks[k], c->choices[k]) * MSC_MAX_BOUNDS + i];
        }
        if (value - bound->max > msc_exact_moves_slack(bound->max) ||
            bound->min - value > msc_exact_moves_slack(bound->min)) {
            return false;
        }
    }
    return s->n_limits == 0 || limits_violation(s, c) == 0.0;
}

// The price of a change at a point that breaks bounds: the increase of the value divided by the
// decrease of the violation.
static double price(const struct change *c, double violation) {
    return c->value / (violation - c->violation);
}

// Keeps the changes of least value, from which pairs are made later, even if they break bounds.
static void offer_first(struct msc_plan_search *s, size_t *n, const struct change *c) {
    size_t at = *n < MSC_PLAN_FIRSTS ? (*n)++ : *n;
    if (at == MSC_PLAN_FIRSTS) {
        at = MSC_PLAN_FIRSTS - 1;
        if (!(c->value < s->first_values[at])) {
            return;
        }
    }
    for (; at > 0 && c->value < s->first_values[at - 1]; at--) {
        s->first_values[at] = s->first_values[at - 1];
        s->first_tasks[at] = s->first_tasks[at - 1];
        s->first_choices[at] = s->first_choices[at - 1];
    }
    s->first_values[at] = c->value;
    s->first_tasks[at] = (uint32_t)c->tasks[0];
    s->first_choices[at] = c->choices[0];
}

// What one unit of a value that breaks its limits adds to the violation; 0 if it breaks none.
static double unit_violation(double value, double min, double max) {
    double limit = value > max ? fabs(max) : fabs(min), size = limit > 0.0 ? limit : 1.0;
    return value > max ? 1.0 / size : value < min ? -1.0 / size : 0.0;
}

static void find_broken(const struct msc_plan_search *s, struct msc_plan_broken *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < s->moves.bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &s->moves.bounds->items[i];
        double unit = unit_violation(s->moves.values[i], bound->min, bound->max);
        out->items[out->n_items] = i;
        out->of_item[out->n_items] = unit;
        out->n_items += unit != 0.0;
    }
    for (size_t i = 0; i < s->n_limits; i++) {
        double unit = unit_violation(s->values[1 + i], s->limits[i].min, s->limits[i].max);
        out->limits[out->n_limits] = i;
        out->of_limit[out->n_limits] = unit;
        out->n_limits += unit != 0.0;
    }
}

// The most by which a change to the choice `entry` of a task can lower the violation, where `now`
// is the entry of the task's choice; 0: it cannot.
static double most_fall(const struct msc_plan_search *s, const struct msc_plan_broken *broken,
                        size_t entry, size_t now) {
    double sum = 0.0;
    for (size_t i = 0; i < broken->n_items; i++) {
        sum -= broken->of_item[i] * s->deltas[entry * MSC_MAX_BOUNDS + broken->items[i]];
    }
    for (size_t i = 0; i < broken->n_limits; i++) {
        const double *field = s->fields[1 + broken->limits[i]];
        sum -= broken->of_limit[i] * (field[entry] - field[now]);
    }
    return sum;
}

// Looks in the block for a change that lowers the violation at a lower price than `best`, and
// stores the least price that any change of the block can have until its fields or the broken
// bounds change.
static void look_at_block(struct msc_plan_search *s, size_t block, double violation,
                          struct change *best) {
    const struct msc_space *space = s->moves.bounds->space;
    size_t end =
        (block + 1) * BLOCK_TASKS < space->n_tasks ? (block + 1) * BLOCK_TASKS : space->n_tasks;
    double best_price = best->n > 0 ? price(best, violation) : INFINITY, least = INFINITY;
    for (size_t t = block * BLOCK_TASKS; t < end; t++) {
        size_t first = msc_plan__entry(s, t, 0), now = first + s->moves.point[t];
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            double value = s->fields[0][first + c] - s->fields[0][now];
            double fall = first + c == now ? 0.0 : most_fall(s, &s->broken, first + c, now);
            if (!(fall > 0.0)) {
                continue;
            }
            double lowest = value > 0.0 ? value / fall * (1.0 - PRICE_SLACK) : -INFINITY;
            least = lowest < least ? lowest : least;
            if (lowest >= best_price) {
                continue;
            }
            struct change change = {.n = 1, .tasks = {t}, .choices = {c}, .value = value};
            rate_violation(s, &change);
            if (change.violation < violation && price(&change, violation) < best_price) {
                *best = change;
                best_price = price(best, violation);
            }
        }
    }
    s->block_prices[block] = least;
}

// The change of least price among those that lower the violation, or none. Only blocks that may
// have the least price are examined.
static struct change cheapest_single(struct msc_plan_search *s, double violation) {
    struct change best = {.violation = violation};
    struct msc_plan_broken broken;
    size_t n_blocks = count_blocks(s->moves.bounds), first = 0;
    find_broken(s, &broken);
    if (memcmp(&broken, &s->broken, sizeof broken) != 0) {
        s->broken = broken;
        forget_prices(s);
    }
    for (size_t i = 1; i < n_blocks; i++) {
        first = s->block_prices[i] < s->block_prices[first] ? i : first;
    }
    look_at_block(s, first, violation, &best);
    for (size_t i = 0; i < n_blocks; i++) {
        if (i != first && (best.n == 0 || s->block_prices[i] < price(&best, violation))) {
            look_at_block(s, i, violation, &best);
        }
    }
    return best;
}

// The best change of one task, from a point within the bounds to another point within the bounds; n
// is 0 if there is none. Changes that lower the value are also passed to offer_first, from which
// pairs are made.
static struct change best_single(struct msc_plan_search *s, size_t *n_firsts) {
    const struct msc_space *space = s->moves.bounds->space;
    struct change best = {.value = -LEAST_GAIN};
    *n_firsts = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        const double *field = s->fields[0] + msc_plan__entry(s, t, 0);
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            if (!(field[c] - field[s->moves.point[t]] < -LEAST_GAIN)) {
                continue; // true of most choices, the current one included
            }
            struct change change = {.n = 1, .tasks = {t}, .choices = {c}};
            rate_value(s, &change);
            if (change.value < best.value && !is_too_far(s, &change) && holds_after(s, &change)) {
                best = change;
            }
            change.value += s->price * s->loads[msc_plan__entry(s, t, c)];
            offer_first(s, n_firsts, &change);
        }
    }
    return best;
}

// Sets `shifted` to the fields after the change `first`.
static void shift_field(struct msc_plan_search *s, const struct change *first) {
    const struct msc_pair_model *m = s->model;
    size_t task = first->tasks[0];
    memcpy(s->shifted, s->fields[0], s->moves.bounds->n_entries * sizeof *s->shifted);
    if (m && msc_pair_model_add_terms(m, task, first->choices[0], 1.0, s->shifted)) {
        msc_pair_model_add_terms(m, task, s->moves.point[task], -1.0, s->shifted);
    }
}

// Keeps the best change of two tasks that contains the change `first`.
static void pair_with(struct msc_plan_search *s, const struct change *first, struct change *best) {
    const struct msc_space *space = s->moves.bounds->space;
    shift_field(s, first);
    for (size_t t = 0; t < space->n_tasks; t++) {
        const double *field = s->shifted + msc_plan__entry(s, t, 0);
        uint32_t now = s->moves.point[t];
        double needed = best->value - first->value + field[now];
        for (uint32_t c = 0; t != first->tasks[0] && c < space->tasks[t].n_choices; c++) {
            if (!(field[c] < needed) || c == now) {
                continue;
            }
            struct change change = {.n = 2,
                                    .tasks = {first->tasks[0], t},
                                    .choices = {first->choices[0], c},
                                    .value = first->value + field[c] - field[now]};
            if (change.value < best->value && !is_too_far(s, &change) && holds_after(s, &change)) {
                *best = change;
                needed = best->value - first->value + field[now];
            }
        }
    }
}

static struct change best_pair(struct msc_plan_search *s, size_t n_firsts) {
    struct change best = {.value = -LEAST_GAIN};
    size_t most = MOST_PAIRS / s->moves.bounds->n_entries + 2;
    bool takes_first = s->moves.bounds->n_entries > FEW_ENTRIES;
    for (size_t i = 0; i < n_firsts && i < most && !(takes_first && best.n > 0); i++) {
        struct change first = {
            .n = 1, .tasks = {s->first_tasks[i]}, .choices = {s->first_choices[i]}};
        rate_value(s, &first);
        pair_with(s, &first, &best);
    }
    return best;
}

static void make_change(struct msc_plan_search *s, const struct change *c) {
    s->n_changed = (size_t)((int)s->n_changed + changes_more(s, c));
    for (size_t k = 0; k < c->n; k++) {
        for (size_t which = 0; which <= s->n_limits; which++) {
            change_field(s, which, c->tasks[k], c->choices[k]);
        }
        msc_exact_moves_change(&s->moves, c->tasks[k], c->choices[k]);
        s->block_prices[c->tasks[k] / BLOCK_TASKS] = -INFINITY;
    }
    for (size_t t = 0; s->moves.has_products && t < s->moves.bounds->space->n_tasks; t++) {
        set_deltas(s, t);
    }
    if (s->moves.has_products) {
        forget_prices(s);
    }
    for (size_t k = 0; k < c->n; k++) {
        set_deltas(s, c->tasks[k]);
    }
}

static double violation_now(const struct msc_plan_search *s) {
    struct change none = {.n = 0};
    rate_violation(s, &none);
    return none.violation;
}

void msc_plan__start_at(struct msc_plan_search *s, const uint32_t choices[]) {
    msc_exact_moves_start(&s->moves, choices);
    for (size_t which = 0; which <= s->n_limits; which++) {
        set_field(s, which);
    }
    for (size_t t = 0; t < s->moves.bounds->space->n_tasks; t++) {
        set_deltas(s, t);
    }
    forget_prices(s);
}

// ---- Search -----------------------------------------------------------------------------------

double msc_plan_search_run(struct msc_plan_search *s, uint32_t choices[], size_t max_steps,
                           double *violation) {
    size_t n_tasks = s->moves.bounds->space->n_tasks, n_firsts;
    s->start = choices;
    s->n_changed = 0;
    msc_plan__start_at(s, choices);
    double now = violation_now(s);
    for (size_t step = 0; step < max_steps && !msc_cancel_soon(s->cancel); step++) {
        struct change change = now > 0.0 ? cheapest_single(s, now) : best_single(s, &n_firsts);
        if (change.n == 0 && !(now > 0.0)) {
            change = best_pair(s, n_firsts);
        }
        if (change.n == 0) {
            break;
        }
        make_change(s, &change);
        now = violation_now(s);
    }
    memcpy(choices, s->moves.point, n_tasks * sizeof *choices);
    if (violation) {
        *violation = now;
    }
    return s->values[0];
}

bool msc_plan_search_neighbour(struct msc_plan_search *s, uint32_t choices[],
                               bool (*is_wanted)(const void *context, const uint32_t choices[]),
                               const void *context) {
    const struct msc_space *space = s->moves.bounds->space;
    struct change best = {.value = INFINITY};
    msc_plan__start_at(s, choices);
    for (size_t t = 0; t < space->n_tasks; t++) {
        uint32_t before = choices[t];
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            struct change change = {.n = 1, .tasks = {t}, .choices = {c}};
            rate_value(s, &change);
            choices[t] = c;
            if (c != before && change.value < best.value && holds_after(s, &change) &&
                is_wanted(context, choices)) {
                best = change;
            }
        }
        choices[t] = before;
    }
    if (best.n > 0) {
        choices[best.tasks[0]] = best.choices[0];
    }
    return best.n > 0;
}

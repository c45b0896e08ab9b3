#include "agents/auto_front.h"

#include "agents/auto.h"
#include "agents/numbers.h"

#include <math.h>
#include <string.h>

// Limits lie up to this fraction of an objective's range outside of the range.
#define MARGIN 0.1
// Share of limits that are no limits, so that the ends of the front are extended, too.
#define UNLIMITED 0.125
// Beyond this many standard deviations an event counts as impossible.
#define IMPOSSIBLE 6.0

// ---- Init -------------------------------------------------------------------------------------

// Adds a limit on an exact objective, and sets the range of the objective within the bounds on its
// metric.
static void add_limit(struct msc_auto_front *f, const struct msc_space *space,
                      struct msc_front_objective *objective, int metric) {
    bool is_exact;
    double low = msc_cost_min(space, objective->cost, &is_exact, NULL);
    double high = msc_cost_max(space, objective->cost, &is_exact, NULL), max = high;
    for (size_t i = 0; i < f->goal.n_bounds; i++) {
        if (f->goal.bounds[i].metric == metric) {
            low = fmax(low, f->goal.bounds[i].min);
            high = fmin(high, f->goal.bounds[i].max);
        }
    }
    objective->least = objective->sign > 0.0 ? low : -high;
    objective->most = objective->sign > 0.0 ? high : -low;
    objective->item = f->goal.n_bounds;
    f->goal.bounds[f->goal.n_bounds++] =
        (struct msc_bound){.metric = metric, .min = -INFINITY, .max = max};
}

// The goal keeps only bounds on exact costs, so that its bounds are the items of `bounds`.
static void keep_exact_bounds(struct msc_goal *goal, const struct msc_space *space) {
    size_t n = 0;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (space->metrics[goal->bounds[i].metric].is_exact) {
            goal->bounds[n++] = goal->bounds[i];
        }
    }
    goal->n_bounds = n;
}

enum msc_status msc_auto_front_init(struct msc_auto *a, struct msc_agent *agent) {
    struct msc_auto_front *f = &a->front;
    const struct msc_space *space = msc_agent_space(agent);
    const struct msc_goal *goal = msc_agent_goal(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_measured = 0, n_slots = MSC_FRONT_POINTS + MSC_FRONT_PENDING;
    if (goal->n_objectives < 2 || goal->n_bounds + goal->n_objectives > MSC_MAX_BOUNDS) {
        return MSC_OK;
    }
    f->goal = *goal;
    f->n_objectives = goal->n_objectives;
    keep_exact_bounds(&f->goal, space);
    for (size_t i = 0; i < goal->n_objectives; i++) {
        const struct msc_objective *from = &goal->objectives[i];
        struct msc_front_objective *to = &f->objectives[i];
        to->sign = from->is_maximised ? -1.0 : 1.0;
        to->cost = msc_space_find_cost(space, space->metrics[from->metric].name);
        if (to->cost) {
            add_limit(f, space, to, from->metric);
        } else {
            to->most = INFINITY;
            to->part = n_measured++;
        }
    }
    f->is_used = n_measured > 0;
    if (!f->is_used) {
        return MSC_OK;
    }
    MSC_TRY(msc_exact_bounds_init(&f->bounds, arena, space, &f->goal));
    f->points = msc_arena_array(arena, n_slots * space->n_tasks, sizeof *f->points);
    f->values = msc_arena_array(arena, n_slots * MSC_MAX_OBJECTIVES, sizeof *f->values);
    return MSC_ALLOCATED(f->points && f->values);
}

// ---- Front ------------------------------------------------------------------------------------

static double *values_of(const struct msc_auto_front *f, size_t point) {
    return f->values + point * MSC_MAX_OBJECTIVES;
}

static uint32_t *point_of(const struct msc_auto_front *f, size_t point) {
    return f->points + point * f->bounds.space->n_tasks;
}

static bool covers(const double a[], const double b[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (a[i] > b[i]) {
            return false;
        }
    }
    return true;
}

bool msc_auto_front_improves(const struct msc_auto_front *f, const double values[]) {
    for (size_t i = 0; i < f->n_points; i++) {
        if (covers(values_of(f, i), values, f->n_objectives)) {
            return false;
        }
    }
    return true;
}

static void put_point(struct msc_auto_front *f, size_t place, const uint32_t choices[],
                      const double values[]) {
    memmove(point_of(f, place), choices, f->bounds.space->n_tasks * sizeof *choices);
    memmove(values_of(f, place), values, f->n_objectives * sizeof *values);
}

// Removes a point or pending proposal; those after it move up.
static void remove_point(struct msc_auto_front *f, size_t place) {
    size_t n_after = f->n_points + f->n_pending - place - 1;
    size_t n_tasks = f->bounds.space->n_tasks;
    memmove(point_of(f, place), point_of(f, place + 1), n_after * n_tasks * sizeof *f->points);
    memmove(values_of(f, place), values_of(f, place + 1),
            n_after * MSC_MAX_OBJECTIVES * sizeof *f->values);
    *(place < f->n_points ? &f->n_points : &f->n_pending) -= 1;
}

static void remove_pending(struct msc_auto_front *f, const uint32_t choices[]) {
    size_t n_bytes = f->bounds.space->n_tasks * sizeof *choices;
    for (size_t i = f->n_points + f->n_pending; i-- > f->n_points;) {
        if (memcmp(point_of(f, i), choices, n_bytes) == 0) {
            remove_point(f, i);
        }
    }
}

void msc_auto_front_await(struct msc_auto_front *f, const uint32_t choices[],
                          const double values[]) {
    if (f->n_pending == MSC_FRONT_PENDING) {
        remove_point(f, f->n_points);
    }
    put_point(f, f->n_points + f->n_pending++, choices, values);
}

static bool are_finite(const double values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

void msc_auto_front_tell(struct msc_auto_front *f, const uint32_t choices[],
                         const double values[]) {
    remove_pending(f, choices);
    if (!values || !are_finite(values, f->n_objectives) || !msc_auto_front_improves(f, values)) {
        return;
    }
    for (size_t i = f->n_points; i-- > 0;) {
        if (covers(values, values_of(f, i), f->n_objectives)) {
            remove_point(f, i);
        }
    }
    if (f->n_points == MSC_FRONT_POINTS) {
        remove_point(f, 0);
    }
    // The first pending proposal makes room.
    if (f->n_pending > 0) {
        put_point(f, f->n_points + f->n_pending, point_of(f, f->n_points),
                  values_of(f, f->n_points));
    }
    put_point(f, f->n_points++, choices, values);
}

// ---- Boxes ------------------------------------------------------------------------------------

struct range {
    double low, high;
};

// The range of an objective from which limits are drawn.
static struct range range_of(const struct msc_auto_front *f, size_t objective) {
    const struct msc_front_objective *o = &f->objectives[objective];
    struct range range = {INFINITY, -INFINITY};
    for (size_t i = 0; i < f->n_points; i++) {
        range.low = fmin(range.low, values_of(f, i)[objective]);
        range.high = fmax(range.high, values_of(f, i)[objective]);
    }
    double margin = MARGIN * (range.high - range.low);
    range.low = o->cost ? o->least : range.low - margin;
    range.high += margin;
    return range;
}

bool msc_auto_front_holds(const struct msc_auto_front *f, const struct msc_front_box *box,
                          const double values[]) {
    for (size_t i = 0; i < f->n_objectives; i++) {
        if (i != f->minimised && values[i] > box->limits[i]) {
            return false;
        }
    }
    return true;
}

// Sets the box's best point and the limit of the minimised objective, which is at most `high`.
static void set_best(const struct msc_auto_front *f, struct msc_front_box *box, double high) {
    double *least = &box->limits[f->minimised];
    *least = high;
    box->best = SIZE_MAX;
    for (size_t i = 0; i < f->n_points + f->n_pending; i++) {
        double value = values_of(f, i)[f->minimised];
        if (value < *least && msc_auto_front_holds(f, box, values_of(f, i))) {
            *least = value;
            box->best = i;
        }
    }
}

static size_t draw_minimised(const struct msc_auto_front *f, struct msc_rng *rng) {
    size_t measured[MSC_MAX_OBJECTIVES], n = 0;
    for (size_t i = 0; i < f->n_objectives; i++) {
        if (!f->objectives[i].cost) {
            measured[n++] = i;
        }
    }
    return measured[msc_rng_below(rng, n)];
}

// The limit at a position from 0 to 1.
static double limit_at(const struct msc_auto_front *f, size_t objective, struct range range,
                       double at) {
    return at > 1.0 - UNLIMITED ? f->objectives[objective].most
                                : range.low + (range.high - range.low) * at / (1.0 - UNLIMITED);
}

// Limits are points of a lattice with a random shift: multiples, modulo 1, of powers of the number
// g with g^(d + 1) = g + 1, for d limits (Roberts 2018).
bool msc_auto_front_draw(struct msc_auto_front *f, struct msc_rng *rng) {
    static const double steps[MSC_MAX_OBJECTIVES][MSC_MAX_OBJECTIVES - 1] = {
        {0},
        {0.61803398874989485},
        {0.75487766624669276, 0.56984029099805327},
        {0.81917251339616444, 0.67104360670378921, 0.54970047790197026}};
    struct range ranges[MSC_MAX_OBJECTIVES];
    double at[MSC_MAX_OBJECTIVES];
    if (f->n_points == 0) {
        return false;
    }
    f->minimised = draw_minimised(f, rng);
    for (size_t i = 0; i < f->n_objectives; i++) {
        ranges[i] = range_of(f, i);
        at[i] = msc_rng_double(rng);
    }
    for (size_t k = 0; k < MSC_FRONT_BOXES; k++) {
        struct msc_front_box *box = &f->boxes[k];
        for (size_t i = 0, d = 0; i < f->n_objectives; i++) {
            if (i != f->minimised) {
                at[i] += steps[f->n_objectives - 1][d++];
                at[i] -= floor(at[i]);
                box->limits[i] = limit_at(f, i, ranges[i], at[i]);
            }
        }
        set_best(f, box, ranges[f->minimised].high);
    }
    return true;
}

struct msc_front_box msc_auto_front_box_at_point(const struct msc_auto_front *f,
                                                 struct msc_rng *rng) {
    struct msc_front_box box;
    memcpy(box.limits, values_of(f, (size_t)msc_rng_below(rng, f->n_points)), sizeof box.limits);
    set_best(f, &box, range_of(f, f->minimised).high);
    return box;
}

double msc_auto_front_gain(const struct msc_auto_front *f, const double values[]) {
    double sum = 0.0;
    for (size_t k = 0; k < MSC_FRONT_BOXES; k++) {
        double gain = f->boxes[k].limits[f->minimised] - values[f->minimised];
        if (gain > 0.0 && msc_auto_front_holds(f, &f->boxes[k], values)) {
            sum += gain;
        }
    }
    return sum / MSC_FRONT_BOXES;
}

// The expected improvement of the minimised objective within one box.
static double expected_in(const struct msc_auto_front *f, const struct msc_front_box *box,
                          const double means[], const double spreads[]) {
    double chance = 1.0, spread = spreads[f->minimised];
    double by_mean = box->limits[f->minimised] - means[f->minimised];
    if (by_mean < -IMPOSSIBLE * spread) {
        return 0.0;
    }
    for (size_t i = 0; i < f->n_objectives; i++) {
        double room = box->limits[i] - means[i];
        if (i == f->minimised || room > IMPOSSIBLE * spreads[i]) {
            continue;
        }
        if (room < -IMPOSSIBLE * spreads[i]) {
            return 0.0;
        }
        chance *= spreads[i] > 0.0 ? msc_agent_below(room / spreads[i]) : 1.0;
    }
    return chance *
           (by_mean > IMPOSSIBLE * spread ? by_mean : spread * msc_agent_gain(by_mean / spread));
}

double msc_auto_front_expected_gain(const struct msc_auto_front *f, const double means[],
                                    const double spreads[], size_t *most) {
    double sum = 0.0, greatest = -1.0;
    for (size_t k = 0; k < MSC_FRONT_BOXES; k++) {
        double gain = expected_in(f, &f->boxes[k], means, spreads);
        sum += gain;
        if (gain > greatest && most) {
            greatest = gain;
            *most = k;
        }
    }
    return sum / MSC_FRONT_BOXES;
}

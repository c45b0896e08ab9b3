// Plans and hopes of the agent `auto` with several objectives (agents/auto_front.h).
#include "agents/auto.h"
#include "agents/numbers.h"

#include <math.h>
#include <string.h>

// Searches and draws take more time if there are more choices than MANY_ENTRIES, and with several
// models, so fewer are made.
#define MANY_ENTRIES 150
// The number of boxes in which a plan is searched.
#define PLAN_BOXES 6
#define PLAN_BOXES_OF_MANY 3
// Draws of the models in which candidates for hopes are searched, each in SEARCHES boxes. The first
// draw is the mean, the others have rising temperatures.
#define DRAWS 6
#define DRAWS_OF_MANY 3
#define SEARCHES (MSC_AUTO_HOPES / DRAWS)
#define SEARCHES_OF_MANY 3 // with several models
#define LEAST_TEMPERATURE 0.8
#define HIGHEST_TEMPERATURE 2.0

static bool has_many_entries(const struct msc_auto *a) {
    return a->sampler.bounds.n_entries > MANY_ENTRIES;
}

static int searches_of(const struct msc_auto *a) {
    return has_many_entries(a) && a->n_parts > 1 ? SEARCHES_OF_MANY : SEARCHES;
}

// ---- Search -----------------------------------------------------------------------------------

// A limit under the model's link.
static double linked_limit(const struct msc_pair_model *m, double limit) {
    return m->link.kind == MSC_LINK_NONE ? limit : msc_pair_model_linked(m, limit);
}

// Makes the search for plans minimise the box's objective within its limits.
static void use_box(struct msc_auto *a, const struct msc_front_box *box) {
    struct msc_auto_front *f = &a->front;
    size_t n = 0;
    f->box = *box;
    for (size_t i = 0; i < f->n_objectives; i++) {
        const struct msc_front_objective *o = &f->objectives[i];
        if (o->cost) {
            struct msc_exact_bound *bound = &f->bounds.items[o->item];
            bound->max = o->sign > 0.0 ? box->limits[i] : INFINITY;
            bound->min = o->sign > 0.0 ? -INFINITY : -box->limits[i];
        } else if (i == f->minimised) {
            a->search.model = &a->parts[o->part].model;
        } else {
            a->search.limits[n++] = (struct msc_plan_limit){
                .model = &a->parts[o->part].model,
                .min = -INFINITY,
                .max = linked_limit(&a->parts[o->part].model, box->limits[i])};
        }
    }
    for (size_t i = 0; i < a->n_parts; i++) {
        if (a->parts[i].objective < 0) {
            a->search.limits[n++] = (struct msc_plan_limit){
                .model = &a->parts[i].model, .min = -INFINITY, .max = a->parts[i].max};
        }
    }
}

static const struct msc_front_box *random_box(struct msc_auto *a) {
    return &a->front.boxes[msc_rng_below(a->sampler.rng, MSC_FRONT_BOXES)];
}

static void draw_models(struct msc_auto *a, double temperature) {
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_draw(&a->parts[i].model, a->sampler.rng, temperature);
    }
}

// The objectives of a point under the models' draws.
static void values_at(const struct msc_auto *a, const uint32_t choices[], double values[]) {
    for (size_t i = 0; i < a->front.n_objectives; i++) {
        const struct msc_front_objective *o = &a->front.objectives[i];
        values[i] =
            o->cost
                ? o->sign * msc_cost_value(o->cost, choices)
                : msc_pair_model_unlinked(&a->parts[o->part].model,
                                          msc_pair_model_value(&a->parts[o->part].model, choices));
    }
}

// Whether the point was not proposed yet and is within the box and the bounds; limits on measured
// metrics apply to the models' draws.
static bool is_unseen_within(const void *context, const uint32_t choices[]) {
    const struct msc_auto *a = context;
    if (!msc_exact_bounds_hold(&a->front.bounds, choices) ||
        msc_sampler_has(&a->sampler, choices)) {
        return false;
    }
    for (size_t i = 0; i < a->search.n_limits; i++) {
        const struct msc_plan_limit *limit = &a->search.limits[i];
        if (msc_pair_model_value(limit->model, choices) > limit->max) {
            return false;
        }
    }
    return true;
}

enum start { FROM_BEST, FROM_RELAXED, FROM_FRONT, FROM_ANYWHERE, STARTS };

// Searches within the current box: from its best point, from that point after
// msc_plan_search_relax, from a random point of the front, or from any point. In a space of many
// choices, a point of the front that may be far from the box is relaxed, too: steps into the box
// would take long. True if the search ends within the box; a->start is then that point, and *value
// its value.
static bool search_from(struct msc_auto *a, enum start from, double *value) {
    struct msc_auto_front *f = &a->front;
    const struct msc_space *space = f->bounds.space;
    size_t at = f->box.best;
    double violation;
    if (from == FROM_FRONT || at == SIZE_MAX) {
        at = (size_t)msc_rng_below(a->sampler.rng, f->n_points);
    }
    memcpy(a->start, f->points + at * space->n_tasks, space->n_tasks * sizeof *a->start);
    for (size_t t = 0; from == FROM_ANYWHERE && t < space->n_tasks; t++) {
        a->start[t] = (uint32_t)msc_rng_below(a->sampler.rng, space->tasks[t].n_choices);
    }
    bool is_far = from == FROM_FRONT || f->box.best == SIZE_MAX;
    if (from == FROM_RELAXED || (is_far && f->bounds.n_entries > MSC_AUTO_MANY_ENTRIES)) {
        msc_plan_search_relax(&a->search, a->start);
    }
    *value = msc_plan_search_run(&a->search, a->start, 4 * space->n_tasks + 50, &violation);
    return !(violation > 0.0);
}

// Notes the proposal, and counts it as observed with its values under the models' draws.
static bool note_proposal(struct msc_auto *a, const struct msc_proposal *out) {
    double values[MSC_MAX_OBJECTIVES];
    values_at(a, out->choices, values);
    msc_auto_front_await(&a->front, out->choices, values);
    return msc_sampler_note(&a->sampler, out->choices);
}

// ---- Plans ------------------------------------------------------------------------------------

// Searches in a random box. If the point found is unseen and gains more than *best, it is copied to
// `choices`. If it was seen, its best unseen neighbour takes its place.
static void try_box(struct msc_auto *a, enum start from, uint32_t choices[], double *best) {
    double value, values[MSC_MAX_OBJECTIVES];
    use_box(a, random_box(a));
    if (!search_from(a, from, &value) ||
        (!msc_auto_is_unseen(a, a->start) &&
         !msc_plan_search_neighbour(&a->search, a->start, is_unseen_within, a))) {
        return;
    }
    values_at(a, a->start, values);
    double gain = msc_auto_front_gain(&a->front, values);
    if (gain > *best) {
        *best = gain;
        memcpy(choices, a->start, a->sampler.bounds.space->n_tasks * sizeof *choices);
    }
}

bool msc_auto_front_plan(struct msc_auto *a, double temperature, struct msc_proposal *out) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    int n_boxes = !has_many_entries(a) ? PLAN_BOXES : a->n_parts > 1 ? 2 : PLAN_BOXES_OF_MANY;
    double best = -1.0;
    if (!msc_auto_front_draw(&a->front, a->sampler.rng)) {
        return false;
    }
    draw_models(a, temperature);
    bool is_anywhere =
        msc_auto_is_opening(a) || msc_auto_looks_additive(a) || a->radius >= (double)n_tasks;
    a->search.max_changed = is_anywhere ? SIZE_MAX : (size_t)a->radius;
    for (int i = 0; i < n_boxes; i++) {
        try_box(a, (enum start)(i % (is_anywhere ? STARTS : FROM_RELAXED)), out->choices, &best);
    }
    if (best < 0.0) {
        return false;
    }
    if (temperature == 0.0) {
        memcpy(a->plan, out->choices, n_tasks * sizeof *a->plan);
    }
    return note_proposal(a, out);
}

// ---- Hopes ------------------------------------------------------------------------------------

// Collects the unseen points at which searches in draws of the models end.
static void gather(struct msc_auto *a) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    int n_draws = has_many_entries(a) ? DRAWS_OF_MANY : DRAWS;
    double step = (HIGHEST_TEMPERATURE - LEAST_TEMPERATURE) / (n_draws - 2);
    a->n_hopes = 0;
    for (int i = 0; i < n_draws; i++) {
        double temperature = i == 0 ? 0.0 : LEAST_TEMPERATURE + step * (i - 1);
        draw_models(a, temperature * a->hope_width);
        for (int k = 0; k < searches_of(a); k++) {
            double value;
            use_box(a, random_box(a));
            if (search_from(a, (enum start)(k % STARTS), &value) &&
                msc_auto_is_unseen(a, a->start)) {
                memcpy(a->hopes + a->n_hopes++ * n_tasks, a->start, n_tasks * sizeof *a->hopes);
            }
        }
    }
    for (size_t i = 0; i < MSC_AUTO_HOPES * a->n_parts; i++) {
        a->spreads[i].n = 0;
    }
    a->hoped_at = a->n_fitted;
}

// A part's standard deviation at a candidate.
static double spread_at(struct msc_auto *a, size_t part, size_t candidate) {
    const uint32_t *choices = a->hopes + candidate * a->sampler.bounds.space->n_tasks;
    struct msc_pair_spread *kept = &a->spreads[part * MSC_AUTO_HOPES + candidate];
    return a->hope_width * msc_pair_model_spread_kept(&a->parts[part].model, choices, kept);
}

// The chance that a candidate meets the bounds on measured metrics.
static double chance_of(struct msc_auto *a, size_t candidate) {
    const uint32_t *choices = a->hopes + candidate * a->sampler.bounds.space->n_tasks;
    double chance = 1.0;
    for (size_t i = 0; i < a->n_parts; i++) {
        if (a->parts[i].objective < 0) {
            double room = a->parts[i].max - msc_pair_model_value(&a->parts[i].model, choices);
            double spread = spread_at(a, i, candidate);
            chance *= spread > 0.0 ? msc_agent_below(room / spread) : room >= 0.0 ? 1.0 : 0.0;
        }
    }
    return chance;
}

// The standard deviation of the loss whose value under the link has this one.
static double unlinked_spread(const struct msc_pair_model *m, double loss, double spread) {
    double value = msc_pair_model_linked(m, loss);
    return m->link.kind == MSC_LINK_NONE ? spread
                                         : 0.5 * (msc_pair_model_unlinked(m, value + spread) -
                                                  msc_pair_model_unlinked(m, value - spread));
}

// The expected gain of a candidate, times its chance to meet the bounds.
static double expected_gain(struct msc_auto *a, size_t candidate, size_t *most) {
    const struct msc_auto_front *f = &a->front;
    double means[MSC_MAX_OBJECTIVES], spreads[MSC_MAX_OBJECTIVES] = {0};
    values_at(a, a->hopes + candidate * a->sampler.bounds.space->n_tasks, means);
    for (size_t i = 0; i < f->n_objectives; i++) {
        const struct msc_front_objective *o = &f->objectives[i];
        spreads[i] = o->cost ? 0.0
                             : unlinked_spread(&a->parts[o->part].model, means[i],
                                               spread_at(a, o->part, candidate));
    }
    double gain = msc_auto_front_expected_gain(f, means, spreads, most);
    return gain > 0.0 ? gain * chance_of(a, candidate) : 0.0;
}

static struct msc_hope hope_in(struct msc_auto *a, const struct msc_front_box *box,
                               enum msc_hope_way way) {
    use_box(a, box);
    return (struct msc_hope){.model = (struct msc_pair_model *)a->search.model,
                             .way = way,
                             .width = a->hope_width,
                             .best_loss =
                                 linked_limit(a->search.model, box->limits[a->front.minimised])};
}

// Sets `choices` to the candidate of greatest expected gain, and `hope` to its expected improvement
// within the box in which that is greatest. Returns this value; +inf if there is no candidate.
static double choose_by_gain(struct msc_auto *a, struct msc_hope *hope, uint32_t choices[]) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks, box = 0;
    double greatest = 0.0;
    for (size_t i = 0; i < a->n_hopes; i++) {
        const uint32_t *candidate = a->hopes + i * n_tasks;
        size_t most = 0;
        double gain = msc_auto_is_unseen(a, candidate) ? expected_gain(a, i, &most) : 0.0;
        if (gain > greatest) {
            greatest = gain;
            box = most;
            memcpy(choices, candidate, n_tasks * sizeof *choices);
        }
    }
    *hope = hope_in(a, &a->front.boxes[box], MSC_HOPE_IMPROVEMENT);
    return greatest > 0.0 ? msc_hope_value(hope, choices, INFINITY) : INFINITY;
}

static void try_candidate(const struct msc_auto *a, const struct msc_hope *hope,
                          const uint32_t candidate[], uint32_t choices[], double *least) {
    double value =
        is_unseen_within(a, candidate) ? msc_hope_value(hope, candidate, *least) : INFINITY;
    if (value < *least) {
        *least = value;
        memcpy(choices, candidate, a->sampler.bounds.space->n_tasks * sizeof *choices);
    }
}

// Sets `choices` to the candidate of least lower confidence bound within a random box. Candidates
// are those gathered, and points found by searches within the box.
static double choose_by_bound(struct msc_auto *a, struct msc_hope *hope, uint32_t choices[]) {
    struct msc_rng *rng = a->sampler.rng;
    const struct msc_front_box box =
        msc_rng_below(rng, 2) == 0 ? msc_auto_front_box_at_point(&a->front, rng) : *random_box(a);
    double least = INFINITY, value;
    *hope = hope_in(a, &box, MSC_HOPE_BOUND);
    for (size_t i = 0; i < a->n_hopes; i++) {
        try_candidate(a, hope, a->hopes + i * a->sampler.bounds.space->n_tasks, choices, &least);
    }
    for (int from = FROM_BEST; from <= FROM_RELAXED; from++) {
        if (search_from(a, (enum start)from, &value)) {
            try_candidate(a, hope, a->start, choices, &least);
        }
    }
    return least;
}

bool msc_auto_front_hope(struct msc_auto *a, struct msc_proposal *out) {
    struct msc_hope hope;
    if (!msc_auto_front_draw(&a->front, a->sampler.rng)) {
        return false;
    }
    a->search.max_changed = SIZE_MAX;
    if (a->hoped_at != a->n_fitted) {
        gather(a);
    }
    draw_models(a, 0.0);
    bool is_by_gain = a->n_hoped++ % 2 == 1;
    double value = (is_by_gain ? choose_by_gain : choose_by_bound)(a, &hope, out->choices);
    if (isinf(value)) {
        return false;
    }
    msc_hope_descend(&hope, out->choices, value, is_unseen_within, a);
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_believe(&a->parts[i].model, out->choices);
    }
    return note_proposal(a, out);
}

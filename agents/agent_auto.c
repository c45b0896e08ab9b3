// The agent for those who do not want to choose one. It learns what each choice loses alone, and how
// choices act together, from whatever it is told, and proposes what that promises most of:
//
//   probes     one task changed from the most expensive plan: first the cheapest choice of every
//              task that bounded costs depend on, then those next to the plan that looks best;
//   plans      the best point within the bounds by a draw from a model of the losses with terms for
//              choices and for pairs of them (agents/pair_model.h; Thompson sampling), or by its mean;
//   hopes      the point that may be best by the lower confidence bound of that model (agents/hope.h);
//   children   of the best points told (agents/population.h), which trust no model.
//
// In a space of many tasks plans lie the farther from the best points, and draws are the wider, the more
// of them turn out well: as many as a third are to be among the better half of the best points, after the
// one-fifth rule (Rechenberg 1973). Far from what was told a model promises there what it cannot know.
// (Version 1 did so in any space.) In a space of few tasks plans are searched for from random points, too,
// the more of them the more was told: what the best points have in common may be what keeps from better
// ones. (Since version 3.)
//
// Of trials that were raced out losses are estimates: they count for less, and what choices lose alone by
// them is a guess. (Since version 4.)
//
// What is proposed how often depends on the phase: at first mostly probes; while losses are found to
// add up, still so, as the plan of least summed loss is then the optimum; else mostly hopes (since version
// 5, which also learns how choices of one task are correlated; not in spaces of many choices, nor where a
// bound is on a measured metric), and plans by the mean, plans by draws, and children, each as often as its
// last ones turned out well (probability matching: Goldberg 1990). Hopes are not judged by that: where
// choices act together few of them turn out well, but all of them teach.
//
// The model is of the objective, and of each metric that a bound is on and that needs a run. Where
// there are several objectives, or the most expensive plan cannot be measured, only children are
// proposed. It does not know how many trials there will be.
#include "agents/agent.h"
#include "agents/hope.h"
#include "agents/knapsack.h"
#include "agents/pair_model.h"
#include "agents/plan_search.h"
#include "agents/population.h"
#include "agents/sampler.h"
#include "agents/sensitivity.h"

#include <math.h>
#include <string.h>

#define TURNS 16
// Plans proposed whose outcome is awaited.
#define AWAITED 256
// Of how a kind's proposals turned out the latest counts for so much; and the least chance of a kind.
#define LATEST 0.1
#define LEAST_CHANCE 0.1
// What width and radius are multiplied by when a plan turned out well, and when not.
#define WIDER 1.2
#define NARROWER 0.93
#define LEAST_WIDTH 0.01
#define LEAST_RADIUS 2.0
// Up to so many tasks plans may be anywhere, and draws are of the whole posterior; of more, the first
// plans change so many.
#define FEW_TASKS 16.0
// How often a hope is tried, and of how many draws it is the best, each searched from so many places: one by
// the mean, and some at temperatures from the least on.
#define HOPE_CHANCE 0.7
#define HOPE_DRAWS 6
#define HOPE_STARTS 6
#define LEAST_TEMPERATURE 0.8
#define TEMPERATURE_STEP 0.3
// Random points at which searches for a plan begin: one for so many points told, and at most.
#define POINTS_PER_START 8
#define MOST_STARTS 12
// The standard error of estimates of trials that were raced out: races stop none for less than 0.25.
#define ESTIMATE_ERROR 0.2
// Spaces of more choices have fewer searches for a plan, and their knapsack solved only once all that
// choices lose alone is known.
#define MANY_ENTRIES 600

// What is proposed once probes are no longer what is worth most.
enum kind { MEANS, DRAWS, CHILDREN, KIND_COUNT };

// A metric that needs a run: of the objective, or of a bound. Smaller is better, to the model.
struct part {
    int metric;
    double sign;
    double max; // +inf for an objective
    struct msc_sensitivity sensitivity;
    struct msc_pair_model model;
};

struct automatic {
    int64_t population;

    struct msc_sampler sampler;
    struct msc_population members;
    size_t n_parts; // the first is the objective's, if that needs a run
    bool has_objective_part;
    struct part parts[1 + MSC_MAX_BOUNDS];
    struct msc_plan_search search;
    struct msc_knapsack knapsack;
    double *weights;         // [n_entries], of an exact objective; else NULL
    uint32_t *assembled;     // [n_tasks], the plan of least summed losses
    uint32_t *plan;          // [n_tasks], the best by the model's mean
    uint32_t *found, *start; // [n_tasks]
    uint32_t *hopes;         // [HOPE_DRAWS, n_tasks]
    bool *is_known;          // [n_entries]
    uint64_t n_told, n_fitted, n_probes_left, turn;
    double width;              // of draws: 1 is the posterior's
    double radius;             // tasks that a plan may change of a good point
    double rates[KIND_COUNT];  // how many turn out well
    uint64_t awaited[AWAITED]; // hashes of what was proposed, over and over
    enum kind kinds[AWAITED];
    uint64_t n_awaited, n_drawn;
    bool is_ready, has_plan, is_done;
    bool is_adaptive; // of width and radius
    bool has_random_starts, has_hopes;
    bool knows_estimates;
    bool is_news; // the models were fitted since a plan was proposed
};

static const struct msc_param auto_params[] = {
    {.name = "population",
     .help = "best points that children are made of",
     .offset = offsetof(struct automatic, population),
     .type = MSC_PARAM_I64,
     .number = 12,
     .min = 2,
     .max = 4096},
    {0},
};

// ---- Init -------------------------------------------------------------------------------------

static enum msc_status add_part(struct msc_agent *agent, struct automatic *a, int metric,
                                double sign, double max) {
    struct part *part = &a->parts[a->n_parts++];
    struct msc_arena *arena = msc_agent_arena(agent);
    part->metric = metric;
    part->sign = sign;
    part->max = max;
    MSC_TRY(msc_sensitivity_init(&part->sensitivity, arena, &a->sampler.bounds));
    return msc_pair_model_init(&part->model, arena, &a->sampler.bounds);
}

static enum msc_status add_parts(struct msc_agent *agent, struct automatic *a) {
    const struct msc_goal *goal = msc_agent_goal(agent);
    const struct msc_space *space = msc_agent_space(agent);
    const struct msc_objective *objective = &goal->objectives[0];
    if (goal->n_objectives > 1) {
        return MSC_OK;
    }
    if (!space->metrics[objective->metric].is_exact) {
        a->has_objective_part = true;
        MSC_TRY(
            add_part(agent, a, objective->metric, objective->is_maximised ? -1.0 : 1.0, INFINITY));
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const struct msc_bound *bound = &goal->bounds[i];
        if (!space->metrics[bound->metric].is_exact) {
            bool is_upper = !isinf(bound->max);
            MSC_TRY(add_part(agent, a, bound->metric, is_upper ? 1.0 : -1.0,
                             is_upper ? bound->max : -bound->min));
        }
    }
    return MSC_OK;
}

// What each choice adds to an exact objective with all others at their most expensive.
static enum msc_status set_weights(struct msc_agent *agent, struct automatic *a) {
    const struct msc_goal *goal = msc_agent_goal(agent);
    const struct msc_space *space = msc_agent_space(agent);
    const struct msc_objective *objective = &goal->objectives[0];
    const char *name = space->metrics[objective->metric].name;
    const struct msc_cost *cost = msc_space_find_cost(space, name);
    if (a->has_objective_part || goal->n_objectives > 1 || !cost) {
        return MSC_OK;
    }
    a->weights =
        msc_arena_array(msc_agent_arena(agent), a->sampler.bounds.n_entries, sizeof *a->weights);
    if (!a->weights) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the choices of %zu tasks", space->n_tasks);
    }
    uint32_t *point = a->sampler.bounds.most_expensive;
    double base = msc_cost_value(cost, point);
    for (size_t t = 0; t < space->n_tasks; t++) {
        uint32_t before = point[t];
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            point[t] = c;
            a->weights[msc_exact_bounds_entry(&a->sampler.bounds, t, c)] =
                (objective->is_maximised ? -1.0 : 1.0) * (msc_cost_value(cost, point) - base);
        }
        point[t] = before;
    }
    return MSC_OK;
}

static enum msc_status auto_init(struct msc_agent *agent) {
    struct automatic *a = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    size_t n_tasks = space->n_tasks;
    MSC_TRY(
        msc_sampler_init(&a->sampler, arena, space, msc_agent_goal(agent), msc_agent_rng(agent)));
    MSC_TRY(msc_population_init(&a->members, agent, &a->sampler, (size_t)a->population, 0.9,
                                1.0 / (double)n_tasks));
    MSC_TRY(add_parts(agent, a));
    MSC_TRY(set_weights(agent, a));
    MSC_TRY(msc_plan_search_init(&a->search, arena, &a->sampler.bounds,
                                 a->n_parts - a->has_objective_part));
    MSC_TRY(msc_knapsack_init(&a->knapsack, arena, &a->sampler.bounds));
    a->search.weights = a->weights;
    a->search.model = a->has_objective_part ? &a->parts[0].model : NULL;
    for (size_t i = a->has_objective_part; i < a->n_parts; i++) {
        a->search.limits[i - a->has_objective_part] = (struct msc_plan_limit){
            .model = &a->parts[i].model, .min = -INFINITY, .max = a->parts[i].max};
    }
    a->assembled = msc_arena_array(arena, n_tasks, sizeof *a->assembled);
    a->plan = msc_arena_array(arena, n_tasks, sizeof *a->plan);
    a->found = msc_arena_array(arena, n_tasks, sizeof *a->found);
    a->start = msc_arena_array(arena, n_tasks, sizeof *a->start);
    a->hopes = msc_arena_array(arena, HOPE_DRAWS * n_tasks, sizeof *a->hopes);
    a->is_known = msc_arena_array(arena, a->sampler.bounds.n_entries, sizeof *a->is_known);
    if (!a->assembled || !a->plan || !a->found || !a->start || !a->hopes || !a->is_known) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu tasks", n_tasks);
    }
    a->n_probes_left = a->sampler.bounds.n_entries - n_tasks + 1;
    a->width = fmin(1.0, sqrt(FEW_TASKS / (double)n_tasks));
    a->radius = fmin(FEW_TASKS, (double)n_tasks);
    a->is_adaptive = (double)n_tasks > FEW_TASKS || msc_agent_version(agent) == 1;
    bool is_large = a->sampler.bounds.n_entries > MANY_ENTRIES;
    a->has_random_starts = !is_large && msc_agent_version(agent) >= 3;
    a->has_hopes =
        !is_large && msc_agent_version(agent) >= 5 && a->has_objective_part && a->n_parts == 1;
    for (size_t i = 0; i < a->n_parts; i++) {
        a->parts[i].model.learns_correlation = !is_large && msc_agent_version(agent) >= 5;
    }
    a->knows_estimates = msc_agent_version(agent) >= 4;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        a->rates[kind] = kind == CHILDREN ? LEAST_CHANCE : 0.5;
    }
    memcpy(a->plan, a->sampler.bounds.most_expensive, n_tasks * sizeof *a->plan);
    return MSC_OK;
}

// ---- Learning ---------------------------------------------------------------------------------

static void assemble(struct automatic *a) {
    struct msc_isolated isolated = {.losses = a->parts[0].sensitivity.guesses};
    if (a->has_objective_part) {
        msc_knapsack_solve(&a->knapsack, &isolated, a->assembled, NULL);
        a->has_plan = true;
    }
}

// Fits the models to what was told, once there is enough of it that is new.
static void learn(struct automatic *a) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    bool is_stale = false;
    for (size_t i = 0; i < a->n_parts; i++) {
        is_stale = is_stale || a->parts[i].model.is_stale;
    }
    bool is_due = !a->is_ready || a->n_told > a->n_fitted + a->n_told / 32;
    if (a->n_parts == 0 || a->n_told == a->n_fitted || !(is_due || is_stale)) {
        return;
    }
    a->is_ready = true;
    for (size_t i = 0; i < a->n_parts; i++) {
        struct part *part = &a->parts[i];
        a->is_ready = msc_sensitivity_guess(&part->sensitivity) && a->is_ready;
        if (!a->is_ready) {
            return;
        }
        for (size_t e = 0; e < bounds->n_entries; e++) {
            a->is_known[e] = msc_sensitivity_is_exact(&part->sensitivity, e);
        }
        msc_pair_model_fit(&part->model, part->sensitivity.base_loss, part->sensitivity.guesses,
                           a->is_known);
    }
    a->n_fitted = a->n_told;
    a->is_news = true;
    if (bounds->n_entries <= MANY_ENTRIES || (a->n_probes_left == 0 && !a->has_plan)) {
        assemble(a);
    }
}

static uint64_t hash_of(const struct automatic *a, const uint32_t choices[]) {
    return msc_hash_bytes(choices, a->sampler.bounds.space->n_tasks * sizeof *choices).low | 1;
}

static void await(struct automatic *a, enum kind kind, const uint32_t choices[]) {
    size_t at = (size_t)(a->n_awaited++ % AWAITED);
    a->awaited[at] = hash_of(a, choices);
    a->kinds[at] = kind;
}

// Of what was proposed: how often its kind comes next, and how far plans reach, follows from how it
// turned out.
static void judge(struct automatic *a, const uint32_t choices[],
                  const struct msc_outcome *outcome) {
    uint64_t hash = hash_of(a, choices);
    size_t n = a->members.n_members;
    for (size_t i = 0; i < AWAITED && n > 0; i++) {
        if (a->awaited[i] == hash) {
            const struct msc_outcome *middle = msc_population_outcome(&a->members, n / 2);
            bool is_good = outcome->state == MSC_TRIAL_COMPLETE &&
                           (middle->state != MSC_TRIAL_COMPLETE ||
                            outcome->objectives[0] < middle->objectives[0]);
            double n_tasks = (double)a->sampler.bounds.space->n_tasks;
            double factor = is_good ? WIDER : NARROWER;
            enum kind kind = a->kinds[i];
            a->rates[kind] += LATEST * ((is_good ? 1.0 : 0.0) - a->rates[kind]);
            if (kind == DRAWS && a->is_adaptive) {
                a->width = fmin(fmax(a->width * factor, LEAST_WIDTH), 1.0);
            }
            if (kind != CHILDREN && a->is_adaptive) {
                a->radius = fmin(fmax(a->radius * factor, LEAST_RADIUS), n_tasks);
            }
            a->awaited[i] = 0;
            return;
        }
    }
}

// ---- Probes -----------------------------------------------------------------------------------

static bool take_probe(struct automatic *a, size_t task, uint32_t choice,
                       struct msc_proposal *out) {
    struct msc_sensitivity *s = &a->parts[0].sensitivity;
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    s->was_asked[msc_exact_bounds_entry(bounds, task, choice)] = true;
    memcpy(out->choices, bounds->most_expensive, bounds->space->n_tasks * sizeof *out->choices);
    out->choices[task] = choice;
    a->n_probes_left--;
    out->probe = msc_sampler_note(&a->sampler, out->choices);
    return out->probe;
}

// The base, then the cheapest choice of every task that a bounded cost depends on, those first that
// change it most.
static bool first_probe(struct automatic *a, struct msc_proposal *out) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_sensitivity *s = &a->parts[0].sensitivity;
    if (!s->was_asked[msc_exact_bounds_entry(bounds, 0, bounds->most_expensive[0])]) {
        return take_probe(a, 0, bounds->most_expensive[0], out);
    }
    for (size_t i = 0; i < s->n_bounded; i++) {
        const struct msc_task *task = &bounds->space->tasks[s->order[i]];
        uint32_t cheapest = task->most_expensive_first[task->n_choices - 1];
        if (!s->was_asked[msc_exact_bounds_entry(bounds, s->order[i], cheapest)] &&
            take_probe(a, s->order[i], cheapest, out)) {
            return true;
        }
    }
    return false;
}

// Of the choices that were not probed the one that lies nearest to the plan's.
static bool next_probe(struct automatic *a, struct msc_proposal *out) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_sensitivity *s = &a->parts[0].sensitivity;
    for (bool is_over = false; !is_over;) {
        uint32_t nearest = UINT32_MAX, choice = 0;
        size_t task = 0;
        for (size_t i = 0; i < bounds->space->n_tasks && nearest > 0; i++) {
            size_t t = s->order[i];
            uint32_t here = bounds->positions[msc_exact_bounds_entry(bounds, t, a->plan[t])];
            for (uint32_t p = 1; p < bounds->space->tasks[t].n_choices; p++) {
                uint32_t c = bounds->space->tasks[t].most_expensive_first[p];
                uint32_t distance = p > here ? p - here : here - p;
                if (!s->was_asked[msc_exact_bounds_entry(bounds, t, c)] && distance < nearest) {
                    nearest = distance;
                    task = t;
                    choice = c;
                }
            }
        }
        is_over = nearest == UINT32_MAX;
        if (!is_over && take_probe(a, task, choice, out)) {
            return true;
        }
    }
    return false;
}

// ---- Plans ------------------------------------------------------------------------------------

// Is the cheapest choice of such a task still to be probed?
static bool is_opening(const struct automatic *a) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_sensitivity *s = &a->parts[0].sensitivity;
    for (size_t i = 0; i < s->n_bounded; i++) {
        const struct msc_task *task = &bounds->space->tasks[s->order[i]];
        uint32_t cheapest = task->most_expensive_first[task->n_choices - 1];
        if (!s->was_asked[msc_exact_bounds_entry(bounds, s->order[i], cheapest)]) {
            return true;
        }
    }
    return false;
}

static bool looks_additive(const struct automatic *a) {
    return msc_pair_model_is_additive(&a->parts[0].model);
}

static bool is_unseen(const void *context, const uint32_t choices[]) {
    const struct automatic *a = context;
    return !msc_sampler_has(&a->sampler, choices) &&
           msc_exact_bounds_hold(&a->sampler.bounds, choices);
}

static void start_anywhere(struct automatic *a) {
    const struct msc_space *space = a->sampler.bounds.space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        a->start[t] = (uint32_t)msc_rng_below(a->sampler.rng, space->tasks[t].n_choices);
    }
}

// Where local searches begin: the best point told, another good one, the assembled plan; what the last
// plan is relaxed to; random points.
static bool start_plan(struct automatic *a, size_t which) {
    size_t n_bytes = a->sampler.bounds.space->n_tasks * sizeof *a->start;
    size_t n = a->members.n_members;
    if (which > 3) {
        start_anywhere(a);
        return true;
    }
    if (which >= 2) {
        memcpy(a->start, which == 2 && a->has_plan ? a->assembled : a->plan, n_bytes);
        return true;
    }
    size_t member = which == 0 || n == 0 ? 0 : (size_t)msc_rng_below(a->sampler.rng, n);
    if (n > 0) {
        memcpy(a->start, msc_population_point(&a->members, member), n_bytes);
    }
    return n > 0;
}

// How many local searches a plan is worth that may be anywhere.
static size_t starts_anywhere(const struct automatic *a) {
    size_t n = a->parts[0].model.n_points / POINTS_PER_START;
    return is_opening(a) || looks_additive(a) || !a->has_random_starts
               ? 4
               : 4 + (n < MOST_STARTS ? n : MOST_STARTS);
}

// The best unseen plan by draws at this temperature.
static bool propose_plan(struct automatic *a, double temperature, struct msc_proposal *out) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    size_t n_bytes = bounds->space->n_tasks * sizeof *out->choices;
    double best = INFINITY, best_seen = INFINITY;
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_draw(&a->parts[i].model, a->sampler.rng, temperature);
    }
    bool is_large = bounds->n_entries > MANY_ENTRIES;
    bool is_anywhere =
        is_opening(a) || looks_additive(a) || a->radius >= (double)bounds->space->n_tasks;
    a->search.max_changed = is_anywhere ? SIZE_MAX : (size_t)a->radius;
    size_t n_starts = is_anywhere ? starts_anywhere(a) : 2;
    for (size_t which = 0; which < n_starts; which++) {
        double violation, value;
        if ((is_large && is_anywhere && which % 3 != 0) || !start_plan(a, which)) {
            continue;
        }
        if (which == 3) {
            msc_plan_search_relax(&a->search, a->start);
        }
        value =
            msc_plan_search_run(&a->search, a->start, 4 * bounds->space->n_tasks + 50, &violation);
        if (violation > 0.0) {
            continue;
        }
        if (value < best_seen) {
            best_seen = value;
            memcpy(a->found, a->start, n_bytes);
        }
        if (value < best && is_unseen(a, a->start)) {
            best = value;
            memcpy(out->choices, a->start, n_bytes);
        }
    }
    if (temperature == 0.0 && !isinf(best_seen)) {
        memcpy(a->plan, a->found, n_bytes);
    }
    if (isinf(best) && !isinf(best_seen) &&
        msc_plan_search_neighbour(&a->search, a->found, is_unseen, a)) {
        best = best_seen;
        memcpy(out->choices, a->found, n_bytes);
    }
    return !isinf(best) && msc_sampler_note(&a->sampler, out->choices);
}

// ---- Hopes ------------------------------------------------------------------------------------

// The best unseen point, by the draw that the model holds, that searches from the usual places end at.
static bool search_draw(struct automatic *a, uint32_t choices[]) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    double best = INFINITY;
    for (size_t which = 0; which < HOPE_STARTS; which++) {
        double violation;
        if (!start_plan(a, which)) {
            continue;
        }
        if (which == 3) {
            msc_plan_search_relax(&a->search, a->start);
        }
        double value = msc_plan_search_run(&a->search, a->start, 4 * n_tasks + 50, &violation);
        if (violation == 0.0 && value < best && is_unseen(a, a->start)) {
            best = value;
            memcpy(choices, a->start, n_tasks * sizeof *choices);
        }
    }
    return !isinf(best);
}

static bool propose_hope(struct automatic *a, struct msc_proposal *out) {
    struct msc_pair_model *model = &a->parts[0].model;
    size_t n_tasks = a->sampler.bounds.space->n_tasks, n = 0;
    double best = INFINITY;
    a->search.max_changed = SIZE_MAX;
    for (int i = 0; i < HOPE_DRAWS; i++) {
        double temperature = i == 0 ? 0.0 : LEAST_TEMPERATURE + TEMPERATURE_STEP * (i - 1);
        msc_pair_model_draw(model, a->sampler.rng, temperature);
        n += search_draw(a, a->hopes + n * n_tasks);
    }
    msc_pair_model_draw(model, a->sampler.rng, 0.0);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *choices = a->hopes + i * n_tasks;
        double bound = msc_hope_bound(model, choices, best);
        if (bound < best) {
            best = bound;
            memcpy(out->choices, choices, n_tasks * sizeof *choices);
        }
    }
    if (isinf(best)) {
        return false;
    }
    msc_hope_descend(model, out->choices, best, is_unseen, a);
    msc_pair_model_believe(model, out->choices);
    return msc_sampler_note(&a->sampler, out->choices);
}

// ---- Ask and tell -----------------------------------------------------------------------------

// P: probe, C: child, H: hope; of plans their temperature: 0, 3 and 6 tenths, A: 1.
static const char opening_turns[] = "PP0PP3PP0PP3PP0P";
static const char additive_turns[] = "PPP0PPPPPPP0PPPP";
static const char draw_turns[] = "36A";

// A hope, or a kind by its chance.
static char usual_turn(struct automatic *a) {
    if (a->has_hopes && a->is_ready && !looks_additive(a) &&
        msc_rng_double(a->sampler.rng) < HOPE_CHANCE) {
        return 'H';
    }
    double chances[KIND_COUNT], sum = 0.0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        chances[kind] = fmax(a->rates[kind], LEAST_CHANCE);
        sum += chances[kind];
    }
    double at = sum * msc_rng_double(a->sampler.rng);
    return at < chances[MEANS]                    ? '0'
           : at < chances[MEANS] + chances[DRAWS] ? draw_turns[a->n_drawn++ % 3]
                                                  : 'C';
}

static char next_turn(struct automatic *a) {
    size_t turn = (size_t)(a->turn++ % TURNS);
    if (a->n_parts == 0) {
        return 'C';
    }
    bool is_additive = a->n_probes_left > 0 && looks_additive(a);
    if (!is_opening(a) && !is_additive) {
        bool is_large = a->sampler.bounds.n_entries > MANY_ENTRIES;
        return is_large && !a->is_news ? 'C' : usual_turn(a);
    }
    // Between probes a plan is worth a trial only where something was learnt.
    char wanted = is_additive ? additive_turns[turn] : opening_turns[turn];
    return a->is_news ? wanted : 'P';
}

static bool propose(struct automatic *a, char turn, struct msc_proposal *out) {
    if (a->n_parts == 0 || turn == 'C') {
        return false;
    }
    if (turn == 'P') {
        return first_probe(a, out) || next_probe(a, out);
    }
    a->is_news = false;
    if (turn == 'H') {
        return propose_hope(a, out);
    }
    double temperature = turn == 'A' ? 1.0 : 0.1 * (turn - '0');
    bool is_found = a->is_ready && propose_plan(a, a->width * temperature, out);
    if (is_found) {
        await(a, temperature > 0.0 ? DRAWS : MEANS, out->choices);
    }
    return is_found;
}

static const char *origin_of(char turn) {
    return turn == 'P' ? "probe" : turn == 'H' ? "hope" : turn == '0' ? "mean" : "draw";
}

static enum msc_status auto_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                size_t *n) {
    struct automatic *a = msc_agent_state(agent);
    msc_population_select(&a->members);
    learn(a);
    while (*n < max && !a->is_done) {
        char turn = next_turn(a);
        bool is_found = propose(a, turn, &out[*n]);
        out[*n].origin = origin_of(turn);
        if (!is_found) {
            out[*n].probe = false;
            out[*n].origin = "child";
            is_found = msc_population_child(&a->members, &out[*n]);
            await(a, CHILDREN, out[*n].choices);
        }
        a->is_done = !is_found;
        *n += is_found;
    }
    return MSC_OK;
}

static void tell_part(struct part *part, const uint32_t choices[], double value, bool is_estimate) {
    bool is_alone = is_estimate ? msc_sensitivity_tell_estimate(&part->sensitivity, choices, value)
                                : msc_sensitivity_tell(&part->sensitivity, choices, value);
    if (!is_alone && !isnan(value)) {
        msc_pair_model_tell_estimate(&part->model, choices, value,
                                     is_estimate ? ESTIMATE_ERROR : 0.0);
    }
}

static enum msc_status auto_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct automatic *a = msc_agent_state(agent);
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome learnt = msc_goal_learn(msc_agent_goal(agent), trial);
    bool is_usable = msc_trial_state_is_result(learnt.state);
    bool is_estimate = a->knows_estimates && is_usable && trial->outcome.state == MSC_TRIAL_PRUNED;
    msc_sampler_note(&a->sampler, choices);
    judge(a, choices, &learnt);
    msc_population_tell(&a->members, trial);
    for (size_t i = 0; i < a->n_parts; i++) {
        struct part *part = &a->parts[i];
        bool is_objective = a->has_objective_part && i == 0;
        double measured =
            is_objective ? learnt.objectives[0] : part->sign * learnt.metrics[part->metric];
        double value = is_usable && isfinite(measured) ? measured : NAN;
        tell_part(part, choices, value, is_estimate);
    }
    a->n_told++;
    return MSC_OK;
}

static bool auto_done(const struct msc_agent *agent) {
    const struct automatic *a = msc_agent_state(agent);
    return a->is_done;
}

static struct msc_agent_left auto_left(const struct msc_agent *agent) {
    const struct automatic *a = msc_agent_state(agent);
    return msc_sampler_left(&a->sampler);
}

const struct msc_agent_def msc_agent_auto = {
    .abi = MSC_AGENT_ABI,
    .name = "auto",
    .summary = "learns what choices lose alone and together, and tries what that promises most of",
    .version = 5,
    .oldest = 1,
    .state_size = sizeof(struct automatic),
    .params = auto_params,
    .init = auto_init,
    .ask = auto_ask,
    .tell = auto_tell,
    .done = auto_done,
    .left = auto_left,
};

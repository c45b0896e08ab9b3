// The default agent. It fits a model of the loss of each choice and each pair of choices to all
// observed trials, and mixes four kinds of proposals:
//
//   probes     change one task of the most expensive plan: first to the cheapest choice of every
//              task that bounded costs depend on, then to the choices nearest to the best plan so
//              far;
//   plans      the best point within the bounds under the model (agents/pair_model.h): either under
//              its mean or under a random draw from its posterior (Thompson sampling);
//   hopes      the point of highest expected improvement, or of lowest confidence bound, under the
//              same model (agents/hope.h);
//   children   of the best observed points (agents/population.h); they need no model.
//
// In a space of many tasks the search radius of plans and the width of draws adapt: both grow when
// a proposal lands among the better half of the best points, and shrink when it does not. They
// settle when about a third of these proposals succeed; this is a variant of the one-fifth rule
// (Rechenberg 1973). If isolated losses are given, a draw that promises far less than the best
// points is replaced by a cooler one. The width of hopes adapts by the same rule. Hopes are
// proposed less often in such a space, because the model only extrapolates far from all observed
// points. In a space of few tasks, searches for plans also start at random points, more of them as
// more trials are observed. Otherwise a choice that all of the best points share could keep the
// search from better points.
//
// The loss of a trial that was eliminated early is an estimate. Such a loss has less weight, and an
// isolated loss that follows from an estimate counts as a guess. A choice that failed in isolation
// is kept out of plans until another point with that choice gives a result.
//
// The mix depends on the phase. The first trials are mostly probes. While losses appear to be
// additive, the agent probes until no choice is left, because the plan of least summed loss is then
// the optimum. If the space gives the isolated losses, there are no probes but that of the base.
// Later it proposes mostly hopes, except in spaces of many choices or if a measured metric is
// bounded. Plans by the mean, plans by draws and children share the other trials in
// proportion to their recent success (probability matching: Goldberg 1990). The share of hopes is
// fixed: if choices interact, few hopes succeed, but the model learns from all of them.
//
// One model is fitted to each objective and each bounded metric that needs a run. Where losses
// saturate, the model of an objective is of a transform of the loss (auto_link.c). With several
// objectives, plans and hopes extend the front (agents/auto_front.h); the agent proposes
// only children if no objective is measured, or if there are too many bounds.
//
// Until the most expensive plan was tried, nothing else is proposed in the round that tries it. If
// it cannot be measured, there are no probes and plans: a model without a base proposes near points
// (auto_near.c), weighted by their chance of being measured (agents/chance.h). If it can be
// measured but many points cannot, near points have a share of the proposals. In a space of few
// tasks, they also have one while no new point is better than the best one, because the other
// models may then miss something. With several measured objectives or bounds on measured metrics,
// children take the place of near points.
//
// The agent does not know the number of trials.
#include "agents/auto.h"
#include "agents/auto_remarks.h"

#include "agents/agent_internal.h"
#include "agents/feature_lessons.h"
#include "base/cancel.h"

#include <math.h>
#include <string.h>

#define TURNS 16
// Weight of the latest proposal in a kind's success rate, and the least rate that is used.
#define LATEST 0.1
#define LEAST_CHANCE 0.1
// Factors on width and radius after a successful plan (WIDER) and after an unsuccessful one.
#define WIDER 1.2
#define NARROWER 0.93
#define LEAST_WIDTH 0.01
#define LEAST_RADIUS 2.0
// In a space of at most this many tasks, plans may change all tasks and draws have the posterior's
// full width. In larger spaces, FEW_TASKS is the number of tasks that the first plans may change.
#define FEW_TASKS 16.0
// Standard error of the loss of a trial that was eliminated early, in the unit of
// msc_pair_model_tell_estimate. Races eliminate no trial for a difference below 0.25.
#define ESTIMATE_ERROR 0.2
// Models are fitted again when the number of trials has grown by one in FIT_AGAIN; several models
// of many choices, which take longer, by two.
#define FIT_AGAIN 32
#define SLOW_ENTRIES 150
// Share of hopes among the proposals in a space of few tasks, and of many.
#define HOPE_CHANCE 0.85
#define HOPE_CHANCE_MANY 0.5
// A population of at most this many members keeps the order of observation. Searches for a plan
// then start at the first member, which is usually the most expensive plan. While little is known,
// this start finds better plans than a start at the best member.
#define FIRST_MEMBERS 12

static const struct msc_param auto_params[] = {
    {.name = "population",
     .help = "best points kept as parents; a larger number explores more and converges later",
     .offset = offsetof(struct msc_auto, population),
     .type = MSC_PARAM_I64,
     .number = 12,
     .min = 2,
     .max = 4096},
    {0},
};

// ---- Init -------------------------------------------------------------------------------------

static bool is_large(const struct msc_auto *a) {
    return a->sampler.bounds.n_entries > MSC_AUTO_MANY_ENTRIES;
}

static bool is_slow(const struct msc_auto *a) {
    return a->n_parts > 1 && a->sampler.bounds.n_entries > SLOW_ENTRIES;
}

// The exact bounds that the models and the search for plans use. With several objectives, they also
// limit the exact objectives.
static const struct msc_exact_bounds *bounds_of(const struct msc_auto *a) {
    return a->front.is_used ? &a->front.bounds : &a->sampler.bounds;
}

static size_t count_parts(const struct msc_agent *agent) {
    const struct msc_goal *goal = msc_agent_goal(agent);
    const struct msc_metric *metrics = msc_agent_space(agent)->metrics;
    size_t n = 0;
    for (size_t i = 0; i < goal->n_objectives; i++) {
        n += !metrics[goal->objectives[i].metric].is_exact;
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        n += !metrics[goal->bounds[i].metric].is_exact;
    }
    return n;
}

static enum msc_status init_part(struct msc_agent *agent, struct msc_auto *a,
                                 const struct msc_auto_part *from) {
    struct msc_auto_part *part = &a->parts[a->n_parts++];
    struct msc_arena *arena = msc_agent_arena(agent);
    const char *metric = msc_agent_space(agent)->metrics[from->metric].name;
    *part = *from;
    MSC_TRY(msc_sensitivity_init(&part->sensitivity, arena, bounds_of(a)));
    part->sensitivity.doubts_failures = true;
    MSC_TRY(msc_feature_prior_init(&part->prior, arena, bounds_of(a), part->sensitivity.n_positions,
                                   metric, part->sign));
    MSC_TRY(msc_feature_lessons_use(msc_agent__host(agent)->lessons, &part->prior, metric));
    MSC_TRY(msc_pair_model_init(&part->model, arena, bounds_of(a), count_parts(agent)));
    MSC_TRY(msc_auto_use_neighbours(a, arena, &part->model));
    part->model.learns_correlation = !is_large(a);
    return MSC_OK;
}

static enum msc_status add_objective_part(struct msc_agent *agent, struct msc_auto *a, size_t i) {
    const struct msc_objective *objective = &msc_agent_goal(agent)->objectives[i];
    const struct msc_auto_part part = {.metric = objective->metric,
                                       .objective = (int)i,
                                       .sign = objective->is_maximised ? -1.0 : 1.0,
                                       .max = INFINITY};
    return msc_agent_space(agent)->metrics[part.metric].is_exact ? MSC_OK
                                                                 : init_part(agent, a, &part);
}

static enum msc_status add_parts(struct msc_agent *agent, struct msc_auto *a) {
    const struct msc_goal *goal = msc_agent_goal(agent);
    const struct msc_space *space = msc_agent_space(agent);
    if (goal->n_objectives > 1 && !a->front.is_used) {
        return MSC_OK;
    }
    for (size_t i = 0; i < goal->n_objectives; i++) {
        MSC_TRY(add_objective_part(agent, a, i));
    }
    a->has_objective_part = a->n_parts > 0 && !a->front.is_used;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const struct msc_bound *bound = &goal->bounds[i];
        bool is_upper = !isinf(bound->max);
        const struct msc_auto_part part = {.metric = bound->metric,
                                           .objective = -1,
                                           .sign = is_upper ? 1.0 : -1.0,
                                           .max = is_upper ? bound->max : -bound->min};
        if (!space->metrics[bound->metric].is_exact) {
            MSC_TRY(init_part(agent, a, &part));
        }
    }
    return MSC_OK;
}

// Sets what each choice adds to an exact objective if all other tasks have their most expensive
// choice.
static enum msc_status set_weights(struct msc_agent *agent, struct msc_auto *a) {
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
    MSC_TRY(MSC_ALLOCATED(a->weights));
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

static enum msc_status add_plans(struct msc_agent *agent, struct msc_auto *a) {
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks, n_entries = a->sampler.bounds.n_entries;
    a->assembled = msc_arena_array(arena, n_tasks, sizeof *a->assembled);
    a->assembled_by = msc_arena_array(arena, n_entries, sizeof *a->assembled_by);
    a->plan = msc_arena_array(arena, n_tasks, sizeof *a->plan);
    a->found = msc_arena_array(arena, n_tasks, sizeof *a->found);
    a->start = msc_arena_array(arena, n_tasks, sizeof *a->start);
    a->hopes = msc_arena_array(arena, MSC_AUTO_HOPES * n_tasks, sizeof *a->hopes);
    a->spreads = msc_arena_array(arena, MSC_AUTO_HOPES * (a->n_parts + 1), sizeof *a->spreads);
    a->is_known = msc_arena_array(arena, n_entries, sizeof *a->is_known);
    MSC_TRY(MSC_ALLOCATED(a->assembled && a->assembled_by && a->plan && a->found && a->start &&
                          a->hopes && a->spreads && a->is_known));
    memcpy(a->plan, a->sampler.bounds.most_expensive, n_tasks * sizeof *a->plan);
    return MSC_OK;
}

static enum msc_status auto_init(struct msc_agent *agent) {
    struct msc_auto *a = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    size_t n_tasks = space->n_tasks;
    MSC_TRY(
        msc_sampler_init(&a->sampler, arena, space, msc_agent_goal(agent), msc_agent_rng(agent)));
    MSC_TRY(msc_population_init(&a->members, agent, &a->sampler, (size_t)a->population, 0.9,
                                1.0 / (double)n_tasks));
    a->members.sorted_from = a->members.size < FIRST_MEMBERS ? a->members.size : FIRST_MEMBERS;
    MSC_TRY(msc_auto_front_init(a, agent));
    MSC_TRY(add_parts(agent, a));
    MSC_TRY(set_weights(agent, a));
    size_t n_minimised = a->has_objective_part || a->front.is_used;
    MSC_TRY(msc_plan_search_init(&a->search, arena, bounds_of(a), a->n_parts - n_minimised));
    a->search.relaxes_limits = a->front.is_used && is_slow(a); // pays among many choices only
    a->search.cancel = msc_agent__host(agent)->cancel;
    MSC_TRY(msc_knapsack_init(&a->knapsack, arena, &a->sampler.bounds));
    msc_knapsack_count_time(&a->knapsack);
    MSC_TRY(add_plans(agent, a));
    MSC_TRY(msc_auto_near_init(a, arena));
    a->search.weights = a->weights;
    a->search.model = a->has_objective_part ? &a->parts[0].model : NULL;
    for (size_t i = a->has_objective_part; i < a->n_parts && !a->front.is_used; i++) {
        a->search.limits[i - a->has_objective_part] = (struct msc_plan_limit){
            .model = &a->parts[i].model, .min = -INFINITY, .max = a->parts[i].max};
    }
    a->n_probes_left = a->sampler.bounds.n_entries - n_tasks + 1;
    a->is_adaptive = (double)n_tasks > FEW_TASKS;
    a->width = fmin(1.0, sqrt(FEW_TASKS / (double)n_tasks));
    a->radius = fmin(FEW_TASKS, (double)n_tasks);
    a->has_hopes = !is_large(a) && ((a->has_objective_part && a->n_parts == 1) || a->front.is_used);
    a->hope_width = a->width;
    a->least = INFINITY;
    a->hope_chance = a->is_adaptive ? HOPE_CHANCE_MANY : HOPE_CHANCE;
    for (int kind = 0; kind < MSC_AUTO_KINDS; kind++) {
        a->rates[kind] = kind == MSC_AUTO_CHILDREN ? LEAST_CHANCE : 0.5;
    }
    return MSC_OK;
}

// ---- Learning ---------------------------------------------------------------------------------

// In a space of many choices only one plan is assembled, after all probes were proposed.
static bool lacks_plan(const struct msc_auto *a) {
    return is_large(a) && a->n_probes_left == 0 && !a->has_plan && a->has_objective_part;
}

static void assemble(struct msc_auto *a) {
    const double *losses = a->parts[0].sensitivity.guesses;
    size_t n_bytes = a->sampler.bounds.n_entries * sizeof *losses;
    struct msc_isolated isolated = {.losses = losses};
    if (a->has_plan && memcmp(a->assembled_by, losses, n_bytes) == 0) {
        return;
    }
    msc_knapsack_solve(&a->knapsack, &isolated, a->assembled, NULL);
    memcpy(a->assembled_by, losses, n_bytes);
    a->has_plan = true;
    a->is_assembled = is_large(a);
}

static bool is_due(const struct msc_auto *a) {
    bool is_stale = false;
    uint64_t n_new = a->n_told / (is_slow(a) ? FIT_AGAIN / 2 : FIT_AGAIN);
    for (size_t i = 0; i < a->n_parts; i++) {
        is_stale = is_stale || a->parts[i].model.is_stale;
    }
    return !a->is_ready || a->n_told > a->n_fitted + n_new || is_stale || lacks_plan(a);
}

// Fits the models to all observed trials if enough of them are new.
static void learn(struct msc_auto *a) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    if (a->n_parts == 0 || a->n_told == a->n_fitted || !is_due(a)) {
        return;
    }
    a->is_ready = true;
    for (size_t i = 0; i < a->n_parts; i++) {
        struct msc_auto_part *part = &a->parts[i];
        if (part->objective >= 0) {
            msc_auto_choose_link(a, part);
        }
        a->is_ready = msc_sensitivity_guess(&part->sensitivity) && a->is_ready;
        if (!a->is_ready) {
            return;
        }
        msc_feature_prior_improve(&part->prior, &part->sensitivity);
        for (size_t e = 0; e < bounds->n_entries; e++) {
            a->is_known[e] = msc_sensitivity_is_exact(&part->sensitivity, e);
        }
        msc_pair_model_fit(&part->model, part->sensitivity.base_loss, part->sensitivity.guesses,
                           a->is_known);
    }
    a->n_fitted = a->n_told;
    a->is_news = true;
    if (a->has_objective_part && (!is_large(a) || lacks_plan(a))) {
        assemble(a);
    }
}

static uint64_t hash_of(const struct msc_auto *a, const uint32_t choices[]) {
    return msc_hash_bytes(choices, a->sampler.bounds.space->n_tasks * sizeof *choices).low | 1;
}

static void await(struct msc_auto *a, enum msc_auto_kind kind, const uint32_t choices[]) {
    size_t at = (size_t)(a->n_awaited++ % MSC_AUTO_AWAITED);
    a->awaited[at] = hash_of(a, choices);
    a->kinds[at] = kind;
}

// Updates the success rate of a kind, and the width and radius, after an outcome of that kind.
static void judge_kind(struct msc_auto *a, enum msc_auto_kind kind, bool is_good) {
    double n_tasks = (double)a->sampler.bounds.space->n_tasks, factor = is_good ? WIDER : NARROWER;
    if (kind == MSC_AUTO_HOPE) {
        a->hope_width = fmin(fmax(a->hope_width * factor, LEAST_WIDTH), 1.0);
        return;
    }
    a->rates[kind] += LATEST * ((is_good ? 1.0 : 0.0) - a->rates[kind]);
    if (kind == MSC_AUTO_DRAWS && a->is_adaptive) {
        a->width = fmin(fmax(a->width * factor, LEAST_WIDTH), 1.0);
    }
    if (kind != MSC_AUTO_CHILDREN && a->is_adaptive) {
        a->radius = fmin(fmax(a->radius * factor, LEAST_RADIUS), n_tasks);
    }
}

// Whether the outcome is among the better half of the best points or, with several objectives,
// extends the front.
static bool is_success(const struct msc_auto *a, const struct msc_outcome *outcome) {
    const struct msc_outcome *middle =
        msc_population_outcome(&a->members, a->members.n_members / 2);
    if (outcome->state != MSC_TRIAL_COMPLETE) {
        return false;
    }
    return a->front.is_used ? msc_auto_front_improves(&a->front, outcome->objectives)
                            : middle->state != MSC_TRIAL_COMPLETE ||
                                  outcome->objectives[0] < middle->objectives[0];
}

static void judge(struct msc_auto *a, const uint32_t choices[], const struct msc_outcome *outcome) {
    uint64_t hash = hash_of(a, choices);
    for (size_t i = 0; i < MSC_AUTO_AWAITED && a->members.n_members > 0; i++) {
        if (a->awaited[i] == hash) {
            judge_kind(a, a->kinds[i], is_success(a, outcome));
            a->awaited[i] = 0;
            return;
        }
    }
}

// ---- Ask and tell -----------------------------------------------------------------------------

// Turns: N is a near point, P is a probe, C a child, H a hope. 0, 3, 6 and A are plans of
// temperature 0, 0.3, 0.6 and 1.
static const char opening_turns[] = "PP0PP3PP0PP3PP0P";
static const char additive_turns[] = "PPP0PPPPPPP0PPPP";
// With several objectives, a plan is worth as much as a probe from the first trial on, because a
// front consists of many plans.
static const char front_turns[] = "P0P3P0P3P0P3P0P3";
static const char draw_turns[] = "36A";

// Whether hopes are worth trials. If the space gives the isolated losses, the first plans are good.
// Until as many trials as tasks were observed, most hopes would then be points far from them.
static bool wants_hopes(const struct msc_auto *a) {
    return a->has_hopes &&
           (msc_auto_needs_probes(a) || a->n_told >= a->sampler.bounds.space->n_tasks);
}

// Returns a hope with probability `hope_chance`. Otherwise draws a kind in proportion to its
// success rate.
static char usual_turn(struct msc_auto *a) {
    if (wants_hopes(a) && a->is_ready && !msc_auto_looks_additive(a) &&
        msc_rng_double(a->sampler.rng) < a->hope_chance) {
        return 'H';
    }
    double chances[MSC_AUTO_KINDS], sum = 0.0;
    for (int kind = 0; kind < MSC_AUTO_KINDS; kind++) {
        chances[kind] = fmax(a->rates[kind], LEAST_CHANCE);
        sum += chances[kind];
    }
    double at = sum * msc_rng_double(a->sampler.rng);
    return at < chances[MSC_AUTO_MEANS]                             ? '0'
           : at < chances[MSC_AUTO_MEANS] + chances[MSC_AUTO_DRAWS] ? draw_turns[a->n_drawn++ % 3]
                                                                    : 'C';
}

static char next_turn(struct msc_auto *a) {
    size_t turn = (size_t)(a->turn++ % TURNS);
    if (a->n_parts == 0) {
        return 'C';
    }
    if (a->is_assembled) {
        return '0';
    }
    if (msc_auto_wants_near(a)) {
        return 'N';
    }
    if (a->base_fails) {
        return 'C';
    }
    bool is_additive = a->n_probes_left > 0 && msc_auto_looks_additive(a);
    if (!msc_auto_is_opening(a) && !is_additive) {
        return is_large(a) && !a->is_news ? 'C' : usual_turn(a);
    }
    // A plan among the probes is worth a trial only if the models changed since the last plan.
    const char *turns = a->front.is_used ? front_turns
                        : is_additive    ? additive_turns
                                         : opening_turns;
    char wanted = turns[turn];
    if (a->front.is_used && (is_large(a) || is_slow(a)) && wanted == '3') {
        wanted = '0'; // a draw takes long; boxes make the plans differ, too
    }
    return a->is_news || a->front.is_used ? wanted : 'P';
}

static bool propose(struct msc_auto *a, char turn, struct msc_proposal *out) {
    if (a->n_parts == 0 || turn == 'C') {
        return false;
    }
    if (turn == 'N') {
        return msc_auto_near(a, out);
    }
    if (turn == 'P') {
        return msc_auto_probe(a, out);
    }
    a->is_news = false;
    if (turn == 'H') {
        bool is_hope = a->front.is_used ? msc_auto_front_hope(a, out) : msc_auto_hope(a, out);
        if (is_hope && a->is_adaptive) {
            await(a, MSC_AUTO_HOPE, out->choices);
        }
        return is_hope;
    }
    double temperature = turn == 'A' ? 1.0 : 0.1 * (turn - '0');
    bool is_found = a->is_ready && (a->front.is_used ? msc_auto_front_plan : msc_auto_plan)(
                                       a, a->width * temperature, out);
    a->is_assembled = false;
    if (is_found) {
        await(a, temperature > 0.0 ? MSC_AUTO_DRAWS : MSC_AUTO_MEANS, out->choices);
    }
    return is_found;
}

static const char *origin_of(char turn) {
    return turn == 'P'   ? "probe"
           : turn == 'N' ? "near"
           : turn == 'H' ? "hope"
           : turn == '0' ? "mean"
                         : "draw";
}

static bool is_base(const struct msc_auto *a, const uint32_t choices[]) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    return memcmp(choices, bounds->most_expensive, bounds->space->n_tasks * sizeof *choices) == 0;
}

static enum msc_status auto_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                size_t *n) {
    struct msc_auto *a = msc_agent_state(agent);
    msc_population_select(&a->members);
    if (a->n_parts > 0) {
        a->n_probes_left = msc_auto_needs_probes(a) ? msc_auto_count_probes(a) : 0;
    }
    learn(a);
    while (*n < max && !a->is_done) {
        char turn = next_turn(a);
        bool is_found = propose(a, turn, &out[*n]);
        out[*n].origin = origin_of(turn);
        if (!is_found) {
            out[*n].probe = false;
            out[*n].origin = "child";
            is_found = msc_population_child(&a->members, &out[*n]);
            if (is_found) {
                await(a, MSC_AUTO_CHILDREN, out[*n].choices);
            }
        }
        if (msc_cancel_soon(a->search.cancel)) { // the search for a plan may have been cut short
            return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
        }
        a->is_done = !is_found;
        *n += is_found;
        if (is_found && is_base(a, out[*n - 1].choices) && out[*n - 1].probe) {
            break; // what to propose next depends on whether the base can be measured
        }
    }
    return MSC_OK;
}

static void tell_part(struct msc_auto_part *part, const uint32_t choices[], double value,
                      bool is_estimate) {
    bool is_alone = is_estimate ? msc_sensitivity_tell_estimate(&part->sensitivity, choices, value)
                                : msc_sensitivity_tell(&part->sensitivity, choices, value);
    if (!is_alone && !isnan(value)) {
        msc_pair_model_tell_estimate(&part->model, choices, value,
                                     is_estimate ? ESTIMATE_ERROR : 0.0);
    }
}

// Learns whether the point can be measured, and its value if it can.
static void tell_near(struct msc_auto *a, const uint32_t choices[],
                      const struct msc_outcome *learnt, double value) {
    bool is_failed = learnt->state == MSC_TRIAL_FAILED && learnt->cause != MSC_CAUSE_ENVIRONMENT;
    if (is_failed || !isnan(value)) {
        msc_chance_tell(&a->chance, choices, !is_failed);
    }
    if (is_base(a, choices)) {
        a->base_fails = is_failed;
    }
    if (!isnan(value) && msc_exact_bounds_hold(&a->sampler.bounds, choices)) {
        msc_near_model_tell(&a->near.model, choices, value);
    }
}

static enum msc_status auto_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct msc_auto *a = msc_agent_state(agent);
    const struct msc_goal *goal = msc_agent_goal(agent);
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome learnt = msc_goal_learn(goal, trial);
    bool is_usable = msc_trial_state_is_result(learnt.state);
    bool is_estimate = msc_goal_is_estimate(goal, trial);
    msc_sampler_note(&a->sampler, choices);
    judge(a, choices, &learnt);
    msc_population_tell(&a->members, trial);
    if (a->front.is_used) {
        bool is_feasible = learnt.state == MSC_TRIAL_COMPLETE;
        msc_auto_front_tell(&a->front, choices, is_feasible ? learnt.objectives : NULL);
    }
    for (size_t i = 0; i < a->n_parts; i++) {
        struct msc_auto_part *part = &a->parts[i];
        bool is_objective = part->objective >= 0;
        double measured = is_objective ? learnt.objectives[part->objective]
                                       : part->sign * learnt.metrics[part->metric];
        if (is_estimate && !is_objective && isnan(measured)) {
            continue; // the evaluated batches do not give this metric
        }
        double value = (is_usable || is_estimate) && isfinite(measured) ? measured : NAN;
        tell_part(part, choices, value, is_estimate);
        if (is_objective && i == 0) {
            tell_near(a, choices, &learnt, value);
        }
    }
    a->n_told++;
    if (learnt.state == MSC_TRIAL_COMPLETE && learnt.objectives[0] < a->least) {
        a->least = learnt.objectives[0];
        a->n_told_at_least = a->n_told;
    }
    return MSC_OK;
}

static bool auto_done(const struct msc_agent *agent) {
    const struct msc_auto *a = msc_agent_state(agent);
    return a->is_done;
}

static struct msc_agent_left auto_left(const struct msc_agent *agent) {
    const struct msc_auto *a = msc_agent_state(agent);
    return msc_sampler_left(&a->sampler);
}

const struct msc_agent_def msc_agent_auto = {
    .abi = MSC_AGENT_ABI,
    .name = "auto",
    .summary =
        "models the losses of choices and of pairs of choices; proposes the most promising points",
    .version = 2,
    .state_size = sizeof(struct msc_auto),
    .params = auto_params,
    .init = auto_init,
    .ask = auto_ask,
    .tell = auto_tell,
    .done = auto_done,
    .left = auto_left,
    .remarks = msc_auto_remarks,
};

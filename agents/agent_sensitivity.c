// Sensitivity analysis. The agent proposes, in this order:
//
//   alone   each choice of each task, with all other tasks at their most expensive choice
//           (reference)
//   plan    the point of least summed loss within the bounds (agents/knapsack.h)
//   pairs   two tasks changed at once, each to the choice that changes the objective most in
//           isolation. Pairs with the greatest product of changes come first: if the loss is a mean
//           square of errors that add up, a pair's loss differs from the sum of the two losses by
//           2 mean(e_1 e_2), which is at most 2 sqrt(loss_1 loss_2) (Cauchy-Schwarz)
//
// All except the plan are probes. Isolated losses already observed, from baselines or another
// record, are not proposed again. results/analysis.h reads the record.
#include "agents/agent.h"
#include "agents/guess.h"
#include "agents/knapsack.h"
#include "base/heap.h"

#include <math.h>
#include <string.h>

struct pair {
    uint32_t first, second; // tasks
    double product;
};

struct sensitivity {
    int64_t most_pairs;

    struct msc_exact_bounds exact;
    struct msc_knapsack knapsack;
    double *losses;  // [n_entries], NaN: not observed, or failed
    bool *was_asked; // [n_entries]
    bool *is_open;   // [n_entries], whether the loss is not observed yet
    struct msc_guess guess;
    uint32_t *worst;   // [n_tasks], the choice that changes the objective most
    double *changes;   // [n_tasks], size of that change; 0: unknown
    size_t task;       // task of the next isolated plan
    uint32_t position; // position of that plan's choice in most_expensive_first
    struct pair *pairs;
    size_t n_pairs, max_pairs, next_pair;
    bool has_pairs; // the pairs were chosen and the plan was proposed
};

static const struct msc_param sensitivity_params[] = {
    {.name = "pairs",
     .help =
         "greatest number of pairs of tasks to measure together; 0 measures single choices only",
     .offset = offsetof(struct sensitivity, most_pairs),
     .type = MSC_PARAM_I64,
     .number = 64,
     .min = 0,
     .max = 1e6},
    {0},
};

static enum msc_status sensitivity_init(struct msc_agent *agent) {
    struct sensitivity *s = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    size_t n = space->n_tasks;
    MSC_TRY(msc_exact_bounds_init(&s->exact, arena, space, msc_agent_goal(agent)));
    MSC_TRY(msc_knapsack_init(&s->knapsack, arena, &s->exact));
    MSC_TRY(msc_guess_init(&s->guess, arena, &s->exact));
    s->max_pairs = (size_t)fmin((double)s->most_pairs, 0.5 * (double)n * ((double)n - 1.0));
    s->losses = msc_arena_array(arena, s->exact.n_entries, sizeof *s->losses);
    s->was_asked = msc_arena_array(arena, s->exact.n_entries, sizeof *s->was_asked);
    s->is_open = msc_arena_array(arena, s->exact.n_entries, sizeof *s->is_open);
    s->worst = msc_arena_array(arena, n, sizeof *s->worst);
    s->changes = msc_arena_array(arena, n, sizeof *s->changes);
    s->pairs = msc_arena_array(arena, s->max_pairs + 1, sizeof *s->pairs);
    MSC_TRY(MSC_ALLOCATED(s->losses && s->was_asked && s->is_open && s->worst && s->changes &&
                          s->pairs));
    for (size_t e = 0; e < s->exact.n_entries; e++) {
        s->losses[e] = NAN;
        s->is_open[e] = true;
    }
    return MSC_OK;
}

// ---- Alone ------------------------------------------------------------------------------------

static bool is_to_ask(const struct sensitivity *s, size_t task, uint32_t position) {
    const struct msc_task *t = &s->exact.space->tasks[task];
    // The reference is proposed once, as a choice of the first task.
    return (position > 0 || task == 0) && position < t->n_choices &&
           !s->was_asked[msc_exact_bounds_entry(&s->exact, task,
                                                t->most_expensive_first[position])];
}

static bool next_alone(struct sensitivity *s, struct msc_proposal *out) {
    const struct msc_space *space = s->exact.space;
    for (; s->task < space->n_tasks; s->task++, s->position = 0) {
        for (; s->position < space->tasks[s->task].n_choices; s->position++) {
            if (is_to_ask(s, s->task, s->position)) {
                uint32_t choice = space->tasks[s->task].most_expensive_first[s->position++];
                memcpy(out->choices, s->exact.most_expensive,
                       space->n_tasks * sizeof *out->choices);
                out->choices[s->task] = choice;
                s->was_asked[msc_exact_bounds_entry(&s->exact, s->task, choice)] = true;
                return true;
            }
        }
    }
    return false;
}

// ---- Pairs ------------------------------------------------------------------------------------

static bool comes_first(const void *context, const void *a, const void *b) {
    const struct pair *left = a, *right = b;
    (void)context;
    if (left->product != right->product) {
        return left->product > right->product;
    }
    return left->first != right->first ? left->first < right->first : left->second < right->second;
}

static void find_worst(struct sensitivity *s) {
    const struct msc_space *space = s->exact.space;
    double base = s->losses[msc_exact_bounds_entry(&s->exact, 0, s->exact.most_expensive[0])];
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t p = 1; p < space->tasks[t].n_choices; p++) {
            uint32_t c = space->tasks[t].most_expensive_first[p];
            double change = fabs(s->losses[msc_exact_bounds_entry(&s->exact, t, c)] - base);
            if (change > s->changes[t]) { // false for NaN
                s->changes[t] = change;
                s->worst[t] = c;
            }
        }
    }
}

static void choose_pairs(struct sensitivity *s) {
    struct pair spare;
    const struct msc_heap heap = {.elements = s->pairs,
                                  .element_bytes = sizeof *s->pairs,
                                  .spare = &spare,
                                  .is_before = comes_first};
    // The heap's first element is the lowest-ranking pair kept, which is replaced next.
    uint32_t n_tasks = (uint32_t)s->exact.space->n_tasks;
    find_worst(s);
    for (uint32_t i = 0; s->max_pairs > 0 && i < n_tasks; i++) {
        for (uint32_t k = i + 1; k < n_tasks; k++) {
            const struct pair pair = {
                .first = i, .second = k, .product = s->changes[i] * s->changes[k]};
            if (pair.product > 0.0) {
                msc_heap_offer(&heap, &s->n_pairs, s->max_pairs, &pair);
            }
        }
    }
    msc_heap_sort(&heap, s->n_pairs);
    s->has_pairs = true;
}

static bool next_pair(struct sensitivity *s, struct msc_proposal *out) {
    if (s->next_pair == s->n_pairs) {
        return false;
    }
    const struct pair *pair = &s->pairs[s->next_pair++];
    memcpy(out->choices, s->exact.most_expensive, s->exact.space->n_tasks * sizeof *out->choices);
    out->choices[pair->first] = s->worst[pair->first];
    out->choices[pair->second] = s->worst[pair->second];
    return true;
}

// ---- Ask and tell -----------------------------------------------------------------------------

static void propose_plan(struct sensitivity *s, struct msc_proposal *out) {
    const struct msc_isolated isolated = {.losses = s->losses};
    msc_knapsack_solve(&s->knapsack, &isolated, out->choices, NULL);
}

static void sensitivity_assemble(struct msc_agent *agent, uint32_t choices[]) {
    struct sensitivity *s = msc_agent_state(agent);
    const struct msc_isolated isolated = {.losses =
                                              msc_guess_fill(&s->guess, s->losses, s->is_open)};
    msc_knapsack_solve(&s->knapsack, &isolated, choices, NULL);
}

static enum msc_status sensitivity_ask(struct msc_agent *agent, struct msc_proposal out[],
                                       size_t max, size_t *n) {
    struct sensitivity *s = msc_agent_state(agent);
    while (*n < max && !s->has_pairs && next_alone(s, &out[*n])) {
        out[*n].origin = "alone";
        out[(*n)++].probe = true;
    }
    if (*n > 0 || max == 0) {
        return MSC_OK; // the plan and the pairs are proposed after the outcomes of these points
    }
    if (!s->has_pairs) {
        choose_pairs(s);
        out[0].origin = "plan";
        propose_plan(s, &out[(*n)++]);
    }
    while (*n < max && next_pair(s, &out[*n])) {
        out[*n].origin = "pair";
        out[(*n)++].probe = true;
    }
    return MSC_OK;
}

static void note_alone(struct sensitivity *s, size_t task, uint32_t choice, double loss) {
    size_t entry = msc_exact_bounds_entry(&s->exact, task, choice);
    s->losses[entry] = loss;
    s->is_open[entry] = false;
    s->was_asked[entry] = s->was_asked[entry] || !isnan(loss);
}

static enum msc_status sensitivity_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct sensitivity *s = msc_agent_state(agent);
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome *outcome = &trial->outcome;
    bool is_usable = msc_trial_state_is_result(outcome->state);
    double loss = is_usable && isfinite(outcome->objectives[0]) ? outcome->objectives[0] : NAN;
    size_t n_tasks = s->exact.space->n_tasks, n_changed = 0, changed = 0;
    for (size_t t = 0; t < n_tasks && n_changed < 2; t++) {
        if (choices[t] != s->exact.most_expensive[t]) {
            n_changed++;
            changed = t;
        }
    }
    if (n_changed == 1) {
        note_alone(s, changed, choices[changed], loss);
    }
    for (size_t t = 0; n_changed == 0 && t < n_tasks; t++) {
        note_alone(s, t, choices[t], loss);
    }
    return MSC_OK;
}

static bool sensitivity_done(const struct msc_agent *agent) {
    const struct sensitivity *s = msc_agent_state(agent);
    return s->has_pairs && s->next_pair == s->n_pairs;
}

// Before the pairs are chosen, their number is an upper limit.
static struct msc_agent_left sensitivity_left(const struct msc_agent *agent) {
    const struct sensitivity *s = msc_agent_state(agent);
    size_t n = s->has_pairs ? 0 : 1; // the plan
    for (size_t t = s->task; !s->has_pairs && t < s->exact.space->n_tasks; t++) {
        for (uint32_t p = t == s->task ? s->position : 0; p < s->exact.space->tasks[t].n_choices;
             p++) {
            n += is_to_ask(s, t, p);
        }
    }
    double n_plan = (double)n;
    n += s->has_pairs ? s->n_pairs - s->next_pair : s->max_pairs;
    return (struct msc_agent_left){.n = (double)n, .is_exact = s->has_pairs, .n_plan = n_plan};
}

const struct msc_agent_def msc_agent_sensitivity = {
    .abi = MSC_AGENT_ABI,
    .name = "sensitivity",
    .summary = "measures each choice in isolation, then pairs of the worst choices; used by mscgym "
               "sensitivity",
    .version = 1,
    .state_size = sizeof(struct sensitivity),
    .params = sensitivity_params,
    .init = sensitivity_init,
    .ask = sensitivity_ask,
    .tell = sensitivity_tell,
    .done = sensitivity_done,
    .left = sensitivity_left,
    .assemble = sensitivity_assemble,
};

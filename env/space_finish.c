// Completes a space that was read from JSON or a table: derives the order of choices by cost and
// the uniform plans (msc_space_finish).
#include "env/space_json.h"

#include <math.h>
#include <string.h>

// The greatest magnitude of a term's product without factor number `but`.
static double others_of(const struct msc_space *space, const struct msc_cost_term *term,
                        uint32_t but) {
    double product = term->scale;
    for (uint32_t i = 0; i < term->n_factors; i++) {
        const struct msc_cost_factor *factor = &term->factors[i];
        double greatest = 0.0;
        for (uint32_t c = 0; i != but && c < space->tasks[factor->task].n_choices; c++) {
            greatest = fmax(greatest, fabs(factor->by_choice[c]));
        }
        product *= i == but ? 1.0 : greatest;
    }
    return product;
}

// Adds to weights[t][c] the cost of choice c of task t if all other tasks cost the most.
static void add_weights(const struct msc_space *space, const struct msc_cost *cost,
                        double *const weights[]) {
    for (size_t i = 0; i < cost->n_terms; i++) {
        const struct msc_cost_term *term = &cost->terms[i];
        for (uint32_t j = 0; j < term->n_factors; j++) {
            const struct msc_cost_factor *factor = &term->factors[j];
            double others = others_of(space, term, j);
            for (uint32_t c = 0; c < space->tasks[factor->task].n_choices; c++) {
                weights[factor->task][c] += others * factor->by_choice[c];
            }
        }
    }
}

// Sorts choices by decreasing weight; choices of equal weight keep their order.
static void sort_choices(uint32_t order[], const double weights[], uint32_t n) {
    for (uint32_t c = 0; c < n; c++) {
        uint32_t at = c;
        for (; at > 0 && weights[order[at - 1]] < weights[c]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = c;
    }
}

// The cost that orders choices: the first one that is minimised.
static const struct msc_cost *find_order(const struct msc_space *space) {
    for (size_t i = 0; i < space->n_costs; i++) {
        int metric = msc_space_find_metric(space, space->costs[i].metric);
        if (metric >= 0 && !space->metrics[metric].is_maximised) {
            return &space->costs[i];
        }
    }
    return NULL;
}

static enum msc_status order_choices(struct msc_space *space, struct msc_arena *arena) {
    const struct msc_cost *cost = find_order(space);
    struct msc_task *tasks = msc_arena_array(arena, space->n_tasks, sizeof *tasks);
    double **weights = msc_arena_array(arena, space->n_tasks, sizeof *weights);
    MSC_TRY(MSC_ALLOCATED(tasks && weights));
    for (size_t t = 0; t < space->n_tasks; t++) {
        weights[t] = msc_arena_array(arena, space->tasks[t].n_choices, sizeof *weights[t]);
        MSC_TRY(MSC_ALLOCATED(weights[t]));
    }
    if (cost) {
        add_weights(space, cost, weights);
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        uint32_t *order = msc_arena_array(arena, space->tasks[t].n_choices, sizeof *order);
        MSC_TRY(MSC_ALLOCATED(order));
        sort_choices(order, weights[t], space->tasks[t].n_choices);
        tasks[t] = space->tasks[t];
        if (!tasks[t].most_expensive_first) {
            tasks[t].most_expensive_first = order;
        }
    }
    space->tasks = tasks;
    return MSC_OK;
}

// The choice with that label, or n_choices.
static uint32_t find_label(const struct msc_task *task, const char *label) {
    uint32_t c = 0;
    while (c < task->n_choices && strcmp(task->labels[c], label) != 0) {
        c++;
    }
    return c;
}

static bool have_label(const struct msc_space *space, const char *label) {
    for (size_t t = 1; t < space->n_tasks; t++) {
        if (find_label(&space->tasks[t], label) == space->tasks[t].n_choices) {
            return false;
        }
    }
    return true;
}

static bool are_labels_equal(const struct msc_space *space) {
    const struct msc_task *first = &space->tasks[0];
    for (size_t t = 1; t < space->n_tasks; t++) {
        if (space->tasks[t].n_choices != first->n_choices) {
            return false;
        }
    }
    for (uint32_t c = 0; c < first->n_choices; c++) {
        if (!have_label(space, first->labels[c])) {
            return false;
        }
    }
    return true;
}

static enum msc_status build_baselines(struct msc_space *space, struct msc_arena *arena) {
    size_t n_tasks = space->n_tasks;
    if (n_tasks == 0 || space->n_baselines > 0 || !are_labels_equal(space)) {
        return MSC_OK;
    }
    uint32_t n_choices = space->tasks[0].n_choices;
    struct msc_baseline *baselines = msc_arena_array(arena, n_choices, sizeof *baselines);
    uint32_t *points = msc_arena_array(arena, n_choices * n_tasks, sizeof *points);
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (uint32_t c = 0; c < n_choices; c++) {
        const char *label = space->tasks[0].labels[c];
        for (size_t t = 0; t < n_tasks; t++) {
            points[c * n_tasks + t] = find_label(&space->tasks[t], label);
        }
        baselines[c] = (struct msc_baseline){.label = label, .choices = points + c * n_tasks};
    }
    space->n_baselines = n_choices;
    space->baselines = baselines;
    return MSC_OK;
}

enum msc_status msc_space_finish(struct msc_space *space, struct msc_arena *arena) {
    MSC_TRY(order_choices(space, arena));
    return build_baselines(space, arena);
}

#include "agents/hope.h"

#include <math.h>

// Standard deviations.
#define SPREADS 2.0
// Multiplications that a descent may take, about.
#define MOST_WORK 2e6

double msc_hope_bound(struct msc_pair_model *m, const uint32_t choices[], double least) {
    double value = msc_pair_model_value(m, choices);
    double enough = fmax((value - least) / SPREADS, 0.0);
    double bound = value - SPREADS * msc_pair_model_spread(m, choices, enough);
    return bound < least ? bound : INFINITY;
}

struct descent {
    struct msc_pair_model *model;
    bool (*is_wanted)(const void *context, const uint32_t choices[]);
    const void *context;
    uint32_t *choices;
    double work;             // that may yet be done
    double to_ask, to_bound; // what it takes of that to ask for a point, and to bound it
    // The best change so far: of one task, or of two.
    double least;
    size_t n, tasks[2];
    uint32_t to[2];
};

static void rate(struct descent *d, size_t n, const size_t tasks[]) {
    d->work -= d->to_ask;
    if (!d->is_wanted(d->context, d->choices)) {
        return;
    }
    double bound = msc_hope_bound(d->model, d->choices, d->least);
    d->work -= d->to_bound;
    if (!isinf(bound)) {
        d->least = bound;
        d->n = n;
        for (size_t i = 0; i < n; i++) {
            d->tasks[i] = tasks[i];
            d->to[i] = d->choices[tasks[i]];
        }
    }
}

// Each other choice of the task; with `n` 2, with each of every later task.
static void rate_task(struct descent *d, size_t n, size_t tasks[], size_t at) {
    const struct msc_space *space = d->model->bounds->space;
    uint32_t before = d->choices[tasks[at]];
    for (uint32_t c = 0; c < space->tasks[tasks[at]].n_choices && d->work > 0.0; c++) {
        d->choices[tasks[at]] = c;
        if (c != before && at + 1 == n) {
            rate(d, n, tasks);
        }
        for (size_t t = tasks[at] + 1; c != before && at + 1 < n && t < space->n_tasks; t++) {
            tasks[at + 1] = t;
            rate_task(d, n, tasks, at + 1);
        }
    }
    d->choices[tasks[at]] = before;
}

double msc_hope_descend(struct msc_pair_model *m, uint32_t choices[], double bound,
                        bool (*is_wanted)(const void *context, const uint32_t choices[]),
                        const void *context) {
    size_t n_tasks = m->bounds->space->n_tasks;
    double n_points = (double)(m->n_points + m->n_believed + 1);
    struct descent d = {.model = m,
                        .is_wanted = is_wanted,
                        .context = context,
                        .choices = choices,
                        .work = MOST_WORK,
                        .to_ask = (double)n_tasks,
                        .to_bound = n_points * (0.5 * n_points + (double)n_tasks),
                        .least = bound};
    do {
        d.n = 0;
        for (size_t n = 1; n <= 2; n++) {
            for (size_t t = 0; t < n_tasks; t++) {
                size_t tasks[2] = {t};
                rate_task(&d, n, tasks, 0);
            }
        }
        for (size_t i = 0; i < d.n; i++) {
            choices[d.tasks[i]] = d.to[i];
        }
    } while (d.n > 0);
    return d.least;
}

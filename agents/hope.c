#include "agents/hope.h"

#include "agents/numbers.h"

#include <math.h>

// Standard deviations that the lower confidence bound subtracts from the mean.
#define SPREADS 2.0
// Approximate limit on the multiplications of one descent. A descent that could rate less than
// LEAST_SHARE of the changes of one task is left out.
#define MOST_WORK 2e6
#define LEAST_SHARE 0.25

double msc_hope_of(const struct msc_hope *h, double mean, double spread) {
    spread *= h->width;
    if (h->way == MSC_HOPE_BOUND) {
        return mean - SPREADS * spread;
    }
    double by_mean = h->best_loss - mean;
    double gain = spread > 0.0 ? spread * msc_agent_gain(by_mean / spread) : fmax(by_mean, 0.0);
    return gain > 0.0 ? -gain : INFINITY;
}

// A lower limit of the standard deviation that a point with mean `mean` must have to get a value
// below `least`. The expected improvement is at most the improvement of the mean plus
// msc_agent_gain(0) standard deviations.
static double least_spread(const struct msc_hope *h, double mean, double least) {
    double missing = h->way == MSC_HOPE_BOUND
                         ? (mean - least) / SPREADS
                         : (-least - fmax(h->best_loss - mean, 0.0)) / msc_agent_gain(0.0);
    return fmax(missing / h->width, 0.0);
}

double msc_hope_value(const struct msc_hope *h, const uint32_t choices[], double least) {
    double mean = msc_pair_model_value(h->model, choices);
    double spread = msc_pair_model_spread(h->model, choices, least_spread(h, mean, least));
    double value = msc_hope_of(h, mean, spread);
    return value < least ? value : INFINITY;
}

struct descent {
    const struct msc_hope *hope;
    bool (*is_wanted)(const void *context, const uint32_t choices[]);
    const void *context;
    uint32_t *choices;
    double work;             // multiplications left
    double to_ask, to_value; // multiplications of one call of `is_wanted`, and of computing one
                             // value
    // The best change of one or two tasks so far.
    double least;
    size_t n, tasks[2];
    uint32_t to[2];
};

static void rate(struct descent *d, size_t n, const size_t tasks[]) {
    d->work -= d->to_ask;
    if (!d->is_wanted(d->context, d->choices)) {
        return;
    }
    double value = msc_hope_value(d->hope, d->choices, d->least);
    d->work -= d->to_value;
    if (!isinf(value)) {
        d->least = value;
        d->n = n;
        for (size_t i = 0; i < n; i++) {
            d->tasks[i] = tasks[i];
            d->to[i] = d->choices[tasks[i]];
        }
    }
}

// Rates each change of task tasks[at] to another choice. If `n` is 2, combines each of these
// changes with each change of a later task.
static void rate_task(struct descent *d, size_t n, size_t tasks[], size_t at) {
    const struct msc_space *space = d->hope->model->bounds->space;
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

void msc_hope_descend(const struct msc_hope *h, uint32_t choices[], double value,
                      bool (*is_wanted)(const void *context, const uint32_t choices[]),
                      const void *context) {
    const struct msc_pair_model *m = h->model;
    size_t n_tasks = m->bounds->space->n_tasks;
    double n_points = (double)(m->n_points + m->n_believed + 1);
    struct descent d = {.hope = h,
                        .is_wanted = is_wanted,
                        .context = context,
                        .choices = choices,
                        .work = MOST_WORK,
                        .to_ask = (double)n_tasks,
                        .to_value = n_points * (0.5 * n_points + (double)n_tasks),
                        .least = value};
    if (MOST_WORK < LEAST_SHARE * (double)m->bounds->n_entries * d.to_value) {
        return;
    }
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
}

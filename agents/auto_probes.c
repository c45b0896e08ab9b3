// Probes of the agent `auto`: points that differ from the most expensive plan in one task.
#include "agents/auto.h"

#include <string.h>

static bool take_probe(struct msc_auto *a, size_t task, uint32_t choice, struct msc_proposal *out) {
    struct msc_sensitivity *s = &a->parts[0].sensitivity;
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    s->was_asked[msc_exact_bounds_entry(bounds, task, choice)] = true;
    memcpy(out->choices, bounds->most_expensive, bounds->space->n_tasks * sizeof *out->choices);
    out->choices[task] = choice;
    a->n_probes_left--;
    out->probe = msc_sampler_note(&a->sampler, out->choices);
    return out->probe;
}

// Probes the base, then the cheapest choice of every task that a bounded cost depends on. Tasks
// that change the cost most come first.
static bool first_probe(struct msc_auto *a, struct msc_proposal *out) {
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

// Probes the choice that is nearest to the plan's choice of the same task, in the order of cost.
static bool next_probe(struct msc_auto *a, struct msc_proposal *out) {
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

uint64_t msc_auto_count_probes(const struct msc_auto *a) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_sensitivity *s = &a->parts[0].sensitivity;
    uint64_t n = !s->was_asked[msc_exact_bounds_entry(bounds, 0, bounds->most_expensive[0])];
    for (size_t e = 0; e < bounds->n_entries; e++) {
        n += bounds->positions[e] > 0 && !s->was_asked[e];
    }
    return n;
}

bool msc_auto_probe(struct msc_auto *a, struct msc_proposal *out) {
    return first_probe(a, out) || next_probe(a, out);
}

#include "agents/sensitivity.h"

#include "agents/numbers.h"
#include "base/heap.h"

#include <math.h>
#include <string.h>

// The factor by which losses grow from one choice to the next cheaper one if nothing is known, and
// the limits of such a factor.
#define USUAL_FACTOR 3.0
#define LEAST_FACTOR 1.05
#define MOST_FACTOR 8.0

// ---- Init -------------------------------------------------------------------------------------

static bool stands_before(const struct msc_cost_term *term, uint32_t factor) {
    for (uint32_t j = 0; j < factor; j++) {
        if (term->factors[j].task == term->factors[factor].task) {
            return true;
        }
    }
    return false;
}

// How much a task's choices can change the term.
static double term_span(const struct msc_space *space, const struct msc_cost_term *term,
                        uint32_t task) {
    double least = fabs(term->scale), most = least;
    for (uint32_t j = 0; j < term->n_factors; j++) {
        const struct msc_cost_factor *factor = &term->factors[j];
        const struct msc_task *of = &space->tasks[factor->task];
        double first = fabs(factor->by_choice[of->most_expensive_first[0]]);
        double last = fabs(factor->by_choice[of->most_expensive_first[of->n_choices - 1]]);
        least *= factor->task == task ? last : first;
        most *= first;
    }
    return most - least;
}

// Adds how much each task's choices can change the bounded costs, relative to their limits.
static void add_cost_shares(double shares[], const struct msc_exact_bounds *bounds) {
    for (size_t i = 0; i < bounds->n_items; i++) {
        const struct msc_exact_bound *item = &bounds->items[i];
        double limit = fabs(isinf(item->max) ? item->min : item->max);
        for (size_t k = 0; limit > 0.0 && k < item->cost->n_terms; k++) {
            const struct msc_cost_term *term = &item->cost->terms[k];
            for (uint32_t j = 0; j < term->n_factors; j++) {
                uint32_t task = term->factors[j].task;
                shares[task] +=
                    stands_before(term, j) ? 0.0 : term_span(bounds->space, term, task) / limit;
            }
        }
    }
}

static bool has_greater_share(const void *context, const void *a, const void *b) {
    const double *shares = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return shares[left] > shares[right] || (shares[left] == shares[right] && left < right);
}

static void order_tasks(struct msc_sensitivity *s) {
    size_t n_tasks = s->bounds->space->n_tasks;
    add_cost_shares(s->sorted, s->bounds);
    for (size_t t = 0; t < n_tasks; t++) {
        s->order[t] = (uint32_t)t;
        s->n_bounded += s->sorted[t] > 0.0;
    }
    s->n_bounded = s->n_bounded > 0 ? s->n_bounded : n_tasks;
    uint32_t spare;
    const struct msc_heap heap = {.elements = s->order,
                                  .element_bytes = sizeof *s->order,
                                  .spare = &spare,
                                  .is_before = has_greater_share,
                                  .context = s->sorted};
    msc_heap_sort(&heap, n_tasks);
}

enum msc_status msc_sensitivity_init(struct msc_sensitivity *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds) {
    size_t n_tasks = bounds->space->n_tasks, n_entries = bounds->n_entries;
    *s = (struct msc_sensitivity){.bounds = bounds, .base_loss = NAN};
    for (size_t t = 0; t < n_tasks; t++) {
        size_t n_choices = bounds->space->tasks[t].n_choices;
        s->n_positions = n_choices > s->n_positions ? n_choices : s->n_positions;
    }
    s->told = msc_arena_array(arena, n_entries, sizeof *s->told);
    s->guesses = msc_arena_array(arena, n_entries, sizeof *s->guesses);
    s->was_asked = msc_arena_array(arena, n_entries, sizeof *s->was_asked);
    s->is_estimate = msc_arena_array(arena, n_entries, sizeof *s->is_estimate);
    s->works = msc_arena_array(arena, n_entries, sizeof *s->works);
    s->uniform = msc_arena_array(arena, s->n_positions, sizeof *s->uniform);
    s->factors = msc_arena_array(arena, s->n_positions, sizeof *s->factors);
    s->sorted = msc_arena_array(arena, n_entries, sizeof *s->sorted);
    s->order = msc_arena_array(arena, n_tasks, sizeof *s->order);
    MSC_TRY(MSC_ALLOCATED(s->told && s->guesses && s->was_asked && s->is_estimate && s->works &&
                          s->uniform && s->factors && s->sorted && s->order));
    for (size_t i = 0; i < n_entries; i++) {
        s->told[i] = NAN;
    }
    for (size_t i = 0; i < s->n_positions; i++) {
        s->uniform[i] = NAN;
    }
    order_tasks(s);
    return MSC_OK;
}

// ---- Told -------------------------------------------------------------------------------------

static uint32_t place_of(const struct msc_sensitivity *s, size_t task, uint32_t choice) {
    return s->bounds->positions[msc_exact_bounds_entry(s->bounds, task, choice)];
}

// The common position of all tasks' choices in most_expensive_first; SIZE_MAX if they differ.
static size_t uniform_place(const struct msc_sensitivity *s, const uint32_t choices[]) {
    size_t place = place_of(s, 0, choices[0]);
    for (size_t t = 1; t < s->bounds->space->n_tasks; t++) {
        if (place_of(s, t, choices[t]) != place) {
            return SIZE_MAX;
        }
    }
    return place;
}

static void note_entry(struct msc_sensitivity *s, size_t entry, double loss, bool is_estimate) {
    s->told[entry] = loss;
    s->was_asked[entry] = true;
    s->is_estimate[entry] = is_estimate;
}

// Notes that a point gave a result: its choices work, even those that failed in isolation.
static void note_working(struct msc_sensitivity *s, const uint32_t choices[]) {
    for (size_t t = 0; t < s->bounds->space->n_tasks; t++) {
        size_t entry = msc_exact_bounds_entry(s->bounds, t, choices[t]);
        s->works[entry] = true;
        s->told[entry] = isinf(s->told[entry]) ? NAN : s->told[entry];
    }
}

static double loss_of_failure(const struct msc_sensitivity *s, size_t entry) {
    return s->doubts_failures && s->works[entry] ? NAN : INFINITY;
}

static bool tell_loss(struct msc_sensitivity *s, const uint32_t choices[], double loss,
                      bool is_estimate) {
    const uint32_t *base = s->bounds->most_expensive;
    size_t n_tasks = s->bounds->space->n_tasks, n_changed = 0, changed = 0;
    size_t place = uniform_place(s, choices);
    if (place != SIZE_MAX) {
        s->uniform[place] = loss;
    }
    for (size_t t = 0; t < n_tasks && n_changed < 2; t++) {
        changed = choices[t] != base[t] ? t : changed;
        n_changed += choices[t] != base[t];
    }
    if (n_changed == 1) {
        size_t entry = msc_exact_bounds_entry(s->bounds, changed, choices[changed]);
        note_entry(s, entry, isnan(loss) ? loss_of_failure(s, entry) : loss, is_estimate);
    }
    if (s->doubts_failures && !isnan(loss)) {
        note_working(s, choices);
    }
    for (size_t t = 0; n_changed == 0 && t < n_tasks; t++) {
        size_t entry = msc_exact_bounds_entry(s->bounds, t, base[t]);
        note_entry(s, entry, loss, is_estimate);
        s->base_loss = loss;
    }
    return n_changed < 2;
}

bool msc_sensitivity_tell(struct msc_sensitivity *s, const uint32_t choices[], double loss) {
    return tell_loss(s, choices, loss, false);
}

bool msc_sensitivity_tell_estimate(struct msc_sensitivity *s, const uint32_t choices[],
                                   double loss) {
    return tell_loss(s, choices, loss, true);
}

// ---- Guesses ----------------------------------------------------------------------------------

static bool is_less(const void *context, const void *a, const void *b) {
    (void)context;
    return *(const double *)a < *(const double *)b;
}

static double median_of(double values[], size_t n) {
    double spare;
    const struct msc_heap heap = {
        .elements = values, .element_bytes = sizeof *values, .spare = &spare, .is_before = is_less};
    msc_heap_sort(&heap, n);
    return values[n / 2];
}

static double within(double factor) {
    return fmin(fmax(factor, LEAST_FACTOR), MOST_FACTOR);
}

static size_t entry_at(const struct msc_sensitivity *s, size_t task, uint32_t place) {
    return msc_exact_bounds_entry(s->bounds, task,
                                  s->bounds->space->tasks[task].most_expensive_first[place]);
}

// The known isolated loss of a choice if it is positive and finite; else NaN.
static double known_loss(const struct msc_sensitivity *s, size_t task, uint32_t place) {
    double above = msc_sensitivity_above(s, entry_at(s, task, place));
    return isfinite(above) && above > 0.0 ? above : NAN;
}

// (b / a) to the power of 1 / n.
static double factor_between(double a, double b, uint32_t n) {
    return msc_agent_exp((msc_agent_log(b) - msc_agent_log(a)) / n);
}

// The median over all tasks of the growth between successive choices with known losses.
static double median_factor(struct msc_sensitivity *s) {
    size_t n = 0;
    for (size_t t = 0; t < s->bounds->space->n_tasks; t++) {
        uint32_t last = 0;
        for (uint32_t p = 1; p < s->bounds->space->tasks[t].n_choices; p++) {
            double loss = known_loss(s, t, p);
            if (isnan(loss)) {
                continue;
            }
            if (last > 0) {
                s->sorted[n++] = factor_between(known_loss(s, t, last), loss, p - last);
            }
            last = p;
        }
    }
    return n > 0 ? within(median_of(s->sorted, n)) : USUAL_FACTOR;
}

// The loss of a position's uniform plan above the base's, under the link.
static double uniform_above(const struct msc_sensitivity *s, size_t place) {
    return msc_link_of(&s->link, s->uniform[place] - s->base_loss);
}

static void set_factors(struct msc_sensitivity *s) {
    double usual = median_factor(s);
    for (size_t p = 0; p < s->n_positions; p++) {
        double before = p > 0 ? uniform_above(s, p - 1) : NAN;
        double here = uniform_above(s, p);
        s->factors[p] = before > 0.0 && here > 0.0 ? within(here / before) : usual;
    }
}

// Guesses a loss from the nearest known losses of the task; NaN if there are none.
static double guess_from(const struct msc_sensitivity *s, size_t task, uint32_t place) {
    uint32_t n_choices = s->bounds->space->tasks[task].n_choices;
    uint32_t before = place - 1, after = place + 1;
    while (before > 0 && isnan(known_loss(s, task, before))) {
        before--;
    }
    while (after < n_choices && isnan(known_loss(s, task, after))) {
        after++;
    }
    if (before > 0 && after < n_choices) {
        double a = known_loss(s, task, before), b = known_loss(s, task, after);
        double step = (msc_agent_log(b) - msc_agent_log(a)) / (after - before);
        return msc_agent_exp(msc_agent_log(a) + step * (place - before));
    }
    double loss = after < n_choices ? known_loss(s, task, after) : NAN;
    for (uint32_t p = after; after < n_choices && p > place; p--) {
        loss /= s->factors[p];
    }
    if (before > 0) {
        loss = known_loss(s, task, before);
        for (uint32_t p = before + 1; p <= place; p++) {
            loss *= s->factors[p];
        }
    }
    return loss;
}

static void fill_known(struct msc_sensitivity *s) {
    for (size_t t = 0; t < s->bounds->space->n_tasks; t++) {
        for (uint32_t p = 0; p < s->bounds->space->tasks[t].n_choices; p++) {
            size_t entry = entry_at(s, t, p);
            double above = msc_sensitivity_above(s, entry);
            s->guesses[entry] = p == 0 ? 0.0 : isnan(above) ? guess_from(s, t, p) : above;
        }
    }
}

// The loss of a task without known losses at `place`: the loss of the uniform plan minus all known
// losses, divided among the tasks without known losses. If this difference is unknown or not
// positive, it is the median of the known losses, or NaN if there are none.
static double usual_loss(struct msc_sensitivity *s, uint32_t place) {
    size_t n_unknown = 0, n = 0;
    double rest = uniform_above(s, place);
    for (size_t t = 0; t < s->bounds->space->n_tasks; t++) {
        if (place < s->bounds->space->tasks[t].n_choices) {
            double guess = s->guesses[entry_at(s, t, place)];
            n_unknown += isnan(guess);
            rest -= isfinite(guess) ? guess : 0.0;
            if (isfinite(guess)) {
                s->sorted[n++] = guess;
            }
        }
    }
    double median = n > 0 ? median_of(s->sorted, n) : NAN;
    return rest > 0.0 && n_unknown > 0 ? rest / (double)n_unknown : median;
}

static void fill_unknown(struct msc_sensitivity *s) {
    double usual = 1.0;
    for (uint32_t p = 1; p < s->n_positions; p++) {
        double here = usual_loss(s, p);
        usual = isnan(here) ? usual * s->factors[p] : here;
        for (size_t t = 0; t < s->bounds->space->n_tasks; t++) {
            if (p < s->bounds->space->tasks[t].n_choices) {
                double *guess = &s->guesses[entry_at(s, t, p)];
                *guess = isnan(*guess) ? usual : *guess;
            }
        }
    }
}

bool msc_sensitivity_guess(struct msc_sensitivity *s) {
    if (isnan(s->base_loss)) {
        return false;
    }
    set_factors(s);
    fill_known(s);
    fill_unknown(s);
    return true;
}

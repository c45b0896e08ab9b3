#include "agents/guess.h"

#include <math.h>
#include <string.h>

enum msc_status msc_guess_init(struct msc_guess *guess, struct msc_arena *arena,
                               const struct msc_exact_bounds *bounds) {
    uint32_t n_places = 1;
    for (size_t t = 0; t < bounds->space->n_tasks; t++) {
        uint32_t n_choices = bounds->space->tasks[t].n_choices;
        n_places = n_choices > n_places ? n_choices : n_places;
    }
    *guess = (struct msc_guess){
        .bounds = bounds,
        .values = msc_arena_array(arena, bounds->n_entries, sizeof *guess->values),
        .sums = msc_arena_array(arena, n_places, sizeof *guess->sums),
        .counts = msc_arena_array(arena, n_places, sizeof *guess->counts),
        .places = msc_arena_array(arena, n_places, sizeof *guess->places),
        .n_places = n_places,
    };
    MSC_TRY(MSC_ALLOCATED(guess->values && guess->sums && guess->counts && guess->places));
    for (uint32_t i = 0; i < n_places; i++) {
        guess->places[i] = i;
    }
    return MSC_OK;
}

// Interpolates row[order[k]] linearly between known positions.
static void fill_between(double row[], const uint32_t order[], uint32_t n, const bool is_open[]) {
    uint32_t first = n; // the last known position
    for (uint32_t i = 0; i < n; i++) {
        double here = row[order[i]];
        if (isnan(here)) {
            continue;
        }
        for (uint32_t k = first + 1; first < n && k < i; k++) {
            double before = row[order[first]];
            if (!is_open || is_open[order[k]]) {
                row[order[k]] =
                    before + (here - before) * (double)(k - first) / (double)(i - first);
            }
        }
        first = i;
    }
}

void msc_guess_between(double losses[], const bool is_open[],
                       const struct msc_exact_bounds *bounds) {
    for (size_t t = 0; t < bounds->space->n_tasks; t++) {
        const struct msc_task *task = &bounds->space->tasks[t];
        size_t offset = bounds->offsets[t];
        fill_between(losses + offset, task->most_expensive_first, task->n_choices,
                     is_open ? is_open + offset : NULL);
    }
}

// Averages known values by position, and extrapolates to positions without known values.
static void average_places(struct msc_guess *guess) {
    memset(guess->sums, 0, guess->n_places * sizeof *guess->sums);
    memset(guess->counts, 0, guess->n_places * sizeof *guess->counts);
    for (size_t e = 0; e < guess->bounds->n_entries; e++) {
        if (isfinite(guess->values[e])) {
            guess->sums[guess->bounds->positions[e]] += guess->values[e];
            guess->counts[guess->bounds->positions[e]]++;
        }
    }
    for (uint32_t place = 0; place < guess->n_places; place++) {
        size_t n = guess->counts[place];
        guess->sums[place] = n > 0 ? guess->sums[place] / (double)n : NAN;
    }
    fill_between(guess->sums, guess->places, guess->n_places, NULL);
    for (uint32_t place = 0; place < guess->n_places; place++) {
        double before = place > 0 ? guess->sums[place - 1] : 0.0;
        if (isnan(guess->sums[place])) {
            guess->sums[place] = before > 0.0 ? 2.0 * before : place;
        }
    }
}

const double *msc_guess_fill(struct msc_guess *guess, const double known[], const bool is_open[]) {
    memcpy(guess->values, known, guess->bounds->n_entries * sizeof *known);
    msc_guess_between(guess->values, is_open, guess->bounds);
    average_places(guess);
    for (size_t e = 0; e < guess->bounds->n_entries; e++) {
        if (is_open[e] && isnan(guess->values[e])) {
            guess->values[e] = guess->sums[guess->bounds->positions[e]];
        }
    }
    return guess->values;
}

#include "results/additive.h"

#include "base/heap.h"
#include "env/api/trial.h"

#include <math.h>

#define SWEEPS 200
#define ENOUGH 1e-9 // converged: greatest change of an effect, relative to the greatest effect
#define RIDGE 1e-6  // strength of the penalty, as a share of the mean weight of a choice

// A trial prepared for the fit.
struct fitted {
    double value; // of the first objective; smaller is better
    int64_t id;
    const uint32_t *choices;
};

struct fit {
    const struct msc_record *record;
    size_t n_tasks, n_entries, n;
    size_t *offsets, *counts;
    struct fitted *trials;           // [n], best first
    double *y, *weights, *residuals; // [n]
    double *effects, *sums, *masses; // [n_entries], all choices of all tasks
    double constant, ridge;
};

static bool is_fitted(const struct msc_record_line *line) {
    return msc_trial_state_is_result(line->trial.outcome.state) && line->repeat_of < 0 &&
           !line->is_left_out && isfinite(line->trial.outcome.objectives[0]);
}

static bool is_lower(const void *context, const void *a, const void *b) {
    const struct fitted *x = a, *y = b;
    (void)context;
    return x->value != y->value ? x->value < y->value : x->id < y->id;
}

static void gather(struct fit *f) {
    struct fitted spare;
    const struct msc_heap heap = {.elements = f->trials,
                                  .element_bytes = sizeof *f->trials,
                                  .spare = &spare,
                                  .is_before = is_lower};
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (is_fitted(&line)) {
            const struct fitted trial = {.value = line.trial.outcome.objectives[0],
                                         .id = line.trial.id,
                                         .choices = line.trial.proposal.choices};
            msc_heap_offer(&heap, &f->n, MSC_ADDITIVE_TRIALS, &trial);
        }
    }
    msc_heap_sort(&heap, f->n);
}

static size_t entry_of(const struct fit *f, size_t i, size_t task) {
    return f->offsets[task] + f->trials[i].choices[task];
}

static void weigh(struct fit *f) {
    double best = f->trials[0].value;
    double median = f->trials[f->n / 2].value - best;
    double floor_ = 0.1 * median > 0.0 ? 0.1 * median : 1.0, mass = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        f->y[i] = f->trials[i].value;
        f->weights[i] = 1.0 / ((f->y[i] - best + floor_) * (f->y[i] - best + floor_));
        mass += f->weights[i];
        for (size_t t = 0; t < f->n_tasks; t++) {
            f->counts[entry_of(f, i, t)]++;
        }
    }
    for (size_t i = 0; i < f->n; i++) {
        f->weights[i] /= mass;
    }
    f->ridge = RIDGE * (double)f->n_tasks / (double)f->n_entries;
}

// Moves the weighted mean of the residuals into the constant.
static void centre(struct fit *f) {
    double mean = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        mean += f->weights[i] * f->residuals[i];
    }
    for (size_t i = 0; i < f->n; i++) {
        f->residuals[i] -= mean;
    }
    f->constant += mean;
}

// Refits the effects of one task while those of all other tasks stay fixed. Returns the greatest
// change.
static double fit_task(struct fit *f, size_t task) {
    size_t first = f->offsets[task];
    size_t n_choices = msc_record_space(f->record)->tasks[task].n_choices;
    double greatest = 0.0;
    for (size_t k = first; k < first + n_choices; k++) {
        f->sums[k] = f->masses[k] = 0.0;
    }
    for (size_t i = 0; i < f->n; i++) {
        size_t k = entry_of(f, i, task);
        f->sums[k] += f->weights[i] * (f->residuals[i] + f->effects[k]);
        f->masses[k] += f->weights[i];
    }
    for (size_t k = first; k < first + n_choices; k++) {
        double effect = f->masses[k] > 0.0 ? f->sums[k] / (f->masses[k] + f->ridge) : 0.0;
        f->sums[k] = effect - f->effects[k]; // the change in this pass
        f->effects[k] = effect;
        greatest = fmax(greatest, fabs(f->sums[k]));
    }
    for (size_t i = 0; i < f->n; i++) {
        f->residuals[i] -= f->sums[entry_of(f, i, task)];
    }
    return greatest;
}

static double variance(const struct fit *f, const double values[]) {
    double mean = 0.0, sum = 0.0;
    for (size_t i = 0; i < f->n; i++) {
        mean += f->weights[i] * values[i];
    }
    for (size_t i = 0; i < f->n; i++) {
        sum += f->weights[i] * (values[i] - mean) * (values[i] - mean);
    }
    return sum;
}

static void run(struct fit *f) {
    for (size_t i = 0; i < f->n; i++) {
        f->residuals[i] = f->y[i];
    }
    for (int s = 0; s < SWEEPS; s++) {
        double change = 0.0, size = 0.0;
        centre(f);
        for (size_t t = 0; t < f->n_tasks; t++) {
            change = fmax(change, fit_task(f, t));
        }
        for (size_t k = 0; k < f->n_entries; k++) {
            size = fmax(size, fabs(f->effects[k]));
        }
        if (change <= ENOUGH * size) {
            break;
        }
    }
}

static enum msc_status fit_alloc(struct fit *f, struct msc_arena *arena) {
    const struct msc_space *space = msc_record_space(f->record);
    size_t n = msc_record_n_trials(f->record) + 1;
    n = n < MSC_ADDITIVE_TRIALS ? n : MSC_ADDITIVE_TRIALS;
    f->n_tasks = space->n_tasks;
    f->offsets = msc_arena_array(arena, f->n_tasks + 1, sizeof *f->offsets);
    for (size_t t = 0; f->offsets && t < f->n_tasks; t++) {
        f->offsets[t] = f->n_entries;
        f->n_entries += space->tasks[t].n_choices;
    }
    f->trials = msc_arena_array(arena, n, sizeof *f->trials);
    f->y = msc_arena_array(arena, n, sizeof *f->y);
    f->weights = msc_arena_array(arena, n, sizeof *f->weights);
    f->residuals = msc_arena_array(arena, n, sizeof *f->residuals);
    f->counts = msc_arena_array(arena, f->n_entries + 1, sizeof *f->counts);
    f->effects = msc_arena_array(arena, f->n_entries + 1, sizeof *f->effects);
    f->sums = msc_arena_array(arena, f->n_entries + 1, sizeof *f->sums);
    f->masses = msc_arena_array(arena, f->n_entries + 1, sizeof *f->masses);
    bool is_whole = f->offsets && f->trials && f->y && f->weights && f->residuals && f->counts &&
                    f->effects && f->sums && f->masses;
    return MSC_ALLOCATED(is_whole);
}

enum msc_status msc_additive_fit(struct msc_additive *out, const struct msc_record *record) {
    struct fit f = {.record = record};
    *out = (struct msc_additive){0};
    enum msc_status status = fit_alloc(&f, &out->arena);
    if (status != MSC_OK) {
        msc_additive_finish(out);
        return status;
    }
    gather(&f);
    if (f.n > 0) {
        weigh(&f);
        run(&f);
        double whole = variance(&f, f.y);
        out->explained = whole > 0.0 ? 1.0 - variance(&f, f.residuals) / whole : 0.0;
    }
    if (msc_record_goal(record)->objectives[0].is_maximised) {
        for (size_t k = 0; k < f.n_entries; k++) {
            f.effects[k] = -f.effects[k];
        }
    }
    out->n_trials = f.n;
    out->offsets = f.offsets;
    out->effects = f.effects;
    out->counts = f.counts;
    return MSC_OK;
}

void msc_additive_finish(struct msc_additive *fit) {
    msc_arena_finish(&fit->arena);
    *fit = (struct msc_additive){0};
}

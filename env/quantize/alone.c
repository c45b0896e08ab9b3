#include "env/quantize/alone.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "data/dataset.h"
#include "env/quantize/losses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// In a space of fewer tasks, an agent soon has measured all choices by trials.
#define LEAST_TASKS 50
// The most samples to measure on: the order of the losses hardly changes with more.
#define MOST_SAMPLES 8
// The most samples of runs, relative to the samples of a trial for each task: if every choice is
// measured, and if some are derived from others.
#define SHARE 0.5
#define SHARE_DERIVED 0.1
// Measuring every choice is worth this many multiply-accumulates, and needs this many samples.
#define MOST_MACS 2e12
#define LEAST_SAMPLES 2

// The choices to measure. Each choice's loss is that of its source times its factor.
struct measured {
    int64_t n_samples; // 0: nothing is measured
    size_t n_choices;  // of all tasks
    size_t *sources;   // [n_choices]; of a choice that is measured, itself
    double *factors;   // [n_choices]
    size_t n;          // the number of choices that are measured
};

static size_t count_entries(const struct msc_space *space) {
    size_t n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        n += space->tasks[t].n_choices;
    }
    return n;
}

// ---- Choices that need no run -----------------------------------------------------------------

// Does the task decide only weights?
static bool has_only_weights(const struct msc_quantize *z, size_t task) {
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if (z->space.task_of_site[i] == (int32_t)task && sites->sites[i].kind != MSC_SITE_WEIGHT) {
            return false;
        }
    }
    return true;
}

// Are the codes found in the same way? Then losses are about proportional to rounding errors.
static bool is_alike(const struct msc_choice *a, const struct msc_choice *b) {
    return a->is_float || (a->rounding == b->rounding && a->correction == b->correction &&
                           a->observers[MSC_SITE_WEIGHT] == b->observers[MSC_SITE_WEIGHT]);
}

// Derives the choices of a task that decides weights from the alike choice with the greatest
// rounding error.
static void derive(struct measured *m, const struct msc_quantize *z, size_t task, size_t first) {
    const uint32_t *choices = z->space.choices_of_task[task];
    size_t n = z->space.space.tasks[task].n_choices;
    for (size_t c = 0; c < n; c++) {
        double own = msc_quantize_weight_error(&z->space, task, c), most = own;
        for (size_t k = 0; k < n; k++) {
            double other = msc_quantize_weight_error(&z->space, task, k);
            if (other > most && is_alike(msc_quantizer_choice(z->quantizer, choices[c]),
                                         msc_quantizer_choice(z->quantizer, choices[k]))) {
                most = other;
                m->sources[first + c] = first + k;
                m->factors[first + c] = own / other;
            }
        }
    }
}

static void derive_all(struct measured *m, const struct msc_quantize *z) {
    const struct msc_space *space = &z->space.space;
    for (size_t t = 0, first = 0; t < space->n_tasks; first += space->tasks[t].n_choices, t++) {
        if (has_only_weights(z, t)) {
            derive(m, z, t, first);
        }
    }
    m->n = 0;
    for (size_t i = 0; i < m->n_choices; i++) {
        m->n += m->sources[i] == i;
    }
}

// ---- Samples ----------------------------------------------------------------------------------

// The samples by which runs of n choices take the share. A sequence is not divided.
static int64_t count_samples(const struct msc_env *env, const struct msc_quantize *z, double share,
                             size_t n) {
    const struct msc_dataset *all = msc_env_host(env)->dataset;
    double limit =
        share * (double)msc_dataset_n_samples(all) * (double)z->space.space.n_tasks / (double)n;
    bool is_cut = msc_dataset_is_sequence(all) && limit < (double)msc_dataset_batch_size(all);
    return is_cut ? 0 : (int64_t)fmin(limit, MOST_SAMPLES);
}

// Measures every choice unless the network is large or the samples of its share are too few. As
// many choices as possible are then derived.
static enum msc_status choose_measured(struct measured *m, const struct msc_env *env,
                                       const struct msc_quantize *z) {
    m->n = m->n_choices = count_entries(&z->space.space);
    m->sources = msc_alloc_zero(m->n + 1, sizeof(m->sources[0]));
    m->factors = msc_alloc_zero(m->n + 1, sizeof(m->factors[0]));
    MSC_TRY(MSC_ALLOCATED(m->sources && m->factors));
    for (size_t i = 0; i < m->n; i++) {
        m->sources[i] = i;
        m->factors[i] = 1;
    }
    m->n_samples = count_samples(env, z, SHARE, m->n);
    double macs = z->space.macs * (double)m->n_samples * (double)m->n;
    if (m->n_samples < LEAST_SAMPLES || (m->n_samples < MOST_SAMPLES && macs > MOST_MACS)) {
        derive_all(m, z);
        int64_t n = count_samples(env, z, SHARE_DERIVED, m->n);
        bool has_one = count_samples(env, z, SHARE, m->n) > 0;
        m->n_samples = m->n == m->n_choices ? m->n_samples : n > 0 ? n : has_one;
    }
    return MSC_OK;
}

struct progress {
    const struct msc_env_host *host;
    double told_s;
};

// Calls the host at most once a second.
static void tell_done(void *payload, size_t n_done, size_t n) {
    struct progress *p = payload;
    double now_s = msc_clock_seconds();
    char what[80];
    if (p->host->preparing && now_s - p->told_s >= 1.0) {
        p->told_s = now_s;
        snprintf(what, sizeof what, "losses of single choices, %zu of %zu", n_done, n);
        p->host->preparing(p->host->preparing_payload, what, (double)n_done / (double)n);
    }
}

// One point for each choice of each task; the other tasks' choices are not applied.
struct singles {
    uint32_t *choices;       // [n][n_tasks]
    const uint32_t **points; // [n]
    size_t *tasks;           // [n]
};

static enum msc_status make_singles(struct singles *s, const struct msc_space *space,
                                    const struct measured *m) {
    s->choices = msc_alloc_zero(m->n * space->n_tasks, sizeof *s->choices);
    s->points = msc_alloc_zero(m->n, sizeof *s->points);
    s->tasks = msc_alloc_zero(m->n, sizeof *s->tasks);
    MSC_TRY(MSC_ALLOCATED(s->choices && s->points && s->tasks));
    size_t at = 0, i = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++, i++) {
            if (m->sources[i] == i) {
                s->points[at] = s->choices + at * space->n_tasks;
                s->choices[at * space->n_tasks + t] = c;
                s->tasks[at++] = t;
            }
        }
    }
    return MSC_OK;
}

// Moves the losses [m->n] of the measured choices to their places, and derives the others.
static void fill_losses(double losses[], const struct measured *m) {
    size_t at = m->n;
    for (size_t i = m->n_choices; i-- > 0;) {
        if (m->sources[i] == i) {
            losses[i] = losses[--at];
        }
    }
    for (size_t i = 0; i < m->n_choices; i++) {
        if (m->sources[i] != i) {
            losses[i] = m->factors[i] > 0 ? losses[m->sources[i]] * m->factors[i] : 0;
        }
    }
}

static enum msc_status measure(double losses[], struct msc_env *env, const struct measured *m) {
    const struct msc_env_host *host = msc_env_host(env);
    struct progress progress = {.host = host};
    struct singles s = {0};
    enum msc_status status;
    MSC_TRY_OUT(make_singles(&s, msc_env_space(env), m));
    const struct msc_quantize_losses_of of = {
        .n_most = m->n_samples, .alone = s.tasks, .done = tell_done, .payload = &progress};
    msc_log(host->log, MSC_LOG_INFO, "measuring the losses of %zu single choices on %lld samples",
            m->n, (long long)m->n_samples);
    MSC_TRY_OUT(msc_quantize_measure_losses(losses, env, &of, s.points, m->n));
    fill_losses(losses, m);
out:
    msc_free(s.tasks);
    msc_free(s.points);
    msc_free(s.choices);
    return status;
}

// Sets z->alone; leaves it NULL if nothing is measured.
static enum msc_status measure_alone(struct msc_env *env, struct msc_quantize *z) {
    struct measured m = {0};
    enum msc_status status = MSC_OK;
    if (z->space.space.n_tasks < LEAST_TASKS) {
        return MSC_OK;
    }
    MSC_TRY_OUT(choose_measured(&m, env, z));
    if (m.n_samples > 0) {
        int64_t n = (int64_t)m.n_choices;
        MSC_TRY_OUT(msc_array_create(&z->alone, MSC_DTYPE_F64, 1, &n));
        MSC_TRY_OUT(measure(msc_array_data(z->alone), env, &m));
    }
out:
    msc_free(m.sources);
    msc_free(m.factors);
    if (status != MSC_OK) {
        msc_array_release(z->alone);
        z->alone = NULL;
    }
    if (status == MSC_E_NOMEM) { // the search goes on without them
        msc_log(msc_env_host(env)->log, MSC_LOG_WARNING,
                "the losses of single choices were not measured: %s", msc_status_message());
        return MSC_OK;
    }
    return status;
}

enum msc_status msc_quantize__set_alone(struct msc_env *env, struct msc_quantize *z) {
    bool is_wanted = z->is_new && msc_env_host(env)->parameters_path && !z->alone;
    MSC_TRY(is_wanted ? measure_alone(env, z) : MSC_OK);
    if (!z->alone) {
        return MSC_OK;
    }
    if (msc_array_dtype(z->alone) != MSC_DTYPE_F64 ||
        msc_array_n_elements(z->alone) != (int64_t)count_entries(&z->space.space)) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: the losses of single choices do not fit the tasks; "
                        "restore the right file",
                        msc_env_host(env)->parameters_path);
    }
    msc_quantize_set_alone(&z->space, msc_array_data(z->alone));
    return MSC_OK;
}

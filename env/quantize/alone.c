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
// The most samples of runs, relative to the samples of a trial for each task.
#define SHARE 0.5

static size_t count_entries(const struct msc_space *space) {
    size_t n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        n += space->tasks[t].n_choices;
    }
    return n;
}

// A sequence is not divided.
static int64_t count_samples(const struct msc_dataset *all, const struct msc_space *space) {
    double limit = SHARE * (double)msc_dataset_n_samples(all) * (double)space->n_tasks /
                   (double)count_entries(space);
    int64_t n = (int64_t)fmin(limit, MOST_SAMPLES);
    bool is_cut = msc_dataset_is_sequence(all) && limit < (double)msc_dataset_batch_size(all);
    return is_cut || space->n_tasks < LEAST_TASKS ? 0 : n;
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

static enum msc_status make_singles(struct singles *s, const struct msc_space *space, size_t n) {
    s->choices = msc_alloc_zero(n * space->n_tasks, sizeof *s->choices);
    s->points = msc_alloc_zero(n, sizeof *s->points);
    s->tasks = msc_alloc_zero(n, sizeof *s->tasks);
    MSC_TRY(MSC_ALLOCATED(s->choices && s->points && s->tasks));
    size_t at = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++, at++) {
            s->points[at] = s->choices + at * space->n_tasks;
            s->choices[at * space->n_tasks + t] = c;
            s->tasks[at] = t;
        }
    }
    return MSC_OK;
}

static enum msc_status measure(double losses[], struct msc_env *env, int64_t n_samples, size_t n) {
    const struct msc_env_host *host = msc_env_host(env);
    struct progress progress = {.host = host};
    struct singles s = {0};
    enum msc_status status;
    MSC_TRY_OUT(make_singles(&s, msc_env_space(env), n));
    const struct msc_quantize_losses_of of = {
        .n_most = n_samples, .alone = s.tasks, .done = tell_done, .payload = &progress};
    msc_log(host->log, MSC_LOG_INFO, "measuring the losses of %zu single choices on %lld samples",
            n, (long long)n_samples);
    status = msc_quantize_measure_losses(losses, env, &of, s.points, n);
out:
    msc_free(s.tasks);
    msc_free(s.points);
    msc_free(s.choices);
    return status;
}

// Sets z->alone; leaves it NULL if nothing is measured.
static enum msc_status measure_alone(struct msc_env *env, struct msc_quantize *z) {
    int64_t n_samples = count_samples(msc_env_host(env)->dataset, &z->space.space);
    int64_t n = (int64_t)count_entries(&z->space.space);
    if (n_samples == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_array_create(&z->alone, MSC_DTYPE_F64, 1, &n));
    enum msc_status status = measure(msc_array_data(z->alone), env, n_samples, (size_t)n);
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

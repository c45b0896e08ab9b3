#include "env/quantize/losses.h"

#include "env/quantize/internal.h"
#include "env/whole.h"

#include <math.h>

// Most points that are evaluated together.
#define MOST_RUNS 64

struct losses_progress {
    const struct msc_quantize_losses_of *of;
    size_t n_done, n;
};

static void losses_tell(void *payload, size_t run) {
    struct losses_progress *p = payload;
    (void)run;
    p->of->done(p->of->payload, ++p->n_done, p->n);
}

static enum msc_status set_run(struct msc_trial_runs *r, size_t i, const uint32_t choices[],
                               const size_t *alone) {
    MSC_TRY(msc_trial_runs_set(r, i, choices));
    return alone ? r->fill_alone(r->payload, choices, *alone, r->edits + i * r->n_slots) : MSC_OK;
}

static enum msc_status run_points(double losses[], struct msc_quantize *z, struct msc_distill *d,
                                  const struct msc_quantize_losses_of *of,
                                  const uint32_t *const points[], size_t n) {
    struct losses_progress progress = {.of = of, .n = n};
    size_t n_failed = 0;
    for (size_t first = 0; first < n; first += MOST_RUNS) {
        size_t n_runs = n - first < MOST_RUNS ? n - first : MOST_RUNS;
        MSC_TRY(msc_trial_runs_make_room(&z->runs, n_runs));
        for (size_t i = 0; i < n_runs; i++) {
            const size_t *alone = of->alone ? &of->alone[first + i] : NULL;
            MSC_TRY(set_run(&z->runs, i, points[first + i], alone));
        }
        MSC_TRY(msc_distill_run(d, z->runs.runs, n_runs, of->done ? losses_tell : NULL, &progress));
        for (size_t i = 0; i < n_runs; i++) {
            enum msc_status found = z->runs.runs[i].status;
            if (found == MSC_E_NOMEM || found == MSC_E_DEVICE) { // says nothing about the point
                return msc_status_restore(found, z->runs.runs[i].message);
            }
            bool is_there = z->runs.runs[i].status == MSC_OK && isfinite(z->runs.runs[i].loss);
            losses[first + i] = is_there ? z->runs.runs[i].loss : INFINITY;
            n_failed += z->runs.runs[i].status != MSC_OK;
        }
    }
    return n_failed < n ? MSC_OK
                        : msc_status_restore(z->runs.runs[0].status, z->runs.runs[0].message);
}

// The number of samples to use; sequences are not divided.
static int64_t count_samples(const struct msc_dataset *all,
                             const struct msc_quantize_losses_of *of) {
    int64_t n_all = msc_dataset_n_samples(all);
    int64_t unit = msc_dataset_is_sequence(all) ? msc_dataset_batch_size(all) : 1;
    int64_t n = of->n_most - of->n_most % unit;
    n = n < unit ? unit : n;
    return of->n_most == 0 || n > n_all ? n_all : n;
}

static enum msc_status run_part(double losses[], const struct msc_env *env, struct msc_quantize *z,
                                const struct msc_quantize_losses_of *of,
                                const uint32_t *const points[], size_t n) {
    const struct msc_dataset *all = msc_env_host(env)->dataset;
    struct msc_dataset *part = NULL;
    struct msc_distill *d = NULL;
    enum msc_status status = msc_dataset_create_part(&part, all, 0, count_samples(all, of));
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_distill_create_as(&d, z->runs.distill, part));
    MSC_TRY_OUT(msc_whole_compute_reference(d, env));
    status = run_points(losses, z, d, of, points, n);
out:
    msc_distill_destroy(d);
    msc_dataset_destroy(part);
    return status;
}

enum msc_status msc_quantize_measure_losses(double losses[], struct msc_env *env,
                                            const struct msc_quantize_losses_of *of,
                                            const uint32_t *const points[], size_t n) {
    if (msc_env_definition(env) != &msc_env_quantize) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "environment %s cannot compute distill losses of points: expected "
                        "quantize",
                        msc_env_definition(env)->name);
    }
    struct msc_quantize *z = msc_env_state(env);
    struct msc_distill *d = NULL;
    if (n == 0) {
        return MSC_OK;
    }
    if (of->samples == MSC_QUANTIZE_VALIDATION) {
        MSC_TRY(msc_trial_runs_get_validated(&d, env, &z->runs));
    }
    if (d) {
        return run_points(losses, z, d, of, points, n);
    }
    const struct msc_dataset *all = msc_env_host(env)->dataset;
    return count_samples(all, of) < msc_dataset_n_samples(all)
               ? run_part(losses, env, z, of, points, n)
               : run_points(losses, z, z->runs.distill, of, points, n);
}

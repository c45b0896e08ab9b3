#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

// ---- Creation ---------------------------------------------------------------------------------

// Fills `columns` and `batches`, and the list of batches of each plan.
static enum msc_status group_batches(struct msc_schedule *s) {
    size_t n_batches = msc_dataset_n_batches(s->options.dataset);
    s->columns = msc_alloc_zero(n_batches + 1, sizeof(s->columns[0]));
    s->batches = msc_alloc_zero(n_batches + 1, sizeof(s->batches[0]));
    MSC_TRY(MSC_ALLOCATED(s->columns && s->batches));
    for (size_t b = 0; b < n_batches; b++) {
        s->columns[b] = s->plans[s->options.plan_of_batch[b]].n_batches++;
    }
    int32_t first = 0;
    for (int i = 0; i < s->options.n_plans; i++) {
        s->plans[i].batches = &s->batches[first];
        first += s->plans[i].n_batches;
    }
    for (size_t b = 0; b < n_batches; b++) {
        const struct msc_scheduled_plan *p = &s->plans[s->options.plan_of_batch[b]];
        s->batches[p->batches - s->batches + s->columns[b]] = (int32_t)b;
    }
    return MSC_OK;
}

static enum msc_status init_most_together(struct msc_scheduled_plan *p) {
    p->most_together = msc_alloc(((size_t)p->plan->n_steps + 1) * sizeof(p->most_together[0]));
    MSC_TRY(MSC_ALLOCATED(p->most_together));
    for (int32_t i = 0; i < p->plan->n_steps; i++) {
        p->most_together[i] = MSC_SCHEDULE_TOGETHER;
    }
    return MSC_OK;
}

static enum msc_status schedule_init(struct msc_schedule *s) {
    size_t n_plans = (size_t)s->options.n_plans;
    s->plans = msc_alloc_zero(n_plans + 1, sizeof(s->plans[0]));
    MSC_TRY(MSC_ALLOCATED(s->plans));
    for (size_t i = 0; i < n_plans; i++) {
        s->plans[i].plan = s->options.plans[i];
        MSC_TRY(msc_numbering_init(&s->plans[i].numbering, s->plans[i].plan));
        MSC_TRY(init_most_together(&s->plans[i]));
    }
    return group_batches(s);
}

enum msc_status msc_schedule_create(struct msc_schedule **out,
                                    const struct msc_schedule_options *options) {
    struct msc_schedule *s = msc_alloc_zero(1, sizeof(*s));
    MSC_TRY(MSC_ALLOCATED(s));
    s->options = *options;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->end_lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    enum msc_status status = schedule_init(s);
    if (status != MSC_OK) {
        msc_schedule_destroy(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

void msc_schedule_destroy(struct msc_schedule *s) {
    if (!s) {
        return;
    }
    for (int i = 0; s->plans && i < s->options.n_plans; i++) {
        msc_numbering_finish(&s->plans[i].numbering);
        msc_free(s->plans[i].nodes);
        msc_free(s->plans[i].targets);
        msc_free(s->plans[i].ends.items);
        msc_free(s->plans[i].is_awaited);
        msc_free(s->plans[i].most_together);
    }
    msc_free(s->plans);
    msc_free(s->columns);
    msc_free(s->batches);
    msc_free(s->progress);
    msc_free(s->nodes);
    msc_free(s->edges);
    msc_free(s->roots.items);
    msc_free(s->ready.items);
    msc_free(s->stack.items);
    msc_free(s->failures);
    msc_schedule__finish_feeding(s);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->end_lock);
    pthread_cond_destroy(&s->wake);
    msc_free(s);
}

// ---- Running ----------------------------------------------------------------------------------

enum msc_status msc_schedule_run(struct msc_schedule *s, const struct msc_job *job) {
    s->job = *job;
    msc_schedule__announce_trials(s);
    MSC_TRY(msc_schedule__number_trials(s));
    MSC_TRY(msc_schedule__begin_trials(s));
    for (size_t b = job->first_batch; b < job->end_batch; b = (size_t)s->end_batch) {
        size_t n = job->window(job->payload, job->n_trials);
        s->first_batch = (int32_t)b;
        s->end_batch = (int32_t)(n < job->end_batch - b ? b + n : job->end_batch);
        MSC_TRY(msc_schedule__build(s));
        msc_schedule__walk(s);
        MSC_TRY(msc_schedule__end_window(s));
    }
    msc_schedule__end_trials(s);
    return MSC_OK;
}

struct msc_schedule_stats msc_schedule_stats(const struct msc_schedule *s) {
    return s->stats;
}

#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <stdio.h>

// ---- Beginning --------------------------------------------------------------------------------

static size_t sink_trial(const struct msc_schedule *s, size_t trial) {
    return s->job.first_trial + trial;
}

void msc_schedule__announce_trials(struct msc_schedule *s) {
    const struct msc_sink *sink = s->job.sink;
    for (size_t t = 0; sink->begin && t < s->job.n_trials; t++) {
        sink->begin(sink->payload, sink_trial(s, t));
    }
}

// The number of batches of the job that use a plan.
static int64_t count_batches(const struct msc_schedule *s, const struct msc_scheduled_plan *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_batches; i++) {
        size_t batch = (size_t)p->batches[i];
        n += batch >= s->job.first_batch && batch < s->job.end_batch;
    }
    return n;
}

// The number of sink nodes of each trial, over all batches of the job.
static int64_t count_sinks(const struct msc_schedule *s) {
    int64_t n = 0;
    for (int i = 0; i < s->options.n_plans; i++) {
        const struct msc_scheduled_plan *p = &s->plans[i];
        int64_t of_batch = 1;
        for (int32_t t = s->n_live_out; t < s->n_targets; t++) {
            of_batch += p->targets[t].expr != MSC_NO_ID;
        }
        n += of_batch * count_batches(s, p);
    }
    return n;
}

enum msc_status msc_schedule__begin_trials(struct msc_schedule *s) {
    int64_t n_sinks = count_sinks(s);
    size_t n = s->job.n_trials;
    MSC_TRY(msc_grow(&s->progress, &s->progress_capacity, n + 1, sizeof(s->progress[0])));
    for (size_t t = 0; t < n; t++) {
        struct msc_eval_trial *trial = &s->job.trials[t];
        s->progress[t] = (struct msc_progress){.sinks_left = n_sinks, .failed_batch = MSC_NO_ID};
        trial->status = MSC_OK;
        trial->message[0] = '\0';
        trial->reuse_ratio = 0;
    }
    return MSC_OK;
}

// ---- Ending -----------------------------------------------------------------------------------

// True if the failure of this sink node replaces the failure reported for the trial. The failure of
// the lowest failed batch is reported, and within this batch the failure of the node made first. So
// the report does not depend on timing.
static bool is_told(const struct msc_schedule *s, const struct msc_node *sink) {
    const struct msc_progress *p = &s->progress[sink->trial];
    if (p->failed_batch == MSC_NO_ID || sink->batch != p->failed_batch) {
        return p->failed_batch == MSC_NO_ID || sink->batch < p->failed_batch;
    }
    return s->failures[sink->failure].node < p->failed_node;
}

// True if the trial will be evaluated again, so that its `end` is not due yet. Trials that ran out
// of memory are retried. Trials whose device was lost are evaluated again after the device is
// reopened.
static bool comes_again(const struct msc_schedule *s, size_t trial) {
    enum msc_status status = s->job.trials[trial].status;
    return status == MSC_E_LOST || (status == MSC_E_NOMEM && !s->job.is_last_attempt);
}

bool msc_schedule__finish_sink(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_eval_trial *trial = &s->job.trials[node->trial];
    struct msc_progress *p = &s->progress[node->trial];
    if (node->failure != MSC_NO_ID && is_told(s, node)) {
        const struct msc_failure *f = &s->failures[node->failure];
        p->failed_batch = node->batch;
        p->failed_node = f->node;
        trial->status = f->status;
        snprintf(trial->message, sizeof(trial->message), "%s", f->message);
    }
    trial->reuse_ratio = p->macs_asked > 0 ? 1.0 - p->macs_run / p->macs_asked : 0.0;
    return --p->sinks_left == 0 && !comes_again(s, (size_t)node->trial) && s->job.sink->end;
}

void msc_schedule__end_trial(struct msc_schedule *s, int32_t trial) {
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->end_lock);
    s->job.sink->end(s->job.sink->payload, sink_trial(s, (size_t)trial));
    pthread_mutex_unlock(&s->end_lock);
    pthread_mutex_lock(&s->lock);
}

static enum msc_status stop_trials(const struct msc_schedule *s) {
    for (size_t t = 0; t < s->job.n_trials; t++) {
        struct msc_eval_trial *trial = &s->job.trials[t];
        if (s->progress[t].sinks_left > 0) {
            trial->status = s->stop;
            snprintf(trial->message, sizeof(trial->message), "%s", s->stop_message);
        }
    }
    return MSC_FAIL(s->stop, "%s", s->stop_message);
}

enum msc_status msc_schedule__end_window(struct msc_schedule *s) {
    const struct msc_sink *sink = s->job.sink;
    if (s->stop != MSC_OK) {
        return stop_trials(s);
    }
    for (size_t t = 0; t < s->job.n_trials; t++) {
        struct msc_progress *p = &s->progress[t];
        p->is_over = p->is_over || p->failed_batch != MSC_NO_ID ||
                     (sink->is_over && sink->is_over(sink->payload, sink_trial(s, t)));
    }
    return MSC_OK;
}

void msc_schedule__end_trials(struct msc_schedule *s) {
    const struct msc_sink *sink = s->job.sink;
    for (size_t t = 0; sink->end && t < s->job.n_trials; t++) {
        if (s->progress[t].sinks_left > 0 && !comes_again(s, t)) {
            sink->end(sink->payload, sink_trial(s, t));
        }
    }
}

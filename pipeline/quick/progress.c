// Tells the caller what msc_quick_quantize does, and estimates the time left.
#include "pipeline/quick/quick_internal.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

// The work of each stage, in arbitrary units: about its share of the time for common networks.
static const double units_of[MSC_QUICK_N_STAGES] = {[MSC_QUICK_PREPARE] = 10,
                                                    [MSC_QUICK_PLANS] = 1,
                                                    [MSC_QUICK_GAINS] = 2,
                                                    [MSC_QUICK_FLOATS] = 0.5,
                                                    [MSC_QUICK_IMPROVE] = 11};

static const char *const names[MSC_QUICK_N_STAGES] = {
    [MSC_QUICK_PREPARE] = "ranges and rounded weights",
    [MSC_QUICK_PLANS] = "8-bit plans",
    [MSC_QUICK_GAINS] = "the loss of each tensor by 8 bits",
    [MSC_QUICK_FLOATS] = "plans with float tensors",
    [MSC_QUICK_IMPROVE] = "better weights"};

static double work_of(const struct msc_quick *q, enum msc_quick_stage stage) {
    bool leaves_float = msc_quick__most_float(q, 100) > 0;
    bool is_done =
        stage == MSC_QUICK_IMPROVE ? q->effort->improves : stage < MSC_QUICK_GAINS || leaves_float;
    return is_done ? units_of[stage] : 0;
}

void msc_quick__tell(struct msc_quick *q, enum msc_quick_stage stage, size_t n_done, size_t n) {
    const struct msc_processor_options *host = &q->options->host;
    double done = 0, all = 0, now_s = msc_clock_seconds();
    char text[80];
    if (!host->measuring) {
        return;
    }
    for (int i = 0; i < MSC_QUICK_N_STAGES; i++) {
        double work = work_of(q, (enum msc_quick_stage)i);
        all += work;
        done += i < (int)stage ? work : 0;
    }
    done += n > 0 ? work_of(q, stage) * (double)n_done / (double)n : 0;
    q->began_s = q->began_s > 0 ? q->began_s : now_s;
    snprintf(text, sizeof text, n > 0 ? "%s, %zu of %zu" : "%s", names[stage], n_done, n);
    host->measuring(host->payload, &q->setup->config->entries[q->setup->first], text,
                    done > 0 ? (now_s - q->began_s) * (all - done) / done : NAN);
}

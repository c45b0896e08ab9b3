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

// `part`: of the stage, 0 to 1.
static void tell(struct msc_quick *q, enum msc_quick_stage stage, double part, const char *text) {
    const struct msc_processor_options *host = &q->options->host;
    double done = 0, all = 0, now_s = msc_clock_seconds();
    if (!host->measuring) {
        return;
    }
    for (int i = 0; i < MSC_QUICK_N_STAGES; i++) {
        double work = work_of(q, (enum msc_quick_stage)i);
        all += work;
        done += i < (int)stage ? work : 0;
    }
    done += work_of(q, stage) * part;
    q->began_s = q->began_s > 0 ? q->began_s : now_s;
    host->measuring(host->payload, &q->setup->config->entries[q->setup->first], text,
                    done > 0 ? (now_s - q->began_s) * (all - done) / done : NAN);
}

void msc_quick__tell(struct msc_quick *q, enum msc_quick_stage stage, size_t n_done, size_t n) {
    char text[80];
    snprintf(text, sizeof text, n > 0 ? "%s, %zu of %zu" : "%s", names[stage], n_done, n);
    tell(q, stage, n > 0 ? (double)n_done / (double)n : 0, text);
}

void msc_quick__tell_preparing(void *payload, const char *what, double part) {
    tell(payload, MSC_QUICK_PREPARE, part, what);
}

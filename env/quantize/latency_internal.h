// Shared by env/quantize/latency_*.c: the plans that are profiled, and the steps from profiles to
// the table.
#ifndef MSC_ENV_QUANTIZE_LATENCY_INTERNAL_H
#define MSC_ENV_QUANTIZE_LATENCY_INTERNAL_H

#include "base/str.h"
#include "env/quantize/latency.h"
#include "tools/profile.h"

#define MSC_LATENCY_ROUNDS 24
#define MSC_LATENCY_THREADS 1

enum msc_latency_plan {
    MSC_LATENCY_FLOAT,
    MSC_LATENCY_UNIFORM, // all searched sites are bytes
    MSC_LATENCY_EVEN,    // UNIFORM, but every other weight is float
    MSC_LATENCY_ODD,     // UNIFORM, but the weights that EVEN quantises are float
    MSC_LATENCY_JOINED,  // UNIFORM, but outputs of integer joints without a weight are float
    MSC_LATENCY_DYNAMIC, // weights are bytes; activations are dynamic, or float if they cannot be
    MSC_LATENCY_PLANS,
};

struct msc_latency_plans {
    const struct msc_latency_network *net;
    int n; // number of plans: DYNAMIC, the last, only if a choice is dynamic
    const struct msc_edit **edits[MSC_LATENCY_PLANS]; // [n_slots]
    bool *is_bytes[MSC_LATENCY_PLANS];                // [n_sites]
    bool *is_dynamic;                                 // [n_sites], of DYNAMIC
};

struct msc_latency_source {
    const char *runtime, *version, *processor;
};

// Lists the inputs of the first sample by name, in the model's shapes.
enum msc_status msc_latency__sample(struct msc_array_list *list, const struct msc_env_host *host);
// Fills profiles [p->n] by running the plans with mscgym's cpu kernels.
enum msc_status msc_latency__profile_own(struct msc_profile profiles[],
                                         struct msc_latency_source *source,
                                         const struct msc_latency_plans *p,
                                         const struct msc_latency_job *job,
                                         struct msc_arena *arena);
// Fits the table to the times of the plans, and writes its text.
enum msc_status msc_latency__fit(struct msc_str *text, const struct msc_latency_source *source,
                                 const struct msc_latency_plans *p,
                                 const struct msc_profile_times times[],
                                 const struct msc_latency_job *job, struct msc_arena *arena);

#endif

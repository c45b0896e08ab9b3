// Measures plans of a search in the target's runtime: the file size, outputs and latency that the
// user gets. The search itself measures with its own kernels.
//
//     MSC_TRY(msc_delivery_open(&d, &options));
//     struct msc_delivery_plan plans[] = {{.name = "the float model"}, {.name = "uniform 8", ...}};
//     for each plan:
//         MSC_TRY_OUT(msc_delivery_export(d, &plans[i]));
//         MSC_TRY_OUT(msc_delivery_outputs(d, &plans[i]));
//     MSC_TRY_OUT(msc_delivery_latency(d, plans, n));
//     ... plans[i].found ...
//     out: msc_delivery_close(d);
//
// If the runtime refuses a plan, `failure` has its message; the other plans are still measured.
#ifndef MSC_PIPELINE_DELIVERY_H
#define MSC_PIPELINE_DELIVERY_H

#include "env/api/env.h"
#include "model/model.h"

struct cJSON;
struct msc_delivery;
struct msc_strategy;

struct msc_delivery_options {
    struct msc_env *env;
    struct msc_model *model;
    const char *target;  // the search's target; may be NULL
    const char *runtime; // runtime to measure in; NULL: none
    int n_threads;       // threads of the runtime
    int64_t n_rounds;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    // Optional: called before each step with a text such as "outputs of uniform 8 in onnxruntime".
    void (*tell)(void *payload, const char *what);
    void *payload;
};

struct msc_delivery_plan {
    int64_t id;              // for the caller's use
    const char *name;        // for messages: "trial 17", "uniform 8"
    const uint32_t *choices; // NULL: see `strategy`; both NULL: the float model's own file
    const struct msc_strategy *strategy; // a plan that no choices describe, or NULL
    // Path of the exported model. If it is set before, the file exists; it is used if the runtime
    // reads files with its ending.
    const char *path;
    const char *failure; // why the plan cannot be measured, or NULL
    bool is_refused;     // the runtime refuses the model
    // The results, as in a report (docs/record.md): file_bytes, and `runtime` with distill_loss,
    // accuracy, latency_us, us_by_round, validation. Owned by the owner of the plan (cJSON_Delete).
    struct cJSON *found;
};

// *out is owned by the caller. Opening does not start the runtime: call msc_delivery_start.
enum msc_status msc_delivery_open(struct msc_delivery **out,
                                  const struct msc_delivery_options *options);
void msc_delivery_close(struct msc_delivery *d); // accepts NULL

// Starts the runtime and writes the samples for it; later calls only return the result. *missing
// (borrowed) tells why the runtime is not available and what to do about it; NULL: it is available.
// Other failures of the runtime return an error status, such as MSC_E_IO.
enum msc_status msc_delivery_start(struct msc_delivery *d, const char **missing);
// Describes a started runtime: {"name", "version", "processor", "threads", "rounds"}.
enum msc_status msc_delivery_describe(const struct msc_delivery *d, struct cJSON *object);

// Writes the model of a plan, unless it has a path, and adds the size of its file (`file_bytes`) to
// `found`.
enum msc_status msc_delivery_export(struct msc_delivery *d, struct msc_delivery_plan *plan);
// Measures the losses of an exported plan on calibration and validation samples.
enum msc_status msc_delivery_outputs(struct msc_delivery *d, struct msc_delivery_plan *plan);
// Measures the latencies of exported plans on one sample; the plans take turns. Skips plans that
// have failed.
enum msc_status msc_delivery_latency(struct msc_delivery *d, struct msc_delivery_plan *plans[],
                                     size_t n);

// The total size in bytes of a model's file and the files of its weights.
enum msc_status msc_model_file_bytes(uint64_t *out, const char *path, struct msc_arena *arena);

#endif

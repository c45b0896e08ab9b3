// What the runtime that a search is for makes of its plans: the file, the outputs and the latency
// that the user gets in the end, whatever the search has measured by its own kernels.
//
//     MSC_TRY(msc_delivery_open(&d, &options));
//     struct msc_delivery_plan plans[] = {{.name = "the float model"}, {.name = "uniform 8", ...}};
//     for each of them:
//         MSC_TRY_OUT(msc_delivery_export(d, &plans[i]));
//         MSC_TRY_OUT(msc_delivery_outputs(d, &plans[i]));
//     MSC_TRY_OUT(msc_delivery_latency(d, plans, n));
//     ... plans[i].found ...
//     out: msc_delivery_close(d);
//
// A plan that the runtime refuses has its words in `failure`; the others are measured all the same.
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
    const char *target; // of the search; may be NULL
    int n_threads;      // of the runtime
    int64_t n_rounds;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    // Optional: called before each step: "outputs of uniform 8 in onnxruntime".
    void (*tell)(void *payload, const char *what);
    void *payload;
};

struct msc_delivery_plan {
    int64_t id;       // the caller's
    const char *name; // "trial 17", "uniform 8", for what is told
    const uint32_t
        *choices; // NULL: a strategy, or the float model, in the file that it was read from
    const struct msc_strategy *strategy; // a plan that no choices give, or NULL
    const char *path;                    // of the model, once exported
    const char *failure;                 // why it cannot be measured; NULL: nothing is wrong
    bool is_refused;                     // the runtime does not take the model
    // What was found, as a report has it (docs/record.md): file_bytes, and `runtime` with distill_loss,
    // accuracy, latency_us, us_by_round, validation. Owned by whoever has the plan (cJSON_Delete).
    struct cJSON *found;
};

// Is it a target whose runtime can be asked?
bool msc_delivery_has_runtime(const char *target);

// *out is owned by the caller. The runtime starts with the first call that needs it.
enum msc_status msc_delivery_open(struct msc_delivery **out,
                                  const struct msc_delivery_options *options);
void msc_delivery_close(struct msc_delivery *d); // accepts NULL

// Starts the runtime and hands it the samples. *missing (borrowed): why it cannot be used, and what
// to do; NULL where it can. MSC_E_IO and others: it failed.
enum msc_status msc_delivery_start(struct msc_delivery *d, const char **missing);
// What it is, once started: {"name", "version", "processor", "threads", "rounds"}.
enum msc_status msc_delivery_describe(const struct msc_delivery *d, struct cJSON *object);

// Writes the model of a plan, and notes the bytes of its file.
enum msc_status msc_delivery_export(struct msc_delivery *d, struct msc_delivery_plan *plan);
// The losses of an exported plan's outputs, on the samples of the search and on those held out.
enum msc_status msc_delivery_outputs(struct msc_delivery *d, struct msc_delivery_plan *plan);
// The latencies of exported plans on one sample, in turn; of those that have no failure.
enum msc_status msc_delivery_latency(struct msc_delivery *d, struct msc_delivery_plan *plans[],
                                     size_t n);

// Bytes of a model's file with those of its weights beside it.
enum msc_status msc_model_file_bytes(uint64_t *out, const char *path, struct msc_arena *arena);

#endif

#include "model/load_check.h"

#include "base/file.h"
#include "graph/onnx/onnx.h"
#include "graph/target.h"
#include "tools/runtime.h"

// Runs one model once.
static enum msc_status run_once(struct msc_runtime *runtime, const char *name, const char *model) {
    struct msc_latency latency = {0};
    struct msc_runtime_job job = MSC_RUNTIME_JOB_INIT;
    job.runtime = name;
    job.models = &model;
    job.n_models = 1;
    job.n_rounds = 1;
    enum msc_status status = msc_runtime_latency(runtime, &job, &latency);
    msc_latency_finish(&latency);
    return status;
}

enum msc_status msc_load_check(const char *exported, const char *source,
                               const struct msc_target *target) {
    const struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found = NULL;
    struct msc_runtime *runtime = NULL;
    const char *name = target ? target->runtime : NULL;
    const char *suffix = msc_target_suffix(target);
    enum msc_status status = MSC_OK;
    if (!name || !msc_path_ends_in(exported, suffix) ||
        msc_runtime_start(&runtime, &options) != MSC_OK) {
        return MSC_OK;
    }
    // The runtime may not read files such as the source at all.
    bool is_comparable = msc_path_ends_in(source, suffix);
    if (msc_runtime_find(&found, runtime, name) == MSC_OK &&
        (!is_comparable || run_once(runtime, name, source) == MSC_OK) &&
        run_once(runtime, name, exported) == MSC_E_STATE && msc_runtime_is_alive(runtime)) {
        status = msc_status_prefix(
            MSC_E_UNSUPPORTED, "export: %s is removed because its runtime refuses it", exported);
        (void)msc_onnx_remove(exported);
    }
    msc_runtime_stop(runtime);
    return status;
}

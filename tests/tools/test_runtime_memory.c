// Requests to a runtime when memory runs out: each failure is reported and leaks nothing.
#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/short_memory.h"
#include "tests/tools/runtime_script.h"

#include <stdio.h>

static const char script[] =
    AFTER_HELLO "read -r b; echo '{\"note\":\"running\"}'; "
                "echo '{\"models\":[{\"runs\":7,\"us\":[1,2,3]},{\"runs\":1,\"us\":[4,5,6]}]}'; "
                "read -r c; : >y.npz; echo '{}'; read -r d";

static enum msc_status ask_everything(void) {
    static const struct msc_binding length = {.symbol = "seq", .value = 128};
    struct msc_runtime *runtime = NULL;
    struct msc_latency latency = {0};
    struct msc_quartiles ratios;
    struct msc_runtime_job job = two_models;
    enum msc_status status = MSC_OK;
    job.bindings = &length;
    job.n_bindings = 1;
    MSC_TRY(start_script(&runtime, script, 30.0));
    MSC_TRY_OUT(msc_runtime_latency(runtime, &job, &latency));
    MSC_TRY_OUT(msc_latency_ratios(&ratios, &latency, 1, 0));
    job.n_models = 1;
    job.inputs = "x.npz";
    status = msc_runtime_outputs(runtime, &job, "y.npz");
out:
    remove("y.npz");
    msc_latency_finish(&latency);
    msc_runtime_stop(runtime);
    return status;
}

static void test_tools_runtime_memory__short(void **state) {
    (void)state;
    run_failing(ask_everything, 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_runtime_memory__short),
    };
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = __wrap_malloc, .free_fn = __wrap_free});
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

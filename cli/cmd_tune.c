#include "cli/cli.h"

#include "base/json.h"
#include "base/machine.h"
#include "base/str.h"
#include "kernels/engine/backends.h"
#include "kernels/vulkan/vulkan.h"

#include <string.h>

struct tune_values {
    struct msc_cli_common common;
    double seconds;
};

#define TUNE(member) offsetof(struct tune_values, member)
#define DEFAULT_SECONDS 60.0

// The command does not set uses_models: of the options that this would add, only --device has an
// effect here.
static const struct msc_cli_option options[] = {
    {.name = "device",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "vulkan",
     .help = "GPU to tune: vulkan, vulkan:N, vulkan:uuid=UUID or vulkan:pci=ADDRESS (default: the "
             "first GPU)",
     .offset = TUNE(common.device)},
    {.name = "time",
     .argument = "TIME",
     .type = MSC_CLI_DURATION,
     .help = "measure for this long, such as 30s or 5m (default: 60s)",
     .offset = TUNE(seconds)},
    {0},
};

enum { MAX_ROWS = 48 };

static enum msc_status print_tuned_json(const struct msc_backend *b,
                                        const struct msc_vulkan_tuned rows[], int n) {
    cJSON *json = cJSON_CreateObject(), *list = cJSON_CreateArray();
    enum msc_status status;
    MSC_TRY_OUT(msc_json_add(json, "tiles", list));
    MSC_TRY_OUT(msc_json_add_text(json, "folder", b->options.cache_folder));
    for (int i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY_OUT(msc_json_push(list, row));
        MSC_TRY_OUT(msc_json_add_number(row, "rows", (double)rows[i].rows));
        MSC_TRY_OUT(msc_json_add_number(row, "cols", (double)rows[i].cols));
        MSC_TRY_OUT(msc_json_add_number(row, "depth", (double)rows[i].depth));
        MSC_TRY_OUT(msc_json_add_text(row, "unit", rows[i].is_integer ? "int8" : "float32"));
        MSC_TRY_OUT(msc_json_add_text(row, "tile", rows[i].tile));
        MSC_TRY_OUT(msc_json_add_number(row, "gflops", rows[i].gflops));
        MSC_TRY_OUT(msc_json_add_number(row, "gflops_by_rule", rows[i].gflops_by_rule));
    }
    status = msc_cli_print_json(json);
out:
    cJSON_Delete(json);
    return status;
}

static enum msc_status print_tuned(const struct msc_backend *b,
                                   const struct msc_vulkan_tuned rows[], int n) {
    struct msc_str text = {0};
    msc_str_printf(&text, "%8s %6s %6s  %-8s %-20s %10s %10s\n", "rows", "cols", "depth", "unit",
                   "tile", "GFLOP/s", "untuned");
    for (int i = 0; i < n; i++) {
        const struct msc_vulkan_tuned *r = &rows[i];
        msc_str_printf(&text, "%8llu %6llu %6llu  %-8s %-20s %10.1f %10.1f\n",
                       (unsigned long long)r->rows, (unsigned long long)r->cols,
                       (unsigned long long)r->depth, r->is_integer ? "int8" : "float32", r->tile,
                       r->gflops, r->gflops_by_rule);
    }
    msc_str_printf(&text, "kept in %s\n", b->options.cache_folder);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status cmd_tune_run(struct tune_values *v, struct msc_arena *arena) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_vulkan_tuned rows[MAX_ROWS];
    struct msc_backend *b = NULL;
    int n = 0, gpu = msc_vulkan_first_gpu();
    enum msc_status status;
    if (!v->common.device && gpu < 0) {
        return MSC_FAIL(MSC_E_DEVICE,
                        "no GPU was found; --device vulkan also takes a software driver");
    }
    o.cache_folder = msc_machine_cache_folder(arena);
    if (!o.cache_folder) {
        return MSC_FAIL(MSC_E_DEVICE, "no folder for the results: set XDG_CACHE_HOME or HOME");
    }
    if (v->common.device && strncmp(v->common.device, "vulkan", strlen("vulkan")) != 0) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "device '%s': this command tunes only Vulkan devices; for other devices, use mscgym "
            "schedule MODEL",
            v->common.device);
    }
    MSC_TRY(msc_backend_open(&b, v->common.device ? v->common.device : "auto", &o));
    MSC_TRY_OUT(b->def->keep(b, NULL, 0)); // a folder that cannot be written is told first
    MSC_TRY_OUT(
        msc_vulkan_tune(b, v->seconds > 0.0 ? v->seconds : DEFAULT_SECONDS, rows, MAX_ROWS, &n));
    status = v->common.json ? print_tuned_json(b, rows, n) : print_tuned(b, rows, n);
out:
    msc_backend_close(b);
    return status;
}

static int cmd_tune(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = cmd_tune_run(payload, call->arena);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_tune = {
    .name = "tune",
    .summary = "measures how best to use a GPU, for later runs",
    .usage = "[options]",
    .description =
        "Tries ways to divide matrix products and convolutions over the device, and stores the "
        "fastest ones next to the compiled kernels. Results do not depend on tuning. mscgym "
        "schedule does the same for the steps of a model, on any device.",
    .examples = "  mscgym tune\n  mscgym tune --device vulkan:1 --time 5m\n",
    .options = options,
    .values_size = sizeof(struct tune_values),
    .run = cmd_tune,
};

#include "cli/cli.h"

#include "base/json.h"
#include "base/machine.h"
#include "base/str.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"
#include "kernels/vulkan/vulkan.h"

#include <stdio.h>

static const struct msc_cli_option options[] = {
    {.name = "isa",
     .argument = "LEVEL",
     .type = MSC_CLI_TEXT,
     .names = MSC_CLI_ISA_NAMES,
     .help = "use no processor instructions above this level, as in other commands",
     .offset = offsetof(struct msc_cli_common, isa)},
    {0},
};

static enum msc_status add_open(cJSON *object, const struct msc_backend *backend) {
    char size[40] = "";
    if (backend->def == &msc_backend_vulkan) {
        msc_vulkan_matrix(size, backend);
    }
    MSC_TRY(msc_json_add_text(object, "numerics", backend->def->numerics(backend)));
    return size[0] ? msc_json_add_text(object, "matrix_units", size) : MSC_OK;
}

static enum msc_status add_device(cJSON *list, const char *name) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend = NULL;
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "name", name));
    enum msc_status status = msc_backend_open(&backend, name, &o);
    status = status == MSC_OK ? add_open(object, backend)
                              : msc_json_add_text(object, "unavailable", msc_status_message());
    msc_backend_close(backend);
    return status;
}

// Adds every Vulkan device by the name that --device takes.
static enum msc_status add_vulkan(cJSON *json) {
    struct msc_vulkan_device devices[16];
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "vulkan", list));
    int n = msc_vulkan_list(devices, 16);
    for (int i = 0; i < n && i < 16; i++) {
        const struct msc_vulkan_device *d = &devices[i];
        cJSON *object = cJSON_CreateObject();
        char name[24];
        MSC_TRY(msc_json_push(list, object));
        snprintf(name, sizeof(name), "vulkan:%d", d->index);
        MSC_TRY(msc_json_add_text(object, "name", name));
        MSC_TRY(msc_json_add_text(object, "device", d->name));
        MSC_TRY(msc_json_add_text(object, "kind", d->is_usable ? d->kind : "unusable"));
        MSC_TRY(msc_json_add_text(object, "driver", d->driver));
        MSC_TRY(msc_json_add_text(object, "uuid", d->uuid));
        MSC_TRY(msc_json_add_text(object, "pci", d->pci));
        MSC_TRY(msc_json_add_number(object, "memory_bytes", (double)d->memory_bytes));
    }
    return MSC_OK;
}

// Adds the instruction levels that --isa takes on this machine.
static enum msc_status add_levels(cJSON *json) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "isa", list));
    const char *level;
    for (size_t i = 0; (level = msc_backend_isa(i)) != NULL; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(level)));
    }
    return MSC_OK;
}

static enum msc_status add_devices(cJSON *json) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "devices", list));
    for (const struct msc_backend_def *const *def = msc_backend_list(); *def; def++) {
        MSC_TRY(add_device(list, (*def)->name));
    }
    MSC_TRY(add_vulkan(json));
    MSC_TRY(add_levels(json));
    MSC_TRY(msc_json_add_number(json, "threads", msc_machine_n_threads()));
    return msc_json_add_number(json, "free_bytes", (double)msc_machine_free_bytes());
}

static void print_vulkan(struct msc_str *text, const cJSON *device) {
    static const char *const keys[] = {"uuid", "pci"};
    msc_str_printf(text, "%s: %s, %s, %.1f GB", msc_json_get(device, "name")->valuestring,
                   msc_json_get(device, "device")->valuestring,
                   msc_json_get(device, "kind")->valuestring,
                   msc_json_get(device, "memory_bytes")->valuedouble * 1e-9);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = msc_json_get(device, keys[i])->valuestring;
        if (value[0]) {
            msc_str_printf(text, ", %s=%s", keys[i], value);
        }
    }
    msc_str_char(text, '\n');
}

static enum msc_status print_devices(const cJSON *json) {
    struct msc_str text = {0};
    const cJSON *device = NULL;
    cJSON_ArrayForEach(device, msc_json_get(json, "devices")) {
        const cJSON *numerics = msc_json_get(device, "numerics");
        const cJSON *why = msc_json_get(device, "unavailable");
        const cJSON *matrix = msc_json_get(device, "matrix_units");
        msc_str_printf(
            &text, "%s: %s%s\n", msc_json_get(device, "name")->valuestring,
            numerics ? "" : "not available: ", numerics ? numerics->valuestring : why->valuestring);
        if (matrix) {
            msc_str_printf(&text, "matrix units: int8 %s\n", matrix->valuestring);
        }
    }
    cJSON_ArrayForEach(device, msc_json_get(json, "vulkan")) {
        print_vulkan(&text, device);
    }
    const cJSON *levels = msc_json_get(json, "isa"), *level = NULL;
    cJSON_ArrayForEach(level, levels) {
        msc_str_printf(&text, "%s%s", level == levels->child ? "isa: " : ", ", level->valuestring);
    }
    msc_str_append(&text, cJSON_GetArraySize(levels) > 0 ? "\n" : "");
    msc_str_printf(&text, "threads: %d\nfree memory: %.1f GB\n", msc_machine_n_threads(),
                   (double)msc_machine_free_bytes() * 1e-9);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static int cmd_devices(const struct msc_cli_call *call, void *payload) {
    const struct msc_cli_common *common = payload;
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = common->isa ? msc_backend_set_isa(common->isa) : MSC_OK;
    if (status == MSC_OK) {
        status = add_devices(json);
    }
    if (status == MSC_OK) {
        status = common->json ? msc_cli_print_json(json) : print_devices(json);
    }
    cJSON_Delete(json);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_devices = {
    .name = "devices",
    .summary = "prints the devices of this machine, and the numerics id of each",
    .usage = "[--isa LEVEL]",
    .examples = "  mscgym devices\n  mscgym devices --isa avx2\n",
    .options = options,
    .values_size = sizeof(struct msc_cli_common),
    .run = cmd_devices,
};

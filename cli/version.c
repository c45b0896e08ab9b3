// mscgym --version: the build, instruction sets, backends and libraries of this program.
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/output.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/versions.h"
#include "config/config_versions.h"
#include "data/data_versions.h"
#include "graph/onnx/onnx_versions.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/kernels_describe.h"
#include "kernels/vulkan/vulkan.h"
#include "pipeline/processor.h"
#include "report/server.h"
#include "tools/linear_algebra.h"

#include <string.h>

// ---- Collecting -------------------------------------------------------------------------------

// Filled by callbacks, which cannot return an error.
struct gathering {
    cJSON *to;
    enum msc_status status;
};

static void take_library(void *payload, const char *name, const char *version) {
    struct gathering *g = payload;
    cJSON *object = cJSON_CreateObject();
    g->status = g->status == MSC_OK ? msc_json_push(g->to, object) : g->status;
    g->status = g->status == MSC_OK ? msc_json_add_text(object, "name", name) : g->status;
    g->status = g->status == MSC_OK ? msc_json_add_text(object, "version", version) : g->status;
}

// Adds the versions of the external libraries that each folder uses.
static enum msc_status add_libraries(cJSON *json) {
    static void (*const folders[])(msc_version_take take, void *payload) = {
        msc_kernels_versions, msc_linear_algebra_versions, msc_onnx_versions, msc_data_versions,
        msc_config_versions,  msc_server_versions,         msc_base_versions,
    };
    struct gathering g = {.to = cJSON_CreateArray()};
    MSC_TRY(msc_json_add(json, "libraries", g.to));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        folders[i](take_library, &g);
    }
    return g.status;
}

static enum msc_status add_build(cJSON *json) {
    cJSON *build = cJSON_CreateObject();
    MSC_TRY(msc_json_add(json, "build", build));
    MSC_TRY(msc_json_add_text(build, "compiler", MSC_BUILD_COMPILER));
    MSC_TRY(msc_json_add_text(build, "type", MSC_BUILD_TYPE));
    MSC_TRY(msc_json_add_text(build, "target", MSC_BUILD_TARGET));
    return MSC_BUILD_SANITIZER[0] ? msc_json_add_text(build, "sanitizer", MSC_BUILD_SANITIZER)
                                  : MSC_OK;
}

static void take_loops(void *payload, const char *name, const char *isa) {
    struct gathering *g = payload;
    g->status = g->status == MSC_OK ? msc_json_add_text(g->to, name, isa) : g->status;
}

// Adds the levels that --isa takes and the loops of the cpu backend (NULL if it cannot be opened).
static enum msc_status add_instructions(cJSON *json, const struct msc_backend *cpu) {
    cJSON *levels = cJSON_CreateArray();
    struct gathering g = {.to = cJSON_CreateObject()};
    const char *level;
    MSC_TRY(msc_json_add(json, "isa", levels));
    MSC_TRY(msc_json_add(json, "loops", g.to));
    for (size_t i = 0; (level = msc_backend_isa(i)) != NULL; i++) {
        MSC_TRY(msc_json_push(levels, cJSON_CreateString(level)));
    }
    if (cpu) {
        msc_kernels_loops(cpu, take_loops, &g);
    }
    return g.status;
}

// Opens no device; `mscgym devices` does.
static enum msc_status add_vulkan(cJSON *list) {
    char version[40];
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "name", "vulkan"));
    return msc_vulkan_loader(version, sizeof version) == MSC_OK
               ? msc_json_add_text(object, "loader", version)
               : msc_json_add_text(object, "unavailable", msc_status_message());
}

static enum msc_status add_backends(cJSON *json) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *cpu = NULL;
    cJSON *list = cJSON_CreateArray();
    cJSON *object = cJSON_CreateObject();
    enum msc_status opened = msc_backend_open(&cpu, "cpu", &o);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_json_push(list, object));
    MSC_TRY_OUT(msc_json_add_text(object, "name", "cpu"));
    MSC_TRY_OUT(opened == MSC_OK ? msc_json_add_text(object, "numerics", cpu->def->numerics(cpu))
                                 : msc_json_add_text(object, "unavailable", msc_status_message()));
    MSC_TRY_OUT(add_vulkan(list));
    MSC_TRY_OUT(add_instructions(json, cpu));
    status = msc_json_add(json, "backends", list);
    list = NULL;
out:
    cJSON_Delete(list);
    msc_backend_close(cpu);
    return status;
}

static enum msc_status describe_program(cJSON *json) {
    const char *version = strchr(msc_program_name(), ' ');
    MSC_TRY(msc_json_add_text(json, "version", version ? version + 1 : ""));
    MSC_TRY(add_build(json));
    MSC_TRY(add_backends(json));
    return add_libraries(json);
}

// ---- Printing ---------------------------------------------------------------------------------

// Prints a list or an object on one line, as "text, text" or "name text, name text".
static void write_texts(struct msc_str *out, const char *title, const cJSON *texts) {
    const cJSON *item = NULL;
    msc_str_printf(out, "%s: ", title);
    cJSON_ArrayForEach(item, texts) {
        msc_str_append(out, item == texts->child ? "" : ", ");
        for (const char *c = item->string ? item->string : ""; *c; c++) {
            msc_str_char(out, *c == '_' ? ' ' : *c);
        }
        msc_str_append(out, item->string ? " " : "");
        msc_shown_append(out, item->valuestring);
    }
    msc_str_append(out, texts->child ? "\n" : "none\n");
}

static void write_version(struct msc_str *out, const cJSON *json) {
    const cJSON *item = NULL;
    msc_str_printf(out, "%s\n", msc_program_name());
    write_texts(out, "build", msc_json_get(json, "build"));
    write_texts(out, "isa", msc_json_get(json, "isa"));
    write_texts(out, "loops", msc_json_get(json, "loops"));
    cJSON_ArrayForEach(item, msc_json_get(json, "backends")) {
        static const char *const keys[] = {"numerics", "loader", "unavailable"};
        static const char *const words[] = {"", "loader ", "not available: "};
        msc_str_printf(out, "backend %s: ", msc_json_get(item, "name")->valuestring);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (msc_json_get(item, keys[i])) {
                msc_str_append(out, words[i]);
                msc_shown_append(out, msc_json_get(item, keys[i])->valuestring);
            }
        }
        msc_str_char(out, '\n');
    }
    cJSON_ArrayForEach(item, msc_json_get(json, "libraries")) {
        msc_str_printf(out, "library %s: ", msc_json_get(item, "name")->valuestring);
        msc_shown_append(out, msc_json_get(item, "version")->valuestring);
        msc_str_char(out, '\n');
    }
}

static enum msc_status print_version(const struct msc_cli_common *common) {
    struct msc_str text = {0};
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = describe_program(json);
    if (status == MSC_OK && common->json) {
        status = msc_cli_print_json(json);
    } else if (status == MSC_OK) {
        write_version(&text, json);
        status = msc_cli_print_str(&text);
    }
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

static enum msc_status print_usage(void) {
    struct msc_str text = {0};
    msc_str_append(&text, "usage: mscgym --version [--json]\n\n");
    msc_cli_help_options(&text, msc_cli_basic_options);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

int msc_cli_version(const struct msc_cli_call *call) {
    const struct msc_cli_option *const tables[] = {msc_cli_basic_options, NULL};
    struct msc_cli_common common = {0};
    enum msc_status status = msc_cli_parse(&common, tables, call->argc, call->argv, call->arena);
    msc_console_set(call->console, common.quiet, common.log_level, common.color);
    if (status == MSC_OK && common.json) {
        status = msc_output_keep();
    }
    if (status == MSC_OK) {
        status = common.help ? print_usage() : print_version(&common);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

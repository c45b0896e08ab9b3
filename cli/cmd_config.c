#include "cli/cli.h"

#include "base/json.h"
#include "base/str.h"
#include "config/config.h"

struct config_values {
    struct msc_cli_common common;
    const char *show;
    bool schema, allow_plugins;
};

static const struct msc_cli_option options[] = {
    {.name = "CONFIG",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration to print with every default filled in",
     .offset = offsetof(struct config_values, show),
     .is_positional = true},
    {.name = "show",
     .argument = "CONFIG",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "the same as CONFIG",
     .offset = offsetof(struct config_values, show)},
    {.name = "schema",
     .type = MSC_CLI_FLAG,
     .help = "print the JSON Schema of a configuration, for editors",
     .details = "In the configuration, \"$schema\" names the file, relative to the configuration.",
     .offset = offsetof(struct config_values, schema)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust the configuration: libraries that it names may be loaded",
     .details = "A library is loaded to list its keys.",
     .offset = offsetof(struct config_values, allow_plugins)},
    {0},
};

static enum msc_status show_config(const struct config_values *v) {
    enum msc_config_code code = v->allow_plugins ? MSC_CONFIG_CODE_ALLOWED : MSC_CONFIG_CODE_IDLE;
    struct msc_config *config = NULL;
    cJSON *json = NULL;
    MSC_TRY(msc_config_load(&config, v->show, code));
    enum msc_status status = msc_config_to_json(config, &json, config->folder);
    if (status == MSC_OK) {
        status = msc_cli_print_json(json);
    }
    cJSON_Delete(json);
    msc_config_destroy(config);
    return status;
}

static enum msc_status print_keys(void) {
    struct msc_str text = {0};
    msc_config_help(&text);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_schema(void) {
    cJSON *schema = NULL;
    MSC_TRY(msc_config_schema(&schema));
    enum msc_status status = msc_cli_print_json(schema);
    cJSON_Delete(schema);
    return status;
}

static enum msc_status print_config_json(void) {
    cJSON *list = cJSON_CreateArray();
    enum msc_status status =
        list ? msc_config_describe(list) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = msc_cli_print_json(list);
    }
    cJSON_Delete(list);
    return status;
}

static int cmd_config(const struct msc_cli_call *call, void *payload) {
    const struct config_values *v = payload;
    if (v->schema && v->show) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID, "--schema takes no configuration"));
    }
    enum msc_status status = v->schema        ? print_schema()
                             : v->show        ? show_config(v)
                             : v->common.json ? print_config_json()
                                              : print_keys();
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_config = {
    .name = "config",
    .summary = "prints every key of a configuration, with default and range",
    .usage = "[[--show] CONFIG | --schema]",
    .description =
        "With CONFIG: prints that configuration with every default filled in, always as JSON.",
    .examples = "  mscgym config\n"
                "  mscgym config --json\n"
                "  mscgym config --show digits.json\n"
                "  mscgym config --schema > mscgym.schema.json\n",
    .options = options,
    .values_size = sizeof(struct config_values),
    .run = cmd_config,
};

// Opening by the header of a record alone: what code it may name, where that lies, which base it has.
#include "pipeline/processor_internal.h"

#include "base/file.h"

#include <string.h>

// A dry run starts no agent.
static enum msc_config_code code_of_record(const struct msc_processor_options *o) {
    return o->allow_plugins             ? MSC_CONFIG_CODE_ALLOWED
           : o->is_node && o->node_path ? MSC_CONFIG_CODE_ALLOWED
           : o->is_node                 ? MSC_CONFIG_CODE_NODE
           : o->is_dry_run              ? MSC_CONFIG_CODE_IDLE
                                        : MSC_CONFIG_CODE_REFUSED;
}

// Where the entries of a configuration have what they name: elsewhere.
static enum msc_status move_folders(cJSON *config, const char *folder) {
    for (cJSON *item = config->child; item; item = item->next) {
        cJSON *list =
            strcmp(item->string, "gym") == 0 ? item : cJSON_GetObjectItemCaseSensitive(item, "gym");
        cJSON *entry = NULL;
        cJSON_ArrayForEach(entry, list) {
            if (cJSON_IsObject(entry)) {
                cJSON_DeleteItemFromObjectCaseSensitive(entry, "folder");
                MSC_TRY(msc_json_add_text(entry, "folder", folder));
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_processor_open_record(struct msc_processor **out, const char *path,
                                          const struct msc_processor_options *options) {
    struct msc_arena arena = {0};
    struct msc_record *record = NULL;
    struct msc_config *config = NULL;
    const cJSON *stored = NULL;
    struct msc_processor_options own = *options;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_record_open(&record, path, MSC_RECORD_HEADER, options->log));
    stored = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "config");
    if (!cJSON_IsObject(stored)) {
        status = MSC_FAIL(MSC_E_UNSUPPORTED,
                          "%s: its header holds no configuration: it was not made by mscgym search",
                          path);
        goto out;
    }
    char *folder = msc_path_folder(&arena, path);
    cJSON *json = folder ? cJSON_Duplicate(stored, true) : NULL;
    if (!json) {
        status = msc_processor__no_memory();
        goto out;
    }
    if (options->is_node && options->node_path) {
        status = move_folders(json, options->node_path);
    }
    if (status != MSC_OK) {
        cJSON_Delete(json);
        goto out;
    }
    MSC_TRY_OUT(msc_config_create_stored(&config, json, path, folder, code_of_record(options)));
    status = msc_processor__find_base(config, path);
    if (status != MSC_OK) {
        msc_config_destroy(config);
        goto out;
    }
    own.record = path; // whatever its name was when it was made
    own.entry = NULL;
    MSC_TRY_OUT(msc_processor__create(out, config, &own));
    (*out)->is_from_record = true;
out:
    msc_record_close(record);
    msc_arena_finish(&arena);
    return status;
}

#include "pipeline/worker_files.h"

#include "base/file.h"
#include "base/file_set.h"
#include "pipeline/header_config.h"
#include "pipeline/read_files.h"
#include "cluster/bridge.h"

static enum msc_status name_set(struct msc_bridge *bridge, const struct msc_file_set *files) {
    const char *path;
    for (size_t i = 0; (path = msc_file_set_path(files, i)) != NULL; i++) {
        if (msc_file_exists(path)) {
            MSC_TRY(msc_bridge_file(bridge, path, false));
        }
    }
    return MSC_OK;
}

enum msc_status msc_worker_files_name(const struct msc_session *s, struct msc_bridge *bridge) {
    const struct msc_processor_options o = {.log = s->setup->log, .allow_plugins = true};
    struct msc_config *config = NULL;
    struct msc_file_set files = {0};
    char *record;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_path_absolute(&record, &s->setup->arena, s->entry->record));
    MSC_TRY(msc_header_config_open(&config, record, &o));
    config->entries[0].record = record; // the record may have been renamed
    MSC_TRY_OUT(msc_read_files_add_measured(&files, config));
    MSC_TRY_OUT(msc_bridge_file(bridge, record, true));
    status = name_set(bridge, &files);
out:
    msc_file_set_finish(&files);
    msc_config_destroy(config);
    return status;
}

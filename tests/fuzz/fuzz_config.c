// The bytes are a configuration, as JSON, or else as YAML, or else as TOML. The configuration is
// read and shown with all defaults. The shown text is read again and must give the same text.
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static bool show(struct msc_str *out, const struct msc_config *config) {
    cJSON *json = NULL;
    if (fuzz_check(msc_config_to_json(config, &json, config->folder)) != MSC_OK) {
        return false;
    }
    msc_json_write_pretty(out, json);
    cJSON_Delete(json);
    return fuzz_check(msc_str_status(out)) == MSC_OK;
}

static void read_again(const struct msc_str *shown) {
    struct msc_config *config = NULL;
    struct msc_str again = {0};
    fuzz_write("shown.json", shown->data, shown->length);
    if (msc_config_load(&config, fuzz_path("shown.json"), MSC_CONFIG_CODE_IDLE) != MSC_OK) {
        fuzz_fail(msc_status_message());
    }
    if (show(&again, config) && strcmp(msc_str_text(shown), msc_str_text(&again)) != 0) {
        fuzz_fail("a configuration that is shown reads as another one");
    }
    msc_str_finish(&again);
    msc_config_destroy(config);
}

// The configuration in the header of an entry's record must be readable, too.
static void read_entry(const struct msc_config *config, size_t entry) {
    cJSON *json = NULL;
    struct msc_config *alone = NULL;
    if (fuzz_check(msc_config_entry_to_json(config, &config->entries[entry], &json,
                                            config->folder)) == MSC_OK) {
        fuzz_check(
            msc_config_create(&alone, json, "record", config->folder, MSC_CONFIG_CODE_REFUSED));
    }
    msc_config_destroy(alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"c.json", "c.yaml", "c.toml", "shown.json", NULL};
    struct msc_config *config = NULL;
    struct msc_str shown = {0};
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    enum msc_status status = MSC_E_INVALID;
    for (size_t i = 0; i < 3; i++) {
        fuzz_write(files[i], data, n_bytes);
    }
    for (size_t i = 0; i < 3 && status != MSC_OK; i++) {
        status = fuzz_check(msc_config_load(&config, fuzz_path(files[i]), MSC_CONFIG_CODE_IDLE));
    }
    if (status == MSC_OK) {
        if (show(&shown, config)) {
            read_again(&shown);
        }
        for (size_t i = 0; i < config->n_entries; i++) {
            read_entry(config, i);
        }
    }
    msc_str_finish(&shown);
    msc_config_destroy(config);
    fuzz_check_files(files);
    return 0;
}

// Reads a configuration in TOML as a tree of JSON.
#include "config/config_internal.h"

#include "base/file.h"
#include "config/tree.h"

// The library needs many times the memory of the text.
#define MOST_BYTES (4 << 20)

static enum msc_status read_text(cJSON **out, const char *text, size_t length, const char *path) {
    struct msc_config_toml_error error;
    if (length > MOST_BYTES) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: the file has %zu bytes, and TOML is read up to %d: use JSON or YAML",
                        path, length, MOST_BYTES);
    }
    *out = msc_config__parse_toml(text, length, &error);
    if (*out) {
        return MSC_OK;
    }
    return error.is_memory ? MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path)
                           : MSC_FAIL(MSC_E_INVALID, "%s:%zu:%zu: %s", path, error.line,
                                      error.column, error.what);
}

enum msc_status msc_config__load_toml(cJSON **out, const char *path) {
    char *text = NULL;
    size_t length = 0;
    *out = NULL;
    MSC_TRY(msc_file_read(&text, &length, path));
    enum msc_status status = read_text(out, text, length, path);
    msc_free(text);
    return status;
}

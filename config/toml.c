// Reads a configuration in TOML as a tree of JSON.
#include "config/config_internal.h"

#include "config/tree.h"

// The library needs many times the memory of the text.
#define MOST_BYTES (4 << 20)

enum msc_status msc_config__read_toml(cJSON **out, const char *text, size_t length,
                                      const char *path) {
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

// A build without toml++ or a C++ compiler: TOML is refused.
#include "config/config_internal.h"

const char *msc_config__toml_version(void) {
    return NULL;
}

enum msc_status msc_config__read_toml(cJSON **out, const char *text, size_t length,
                                      const char *path) {
    (void)text;
    (void)length;
    *out = NULL;
    return MSC_FAIL(MSC_E_UNSUPPORTED,
                    "%s: this mscgym cannot read TOML, as it was built without toml++ "
                    "(libtomlplusplus-dev, -DMSC_TOML=ON): use JSON or YAML",
                    path);
}

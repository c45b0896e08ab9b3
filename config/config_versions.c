#include "config/config_versions.h"

#include "config/config_internal.h"

#include <yaml.h>

void msc_config_versions(msc_version_take take, void *payload) {
    const char *toml = msc_config__toml_version();
    take(payload, "libyaml", yaml_get_version_string());
    if (toml) {
        take(payload, "toml++", toml);
    }
}

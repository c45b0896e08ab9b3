// Versions of the outside libraries that this folder uses (base/versions.h).
#ifndef MSC_CONFIG_CONFIG_VERSIONS_H
#define MSC_CONFIG_CONFIG_VERSIONS_H

#include "base/versions.h"

void msc_config_versions(msc_version_take take, void *payload);

#endif

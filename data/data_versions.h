// Versions of the outside libraries that this folder uses (base/versions.h).
#ifndef MSC_DATA_DATA_VERSIONS_H
#define MSC_DATA_DATA_VERSIONS_H

#include "base/versions.h"

void msc_data_versions(msc_version_take take, void *payload);

#endif

#include "data/data_versions.h"

#include <zip.h>
#include <zlib.h>

void msc_data_versions(msc_version_take take, void *payload) {
    take(payload, "zlib", zlibVersion());
    take(payload, "libzip", zip_libzip_version());
}

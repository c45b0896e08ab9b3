// What the files about files share.
#ifndef MSC_BASE_FILE_INTERNAL_H
#define MSC_BASE_FILE_INTERNAL_H

#include "base/status.h"

// "cannot WHAT PATH: " and the system's words for the error number.
enum msc_status msc_file__fail(const char *what, const char *path, int error);

#endif

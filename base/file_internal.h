// Internal to base/: shared by the files that implement base/file.h.
#ifndef MSC_BASE_FILE_INTERNAL_H
#define MSC_BASE_FILE_INTERNAL_H

#include "base/status.h"

// Fails with "cannot WHAT PATH: " and the system's text for the error number.
enum msc_status msc_file__fail(const char *what, const char *path, int error);

#endif

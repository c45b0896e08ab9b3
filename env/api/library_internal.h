// Checks the definition that a library exports before it is used (library_check.c).
#ifndef MSC_ENV_API_LIBRARY_INTERNAL_H
#define MSC_ENV_API_LIBRARY_INTERNAL_H

#include "env/api/library.h"

// MSC_E_FORMAT, or MSC_E_UNSUPPORTED for another ABI; the message begins with `path`.
enum msc_status msc_library__check(const void *definition, const char *path,
                                   const struct msc_library_form *form);

#endif

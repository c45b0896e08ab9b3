// Checks the definition that a library exports before it is used (library_check.c).
#ifndef MSC_ENV_API_LIBRARY_INTERNAL_H
#define MSC_ENV_API_LIBRARY_INTERNAL_H

#include "env/api/library.h"

// Fails with MSC_E_UNSUPPORTED if the ABI number is another one, or with MSC_E_FORMAT if anything
// else is invalid. The message begins with `path`.
enum msc_status msc_library__check(const void *definition, const char *path,
                                   const struct msc_library_form *form);

#endif

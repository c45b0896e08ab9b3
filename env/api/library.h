// Plug-ins in shared libraries: opening one and finding the definition that it exports under an
// agreed name. Shared by environments and agents; each checks its own ABI number.
#ifndef MSC_ENV_API_LIBRARY_H
#define MSC_ENV_API_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// *library is owned by the caller (msc_library_close); *definition is what the exported pointer
// `symbol` holds, valid until then. The library is searched for at `path` only, relative to
// `folder` (NULL: the current one), never along the system's library path. MSC_E_NOT_FOUND: no
// such file; MSC_E_FORMAT: not a shared library, or without that symbol.
enum msc_status msc_library_open(void **library, const void **definition, const char *path,
                                 const char *folder, const char *symbol);
void msc_library_close(void *library); // accepts NULL

// True for what can only be the path of a library: it contains '/' or ends in ".so".
bool msc_library_is_path(const char *text);

#ifdef __cplusplus
}
#endif

#endif

// Plug-ins in shared libraries: opening one and finding the definition that it exports under an
// agreed name. Shared by environments and agents, which say what their definitions look like.
#ifndef MSC_ENV_API_LIBRARY_H
#define MSC_ENV_API_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct msc_library_function {
    const char *name; // NULL ends the list
    size_t offset;    // of the pointer in the definition
    bool is_optional;
};

// A kind of definition: a struct that begins with `unsigned abi`.
struct msc_library_form {
    const char *kind;                         // "environment"
    const char *symbol;                       // "msc_env_plugin": a pointer to the definition
    unsigned abi;                             // the only one that serves
    size_t name, summary, params, state_size; // offsets of these members
    const struct msc_library_function *functions;
    const char *const
        *together; // optional ones that are all there or none; ends in NULL; may be NULL
};

// *library is owned by the caller (msc_library_close); *definition is what the exported pointer
// holds, valid until then. The library is searched for at `path` only, relative to `folder` (NULL:
// the current one), never along the system's library path. MSC_E_NOT_FOUND: no such file;
// MSC_E_FORMAT: not a shared library, without that symbol, calling functions that this program does
// not have, or the definition is not whole: every text, number and pointer in it and in its table
// of parameters was looked at. MSC_E_UNSUPPORTED: another ABI.
enum msc_status msc_library_open(void **library, const void **definition, const char *path,
                                 const char *folder, const struct msc_library_form *form);
void msc_library_close(void *library); // accepts NULL

// True for what can only be the path of a library: it contains '/' or ends in ".so".
bool msc_library_is_path(const char *text);

#endif

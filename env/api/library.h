// Plug-ins in shared libraries: opens a library and checks the definition that it exports.
// Environments and agents each describe their kind of definition by a msc_library_form.
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
    unsigned abi;                             // the only supported value
    size_t name, summary, params, state_size; // offsets of these members
    bool is_stateless;                        // the definition has no params and no state_size
    const struct msc_library_function *functions;
    // names, ended by NULL, of functions that must be all present or all absent; NULL: no such
    // functions
    const char *const *together;
};

// Opens the library at `path`, relative to `folder` (NULL: the current one); the system's library
// path is not searched. *library is owned by the caller (msc_library_close). *definition is the
// definition that the library exports, valid until msc_library_close; all strings, numbers and
// pointers in it and in its parameter table were checked. MSC_E_NOT_FOUND: no such file.
// MSC_E_UNSUPPORTED: another ABI. MSC_E_FORMAT: the file is not a shared library, does not export
// the symbol or uses functions that this program lacks; or the definition is invalid.
enum msc_status msc_library_open(void **library, const void **definition, const char *path,
                                 const char *folder, const struct msc_library_form *form);
void msc_library_close(void *library); // accepts NULL

// True if the text can only be the path of a library: it contains '/' or ends in ".so".
bool msc_library_is_path(const char *text);

#endif

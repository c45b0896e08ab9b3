#include "env/api/library_internal.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

static enum msc_status check_file(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "%s: there is no such library", path);
    }
    return S_ISREG(info.st_mode)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: not a file, expected a shared library", path);
}

// A library built for another version may use functions that this program lacks. Such a library
// cannot be loaded, so even its ABI number is unknown.
static enum msc_status fail_to_load(const char *path) {
    const char *reason = dlerror();
    bool wants_function = reason && strstr(reason, "undefined symbol: msc_");
    return MSC_FAIL(MSC_E_FORMAT, "%s: cannot be loaded: %s%s", path,
                    reason ? reason : "no reason given",
                    wants_function ? "; rebuild it with the installed headers" : "");
}

static enum msc_status open_at(void **library, const void **definition, const char *path,
                               const struct msc_library_form *form) {
    MSC_TRY(check_file(path));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return fail_to_load(path);
    }
    const void *const *exported = dlsym(handle, form->symbol);
    enum msc_status status =
        !exported ? MSC_FAIL(MSC_E_FORMAT, "%s: does not export %s, the pointer to its definition",
                             path, form->symbol)
        : !*exported
            ? MSC_FAIL(MSC_E_FORMAT, "%s: %s is NULL, expected a pointer to its definition", path,
                       form->symbol)
            : msc_library__check(*exported, path, form);
    if (status != MSC_OK) {
        dlclose(handle);
        return status;
    }
    *library = handle;
    *definition = *exported;
    return MSC_OK;
}

enum msc_status msc_library_open(void **library, const void **definition, const char *path,
                                 const char *folder, const struct msc_library_form *form) {
    struct msc_arena arena = {0};
    const char *name = strncmp(path, "./", 2) == 0 ? path + 2 : path;
    // If the name had no '/', dlopen would look for it in the system's folders.
    const char *joined = msc_path_join(&arena, folder ? folder : ".", name);
    enum msc_status status = joined ? open_at(library, definition, joined, form)
                                    : MSC_FAIL(MSC_E_NOMEM, "not enough memory to open %s", path);
    msc_arena_finish(&arena);
    return status;
}

void msc_library_close(void *library) {
    if (library) {
        dlclose(library);
    }
}

bool msc_library_is_path(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') || (length > 3 && strcmp(text + length - 3, ".so") == 0);
}

// Checks a definition from a library. Pointers in it may be wrong, so memory is read only after a
// test: the kernel is asked to write the memory to a pipe. The write fails if reading the memory
// would crash the process.

// dladdr and syscall are not part of POSIX.
#define _GNU_SOURCE

#include "env/api/library_internal.h"

#include "base/param.h"
#include "base/utf8.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_NAME_BYTES 100
#define MAX_TEXT_BYTES 1000
#define MAX_PARAMS 256
// Memory is readable or unreadable by whole pages. A page has at least this size.
#define PAGE_BYTES 4096

struct check {
    const char *path;
    int pipe[2];
};

// ---- Reading ----------------------------------------------------------------------------------

// Calls the kernel directly, because sanitizers check the arguments of the C library's write.
static bool write_some(const struct check *c, const char *place, size_t n_bytes) {
    char copy[PAGE_BYTES];
    long n;
    do {
        n = syscall(SYS_write, c->pipe[1], place, n_bytes);
    } while (n < 0 && errno == EINTR);
    return n > 0 && read(c->pipe[0], copy, (size_t)n) == (ssize_t)n && (size_t)n == n_bytes;
}

static bool is_readable_memory(const struct check *c, const void *place, size_t n_bytes) {
    const char *next = place;
    while (n_bytes > 0) {
        size_t n = n_bytes < PAGE_BYTES ? n_bytes : PAGE_BYTES;
        if (!write_some(c, next, n)) {
            return false;
        }
        next += n;
        n_bytes -= n;
    }
    return true;
}

// `what` names the text: "the name of the definition".
static enum msc_status check_text(const struct check *c, const char *text, const char *what,
                                  size_t max_bytes) {
    size_t length = 0;
    for (;; length++) {
        bool is_new_page = length == 0 || (uintptr_t)(text + length) % PAGE_BYTES == 0;
        if (is_new_page && !is_readable_memory(c, text + length, 1)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s is not a readable string", c->path, what);
        }
        if (text[length] == '\0') {
            break;
        }
        if (length == max_bytes) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s is longer than %zu bytes", c->path, what,
                            max_bytes);
        }
        if ((unsigned char)text[length] < ' ' || text[length] == 0x7f) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s contains a control character", c->path, what);
        }
    }
    if (msc_utf8_length(text, length) < length) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s is not UTF-8", c->path, what);
    }
    return length > 0 ? MSC_OK : MSC_FAIL(MSC_E_FORMAT, "%s: %s is empty", c->path, what);
}

// Copies a member of the definition.
static enum msc_status read_member(const struct check *c, void *out, size_t n_bytes,
                                   const void *definition, size_t offset) {
    const char *place = (const char *)definition + offset;
    if (!is_readable_memory(c, place, n_bytes)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the definition cannot be read completely", c->path);
    }
    memcpy(out, place, n_bytes);
    return MSC_OK;
}

// ---- Parameters -------------------------------------------------------------------------------

static enum msc_status check_place(const struct check *c, const struct msc_param *param,
                                   size_t state_size) {
    static const struct {
        size_t size, alignment;
    } members[] = {
        [MSC_PARAM_BOOL] = {sizeof(bool), alignof(bool)},
        [MSC_PARAM_I64] = {sizeof(int64_t), alignof(int64_t)},
        [MSC_PARAM_F64] = {sizeof(double), alignof(double)},
        [MSC_PARAM_TEXT] = {sizeof(char *), alignof(char *)},
        [MSC_PARAM_WORD] = {sizeof(char *), alignof(char *)},
        [MSC_PARAM_ENUM] = {sizeof(int), alignof(int)},
        [MSC_PARAM_DURATION] = {sizeof(double), alignof(double)},
        [MSC_PARAM_JSON] = {sizeof(void *), alignof(void *)},
        [MSC_PARAM_OBJECT] = {sizeof(void *), alignof(void *)},
    };
    if ((unsigned)param->type >= sizeof members / sizeof members[0]) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: parameter %s has the unknown type %u", c->path,
                        param->name, (unsigned)param->type);
    }
    if (state_size < members[param->type].size ||
        param->offset > state_size - members[param->type].size ||
        param->offset % members[param->type].alignment != 0) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: parameter %s does not fit into the state: its offset is %zu, the state "
            "has %zu bytes",
            c->path, param->name, param->offset, state_size);
    }
    if (param->type == MSC_PARAM_I64 && !(fabs(param->number) < 0x1p63)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the default of parameter %s is not an integer", c->path,
                        param->name);
    }
    return MSC_OK;
}

static enum msc_status check_texts(const struct check *c, const struct msc_param *param) {
    const struct {
        const char *name, *text;
        bool is_wanted;
    } texts[] = {
        {"help", param->help, true},
        {"names", param->names, param->type == MSC_PARAM_ENUM},
        {"default", param->text, param->type == MSC_PARAM_ENUM},
        {"unit", param->unit, false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char what[MAX_NAME_BYTES + 64];
        snprintf(what, sizeof what, "the %s of parameter %s", texts[i].name, param->name);
        if (texts[i].is_wanted && !texts[i].text) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: parameter %s has no %s", c->path, param->name,
                            texts[i].name);
        }
        // "" is allowed as the default of a string and as "no unit".
        if (texts[i].text && (texts[i].is_wanted || !is_readable_memory(c, texts[i].text, 1) ||
                              texts[i].text[0] != '\0')) {
            MSC_TRY(check_text(c, texts[i].text, what, MAX_TEXT_BYTES));
        }
    }
    if (param->type == MSC_PARAM_ENUM && msc_param_index(param->names, param->text) < 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: the default of parameter %s is \"%s\", expected one of %s", c->path,
                        param->name, param->text, param->names);
    }
    return MSC_OK;
}

static enum msc_status check_params(const struct check *c, const struct msc_param params[],
                                    size_t state_size) {
    for (size_t i = 0; i < MAX_PARAMS; i++) {
        char what[64];
        if (!is_readable_memory(c, &params[i], sizeof params[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: the parameter table cannot be read from row %zu on",
                            c->path, i);
        }
        if (!params[i].name) {
            return MSC_OK;
        }
        snprintf(what, sizeof what, "the name of parameter %zu", i);
        MSC_TRY(check_text(c, params[i].name, what, MAX_NAME_BYTES));
        MSC_TRY(check_place(c, &params[i], state_size));
        MSC_TRY(check_texts(c, &params[i]));
    }
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: the parameter table does not end within %d rows, expected a last row {0}",
                    c->path, MAX_PARAMS);
}

// ---- The definition ---------------------------------------------------------------------------

static enum msc_status fail_absent_member(const struct check *c, const char *name) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: the definition has no %s", c->path, name);
}

static enum msc_status check_function(const struct check *c, const void *definition,
                                      const struct msc_library_function *f) {
    // copied, because C forbids a cast from a function pointer to this type
    const void *function = NULL;
    Dl_info info;
    MSC_TRY(read_member(c, &function, sizeof function, definition, f->offset));
    if (!function) {
        return f->is_optional ? MSC_OK : fail_absent_member(c, f->name);
    }
    if (dladdr(function, &info) == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: member %s of the definition is not a function", c->path,
                        f->name);
    }
    return MSC_OK;
}

static bool is_together(const struct msc_library_form *form, const char *name) {
    for (const char *const *t = form->together; t && *t; t++) {
        if (strcmp(*t, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status check_together(const struct check *c, const void *definition,
                                      const struct msc_library_form *form) {
    const char *present = NULL, *absent = NULL;
    for (const struct msc_library_function *f = form->functions; f->name; f++) {
        const void *function = NULL;
        if (is_together(form, f->name)) {
            MSC_TRY(read_member(c, &function, sizeof function, definition, f->offset));
            present = function && !present ? f->name : present;
            absent = !function && !absent ? f->name : absent;
        }
    }
    return present && absent
               ? MSC_FAIL(MSC_E_FORMAT,
                          "%s: the definition has %s but no %s, expected both or neither", c->path,
                          present, absent)
               : MSC_OK;
}

static enum msc_status check_members(const struct check *c, const void *definition,
                                     const struct msc_library_form *form) {
    const struct {
        const char *name, *what;
        size_t offset, max_bytes;
    } texts[] = {
        {"name", "the name of the definition", form->name, MAX_NAME_BYTES},
        {"summary", "the summary of the definition", form->summary, MAX_TEXT_BYTES},
    };
    const struct msc_param *params = NULL;
    size_t state_size = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = NULL;
        MSC_TRY(read_member(c, &text, sizeof text, definition, texts[i].offset));
        MSC_TRY(text ? check_text(c, text, texts[i].what, texts[i].max_bytes)
                     : fail_absent_member(c, texts[i].name));
    }
    if (form->is_stateless) {
        return MSC_OK;
    }
    MSC_TRY(read_member(c, &params, sizeof params, definition, form->params));
    MSC_TRY(read_member(c, &state_size, sizeof state_size, definition, form->state_size));
    return params ? check_params(c, params, state_size) : fail_absent_member(c, "params");
}

static enum msc_status check_definition(const struct check *c, const void *definition,
                                        const struct msc_library_form *form) {
    unsigned abi;
    if (!is_readable_memory(c, definition, sizeof abi)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: %s does not point to a definition, expected the address of one",
                        c->path, form->symbol);
    }
    memcpy(&abi, definition, sizeof abi);
    if (abi != form->abi) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: built for %s ABI %u, expected %u; rebuild it with the installed "
                        "headers",
                        c->path, form->kind, abi, form->abi);
    }
    MSC_TRY(check_members(c, definition, form));
    for (const struct msc_library_function *f = form->functions; f->name; f++) {
        MSC_TRY(check_function(c, definition, f));
    }
    return check_together(c, definition, form);
}

enum msc_status msc_library__check(const void *definition, const char *path,
                                   const struct msc_library_form *form) {
    struct check c = {.path = path};
    if (pipe2(c.pipe, O_CLOEXEC) != 0) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot open a pipe to check the library: %s", path,
                        strerror(errno));
    }
    enum msc_status status = check_definition(&c, definition, form);
    close(c.pipe[0]);
    close(c.pipe[1]);
    return status;
}

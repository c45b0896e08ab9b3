#include "model/operators.h"

#include "base/alloc.h"
#include "base/file.h"
#include "env/api/library.h"
#include "base/file_hash.h"
#include "model/operators_internal.h"

#include <string.h>

static enum msc_status add_plugin(struct msc_operators *set, const char *path) {
    struct msc_operators_source source = {0};
    MSC_TRY(msc_path_ends_in(path, ".so") ? msc_operators__open_library(&source, path)
                                          : msc_operators__open_program(&source, path));
    return msc_operators_add(set, &source);
}

enum msc_status msc_operators_open(struct msc_operators **out, const char *const paths[],
                                   size_t n) {
    struct msc_operators *set = NULL;
    enum msc_status status = MSC_OK;
    *out = NULL;
    if (n == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_operators_create(&set));
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        status = add_plugin(set, paths[i]);
    }
    if (status != MSC_OK) {
        msc_operators_release(set);
        return status;
    }
    *out = set;
    return MSC_OK;
}

void msc_operators_close(struct msc_operators *operators) {
    msc_operators_release(operators);
}

// ---- Libraries --------------------------------------------------------------------------------

static const struct msc_library_function no_functions[] = {{0}};

static const struct msc_library_form form = {
    .kind = "operator",
    .symbol = "msc_operators_plugin",
    .abi = MSC_OPERATORS_ABI,
    .name = offsetof(struct msc_operators_def, name),
    .summary = offsetof(struct msc_operators_def, summary),
    .is_stateless = true,
    .functions = no_functions,
};

static enum msc_status check_definition(const struct msc_operators_def *def, const char *path) {
    if (def->n_operators < 1 || def->operators == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the definition has no operators", path);
    }
    for (int i = 0; i < def->n_operators; i++) {
        const struct msc_operator_def *o = &def->operators[i];
        if (o->domain == NULL || o->op == NULL || o->op[0] == '\0' || o->compute == NULL) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: operator %d lacks domain, op or compute", path, i);
        }
    }
    return MSC_OK;
}

struct opened_library {
    void *library;
    char *path;
};

static void close_library(void *state) {
    struct opened_library *opened = state;
    msc_library_close(opened->library);
    msc_free(opened->path);
    msc_free(opened);
}

enum msc_status msc_operators__open_library(struct msc_operators_source *out, const char *path) {
    struct opened_library *opened = msc_alloc_zero(1, sizeof *opened);
    const void *definition = NULL;
    enum msc_status status = MSC_ALLOCATED(opened);
    MSC_TRY(status);
    opened->path = msc_strdup(path);
    status = MSC_ALLOCATED(opened->path);
    if (status == MSC_OK) {
        status = msc_library_open(&opened->library, &definition, path, NULL, &form);
    }
    const struct msc_operators_def *def = definition;
    status = status == MSC_OK ? check_definition(def, path) : status;
    status = status == MSC_OK ? msc_file_hash(&out->identity, path) : status;
    if (status != MSC_OK) {
        close_library(opened);
        return status;
    }
    out->name = opened->path;
    out->n_operators = def->n_operators;
    out->operators = def->operators;
    out->state = opened;
    out->close = close_library;
    return MSC_OK;
}

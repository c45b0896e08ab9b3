// Opens environments from shared libraries, and selects the environment that a config's `env.type`
// names.
#include "env/env.h"

#include "base/alloc.h"
#include "base/str.h"
#include "env/api/library.h"

struct msc_env_library {
    void *library;
    const struct msc_env_def *def;
};

static const struct msc_library_function functions[] = {
    {"complete", offsetof(struct msc_env_def, complete), true},
    {"metric", offsetof(struct msc_env_def, metric), true},
    {"init", offsetof(struct msc_env_def, init), false},
    {"space", offsetof(struct msc_env_def, space), false},
    {"evaluate", offsetof(struct msc_env_def, evaluate), false},
    {"runs", offsetof(struct msc_env_def, runs), true},
    {"batches", offsetof(struct msc_env_def, batches), true},
    {"evaluate_part", offsetof(struct msc_env_def, evaluate_part), true},
    {"partial_loss", offsetof(struct msc_env_def, partial_loss), true},
    {"reference", offsetof(struct msc_env_def, reference), true},
    {"edits", offsetof(struct msc_env_def, edits), true},
    {"reevaluate", offsetof(struct msc_env_def, reevaluate), true},
    {"identity", offsetof(struct msc_env_def, identity), true},
    {"describe", offsetof(struct msc_env_def, describe), true},
    {"save", offsetof(struct msc_env_def, save), true},
    {"restore", offsetof(struct msc_env_def, restore), true},
    {"finish", offsetof(struct msc_env_def, finish), true},
    {0},
};

// The functions that measure trials by batches; all or none must be present.
static const char *const together[] = {"batches", "evaluate_part", "partial_loss", NULL};

static const struct msc_library_form form = {
    .kind = "environment",
    .symbol = "msc_env_plugin",
    .abi = MSC_ENV_ABI,
    .name = offsetof(struct msc_env_def, name),
    .summary = offsetof(struct msc_env_def, summary),
    .params = offsetof(struct msc_env_def, params),
    .state_size = offsetof(struct msc_env_def, state_size),
    .functions = functions,
    .together = together,
};

static enum msc_status open_in_folder(struct msc_env_library **out, const char *path,
                                      const char *folder) {
    struct msc_env_library *library = msc_alloc_zero(1, sizeof *library);
    MSC_TRY(MSC_ALLOCATED(library));
    const void *definition = NULL;
    enum msc_status status = msc_library_open(&library->library, &definition, path, folder, &form);
    if (status != MSC_OK) {
        msc_env_library_close(library);
        return status;
    }
    library->def = definition;
    *out = library;
    return MSC_OK;
}

enum msc_status msc_env_library_open(struct msc_env_library **out, const char *path) {
    return open_in_folder(out, path, NULL);
}

const struct msc_env_def *msc_env_library_definition(const struct msc_env_library *library) {
    return library->def;
}

void msc_env_library_close(struct msc_env_library *library) {
    if (library) {
        msc_library_close(library->library);
        msc_free(library);
    }
}

static enum msc_status fail_unknown_env(const char *type) {
    const char *names[64];
    size_t n = 0;
    const struct msc_env_def *const *list = msc_env_list();
    while (list[n] && n < sizeof names / sizeof names[0]) {
        names[n] = list[n]->name;
        n++;
    }
    const char *nearest = msc_suggest(type, names, n);
    return nearest ? MSC_FAIL(MSC_E_NOT_FOUND,
                              "env: unknown environment \"%s\", did you mean "
                              "\"%s\"?",
                              type, nearest)
                   : MSC_FAIL(MSC_E_NOT_FOUND,
                              "env: unknown environment \"%s\": `mscgym envs` lists "
                              "the environments",
                              type);
}

enum msc_status msc_env_select(const struct msc_env_def **def, struct msc_env_library **library,
                               const char *type, const char *folder) {
    *library = NULL;
    *def = msc_env_find(type);
    if (*def) {
        return MSC_OK;
    }
    if (!msc_library_is_path(type)) {
        return fail_unknown_env(type);
    }
    MSC_TRY(open_in_folder(library, type, folder));
    *def = (*library)->def;
    return MSC_OK;
}

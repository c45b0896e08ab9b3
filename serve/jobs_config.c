// The configuration that a job's search runs.
#include "serve/jobs_internal.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"

#include <string.h>

#define MOST_FOLDERS 64

// The folders that a job may read from.
struct readable {
    const char *folders[MOST_FOLDERS];
    size_t n;
    const char *files, *work;
};

static enum msc_status find_readable(struct readable *out, struct msc_arena *arena,
                                     const struct msc_job *job, const struct msc_jobs_options *o) {
    *out = (struct readable){.files = msc_path_join(arena, job->folder, "files"),
                             .work = msc_path_join(arena, job->folder, "work")};
    MSC_TRY(MSC_ALLOCATED(out->files && out->work));
    out->folders[out->n++] = out->files;
    out->folders[out->n++] = out->work;
    for (size_t i = 0; i < o->n_roots && out->n < MOST_FOLDERS; i++) {
        out->folders[out->n++] = o->roots[i];
    }
    return MSC_OK;
}

static enum msc_status set_text(cJSON *object, const char *key, const char *value) {
    if (value) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, key);
        return msc_json_add_text(object, key, value);
    }
    return MSC_OK;
}

// Sets what the job gives beside the configuration, and where its outputs go.
static enum msc_status overlay(cJSON *root, const struct msc_job *job) {
    if (!cJSON_IsObject(root)) {
        return MSC_FAIL(MSC_E_INVALID, "the configuration is no object");
    }
    MSC_TRY(set_text(root, "workspace", "../work"));
    MSC_TRY(set_text(root, "model", job->model));
    if (!job->inputs && !job->labels) {
        return MSC_OK;
    }
    cJSON *dataset = msc_json_get(root, "dataset");
    if (!dataset) {
        dataset = cJSON_CreateObject();
        MSC_TRY(msc_json_add(root, "dataset", dataset));
    }
    if (!cJSON_IsObject(dataset)) {
        return MSC_FAIL(MSC_E_INVALID, "dataset: expected an object");
    }
    MSC_TRY(set_text(dataset, "inputs", job->inputs));
    return set_text(dataset, "labels", job->labels);
}

static enum msc_status fail_code(void) {
    return MSC_FAIL(MSC_E_STATE, "the configuration names a library or a program, which this "
                                 "server does not run (mscgym serve --allow-code)");
}

// Checks the keys and paths as a search would, without loading any code. Takes ownership of `root`.
static enum msc_status check(cJSON *root, const struct readable *r) {
    struct msc_config *config = NULL;
    enum msc_status status =
        msc_config_create(&config, root, "configuration", r->files, MSC_CONFIG_CODE_REFUSED);
    if (status == MSC_E_STATE || (status == MSC_OK && config->names_code)) {
        status = fail_code();
    }
    if (status == MSC_OK) {
        status = msc_config_check_inside(config, r->folders, r->n, r->work);
    }
    msc_config_destroy(config);
    return status;
}

static enum msc_status write_tree(const char *path, const cJSON *root) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, root);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(path, msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_job__write_config(const struct msc_job *job, const struct msc_jobs_options *o,
                                      const char *from) {
    struct msc_arena arena = {0};
    struct readable r;
    cJSON *root = NULL, *copy = NULL;
    uint64_t n_bytes = 0;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(find_readable(&r, &arena, job, o));
    const char *path = msc_path_join(&arena, r.files, from);
    const char *to = msc_path_join(&arena, r.files, MSC_JOB_CONFIG);
    MSC_TRY_OUT(MSC_ALLOCATED(path && to));
    if (msc_file_size(&n_bytes, path) == MSC_OK && n_bytes > MSC_JOB_CONFIG_BYTES) {
        MSC_TRY_OUT(MSC_FAIL(MSC_E_INVALID, "%s: a configuration has at most %zu bytes", from,
                             MSC_JOB_CONFIG_BYTES));
    }
    MSC_TRY_OUT(msc_config_read_tree(&root, path));
    MSC_TRY_OUT(overlay(root, job));
    if (!o->allow_code) { // code may read any file, so checking paths would be of no use
        copy = cJSON_Duplicate(root, true);
        MSC_TRY_OUT(MSC_ALLOCATED(copy));
        MSC_TRY_OUT(check(copy, &r));
    }
    status = write_tree(to, root);
out:
    cJSON_Delete(root);
    msc_arena_finish(&arena);
    return status;
}

// ---- Without a configuration ------------------------------------------------------------------

enum msc_status msc_job__check_files(const struct msc_job *job, const struct msc_jobs_options *o) {
    const char *const paths[] = {job->model, job->inputs, job->labels};
    struct msc_config config = {0};
    struct msc_config_path noted[3];
    struct msc_arena arena = {0};
    struct readable r;
    enum msc_status status = MSC_OK;
    if (!job->model || !job->inputs) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s is missing: a job needs \"config\", or \"model\" and "
                        "\"inputs\"",
                        job->model ? "\"inputs\"" : "\"model\"");
    }
    MSC_TRY_OUT(find_readable(&r, &arena, job, o));
    for (size_t i = 0; i < 3; i++) {
        const char *path = paths[i] ? msc_path_join(&arena, r.files, paths[i]) : r.files;
        MSC_TRY_OUT(MSC_ALLOCATED(path));
        noted[i] = (struct msc_config_path){.path = path, .next = config.paths};
        config.paths = &noted[i];
        if (paths[i] && !msc_file_exists(path)) {
            status = msc_config_check_inside(&config, r.folders, r.n, r.work);
            status =
                status == MSC_OK ? MSC_FAIL(MSC_E_INVALID, "%s: no such file", paths[i]) : status;
            goto out;
        }
    }
    status = msc_config_check_inside(&config, r.folders, r.n, r.work);
out:
    msc_arena_finish(&arena);
    return status;
}

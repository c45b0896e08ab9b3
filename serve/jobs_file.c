// A job as a file.
#include "serve/jobs_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "results/follow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "mscgym.job.1"

static const char *const state_names[] = {"queued", "running", "done", "failed", "cancelled"};

const char *msc_job__state_name(enum msc_job_state state) {
    return state_names[state];
}

struct text_member {
    const char *key;
    size_t offset;
};

static const struct text_member texts[] = {
    {"user", offsetof(struct msc_job, user)},     {"name", offsetof(struct msc_job, name)},
    {"config", offsetof(struct msc_job, config)}, {"model", offsetof(struct msc_job, model)},
    {"inputs", offsetof(struct msc_job, inputs)}, {"labels", offsetof(struct msc_job, labels)},
    {"target", offsetof(struct msc_job, target)}, {"time", offsetof(struct msc_job, time)},
};

#define N_TEXTS (sizeof texts / sizeof texts[0])

static char **text_of(struct msc_job *job, size_t i) {
    return (char **)((char *)job + texts[i].offset);
}

static const char *const_text_of(const struct msc_job *job, size_t i) {
    return *(char *const *)((const char *)job + texts[i].offset);
}

enum msc_status msc_job__set_text(char **text, const char *value) {
    char *copy = value ? msc_strdup(value) : NULL;
    MSC_TRY(MSC_ALLOCATED(copy || !value));
    msc_free(*text);
    *text = copy;
    return MSC_OK;
}

struct msc_job *msc_job__create(const char *id, const char *folder) {
    struct msc_job *job = msc_alloc_zero(1, sizeof *job);
    if (!job) {
        return NULL;
    }
    snprintf(job->id, sizeof job->id, "%s", id);
    job->folder = msc_strdup(folder);
    if (!job->folder) {
        msc_job__destroy(job);
        return NULL;
    }
    return job;
}

void msc_job__destroy(struct msc_job *job) {
    if (!job) {
        return;
    }
    for (size_t i = 0; i < N_TEXTS; i++) {
        msc_free(*text_of(job, i));
    }
    msc_free(job->now.message);
    cJSON_Delete(job->now.progress);
    msc_follow_close(job->follow);
    msc_free(job->followed);
    msc_free(job->folder);
    msc_free(job);
}

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status read_state(struct msc_job *job, const cJSON *object, const char *path) {
    const char *text = NULL;
    MSC_TRY(msc_json_get_text(&text, object, "state", path));
    for (size_t i = 0; i < sizeof state_names / sizeof state_names[0]; i++) {
        if (strcmp(text, state_names[i]) == 0) {
            job->now.state = (enum msc_job_state)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s: \"state\" is \"%s\"", path, text);
}

static double number_of(const cJSON *object, const char *key) {
    double value = msc_json_number_of(object, key);
    return isnan(value) ? 0.0 : value;
}

static enum msc_status read_members(struct msc_job *job, cJSON *object, const char *path) {
    const char *schema = NULL;
    MSC_TRY(msc_json_get_text(&schema, object, "schema", path));
    if (strcmp(schema, SCHEMA) != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: its schema is \"%s\", expected \"" SCHEMA "\"",
                        path, schema);
    }
    for (size_t i = 0; i < N_TEXTS; i++) {
        MSC_TRY(msc_job__set_text(text_of(job, i), msc_json_text_of(object, texts[i].key)));
    }
    MSC_TRY(msc_job__set_text(&job->now.message, msc_json_text_of(object, "message")));
    MSC_TRY(msc_json_get_i64(&job->number, object, "number", path));
    MSC_TRY(msc_json_get_bool(&job->now.is_cancelled, object, "is_cancelled", path));
    MSC_TRY(msc_json_get_bool(&job->now.is_removed, object, "is_removed", path));
    job->created_s = number_of(object, "created_s");
    job->now.begun_s = number_of(object, "begun_s");
    job->now.ended_s = number_of(object, "ended_s");
    job->now.progress = cJSON_DetachItemFromObjectCaseSensitive(object, "progress");
    MSC_TRY(read_state(job, object, path));
    return job->user && job->name ? MSC_OK
                                  : MSC_FAIL(MSC_E_FORMAT, "%s: \"user\" is missing", path);
}

enum msc_status msc_job__read(struct msc_job *job) {
    struct msc_arena arena = {0};
    cJSON *object = NULL;
    const char *path = msc_path_join(&arena, job->folder, MSC_JOB_FILE);
    enum msc_status status = MSC_ALLOCATED(path);
    if (status == MSC_OK) {
        status = msc_json_load(&object, path);
    }
    if (status == MSC_OK) {
        status = read_members(job, object, path);
    }
    cJSON_Delete(object);
    msc_arena_finish(&arena);
    return status;
}

// ---- Writing ----------------------------------------------------------------------------------

static enum msc_status describe(cJSON *object, const struct msc_job *job,
                                const struct msc_job_now *now) {
    MSC_TRY(msc_json_add_text(object, "schema", SCHEMA));
    MSC_TRY(msc_json_add_number(object, "number", (double)job->number));
    MSC_TRY(msc_json_add_text(object, "state", msc_job__state_name(now->state)));
    MSC_TRY(msc_json_add_bool(object, "is_cancelled", now->is_cancelled));
    MSC_TRY(msc_json_add_bool(object, "is_removed", now->is_removed));
    for (size_t i = 0; i < N_TEXTS; i++) {
        if (const_text_of(job, i)) {
            MSC_TRY(msc_json_add_text(object, texts[i].key, const_text_of(job, i)));
        }
    }
    if (now->message) {
        MSC_TRY(msc_json_add_text(object, "message", now->message));
    }
    MSC_TRY(msc_json_add_number(object, "created_s", job->created_s));
    MSC_TRY(msc_json_add_number(object, "begun_s", now->begun_s));
    MSC_TRY(msc_json_add_number(object, "ended_s", now->ended_s));
    return now->progress ? msc_json_add(object, "progress", cJSON_Duplicate(now->progress, true))
                         : MSC_OK;
}

enum msc_status msc_job__write(const struct msc_job *job, const struct msc_job_now *now) {
    struct msc_arena arena = {0};
    struct msc_str text = {0};
    cJSON *object = cJSON_CreateObject();
    const char *path = msc_path_join(&arena, job->folder, MSC_JOB_FILE);
    enum msc_status status = MSC_ALLOCATED(object && path);
    if (status == MSC_OK) {
        status = describe(object, job, now);
    }
    if (status == MSC_OK) {
        msc_json_write_pretty(&text, object);
        status = msc_str_status(&text);
    }
    if (status == MSC_OK) {
        status = msc_file_write(path, msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(object);
    msc_arena_finish(&arena);
    return status;
}

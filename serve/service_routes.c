// The addresses of the service, and the answers about jobs.
#include "serve/service_internal.h"

#include "base/alloc.h"
#include "base/json.h"
#include "serve/jobs_internal.h"

extern const char msc_serve_openapi[]; // serve/openapi.json

// ---- Answers ----------------------------------------------------------------------------------

unsigned msc_service__code(enum msc_status status) {
    switch (status) {
    case MSC_E_INVALID:
    case MSC_E_FORMAT:
    case MSC_E_UNSUPPORTED:
    case MSC_E_NOT_FOUND:
        return MHD_HTTP_BAD_REQUEST;
    case MSC_E_STATE:
        return MHD_HTTP_FORBIDDEN;
    case MSC_E_IO:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

void msc_service__write_error(struct msc_str *out, const char *text, const char *folder) {
    struct msc_str shown = {0};
    msc_job__append_without(&shown, text, folder);
    msc_str_append(out, "{\"error\":");
    msc_json_write_text(out, msc_str_text(&shown));
    msc_str_char(out, '}');
    out->failed = out->failed || shown.failed;
    msc_str_finish(&shown);
}

enum MHD_Result msc_service__fail(struct msc_request *request, unsigned code, const char *text,
                                  const char *folder) {
    struct msc_str json = {0};
    msc_service__write_error(&json, text ? text : msc_status_message(),
                             folder ? folder : request->service->o.of_jobs->folder);
    enum MHD_Result result =
        msc_str_status(&json) == MSC_OK
            ? msc_http_answer(request->connection, code, msc_str_text(&json), MSC_HTTP_JSON)
            : MHD_NO;
    msc_str_finish(&json);
    return result;
}

enum MHD_Result msc_service__send(struct msc_request *request, unsigned code, struct msc_str *text,
                                  const char *type) {
    struct msc_http_text *shared = NULL;
    if (msc_http_text_create(&shared, text, type) != MSC_OK) {
        return MHD_NO;
    }
    enum MHD_Result result =
        msc_http_send(request->connection, code, shared, &request->service->patience);
    msc_http_text_drop(shared);
    return result;
}

enum MHD_Result msc_service__json(struct msc_request *request, unsigned code, struct cJSON *value) {
    struct msc_str text = {0};
    msc_json_write(&text, value);
    cJSON_Delete(value);
    return msc_service__send(request, code, &text, MSC_HTTP_JSON);
}

const char *msc_service__argument(struct msc_request *request, const char *key,
                                  struct msc_arena *arena) {
    const char *value =
        MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, key);
    char *copy = value ? msc_arena_strdup(arena, value) : NULL;
    if (copy) {
        copy[MHD_http_unescape(copy)] = '\0';
    }
    return copy;
}

// ---- Jobs -------------------------------------------------------------------------------------

static enum MHD_Result answer_openapi(struct msc_request *r) {
    return msc_http_answer(r->connection, MHD_HTTP_OK, msc_serve_openapi, MSC_HTTP_JSON);
}

static enum MHD_Result fail_unknown(struct msc_request *r) {
    return msc_service__fail(r, MHD_HTTP_NOT_FOUND, "there is no such job", NULL);
}

static enum MHD_Result answer_list(struct msc_request *r) {
    cJSON *object = cJSON_CreateObject(), *list = NULL;
    enum msc_status status = MSC_ALLOCATED(object);
    if (status == MSC_OK) {
        status = msc_jobs_list(r->service->o.jobs, &list, r->user);
    }
    if (status == MSC_OK) {
        status = msc_json_add(object, "jobs", list);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return msc_service__fail(r, msc_service__code(status), NULL, NULL);
    }
    return msc_service__json(r, MHD_HTTP_OK, object);
}

static enum MHD_Result answer_job(struct msc_request *r) {
    cJSON *job = NULL;
    enum msc_status status = msc_jobs_describe(r->service->o.jobs, &job, r->user, r->id);
    return status != MSC_OK ? msc_service__fail(r, msc_service__code(status), NULL, NULL)
           : job            ? msc_service__json(r, MHD_HTTP_OK, job)
                            : fail_unknown(r);
}

static enum MHD_Result answer_change(struct msc_request *r, enum msc_job_answer answer) {
    switch (answer) {
    case MSC_JOB_OK:
        return answer_job(r);
    case MSC_JOB_UNKNOWN:
        return fail_unknown(r);
    case MSC_JOB_REFUSED:
        return msc_service__fail(r, MHD_HTTP_CONFLICT, NULL, NULL);
    default:
        return msc_service__fail(r, MHD_HTTP_INSUFFICIENT_STORAGE, NULL, NULL);
    }
}

static enum MHD_Result answer_cancel(struct msc_request *r) {
    return answer_change(r, msc_jobs_cancel(r->service->o.jobs, r->user, r->id));
}

static enum MHD_Result answer_resume(struct msc_request *r) {
    return answer_change(r, msc_jobs_resume(r->service->o.jobs, r->user, r->id));
}

static enum MHD_Result answer_remove(struct msc_request *r) {
    enum msc_job_answer answer = msc_jobs_remove(r->service->o.jobs, r->user, r->id);
    if (answer != MSC_JOB_OK) {
        return answer_change(r, answer);
    }
    cJSON *object = cJSON_CreateObject();
    if (!object || msc_json_add_text(object, "id", r->id) != MSC_OK ||
        msc_json_add_text(object, "state", "removed") != MSC_OK) {
        cJSON_Delete(object);
        return MHD_NO;
    }
    return msc_service__json(r, MHD_HTTP_OK, object);
}

#define JOBS "/v1/jobs"
#define JOB JOBS "/{id}"

const struct msc_route msc_service__routes[] = {
    {.method = "GET", .path = "/", .answer = msc_service__overview},
    {.method = "GET", .path = "/openapi.json", .answer = answer_openapi, .is_public = true},
    {.method = "GET", .path = JOBS, .answer = answer_list},
    {.method = "POST", .path = JOBS, .answer = msc_upload_submit, .takes_body = true},
    {.method = "GET", .path = JOB, .answer = answer_job},
    {.method = "DELETE", .path = JOB, .answer = answer_remove},
    {.method = "POST", .path = JOB "/cancel", .answer = answer_cancel},
    {.method = "POST", .path = JOB "/resume", .answer = answer_resume},
    {.method = "GET", .path = JOB "/events", .answer = msc_service__events},
    {.method = "GET", .path = JOB "/log", .answer = msc_service__log},
    {.method = "GET", .path = JOB "/result", .answer = msc_service__result},
    {.method = "GET", .path = JOB "/record", .answer = msc_service__record},
    {.method = "GET", .path = JOB "/plan", .answer = msc_service__plan},
    {.method = "GET", .path = JOB "/model", .answer = msc_service__model},
    {.method = "GET", .path = JOB "/report", .answer = msc_service__report},
    {0},
};

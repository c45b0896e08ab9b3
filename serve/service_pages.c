// Pages for browsers: the overview of a user's jobs, and the report of a job.
#include "serve/service_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "report/page.h"
#include "results/units.h"
#include "report/workspace.h"
#include "serve/jobs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_BESIDE 8

// ---- The overview -----------------------------------------------------------------------------

// Adds a value with its unit; nothing for NaN.
static enum msc_status add_value(cJSON *row, const char *key, double value) {
    struct msc_str text = {0};
    if (isfinite(value)) {
        msc_unit_value(&text, key, value);
    }
    enum msc_status status = msc_str_status(&text);
    status = status == MSC_OK ? msc_json_add_text(row, key, msc_str_text(&text)) : status;
    msc_str_finish(&text);
    return status;
}

// Adds a time to the minute: "2026-11-30 12:33" for "2026-11-30T12:33:12Z".
static enum msc_status add_time(cJSON *row, const char *key, const char *time) {
    char text[40];
    snprintf(text, sizeof text, "%.10s %.5s", time, strlen(time) > 11 ? time + 11 : "");
    return msc_json_add_text(row, key, text);
}

// Adds the state of a job, and how many jobs are before it in the queue.
static enum msc_status add_state(cJSON *row, const cJSON *job) {
    double before = msc_json_number_of(job, "jobs_before");
    char text[64];
    snprintf(text, sizeof text, before > 0.0 ? "%s, %.0f before it" : "%s",
             msc_json_text_of(job, "state"), before);
    return msc_json_add_text(row, "state", text);
}

static enum msc_status fill_row(cJSON *row, const cJSON *job) {
    const cJSON *progress = msc_json_get(job, "progress");
    const cJSON *metrics = msc_json_get(progress, "best_metrics");
    const char *message = msc_json_text_of(job, "message");
    char address[64];
    snprintf(address, sizeof address, "v1/jobs/%s/report", msc_json_text_of(job, "id"));
    MSC_TRY(msc_json_add_text(row, "name", msc_json_text_of(job, "name")));
    MSC_TRY(msc_json_add_text(row, "address", address));
    MSC_TRY(add_state(row, job));
    MSC_TRY(add_time(row, "created", msc_json_text_of(job, "created")));
    MSC_TRY(add_value(row, "trials", msc_json_number_of(progress, "trials")));
    MSC_TRY(add_value(row, "best", msc_json_number_of(progress, "best")));
    MSC_TRY(add_value(row, "accuracy", msc_json_number_of(metrics, "accuracy")));
    MSC_TRY(add_value(row, "size_bytes", msc_json_number_of(metrics, "size_bytes")));
    return msc_json_add_text(row, "message", message ? message : "");
}

static enum msc_status fill_rows(cJSON *rows, const cJSON *jobs) {
    const cJSON *job = NULL;
    cJSON_ArrayForEach(job, jobs) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(MSC_ALLOCATED(row));
        enum msc_status status = fill_row(row, job);
        if (status != MSC_OK) {
            cJSON_Delete(row);
            return status;
        }
        MSC_TRY(msc_json_push(rows, row));
    }
    return MSC_OK;
}

// Says how busy the service is, and what it computes on.
static void write_load(struct msc_str *out, const struct msc_jobs_load *load) {
    msc_str_printf(out, "Of all users, %zu %s and %zu %s. At most %zu %s at once, ",
                   load->n_running, load->n_running == 1 ? "job runs" : "jobs run", load->n_waiting,
                   load->n_waiting == 1 ? "waits" : "wait", load->most_running,
                   load->most_running == 1 ? "job runs" : "jobs run");
    if (load->cluster) {
        msc_str_append(out, "on the workers of ");
        msc_shown_append(out, load->cluster);
    } else {
        msc_str_printf(out, "on %lld thread%s", (long long)load->threads,
                       load->threads == 1 ? "" : "s");
    }
    if (load->memory_bytes > 0) {
        msc_str_append(out, " with ");
        msc_unit_value(out, "size_bytes", (double)load->memory_bytes);
        msc_str_append(out, " of memory");
    }
    msc_str_char(out, '.');
}

static enum msc_status write_overview(struct msc_str *out, const struct msc_request *r) {
    static const char *const columns[] = {"job",           "state",    "trials",
                                          "best",          "accuracy", "size_bytes",
                                          "created (UTC)", "message",  NULL};
    static const char *const keys[] = {"job",      "state",      "trials",  "best",
                                       "accuracy", "size_bytes", "created", "message"};
    const struct msc_jobs_load load = msc_jobs_load(r->service->o.jobs);
    cJSON *jobs = NULL, *rows = cJSON_CreateArray();
    struct msc_str note = {0};
    enum msc_status status = MSC_ALLOCATED(rows);
    write_load(&note, &load);
    if (status == MSC_OK) {
        status = msc_jobs_list(r->service->o.jobs, &jobs, r->user);
    }
    if (status == MSC_OK) {
        status = fill_rows(rows, jobs);
    }
    if (status == MSC_OK) {
        status = msc_page_write_list(out, &(struct msc_page_list){.title = "Jobs",
                                                                  .heading = "Newest first",
                                                                  .note = msc_str_text(&note),
                                                                  .columns = columns,
                                                                  .keys = keys,
                                                                  .kinds = " wnnnnw ",
                                                                  .rows = rows});
    }
    status = status == MSC_OK ? msc_str_status(&note) : status;
    msc_str_finish(&note);
    cJSON_Delete(jobs);
    cJSON_Delete(rows);
    return status;
}

enum MHD_Result msc_service__overview(struct msc_request *request) {
    struct msc_str text = {0};
    enum msc_status status = write_overview(&text, request);
    if (status != MSC_OK) {
        msc_str_finish(&text);
        return msc_service__fail(request, msc_service__code(status), NULL, NULL);
    }
    return msc_service__send(request, MHD_HTTP_OK, &text, MSC_HTTP_PAGE);
}

// ---- The report -------------------------------------------------------------------------------

static enum msc_status list_records(cJSON **out, const char *folder, struct msc_arena *arena) {
    const char *work = msc_path_join(arena, folder, "work");
    MSC_TRY(MSC_ALLOCATED(work));
    return msc_workspace_list(out, NULL, &work, 1);
}

static enum MHD_Result answer_records(struct msc_request *r, const cJSON *records,
                                      const char *folder) {
    const char *paths[MOST_BESIDE];
    struct msc_http_text *page = NULL;
    size_t n = 0;
    const cJSON *record = NULL;
    cJSON_ArrayForEach(record, records) {
        if (n < MOST_BESIDE) {
            paths[n++] = msc_json_text_of(record, "path");
        }
    }
    if (n == 0) {
        return msc_service__fail(r, MHD_HTTP_CONFLICT, "the job has no record yet", NULL);
    }
    const struct msc_page_source source = {
        .key = r->id, .paths = paths, .n = n, .write = msc_page_write_records, .back = "../../../"};
    if (msc_page_cache_get(&page, &r->service->pages, &source) != MSC_OK) {
        return msc_service__fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL, folder);
    }
    enum MHD_Result result = msc_http_send(r->connection, MHD_HTTP_OK, page, &r->service->patience);
    msc_http_text_drop(page);
    return result;
}

enum MHD_Result msc_service__report(struct msc_request *request) {
    struct msc_arena arena = {0};
    cJSON *records = NULL;
    char *folder = msc_jobs_folder(request->service->o.jobs, request->user, request->id);
    enum msc_status status = folder ? list_records(&records, folder, &arena) : MSC_OK;
    enum MHD_Result result =
        !folder ? msc_service__fail(request, MHD_HTTP_NOT_FOUND, "there is no such job", NULL)
        : status != MSC_OK ? msc_service__fail(request, msc_service__code(status), NULL, folder)
                           : answer_records(request, records, folder);
    cJSON_Delete(records);
    msc_free(folder);
    msc_arena_finish(&arena);
    return result;
}

// Answers that are files of a job, and the stream of its events.
#include "serve/service_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "report/workspace.h"
#include "serve/jobs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TYPE_BYTES "application/octet-stream"
#define TYPE_LINES "application/x-ndjson"
// Interval between looks at a job, and the longest silence of a stream.
#define LOOK_NS 250000000
#define SILENCE_S 8.0

// ---- Files ------------------------------------------------------------------------------------

struct stream {
    struct msc_service *service;
    struct MHD_Connection *connection;
    int file;
    uint64_t n_bytes; // when the answer began; a log may grow
};

static ssize_t read_stream(void *payload, uint64_t offset, char *buffer, size_t most) {
    struct stream *s = payload;
    uint64_t left = offset < s->n_bytes ? s->n_bytes - offset : 0;
    size_t wanted = left < most ? (size_t)left : most;
    ssize_t n = 0;
    msc_http_renew(&s->service->patience, s->connection);
    if (wanted == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    do {
        n = pread(s->file, buffer, wanted, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_stream(void *payload) {
    struct stream *s = payload;
    close(s->file);
    msc_free(s);
}

// Takes ownership of the descriptor.
static enum MHD_Result answer_file(struct msc_request *r, int file, const char *type,
                                   const char *name) {
    struct stat info;
    char value[160];
    struct stream *stream = msc_alloc_zero(1, sizeof *stream);
    if (!stream || fstat(file, &info) != 0) {
        close(file);
        msc_free(stream);
        return MHD_NO;
    }
    *stream = (struct stream){.service = r->service,
                              .connection = r->connection,
                              .file = file,
                              .n_bytes = (uint64_t)info.st_size};
    struct MHD_Response *response = MHD_create_response_from_callback(
        stream->n_bytes, MSC_HTTP_PART_BYTES, read_stream, stream, end_stream);
    if (!response) {
        end_stream(stream);
        return MHD_NO;
    }
    msc_http_add_headers(response, type);
    if (name) {
        snprintf(value, sizeof value, "attachment; filename=\"%.100s\"", name);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, value);
    }
    enum MHD_Result result = MHD_queue_response(r->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result fail_unknown(struct msc_request *r) {
    return msc_service__fail(r, MHD_HTTP_NOT_FOUND, "there is no such job", NULL);
}

static int open_file(const char *path) {
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))) {
        close(file);
        return -1;
    }
    return file;
}

// Answers with the file `name` of the job's folder; `missing` says why it may not be there.
static enum MHD_Result answer_named(struct msc_request *r, const char *name, const char *type,
                                    const char *missing) {
    struct msc_arena arena = {0};
    char *folder = msc_jobs_folder(r->service->o.jobs, r->user, r->id);
    const char *path = folder ? msc_path_join(&arena, folder, name) : NULL;
    int file = path ? open_file(path) : -1;
    enum MHD_Result result = !folder    ? fail_unknown(r)
                             : file < 0 ? msc_service__fail(r, MHD_HTTP_CONFLICT, missing, NULL)
                                        : answer_file(r, file, type, NULL);
    msc_free(folder);
    msc_arena_finish(&arena);
    return result;
}

enum MHD_Result msc_service__log(struct msc_request *request) {
    return answer_named(request, MSC_JOB_LOG, MSC_HTTP_TEXT, "the job has not begun");
}

// The newest record of the job.
enum MHD_Result msc_service__record(struct msc_request *request) {
    struct msc_arena arena = {0};
    char *folder = msc_jobs_folder(request->service->o.jobs, request->user, request->id);
    const char *path = folder ? msc_job__newest_record(folder, &arena) : NULL;
    int file = path ? open_file(path) : -1;
    enum MHD_Result result =
        !folder ? fail_unknown(request)
        : file < 0
            ? msc_service__fail(request, MHD_HTTP_CONFLICT, "the job has no record yet", NULL)
            : answer_file(request, file, TYPE_LINES, msc_path_name(path));
    msc_free(folder);
    msc_arena_finish(&arena);
    return result;
}

// ---- Results ----------------------------------------------------------------------------------

// What the search printed at its end; NULL: it has not ended.
static cJSON *read_result(const char *folder, struct msc_arena *arena) {
    cJSON *result = NULL;
    const char *path = msc_path_join(arena, folder, MSC_JOB_RESULT);
    struct stat info;
    bool is_there = path && stat(path, &info) == 0 && info.st_size > 0;
    if (is_there && msc_json_load(&result, path) == MSC_OK && !cJSON_IsArray(result)) {
        cJSON_Delete(result);
        result = NULL;
    }
    return result;
}

// The path of the file `kind` of the entry (NULL: the last entry that has one), in the arena.
static const char *find_result_file(const char *folder, const cJSON *result, const char *kind,
                                    const char *entry, struct msc_arena *arena) {
    const cJSON *report = NULL;
    const char *found = NULL;
    char *resolved = NULL, *root = NULL;
    cJSON_ArrayForEach(report, result) {
        const char *path = msc_json_text_of(msc_json_get(report, "files"), kind);
        const char *name = msc_json_text_of(report, "entry");
        found = path && (!entry || (name && strcmp(entry, name) == 0)) ? path : found;
    }
    const char *joined = found ? msc_path_join(arena, folder, found) : NULL;
    // The search wrote the path; still, only the job's own files are given out.
    bool is_own = joined && msc_path_absolute(&resolved, arena, joined) == MSC_OK &&
                  msc_path_absolute(&root, arena, folder) == MSC_OK &&
                  strncmp(resolved, root, strlen(root)) == 0 && resolved[strlen(root)] == '/';
    return is_own ? resolved : NULL;
}

static enum MHD_Result answer_result_file(struct msc_request *r, const char *kind,
                                          const char *type) {
    struct msc_arena arena = {0};
    const char *entry = msc_service__argument(r, "entry", &arena);
    char *folder = msc_jobs_folder(r->service->o.jobs, r->user, r->id);
    cJSON *results = folder ? read_result(folder, &arena) : NULL;
    const char *path = results ? find_result_file(folder, results, kind, entry, &arena) : NULL;
    int file = path ? open_file(path) : -1;
    enum MHD_Result result =
        !folder    ? fail_unknown(r)
        : !results ? msc_service__fail(r, MHD_HTTP_CONFLICT, "the search has not ended", NULL)
        : file < 0 ? msc_service__fail(r, MHD_HTTP_CONFLICT, "the search wrote no such file", NULL)
                   : answer_file(r, file, type, msc_path_name(path));
    cJSON_Delete(results);
    msc_free(folder);
    msc_arena_finish(&arena);
    return result;
}

enum MHD_Result msc_service__plan(struct msc_request *request) {
    return answer_result_file(request, "strategy", MSC_HTTP_JSON);
}

enum MHD_Result msc_service__model(struct msc_request *request) {
    return answer_result_file(request, "model", TYPE_BYTES);
}

enum MHD_Result msc_service__result(struct msc_request *request) {
    struct msc_arena arena = {0};
    char *folder = msc_jobs_folder(request->service->o.jobs, request->user, request->id);
    cJSON *results = folder ? read_result(folder, &arena) : NULL;
    enum MHD_Result result =
        !folder    ? fail_unknown(request)
        : !results ? msc_service__fail(request, MHD_HTTP_CONFLICT, "the search has not ended", NULL)
                   : msc_service__json(request, MHD_HTTP_OK, results);
    msc_free(folder);
    msc_arena_finish(&arena);
    return result;
}

// ---- Events -----------------------------------------------------------------------------------

struct events {
    struct msc_request request; // a copy, because the stream outlives the request
    char *last;                 // the state that was sent last; NULL: none yet
    struct msc_str out;         // what is being sent
    size_t sent;
    double sent_s;
    bool is_over;
};

static bool is_final(const cJSON *job) {
    const char *state = msc_json_text_of(job, "state");
    return strcmp(state, "done") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "cancelled") == 0;
}

// Looks at the job once; fills `out` if there is something to send.
static enum msc_status look(struct events *e) {
    const struct msc_request *r = &e->request;
    cJSON *job = NULL;
    struct msc_str text = {0};
    char *now = NULL;
    MSC_TRY(msc_jobs_describe(r->service->o.jobs, &job, r->user, r->id));
    if (!job) { // removed
        e->is_over = true;
        msc_str_append(&e->out, "event: removed\ndata: {}\n\n");
        return msc_str_status(&e->out);
    }
    msc_json_write(&text, job);
    e->is_over = is_final(job);
    cJSON_Delete(job);
    MSC_TRY(msc_str_take(&now, &text));
    if (!e->last || strcmp(e->last, now) != 0) {
        msc_str_printf(&e->out, "event: job\ndata: %s\n\n", now);
        msc_free(e->last);
        e->last = now;
    } else {
        msc_free(now);
    }
    return msc_str_status(&e->out);
}

static ssize_t read_events(void *payload, uint64_t offset, char *buffer, size_t most) {
    struct events *e = payload;
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    (void)offset;
    msc_http_renew(&e->request.service->patience, e->request.connection);
    while (e->sent == e->out.length) {
        msc_str_clear(&e->out);
        e->sent = 0;
        if (e->is_over || atomic_load(&e->request.service->is_stopping)) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (look(e) != MSC_OK) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (e->out.length == 0 && !e->is_over) {
            if (msc_clock_seconds() - e->sent_s >= SILENCE_S) {
                msc_str_append(&e->out, ": still here\n\n");
            } else {
                nanosleep(&pause, NULL);
            }
        }
    }
    size_t n = e->out.length - e->sent < most ? e->out.length - e->sent : most;
    memcpy(buffer, e->out.data + e->sent, n);
    e->sent += n;
    e->sent_s = msc_clock_seconds();
    return (ssize_t)n;
}

static void end_events(void *payload) {
    struct events *e = payload;
    msc_users_close_stream(e->request.service->o.users, e->request.user);
    msc_str_finish(&e->out);
    msc_free(e->last);
    msc_free(e);
}

enum MHD_Result msc_service__events(struct msc_request *request) {
    char *folder = msc_jobs_folder(request->service->o.jobs, request->user, request->id);
    bool is_known = folder != NULL;
    msc_free(folder);
    if (!is_known) {
        return fail_unknown(request);
    }
    if (!msc_users_open_stream(request->service->o.users, request->user)) {
        return msc_service__fail(request, MHD_HTTP_TOO_MANY_REQUESTS,
                                 "this user follows too many jobs at once", NULL);
    }
    struct events *e = msc_alloc_zero(1, sizeof *e);
    if (!e) {
        msc_users_close_stream(request->service->o.users, request->user);
        return MHD_NO;
    }
    *e = (struct events){.request = *request};
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_events, e, end_events);
    if (!response) {
        end_events(e);
        return MHD_NO;
    }
    msc_http_add_headers(response, "text/event-stream");
    enum MHD_Result result = MHD_queue_response(request->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

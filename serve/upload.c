// The body of a submission: parts of a form, of which files go to the folder of the new job as they
// arrive, or JSON.
#include "serve/service_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// A configuration is parsed in memory.
#define MOST_JSON MSC_JOB_CONFIG_BYTES
#define MOST_TEXT ((size_t)4096)
#define MOST_FILE_NAME ((size_t)100)
#define MOST_PARTS 1000
#define FORM_BYTES ((size_t)65536) // buffer of the parser of forms
// Uploads leave this much of the disk free.
#define RESERVED_BYTES ((uint64_t)64 << 20)

enum field { CONFIG, MODEL, INPUTS, LABELS, NAME, TARGET, TIME, N_FIELDS };

static const char *const field_names[N_FIELDS] = {"config", "model",  "inputs", "labels",
                                                  "name",   "target", "time"};

struct msc_upload {
    char *folder;                   // of the new job; NULL: it is a job already, or was not made
    bool is_form;                   // else the body is JSON
    struct MHD_PostProcessor *form; // NULL: not begun, or over
    struct msc_str json;
    uint64_t most_bytes;
    int file; // the file that is being received; -1: none
    size_t n_parts;
    struct msc_str part_key, part_file, text; // of the part that is being received
    bool is_part_empty;                       // nothing of it has come yet
    bool in_text;
    char *fields[N_FIELDS];
    bool is_file[N_FIELDS];
    unsigned code; // of the first failure; 0: none
    char message[512];
};

static void note_failure(struct msc_upload *u, unsigned code) {
    if (u->code == 0) {
        u->code = code;
        snprintf(u->message, sizeof u->message, "%s", msc_status_message());
    }
}

static int field_of(const char *key) {
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(field_names[i], key) == 0) {
            return i;
        }
    }
    return -1;
}

// ---- Files ------------------------------------------------------------------------------------

static bool is_file_name(const char *name) {
    size_t n = strlen(name);
    return n > 0 && n <= MOST_FILE_NAME && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") == n;
}

static unsigned code_of_errno(void) {
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? MHD_HTTP_INSUFFICIENT_STORAGE
                                                                : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static void open_file(struct msc_upload *u, const char *name) {
    struct msc_arena arena = {0};
    if (!is_file_name(name)) {
        (void)MSC_FAIL(MSC_E_INVALID,
                       "the file name \"%.60s\" is not allowed: use letters, digits "
                       "and \"._+-\", with a letter or digit first",
                       name);
        note_failure(u, MHD_HTTP_BAD_REQUEST);
        return;
    }
    const char *path = msc_arena_printf(&arena, "%s/files/%s", u->folder, name);
    u->file = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    if (u->file < 0 && path && errno == EEXIST) {
        (void)MSC_FAIL(MSC_E_INVALID, "two files have the name \"%s\"", name);
        note_failure(u, MHD_HTTP_BAD_REQUEST);
    } else if (u->file < 0) {
        (void)MSC_FAIL(MSC_E_IO, "%s: cannot be written: %s", name, strerror(errno));
        note_failure(u, path ? code_of_errno() : MHD_HTTP_INTERNAL_SERVER_ERROR);
    }
    msc_arena_finish(&arena);
}

static void write_file(struct msc_upload *u, const char *data, size_t n_bytes) {
    while (n_bytes > 0 && u->code == 0) {
        ssize_t n = write(u->file, data, n_bytes);
        if (n < 0 && errno != EINTR) {
            (void)MSC_FAIL(MSC_E_IO, "the server's disk: %s", strerror(errno));
            note_failure(u, code_of_errno());
        } else if (n > 0) {
            data += n;
            n_bytes -= (size_t)n;
        }
    }
}

// ---- Parts of a form --------------------------------------------------------------------------

static void set_field(struct msc_upload *u, int field, const char *value, bool is_file) {
    if (u->fields[field]) {
        (void)MSC_FAIL(MSC_E_INVALID, "\"%s\" is given twice", field_names[field]);
        note_failure(u, MHD_HTTP_BAD_REQUEST);
        return;
    }
    u->fields[field] = msc_strdup(value);
    u->is_file[field] = is_file;
    if (!u->fields[field]) {
        (void)MSC_FAIL(MSC_E_NOMEM, "out of memory");
        note_failure(u, MHD_HTTP_INTERNAL_SERVER_ERROR);
    }
}

static void end_part(struct msc_upload *u) {
    if (u->file >= 0) {
        if (fsync(u->file) != 0 && errno != EINVAL) {
            (void)MSC_FAIL(MSC_E_IO, "the server's disk: %s", strerror(errno));
            note_failure(u, code_of_errno());
        }
        close(u->file);
        u->file = -1;
    } else if (u->in_text && u->code == 0) {
        int field = field_of(msc_str_text(&u->part_key));
        const char *text = msc_str_text(&u->text);
        if (msc_utf8_check(text, u->text.length, field_names[field]) != MSC_OK ||
            strlen(text) != u->text.length) {
            (void)MSC_FAIL(MSC_E_INVALID, "\"%s\" is not UTF-8", field_names[field]);
            note_failure(u, MHD_HTTP_BAD_REQUEST);
        } else {
            set_field(u, field, text, false);
        }
    }
    u->in_text = false;
}

static void begin_part(struct msc_upload *u, const char *key, const char *file_name) {
    int field = field_of(key);
    bool may_be_file = field <= LABELS && (field >= 0 || strcmp(key, "file") == 0);
    const char *name = file_name ? file_name : field == CONFIG ? "config.json" : NULL;
    end_part(u);
    msc_str_clear(&u->part_key);
    msc_str_append(&u->part_key, key);
    msc_str_clear(&u->part_file);
    msc_str_append(&u->part_file, file_name ? file_name : "");
    msc_str_clear(&u->text);
    if (++u->n_parts > MOST_PARTS || (field < 0 && strcmp(key, "file") != 0)) {
        (void)MSC_FAIL(MSC_E_INVALID,
                       u->n_parts > MOST_PARTS
                           ? "the form has too many parts"
                           : "unknown part \"%.40s\": expected config, model, inputs, labels, "
                             "file, name, target or time",
                       key);
        note_failure(u, MHD_HTTP_BAD_REQUEST);
    } else if (name && may_be_file) {
        open_file(u, name);
        if (field >= 0 && u->code == 0) {
            set_field(u, field, name, true);
        }
    } else if (file_name || field < 0) {
        (void)MSC_FAIL(MSC_E_INVALID,
                       file_name ? "\"%.40s\" cannot be a file" : "\"%.40s\" has no file name",
                       key);
        note_failure(u, MHD_HTTP_BAD_REQUEST);
    } else {
        u->in_text = true;
    }
}

static void take_text(struct msc_upload *u, const char *data, size_t n_bytes) {
    if (u->text.length + n_bytes > MOST_TEXT) {
        (void)MSC_FAIL(MSC_E_INVALID, "\"%s\" is too long", msc_str_text(&u->part_key));
        note_failure(u, MHD_HTTP_BAD_REQUEST);
        return;
    }
    msc_str_append_n(&u->text, data, n_bytes);
    if (u->text.failed) {
        (void)MSC_FAIL(MSC_E_NOMEM, "out of memory");
        note_failure(u, MHD_HTTP_INTERNAL_SERVER_ERROR);
    }
}

static bool is_part(const struct msc_upload *u, const char *key, const char *file_name) {
    return strcmp(msc_str_text(&u->part_key), key) == 0 &&
           strcmp(msc_str_text(&u->part_file), file_name ? file_name : "") == 0;
}

static enum MHD_Result take_part(void *payload, enum MHD_ValueKind kind, const char *key,
                                 const char *file_name, const char *type, const char *encoding,
                                 const char *data, uint64_t offset, size_t n_bytes) {
    struct msc_upload *u = payload;
    (void)kind;
    (void)type;
    (void)encoding;
    if (u->code != 0) {
        return MHD_NO;
    }
    if (!key) {
        (void)MSC_FAIL(MSC_E_INVALID, "a part of the form has no name");
        note_failure(u, MHD_HTTP_BAD_REQUEST);
        return MHD_NO;
    }
    // libmicrohttpd may announce a part before its first byte, again from offset 0.
    bool goes_on = offset > 0 || (u->is_part_empty && is_part(u, key, file_name));
    if (!goes_on) {
        begin_part(u, key, file_name);
    }
    u->is_part_empty = offset == 0 && n_bytes == 0;
    if (u->code == 0 && u->file >= 0) {
        write_file(u, data, n_bytes);
    } else if (u->code == 0 && u->in_text) {
        take_text(u, data, n_bytes);
    }
    return u->code == 0 ? MHD_YES : MHD_NO;
}

// ---- Beginning --------------------------------------------------------------------------------

static const char *header(struct msc_request *r, const char *name) {
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

// Refuses by the size that the request announces: 413, or 507 for want of disk.
static unsigned check_size(struct msc_request *r, const char *folder) {
    struct msc_user *user = r->user;
    uint64_t said = 0, free_bytes = 0;
    const char *value = header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (value && !msc_parse_u64(&said, value)) {
        (void)MSC_FAIL(MSC_E_INVALID, "Content-Length is no number");
        return MHD_HTTP_BAD_REQUEST;
    }
    if (said > user->upload_bytes) {
        (void)MSC_FAIL(MSC_E_INVALID,
                       "the request has %llu bytes, more than the %llu of one upload",
                       (unsigned long long)said, (unsigned long long)user->upload_bytes);
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    uint64_t used = msc_jobs_disk_bytes(r->service->o.jobs, user);
    r->upload->most_bytes = msc_users_reserve(r->service->o.users, user, used, said);
    if (r->upload->most_bytes == 0) {
        (void)MSC_FAIL(
            MSC_E_IO,
            "the quota of %llu bytes has no room for this upload: jobs use %llu, and other "
            "uploads may run; remove a job first",
            (unsigned long long)user->disk_bytes, (unsigned long long)used);
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    }
    if (msc_file_free_bytes(&free_bytes, folder) == MSC_OK && free_bytes < RESERVED_BYTES + said) {
        (void)MSC_FAIL(MSC_E_IO, "the server's disk is full");
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    }
    return 0;
}

static bool has_type(const char *value, const char *type) {
    size_t n = strlen(type);
    return value && strncasecmp(value, type, n) == 0 &&
           (value[n] == '\0' || value[n] == ';' || value[n] == ' ');
}

unsigned msc_upload_begin(struct msc_request *request) {
    const char *type = header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    const bool is_form = has_type(type, "multipart/form-data");
    if (!is_form && !has_type(type, "application/json")) {
        (void)MSC_FAIL(MSC_E_INVALID,
                       "Content-Type: expected multipart/form-data or application/json");
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    struct msc_upload *u = msc_alloc_zero(1, sizeof *u);
    if (!u) {
        (void)MSC_FAIL(MSC_E_NOMEM, "out of memory");
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    request->upload = u;
    u->file = -1;
    u->is_form = is_form;
    unsigned code = check_size(request, request->service->o.of_jobs->folder);
    if (code != 0) {
        return code;
    }
    if (is_form) {
        u->form = MHD_create_post_processor(request->connection, FORM_BYTES, take_part, u);
        if (!u->form) {
            (void)MSC_FAIL(MSC_E_INVALID, "Content-Type: the form has no boundary");
            return MHD_HTTP_BAD_REQUEST;
        }
    }
    enum msc_status status = msc_jobs_begin(request->service->o.jobs, &u->folder);
    return status == MSC_OK ? 0 : msc_service__code(status);
}

void msc_upload_take(struct msc_request *request, const char *data, size_t n_bytes) {
    struct msc_upload *u = request->upload;
    if (u->code != 0) {
        return;
    }
    uint64_t most = u->is_form ? u->most_bytes : MOST_JSON;
    if (request->body_bytes > most) {
        (void)MSC_FAIL(MSC_E_INVALID, "the request has more than the %llu bytes allowed",
                       (unsigned long long)most);
        note_failure(u, MHD_HTTP_CONTENT_TOO_LARGE);
    } else if (!u->is_form) {
        msc_str_append_n(&u->json, data, n_bytes);
    } else if (MHD_post_process(u->form, data, n_bytes) != MHD_YES) {
        (void)MSC_FAIL(MSC_E_INVALID, "the form is malformed");
        note_failure(u, MHD_HTTP_BAD_REQUEST);
    }
}

// ---- Submitting -------------------------------------------------------------------------------

static enum msc_status write_config(struct msc_upload *u, const cJSON *config) {
    struct msc_arena arena = {0};
    struct msc_str text = {0};
    const char *path = msc_arena_printf(&arena, "%s/files/config.json", u->folder);
    msc_json_write(&text, config);
    enum msc_status status = MSC_ALLOCATED(path && !text.failed);
    if (status == MSC_OK) {
        status = msc_file_write(path, msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status read_json(struct msc_upload *u) {
    cJSON *root = NULL;
    const cJSON *item = NULL;
    MSC_TRY(msc_str_status(&u->json));
    MSC_TRY(msc_json_parse(&root, msc_str_text(&u->json), u->json.length, "body"));
    enum msc_status status = cJSON_IsObject(root)
                                 ? msc_json_check_keys(root, field_names, N_FIELDS, "body")
                                 : MSC_FAIL(MSC_E_INVALID, "body: expected an object");
    cJSON_ArrayForEach(item, root) {
        int field = status == MSC_OK ? field_of(item->string) : -1;
        if (field == CONFIG) {
            status = cJSON_IsObject(item)
                         ? write_config(u, item)
                         : MSC_FAIL(MSC_E_INVALID, "body: \"config\": expected an object");
            set_field(u, CONFIG, "config.json", true);
        } else if (field >= 0 && cJSON_IsString(item) && strlen(item->valuestring) <= MOST_TEXT) {
            set_field(u, field, item->valuestring, false);
        } else if (field >= 0) {
            status = MSC_FAIL(MSC_E_INVALID, "body: \"%s\": expected a text", item->string);
        }
    }
    cJSON_Delete(root);
    return status;
}

// A path that is not absolute is looked for under the roots.
static enum msc_status find_under_root(struct msc_upload *u, enum field field,
                                       const struct msc_jobs_options *o, struct msc_arena *arena) {
    const char *path = u->fields[field];
    if (!path || u->is_file[field] || path[0] == '/') {
        return MSC_OK;
    }
    for (size_t i = 0; i < o->n_roots && msc_path_is_inside(path); i++) {
        char *joined = msc_path_join(arena, o->roots[i], path);
        MSC_TRY(MSC_ALLOCATED(joined));
        if (msc_file_exists(joined)) {
            msc_free(u->fields[field]);
            u->fields[field] = msc_strdup(joined);
            return MSC_ALLOCATED(u->fields[field]);
        }
    }
    return MSC_FAIL(MSC_E_INVALID, "%s: %s: no such file in the folders of the server (--root)",
                    field_names[field], path);
}

static enum msc_status finish_fields(struct msc_upload *u, const struct msc_jobs_options *o) {
    struct msc_arena arena = {0};
    enum msc_status status = u->is_form ? MSC_OK : read_json(u);
    for (enum field f = MODEL; status == MSC_OK && f <= LABELS; f++) {
        status = find_under_root(u, f, o, &arena);
    }
    msc_arena_finish(&arena);
    return status;
}

static enum MHD_Result fail_upload(struct msc_request *r, unsigned code) {
    return msc_service__fail(r, code, NULL, r->upload->folder);
}

enum MHD_Result msc_upload_submit(struct msc_request *request) {
    struct msc_upload *u = request->upload;
    const struct msc_service_options *o = &request->service->o;
    enum msc_job_answer answer = MSC_JOB_OK;
    cJSON *job = NULL;
    if (u->form) {
        if (MHD_destroy_post_processor(u->form) != MHD_YES && u->code == 0) {
            (void)MSC_FAIL(MSC_E_INVALID, "the form is incomplete");
            note_failure(u, MHD_HTTP_BAD_REQUEST);
        }
        u->form = NULL;
        end_part(u);
    }
    if (u->code != 0) {
        return msc_service__fail(request, u->code, u->message, u->folder);
    }
    enum msc_status status = finish_fields(u, o->of_jobs);
    if (status != MSC_OK || u->code != 0) {
        return status != MSC_OK ? fail_upload(request, msc_service__code(status))
                                : msc_service__fail(request, u->code, u->message, u->folder);
    }
    const struct msc_job_wish wish = {.user = request->user,
                                      .name = u->fields[NAME],
                                      .config = u->fields[CONFIG],
                                      .model = u->fields[MODEL],
                                      .inputs = u->fields[INPUTS],
                                      .labels = u->fields[LABELS],
                                      .target = u->fields[TARGET],
                                      .time = u->fields[TIME]};
    status = msc_jobs_submit(o->jobs, request->id, &answer, u->folder, &wish);
    if (status != MSC_OK) {
        return fail_upload(request, answer == MSC_JOB_TOO_MANY ? MHD_HTTP_TOO_MANY_REQUESTS
                                                               : msc_service__code(status));
    }
    msc_free(u->folder);
    u->folder = NULL;
    status = msc_jobs_describe(o->jobs, &job, request->user, request->id);
    return status == MSC_OK && job
               ? msc_service__json(request, MHD_HTTP_CREATED, job)
               : msc_service__fail(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory", NULL);
}

void msc_upload_finish(struct msc_request *request) {
    struct msc_upload *upload = request->upload;
    if (!upload) {
        return;
    }
    msc_users_release(request->service->o.users, request->user, upload->most_bytes);
    if (upload->form) {
        upload->code = MHD_HTTP_BAD_REQUEST; // the parser may still have bytes: they are ignored
        MHD_destroy_post_processor(upload->form);
    }
    if (upload->file >= 0) {
        close(upload->file);
    }
    if (upload->folder) {
        msc_jobs_abandon(upload->folder);
        msc_free(upload->folder);
    }
    for (int i = 0; i < N_FIELDS; i++) {
        msc_free(upload->fields[i]);
    }
    msc_str_finish(&upload->json);
    msc_str_finish(&upload->part_key);
    msc_str_finish(&upload->part_file);
    msc_str_finish(&upload->text);
    msc_free(upload);
}

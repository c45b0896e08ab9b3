// Internal to serve/: a request, shared by the files that answer requests.
#ifndef MSC_SERVE_SERVICE_INTERNAL_H
#define MSC_SERVE_SERVICE_INTERNAL_H

#include "serve/service.h"

#include "base/str.h"
#include "report/page_cache.h"

#include <stdatomic.h>

// One thread for each connection.
#define MSC_SERVICE_MOST_CONNECTIONS 256

struct msc_service {
    struct msc_service_options o;
    char url[128];
    char *certificate, *key; // contents
    struct MHD_Daemon *daemon;
    struct msc_patience patience;
    struct msc_patience_wait waits[MSC_SERVICE_MOST_CONNECTIONS];
    struct msc_page_cache pages;
    atomic_bool is_stopping;
};

struct msc_upload;

struct msc_request {
    struct msc_service *service;
    struct MHD_Connection *connection;
    struct msc_user *user; // NULL: the request needs none
    const struct msc_route *route;
    char id[MSC_JOB_ID_BYTES];
    uint64_t body_bytes; // received so far
    struct msc_upload *upload;
    // Why the request is refused without a look at its body; 0: it is not.
    unsigned code;
    char message[512];
    struct msc_str allowed; // methods of the address, for 405
    bool is_reading;        // GET or HEAD
    bool is_answered;
};

struct msc_route {
    const char *method;
    const char *path; // "{id}" stands for a job
    enum MHD_Result (*answer)(struct msc_request *request);
    bool is_public;
    bool takes_body;
};

extern const struct msc_route msc_service__routes[]; // ended by an empty one

// ---- Answers ----------------------------------------------------------------------------------

// {"error": text} of one line. Uses the thread's message if `text` is NULL, without the server's
// own path `folder` (NULL: the folder of the jobs).
void msc_service__write_error(struct msc_str *out, const char *text, const char *folder);
enum MHD_Result msc_service__fail(struct msc_request *request, unsigned code, const char *text,
                                  const char *folder);
// The code that fits a status: 400, 403, 500 or 507.
unsigned msc_service__code(enum msc_status status);
// Answers with the text, which it takes over.
enum MHD_Result msc_service__send(struct msc_request *request, unsigned code, struct msc_str *text,
                                  const char *type);
// Answers with JSON and frees it.
enum MHD_Result msc_service__json(struct msc_request *request, unsigned code, struct cJSON *value);
// The argument `key` of the address, with escapes resolved, in the arena; NULL: none.
const char *msc_service__argument(struct msc_request *request, const char *key,
                                  struct msc_arena *arena);

// service_files.c
enum MHD_Result msc_service__events(struct msc_request *request);
enum MHD_Result msc_service__log(struct msc_request *request);
enum MHD_Result msc_service__result(struct msc_request *request);
enum MHD_Result msc_service__record(struct msc_request *request);
enum MHD_Result msc_service__plan(struct msc_request *request);
enum MHD_Result msc_service__model(struct msc_request *request);

// service_pages.c
enum MHD_Result msc_service__overview(struct msc_request *request);
enum MHD_Result msc_service__report(struct msc_request *request);

// upload.c: the body of a submission. `begin` looks at the headers: if it returns a code other than
// 0, the request is refused with the thread's message. `take` gets the parts of the body; after a
// failure it ignores the rest. `submit` answers.
unsigned msc_upload_begin(struct msc_request *request);
void msc_upload_take(struct msc_request *request, const char *data, size_t n_bytes);
enum MHD_Result msc_upload_submit(struct msc_request *request);
void msc_upload_finish(struct msc_request *request); // also if there is no upload

#endif

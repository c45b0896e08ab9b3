#include "serve/service_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

// Time limit of a silent connection, for sending the head of a request, for each further part of a
// body, and for reading each part of an answer.
#define TIMEOUT_S 15
// Most connections from one address, so that others can still connect.
#define MOST_OF_ADDRESS (MSC_SERVICE_MOST_CONNECTIONS / 4)
// Most bytes of a body that means nothing.
#define MOST_IGNORED ((uint64_t)65536)
#define BEARER "Bearer "
// Of the threads that answer requests, so that they do not slow searches down.
#define NICENESS 10

// ---- Access control --------------------------------------------------------------------------

static struct msc_user *find_bearer(struct msc_request *r) {
    const char *value =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    return value && strncasecmp(value, BEARER, sizeof BEARER - 1) == 0
               ? msc_users_find(r->service->o.users, value + sizeof BEARER - 1)
               : NULL;
}

// The password is the token; the name must be the user's.
static struct msc_user *find_basic(struct msc_request *r) {
    char *password = NULL;
    char *name = MHD_basic_auth_get_username_password(r->connection, &password);
    struct msc_user *user = password ? msc_users_find(r->service->o.users, password) : NULL;
    user = user && name && strcmp(user->name, name) == 0 ? user : NULL;
    MHD_free(name);
    MHD_free(password);
    return user;
}

// ---- Addresses --------------------------------------------------------------------------------

// True if the address is that of the route. "{id}" takes 12 hexadecimal digits.
static bool matches(char id[MSC_JOB_ID_BYTES], const char *path, const char *url) {
    const char *place = strstr(path, "{id}");
    if (!place) {
        return strcmp(path, url) == 0;
    }
    size_t before = (size_t)(place - path);
    if (strncmp(path, url, before) != 0) {
        return false;
    }
    size_t n = strcspn(url + before, "/");
    if (n == 0 || strcmp(place + strlen("{id}"), url + before + n) != 0) {
        return false;
    }
    // An id of another form is no job: an empty one is found nowhere.
    bool is_id = n == MSC_JOB_ID_BYTES - 1;
    snprintf(id, MSC_JOB_ID_BYTES, "%.*s", is_id ? (int)n : 0, url + before);
    return true;
}

static bool is_method(const struct msc_route *route, const char *method) {
    bool is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    return strcmp(route->method, is_head ? MHD_HTTP_METHOD_GET : method) == 0;
}

// Finds the route. If only other methods have this address, *allowed lists them.
static const struct msc_route *find_route(struct msc_request *r, struct msc_str *allowed,
                                          const char *url, const char *method) {
    for (const struct msc_route *route = msc_service__routes; route->path; route++) {
        if (matches(r->id, route->path, url)) {
            if (is_method(route, method)) {
                return route;
            }
            msc_str_item(allowed, route->method);
        }
    }
    return NULL;
}

// ---- Refusals ---------------------------------------------------------------------------------

static void refuse(struct msc_request *r, unsigned code, const char *text) {
    r->code = code;
    snprintf(r->message, sizeof r->message, "%s", text);
}

static struct MHD_Response *make_refusal(struct msc_request *r) {
    struct msc_str text = {0};
    msc_service__write_error(&text, r->message, r->service->o.of_jobs->folder);
    struct MHD_Response *response =
        text.failed ? NULL : msc_http_response(msc_str_text(&text), text.length, MSC_HTTP_JSON);
    msc_str_finish(&text);
    if (response && r->code == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                r->is_reading ? "Basic realm=\"mscgym\"" : "Bearer");
    } else if (response && r->code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, msc_str_text(&r->allowed));
    } else if (response && r->code == MHD_HTTP_TOO_MANY_REQUESTS) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    return response;
}

static enum MHD_Result answer_refusal(struct msc_request *r) {
    struct MHD_Response *response = make_refusal(r);
    if (!response) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_queue_response(r->connection, r->code, response);
    MHD_destroy_response(response);
    r->is_answered = true;
    return result;
}

// ---- Requests ---------------------------------------------------------------------------------

static const char *header(struct msc_request *r, const char *name) {
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

static uint64_t said_bytes(struct msc_request *r) {
    uint64_t bytes = 0;
    const char *value = header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return value && msc_parse_u64(&bytes, value) ? bytes : 0;
}

// Decides on the head of the request alone; sets `code` if the request is refused.
static void judge(struct msc_request *r, const char *url, const char *method) {
    r->route = find_route(r, &r->allowed, url, method);
    bool is_public = r->route && r->route->is_public;
    unsigned code = 0;
    r->user = is_public ? NULL : find_bearer(r);
    if (!r->user && !is_public && r->is_reading) {
        r->user = find_basic(r);
    }
    if (!r->user && !is_public) {
        refuse(r, MHD_HTTP_UNAUTHORIZED, "the token is missing or unknown");
    } else if (r->user && !msc_users_may_ask(r->service->o.users, r->user)) {
        refuse(r, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests; wait a second");
    } else if (!r->route && r->allowed.length > 0) {
        refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "this address has other methods");
    } else if (!r->route) {
        refuse(r, MHD_HTTP_NOT_FOUND, "there is nothing at this address");
    } else if (!r->route->takes_body && said_bytes(r) > MOST_IGNORED) {
        refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "this request takes no body");
    } else if (r->route->takes_body && (code = msc_upload_begin(r)) != 0) {
        refuse(r, code, msc_status_message());
    }
}

static enum MHD_Result begin_request(struct msc_request *r, const char *url, const char *method) {
    r->is_reading =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    judge(r, url, method);
    // A client that sends its body without asking first would not see an answer before the end.
    bool sends_body = (said_bytes(r) > 0 || header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING)) &&
                      !header(r, MHD_HTTP_HEADER_EXPECT);
    return r->code != 0 && !sends_body ? answer_refusal(r) : MHD_YES;
}

static enum MHD_Result take_body(struct msc_request *r, const char *data, size_t n_bytes) {
    // A connection that sends at least this much in TIMEOUT_S may go on.
    static const uint64_t step = (uint64_t)256 << 10;
    uint64_t before = r->body_bytes;
    r->body_bytes += n_bytes;
    if (r->code == 0 && !r->route->takes_body && r->body_bytes > MOST_IGNORED) {
        refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "this request takes no body");
    }
    // A refused body is read and dropped: closing the connection before its end would take the
    // answer from a client that is still sending.
    if (r->code == 0 && r->upload) {
        msc_upload_take(r, data, n_bytes);
    }
    if (r->user && before / step != r->body_bytes / step) {
        msc_http_renew(&r->service->patience, r->connection);
    }
    return MHD_YES;
}

static enum MHD_Result take_request(struct msc_service *s, struct MHD_Connection *connection,
                                    const char *url, const char *method, const char *upload,
                                    size_t *upload_size, void **of_request) {
    struct msc_request *r = *of_request;
    if (!r) {
        r = msc_alloc_zero(1, sizeof *r);
        if (!r) {
            return MHD_NO;
        }
        *r = (struct msc_request){.service = s, .connection = connection};
        *of_request = r;
        return begin_request(r, url, method);
    }
    if (r->is_answered) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        size_t n = *upload_size;
        *upload_size = 0;
        return take_body(r, upload, n);
    }
    enum MHD_Result result = r->code != 0 ? answer_refusal(r) : r->route->answer(r);
    msc_http_renew(&s->patience, connection);
    return result;
}

static enum MHD_Result answer(void *payload, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **of_request) {
    struct msc_service *s = payload;
    (void)version;
    // The server's own work, such as making a page, does not count towards the time limit.
    msc_http_pause(&s->patience, connection);
    enum MHD_Result result =
        take_request(s, connection, url, method, upload, upload_size, of_request);
    msc_http_go_on(&s->patience, connection);
    return result;
}

static void end_request(void *payload, struct MHD_Connection *connection, void **of_request,
                        enum MHD_RequestTerminationCode code) {
    struct msc_service *s = payload;
    struct msc_request *r = *of_request;
    if (r) {
        msc_upload_finish(r);
        msc_str_finish(&r->allowed);
        msc_free(r);
        *of_request = NULL;
    }
    msc_http_note_end(&s->patience, connection, of_request, code);
}

// ---- Start and stop ---------------------------------------------------------------------------

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static enum msc_status read_address(union any_address *out, const struct msc_service_options *o) {
    *out = (union any_address){.v4 = {.sin_family = AF_INET, .sin_port = htons(o->port)}};
    if (inet_pton(AF_INET, o->address, &out->v4.sin_addr) == 1) {
        return MSC_OK;
    }
    *out = (union any_address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)}};
    return inet_pton(AF_INET6, o->address, &out->v6.sin6_addr) == 1
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "--address is \"%s\", expected an IP address such as 127.0.0.1",
                          o->address);
}

static enum msc_status read_tls(struct msc_service *s) {
    if (!s->o.certificate) {
        return MSC_OK;
    }
    if (MHD_is_feature_supported(MHD_FEATURE_SSL) != MHD_YES) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "--certificate: this libmicrohttpd has no TLS");
    }
    size_t n_bytes = 0;
    MSC_TRY(msc_file_read(&s->certificate, &n_bytes, s->o.certificate));
    return msc_file_read(&s->key, &n_bytes, s->o.key);
}

// The listening thread calls this; the threads of connections inherit its priority from it.
// Searches, which another thread starts, keep theirs.
static enum MHD_Result accept_quietly(void *payload, const struct sockaddr *address,
                                      socklen_t length) {
    (void)payload;
    (void)address;
    (void)length;
    (void)setpriority(PRIO_PROCESS, 0, NICENESS); // if it fails, the priority does not change
    return MHD_YES;
}

static enum msc_status listen_at(struct msc_service *s) {
    union any_address address;
    const bool has_tls = s->certificate != NULL;
    MSC_TRY(read_address(&address, &s->o));
    bool is_v6 = address.any.sa_family == AF_INET6;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | (is_v6 ? MHD_USE_IPv6 : 0) | (has_tls ? MHD_USE_TLS : 0);
    const struct MHD_OptionItem tls[] = {
        {has_tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, s->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
        {MHD_OPTION_END, 0, NULL},
    };
    s->daemon = MHD_start_daemon(
        flags, s->o.port, accept_quietly, NULL, answer, s, MHD_OPTION_SOCK_ADDR, &address.any,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MSC_SERVICE_MOST_CONNECTIONS,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)MOST_OF_ADDRESS, MHD_OPTION_NOTIFY_CONNECTION,
        msc_http_note_connection, &s->patience, MHD_OPTION_NOTIFY_COMPLETED, end_request, s,
        MHD_OPTION_UNESCAPE_CALLBACK, msc_http_keep_escapes, NULL, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (!s->daemon) {
        return MSC_FAIL(MSC_E_IO, "cannot listen at %s, port %u: %s", s->o.address,
                        (unsigned)s->o.port,
                        errno != 0 ? strerror(errno) : "the certificate or the key is not valid");
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    snprintf(s->url, sizeof s->url, is_v6 ? "http%s://[%s]:%u/" : "http%s://%s:%u/",
             has_tls ? "s" : "", s->o.address,
             (unsigned)(info && info->port != 0 ? info->port : s->o.port));
    return MSC_OK;
}

enum msc_status msc_service_start(struct msc_service **out,
                                  const struct msc_service_options *options) {
    struct msc_service *s = msc_alloc_zero(1, sizeof *s);
    MSC_TRY(MSC_ALLOCATED(s));
    s->o = *options;
    msc_patience_init(&s->patience, s->waits, MSC_SERVICE_MOST_CONNECTIONS);
    msc_page_cache_init(&s->pages);
    enum msc_status status = read_tls(s);
    if (status == MSC_OK) {
        errno = 0;
        status = listen_at(s);
    }
    if (status != MSC_OK) {
        msc_service_stop(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

const char *msc_service_url(const struct msc_service *service) {
    return service->url;
}

void msc_service_end_late(struct msc_service *service) {
    msc_patience_end_late(&service->patience, TIMEOUT_S);
}

void msc_service_stop(struct msc_service *service) {
    if (!service) {
        return;
    }
    atomic_store(&service->is_stopping, true);
    if (service->daemon) {
        MHD_stop_daemon(service->daemon);
    }
    msc_page_cache_finish(&service->pages);
    msc_patience_finish(&service->patience);
    msc_free(service->certificate);
    msc_free(service->key);
    msc_free(service);
}

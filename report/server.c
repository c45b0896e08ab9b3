#include "report/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "report/http.h"
#include "report/page.h"
#include "report/page_cache.h"
#include "report/workspace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TOKEN_BYTES 16
// MOST_CONNECTIONS: maximum number of connections. TIMEOUT_S: time limit for a silent connection,
// for sending a request, and for receiving the answer.
#define MOST_CONNECTIONS 256
#define TIMEOUT_S 15
#define HTTP_PORT 80 // a Host header may leave out this port
#define MOST_BESIDE 8

struct msc_server {
    const char *const *paths;
    size_t n;
    bool is_of_one; // true: there is one path, a record; false: a page lists the records
    char token[2 * TOKEN_BYTES + 1];
    char url[96];
    unsigned port;
    struct MHD_Daemon *daemon;
    struct msc_patience patience;
    struct msc_patience_wait waits[MOST_CONNECTIONS];
    // Used only by the daemon's thread:
    struct msc_page_cache pages;
    cJSON *list;
};

// ---- Pages ------------------------------------------------------------------------------------

static bool has_all(const struct msc_server *s) {
    return s->n > 1 && s->n <= MOST_BESIDE;
}

static enum msc_status refresh_list(struct msc_server *s) {
    cJSON *list = NULL;
    MSC_TRY(msc_workspace_list(&list, s->list, s->paths, s->n));
    cJSON_Delete(s->list);
    s->list = list;
    return MSC_OK;
}

static enum msc_status write_list(struct msc_str *out, const struct msc_page_source *source) {
    static const char *const columns[] = {"record", "state", "trials", "best", "file", NULL};
    static const char *const keys[] = {"name", "state", "trials", "best", "path"};
    struct msc_server *s = source->payload;
    MSC_TRY(refresh_list(s));
    return msc_page_write_list(out, &(struct msc_page_list){.title = "Records",
                                                            .heading = "Running searches first",
                                                            .columns = columns,
                                                            .keys = keys,
                                                            .kinds = " wnn ",
                                                            .rows = s->list,
                                                            .all = has_all(s) ? "all" : NULL});
}

static enum MHD_Result answer_failure(struct MHD_Connection *connection) {
    char line[512];
    snprintf(line, sizeof line, "%s\n", msc_status_message());
    return msc_http_answer(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, line, MSC_HTTP_TEXT);
}

static enum MHD_Result answer_page(struct msc_server *s, struct MHD_Connection *connection,
                                   const char *key, const char *const paths[], size_t n) {
    const struct msc_page_source source = {.key = key,
                                           .paths = paths,
                                           .n = n,
                                           .write = n > 0 ? msc_page_write_records : write_list,
                                           .back = s->is_of_one ? NULL : "./",
                                           .payload = s};
    struct msc_http_text *page = NULL;
    if (msc_page_cache_get(&page, &s->pages, &source) != MSC_OK) {
        return answer_failure(connection);
    }
    enum MHD_Result result = msc_http_send(connection, MHD_HTTP_OK, page, &s->patience);
    msc_http_text_drop(page);
    return result;
}

static enum MHD_Result answer_address(struct msc_server *s, struct MHD_Connection *connection,
                                      const char *rest) {
    if (rest[0] == '\0') {
        return answer_page(s, connection, rest, s->paths, s->is_of_one ? 1 : 0);
    }
    if (strcmp(rest, "all") == 0 && has_all(s)) {
        return answer_page(s, connection, rest, s->paths, s->n);
    }
    if (!s->list && refresh_list(s) != MSC_OK) {
        return answer_failure(connection);
    }
    const char *path = msc_workspace_find(s->list, rest);
    return path ? answer_page(s, connection, rest, &path, 1)
                : msc_http_answer(connection, MHD_HTTP_NOT_FOUND, "not found\n", MSC_HTTP_TEXT);
}

// ---- Access control --------------------------------------------------------------------------

// Compares the token in constant time, so that timing tells nothing about the token.
static bool is_token(const struct msc_server *s, const char *url) {
    unsigned difference = 0;
    size_t n = sizeof s->token - 1;
    if (strlen(url) < n + 2 || url[0] != '/' || url[n + 1] != '/') {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        difference |= (unsigned char)url[i + 1] ^ (unsigned char)s->token[i];
    }
    return difference == 0;
}

// True for "127.0.0.1:PORT" and "localhost:PORT". A missing port means HTTP's default, 80.
static bool is_own_host(const struct msc_server *s, const char *value) {
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char port[16];
    snprintf(port, sizeof port, ":%u", s->port);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(value, names[i], length) == 0 &&
            (strcmp(value + length, port) == 0 ||
             (s->port == HTTP_PORT && value[length] == '\0'))) {
            return true;
        }
    }
    return false;
}

struct hosts {
    const struct msc_server *server;
    size_t n, n_good;
};

static enum MHD_Result count_host(void *payload, enum MHD_ValueKind kind, const char *key,
                                  const char *value) {
    struct hosts *hosts = payload;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0) {
        hosts->n++;
        hosts->n_good += value && is_own_host(hosts->server, value);
    }
    return MHD_YES;
}

// True if the request has exactly one Host header and it names this server.
static bool is_to_host(const struct msc_server *s, struct MHD_Connection *connection) {
    struct hosts hosts = {.server = s};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
    return hosts.n == 1 && hosts.n_good == 1;
}

static enum MHD_Result answer_request(struct msc_server *s, struct MHD_Connection *connection,
                                      const char *url, const char *method) {
    if (!is_to_host(s, connection)) {
        return msc_http_answer(connection, MHD_HTTP_FORBIDDEN, "refused\n", MSC_HTTP_TEXT);
    }
    if (!is_token(s, url)) {
        return msc_http_answer(connection, MHD_HTTP_NOT_FOUND, "not found\n", MSC_HTTP_TEXT);
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return msc_http_answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "read-only\n",
                               MSC_HTTP_TEXT);
    }
    return answer_address(s, connection, url + sizeof s->token + 1);
}

static enum MHD_Result answer(void *payload, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **of_request) {
    struct msc_server *s = payload;
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)of_request;
    // The time for making the page does not count towards the connection's time limit.
    msc_http_pause(&s->patience, connection);
    enum MHD_Result result = answer_request(s, connection, url, method);
    msc_http_renew(&s->patience, connection);
    return result;
}

void msc_server_end_late(struct msc_server *server) {
    msc_patience_end_late(&server->patience, TIMEOUT_S);
}

// ---- Start and stop ---------------------------------------------------------------------------

static enum msc_status choose_token(struct msc_server *s) {
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return MSC_FAIL(MSC_E_IO, "cannot make a token: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    }
    return MSC_OK;
}

static enum msc_status listen_at(struct msc_server *s, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD, port, NULL, NULL, answer, s, MHD_OPTION_SOCK_ADDR,
        (const struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS,
        MHD_OPTION_NOTIFY_CONNECTION, msc_http_note_connection, &s->patience,
        MHD_OPTION_NOTIFY_COMPLETED, msc_http_note_end, &s->patience, MHD_OPTION_UNESCAPE_CALLBACK,
        msc_http_keep_escapes, NULL, MHD_OPTION_END);
    if (!s->daemon) {
        return MSC_FAIL(MSC_E_IO, "cannot listen at 127.0.0.1:%u: %s", (unsigned)port,
                        strerror(errno));
    }
    // Requests that arrive before the port is known are refused.
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info && info->port != 0 ? info->port : port;
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/%s/", s->port, s->token);
    return MSC_OK;
}

// A missing path may become a folder later, so it does not count as one record.
static bool is_one_record(const struct msc_server_options *o) {
    struct stat info;
    return o->n == 1 && stat(o->paths[0], &info) == 0 && !S_ISDIR(info.st_mode);
}

enum msc_status msc_server_start(struct msc_server **out,
                                 const struct msc_server_options *options) {
    struct msc_server *s = msc_alloc_zero(1, sizeof *s);
    MSC_TRY(MSC_ALLOCATED(s));
    s->paths = options->paths;
    s->n = options->n;
    msc_page_cache_init(&s->pages);
    msc_patience_init(&s->patience, s->waits, MOST_CONNECTIONS);
    s->is_of_one = is_one_record(options);
    enum msc_status status = choose_token(s);
    if (status == MSC_OK) {
        status = listen_at(s, options->port);
    }
    if (status != MSC_OK) {
        msc_server_stop(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

const char *msc_server_url(const struct msc_server *server) {
    return server->url;
}

void msc_server_stop(struct msc_server *server) {
    if (!server) {
        return;
    }
    if (server->daemon) {
        MHD_stop_daemon(server->daemon);
    }
    msc_page_cache_finish(&server->pages);
    msc_patience_finish(&server->patience);
    cJSON_Delete(server->list);
    msc_free(server);
}

void msc_server_versions(msc_version_take take, void *payload) {
    take(payload, "libmicrohttpd", MHD_get_version());
}

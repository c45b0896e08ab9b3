#include "report/http.h"

#include <string.h>

void msc_http_add_headers(struct MHD_Response *response, const char *type) {
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

struct MHD_Response *msc_http_response(const char *text, size_t length, const char *type) {
    union { // `copied` is not written to
        const char *read;
        void *copied;
    } bytes = {.read = text};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, bytes.copied, MHD_RESPMEM_MUST_COPY);
    if (response) {
        msc_http_add_headers(response, type);
    }
    return response;
}

enum MHD_Result msc_http_answer(struct MHD_Connection *connection, unsigned code, const char *text,
                                const char *type) {
    struct MHD_Response *response = msc_http_response(text, strlen(text), type);
    enum MHD_Result result = response ? MHD_queue_response(connection, code, response) : MHD_NO;
    if (response) {
        MHD_destroy_response(response);
    }
    return result;
}

size_t msc_http_keep_escapes(void *payload, struct MHD_Connection *connection, char *text) {
    (void)payload;
    (void)connection;
    return strlen(text);
}

// ---- Slow connections ------------------------------------------------------------------------

void msc_http_note_connection(void *patience, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        msc_patience_close(patience, *context);
        *context = NULL;
    } else if (info) {
        *context = msc_patience_open(patience, info->connect_fd);
    }
}

void msc_http_renew(struct msc_patience *patience, struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    msc_patience_renew(patience, info ? info->socket_context : NULL);
}

void msc_http_note_end(void *patience, struct MHD_Connection *connection, void **of_request,
                       enum MHD_RequestTerminationCode code) {
    (void)of_request;
    (void)code;
    msc_http_renew(patience, connection);
}

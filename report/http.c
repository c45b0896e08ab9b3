#include "report/http.h"

#include "base/alloc.h"

#include <stdatomic.h>
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

// ---- Long texts ------------------------------------------------------------------------------

struct msc_http_text {
    atomic_size_t n_uses;
    size_t length;
    char *data;
    const char *type;
};

enum msc_status msc_http_text_create(struct msc_http_text **out, struct msc_str *text,
                                     const char *type) {
    struct msc_http_text *t = msc_alloc_zero(1, sizeof *t);
    enum msc_status status = MSC_ALLOCATED(t);
    if (status == MSC_OK) {
        t->length = text->length;
        t->type = type;
        atomic_init(&t->n_uses, 1);
        status = msc_str_take(&t->data, text);
    }
    msc_str_finish(text);
    if (status != MSC_OK) {
        msc_free(t);
        return status;
    }
    *out = t;
    return MSC_OK;
}

struct msc_http_text *msc_http_text_keep(struct msc_http_text *text) {
    atomic_fetch_add(&text->n_uses, 1);
    return text;
}

void msc_http_text_drop(struct msc_http_text *text) {
    if (text && atomic_fetch_sub(&text->n_uses, 1) == 1) {
        msc_free(text->data);
        msc_free(text);
    }
}

struct sending {
    struct msc_http_text *text;
    struct msc_patience *patience;
    struct MHD_Connection *connection;
};

static ssize_t read_text(void *payload, uint64_t offset, char *buffer, size_t most) {
    const struct sending *s = payload;
    size_t left = offset < s->text->length ? s->text->length - (size_t)offset : 0;
    size_t n = left < most ? left : most;
    msc_http_renew(s->patience, s->connection);
    if (n == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    memcpy(buffer, s->text->data + offset, n);
    return (ssize_t)n;
}

static void end_sending(void *payload) {
    struct sending *s = payload;
    msc_http_text_drop(s->text);
    msc_free(s);
}

enum MHD_Result msc_http_send(struct MHD_Connection *connection, unsigned code,
                              struct msc_http_text *text, struct msc_patience *patience) {
    struct sending *s = msc_alloc_zero(1, sizeof *s);
    if (!s) {
        return MHD_NO;
    }
    *s = (struct sending){
        .text = msc_http_text_keep(text), .patience = patience, .connection = connection};
    struct MHD_Response *response = MHD_create_response_from_callback(
        text->length, MSC_HTTP_PART_BYTES, read_text, s, end_sending);
    if (!response) {
        end_sending(s);
        return MHD_NO;
    }
    msc_http_add_headers(response, text->type);
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
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

static struct msc_patience_wait *wait_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void msc_http_renew(struct msc_patience *patience, struct MHD_Connection *connection) {
    msc_patience_renew(patience, wait_of(connection));
}

void msc_http_pause(struct msc_patience *patience, struct MHD_Connection *connection) {
    msc_patience_pause(patience, wait_of(connection));
}

void msc_http_go_on(struct msc_patience *patience, struct MHD_Connection *connection) {
    msc_patience_go_on(patience, wait_of(connection));
}

void msc_http_note_end(void *patience, struct MHD_Connection *connection, void **of_request,
                       enum MHD_RequestTerminationCode code) {
    (void)of_request;
    (void)code;
    msc_http_renew(patience, connection);
}

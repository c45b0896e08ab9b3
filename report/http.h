// What the servers of this program share: answers with safe headers, and an end for connections that
// are too slow (report/patience.h).
//
//     MHD_start_daemon(..., MHD_OPTION_NOTIFY_CONNECTION, msc_http_note_connection, &patience,
//                      MHD_OPTION_NOTIFY_COMPLETED, msc_http_note_end, &patience,
//                      MHD_OPTION_UNESCAPE_CALLBACK, msc_http_keep_escapes, NULL, MHD_OPTION_END);
#ifndef MSC_REPORT_HTTP_H
#define MSC_REPORT_HTTP_H

#include "report/patience.h"

#include <microhttpd.h>
#include <stddef.h>

#define MSC_HTTP_JSON "application/json"
#define MSC_HTTP_PAGE "text/html; charset=utf-8"
#define MSC_HTTP_TEXT "text/plain; charset=utf-8"

// Adds the type and the headers that keep an answer out of caches, frames and other sites.
void msc_http_add_headers(struct MHD_Response *response, const char *type);
// An answer with a copy of the text. NULL: out of memory. The caller destroys it.
struct MHD_Response *msc_http_response(const char *text, size_t length, const char *type);
// Answers with a text.
enum MHD_Result msc_http_answer(struct MHD_Connection *connection, unsigned code, const char *text,
                                const char *type);

// Keeps percent escapes as they are: valid addresses have none, so "%2e" and "%00" match nothing.
size_t msc_http_keep_escapes(void *payload, struct MHD_Connection *connection, char *text);

// For the daemon; `patience` is a struct msc_patience.
void msc_http_note_connection(void *patience, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code);
void msc_http_note_end(void *patience, struct MHD_Connection *connection, void **of_request,
                       enum MHD_RequestTerminationCode code);
// The time limit of the connection starts again.
void msc_http_renew(struct msc_patience *patience, struct MHD_Connection *connection);

#endif

// What the servers of this program share: answers with safe headers, and an end for connections
// that are too slow (report/patience.h).
//
//     MHD_start_daemon(..., MHD_OPTION_NOTIFY_CONNECTION, msc_http_note_connection, &patience,
//                      MHD_OPTION_NOTIFY_COMPLETED, msc_http_note_end, &patience,
//                      MHD_OPTION_UNESCAPE_CALLBACK, msc_http_keep_escapes, NULL, MHD_OPTION_END);
#ifndef MSC_REPORT_HTTP_H
#define MSC_REPORT_HTTP_H

#include "base/str.h"
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
// Answers with a short text.
enum MHD_Result msc_http_answer(struct MHD_Connection *connection, unsigned code, const char *text,
                                const char *type);

// A text that several answers may share, such as a page. Any thread may use it.
struct msc_http_text;
// Takes the text over, which is empty after that; it is finished also on failure. *out is one use
// of the text, which the caller gives back by `drop`.
enum msc_status msc_http_text_create(struct msc_http_text **out, struct msc_str *text,
                                     const char *type);
struct msc_http_text *msc_http_text_keep(struct msc_http_text *text); // one more use
void msc_http_text_drop(struct msc_http_text *text);                  // accepts NULL
// Answers with the text. A client that reads one part (MSC_HTTP_PART_BYTES) in the time limit may
// go on with the next.
enum MHD_Result msc_http_send(struct MHD_Connection *connection, unsigned code,
                              struct msc_http_text *text, struct msc_patience *patience);
#define MSC_HTTP_PART_BYTES ((size_t)256 << 10)

// Keeps percent escapes as they are: valid addresses have none, so "%2e" and "%00" match nothing.
size_t msc_http_keep_escapes(void *payload, struct MHD_Connection *connection, char *text);

// For the daemon; `patience` is a struct msc_patience.
void msc_http_note_connection(void *patience, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code);
void msc_http_note_end(void *patience, struct MHD_Connection *connection, void **of_request,
                       enum MHD_RequestTerminationCode code);
// The time limit of the connection starts again.
void msc_http_renew(struct msc_patience *patience, struct MHD_Connection *connection);
// The time between these does not count: the server works on the request.
void msc_http_pause(struct msc_patience *patience, struct MHD_Connection *connection);
void msc_http_go_on(struct msc_patience *patience, struct MHD_Connection *connection);

#endif

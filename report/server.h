// Serves pages of records over HTTP to browsers on this machine. Pages are read-only and follow the
// records as they change.
//
//     struct msc_server *server;
//     MSC_TRY(msc_server_start(&server, &(struct msc_server_options){.paths = paths, .n = n}));
//     ... msc_server_url(server) ...
//     msc_server_stop(server);
//
// The server listens on 127.0.0.1. Every path begins with a token of 128 random bits; requests
// without the token are refused. A request must have exactly one Host header, which must name this
// server. This prevents access from other sites through a name that resolves to 127.0.0.1 (DNS
// rebinding). No part of a URL is used as a file path: a record is requested by the hash of its
// path in the list. One dedicated thread answers requests. When a record has changed, this thread
// makes the page again, but first waits 20 times as long as the last attempt took. If a page cannot
// be made, requests get status 500 until an attempt succeeds.
//
//     /TOKEN/             the record, if one file was given, else the list
//     /TOKEN/all          all records that were given, compared
//     /TOKEN/0123456789abcdef   one record of the list
#ifndef MSC_REPORT_SERVER_H
#define MSC_REPORT_SERVER_H

#include "base/status.h"
#include "base/versions.h"

#include <stddef.h>
#include <stdint.h>

struct msc_server;

struct msc_server_options {
    const char *const *paths; // records or folders of records; borrowed until stop
    size_t n;
    uint16_t port; // 0: any free port
};

// MSC_E_UNSUPPORTED: this build has no libmicrohttpd. MSC_E_IO: the port is in use. *out is owned
// by the caller.
enum msc_status msc_server_start(struct msc_server **out, const struct msc_server_options *options);
// "http://127.0.0.1:8080/0123…/", borrowed until stop.
const char *msc_server_url(const struct msc_server *server);
// Ends connections whose request or answer takes too long. Call it about once a second.
void msc_server_end_late(struct msc_server *server);
void msc_server_stop(struct msc_server *server);                // accepts NULL
void msc_server_versions(msc_version_take take, void *payload); // see base/versions.h

#endif

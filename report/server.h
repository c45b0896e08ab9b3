// Pages of records over HTTP, for a browser on this machine alone: always as the records are now, and
// read-only.
//
//     struct msc_server *server;
//     MSC_TRY(msc_server_start(&server, &(struct msc_server_options){.paths = paths, .n = n}));
//     ... msc_server_url(server) ...
//     msc_server_stop(server);
//
// It listens at 127.0.0.1. Every address begins with a token of 128 random bits, without which nothing is
// answered; a request must name one Host, that of the server, so that no page from elsewhere reaches it by a
// name that leads here (DNS rebinding). Nothing in an address becomes the path of a file: records are
// asked for by the hash of their path in the list. One thread of its own answers; it makes a page anew when
// the record has changed, and rests for twenty times as long as that took. One that cannot be made is an error
// (500) each time, until it can be.
//
//     /TOKEN/             the record, where one file was given; else the list
//     /TOKEN/all          all that were given, side by side
//     /TOKEN/0123456789abcdef   one of the list
#ifndef MSC_REPORT_SERVER_H
#define MSC_REPORT_SERVER_H

#include "base/status.h"
#include "base/versions.h"

#include <stddef.h>
#include <stdint.h>

struct msc_server;

struct msc_server_options {
    const char *const *paths; // records, or folders of them; borrowed until stop
    size_t n;
    uint16_t port; // 0: any that is free
};

// MSC_E_UNSUPPORTED: this build has no libmicrohttpd; MSC_E_IO: the port is taken. *out is owned by the
// caller.
enum msc_status msc_server_start(struct msc_server **out, const struct msc_server_options *options);
// "http://127.0.0.1:8080/0123…/", borrowed until stop.
const char *msc_server_url(const struct msc_server *server);
// Ends connections whose request or answer takes too long. To be called every second or so.
void msc_server_end_late(struct msc_server *server);
void msc_server_stop(struct msc_server *server);                // accepts NULL
void msc_server_versions(msc_version_take take, void *payload); // base/versions.h

#endif

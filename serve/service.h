// Serves compression over HTTP: users submit models with samples, follow the searches, and fetch
// the results. docs/serve.md describes the requests; serve/openapi.json describes them for
// programs.
//
//     struct msc_service *service;
//     MSC_TRY(msc_service_start(&service, &options));
//     while (...) { msc_jobs_step(jobs); msc_service_end_late(service); }
//     msc_service_stop(service);
//
// Each connection has a thread, so that a slow request delays no other. Every request except that
// for the OpenAPI document needs a token. Requests that read also take it as the password of HTTP's
// basic authentication, for browsers; requests that change something do not, because a browser adds
// passwords by itself to requests of other sites.
#ifndef MSC_SERVE_SERVICE_H
#define MSC_SERVE_SERVICE_H

#include "serve/jobs.h"

struct msc_service;

struct msc_service_options {
    struct msc_jobs *jobs;
    struct msc_users *users;
    const struct msc_jobs_options *of_jobs;
    const char *address;     // IPv4 or IPv6 address to listen at
    uint16_t port;           // 0: any free port
    const char *certificate; // PEM files; NULL: no TLS
    const char *key;
};

// MSC_E_UNSUPPORTED: this build has no libmicrohttpd. MSC_E_IO: the address cannot be listened at.
// Everything in the options is borrowed until stop. *out is owned by the caller.
enum msc_status msc_service_start(struct msc_service **out,
                                  const struct msc_service_options *options);
// "http://127.0.0.1:8080/", borrowed until stop.
const char *msc_service_url(const struct msc_service *service);
// Ends connections that are too slow. Call it about once a second.
void msc_service_end_late(struct msc_service *service);
void msc_service_stop(struct msc_service *service); // accepts NULL

#endif

// The server's functions in a build without libmicrohttpd: they report that it is unsupported.
#include "report/server.h"

enum msc_status msc_server_start(struct msc_server **out,
                                 const struct msc_server_options *options) {
    (void)options;
    *out = NULL;
    return MSC_FAIL(MSC_E_UNSUPPORTED, "this mscgym cannot serve pages: it was built without "
                                       "libmicrohttpd (libmicrohttpd-dev, -DMSC_SERVE=ON)");
}

const char *msc_server_url(const struct msc_server *server) {
    (void)server;
    return "";
}

void msc_server_end_late(struct msc_server *server) {
    (void)server;
}

void msc_server_stop(struct msc_server *server) {
    (void)server;
}

void msc_server_versions(msc_version_take take, void *payload) {
    (void)take;
    (void)payload;
}

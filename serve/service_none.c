// The service's functions in a build without libmicrohttpd: they report that it is unsupported.
#include "serve/service.h"

enum msc_status msc_service_start(struct msc_service **out,
                                  const struct msc_service_options *options) {
    (void)options;
    *out = NULL;
    return MSC_FAIL(MSC_E_UNSUPPORTED, "this mscgym cannot serve: it was built without "
                                       "libmicrohttpd (libmicrohttpd-dev, -DMSC_SERVE=ON)");
}

const char *msc_service_url(const struct msc_service *service) {
    (void)service;
    return "";
}

void msc_service_end_late(struct msc_service *service) {
    (void)service;
}

void msc_service_stop(struct msc_service *service) {
    (void)service;
}

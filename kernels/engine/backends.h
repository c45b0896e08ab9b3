// The backends of this build.
//
//     struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
//     struct msc_backend *backend;
//     MSC_TRY(msc_backend_open(&backend, "cpu", &o));
//     msc_backend_close(backend);
#ifndef MSC_KERNELS_ENGINE_BACKENDS_H
#define MSC_KERNELS_ENGINE_BACKENDS_H

#include "kernels/backend.h"

MSC_PUBLIC_BEGIN

// The backends of this build, NULL-terminated; one by name, or NULL.
const struct msc_backend_def *const *msc_backend_list(void);
const struct msc_backend_def *msc_backend_find(const char *name);
// "auto", "cpu", "vulkan", "vulkan:1". *out is owned by the caller (msc_backend_close).
enum msc_status msc_backend_open(struct msc_backend **out, const char *device,
                                 const struct msc_backend_options *options);

MSC_PUBLIC_END

#endif

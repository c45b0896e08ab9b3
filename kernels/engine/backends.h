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
// "auto", "cpu", "vulkan", "vulkan:1", "vulkan:uuid=…", "vulkan:pci=…". *out is owned by the
// caller (msc_backend_close).
enum msc_status msc_backend_open(struct msc_backend **out, const char *device,
                                 const struct msc_backend_options *options);

// Fixes the level of instructions that the processor computes with, "avx2", in the whole process and for
// good: machines of different processors have the same numerics under one that all of them have. To be
// called before anything is opened. MSC_E_INVALID: there is no such level; MSC_E_DEVICE: this processor
// lacks it; MSC_E_STATE: another one is in use; MSC_E_UNSUPPORTED: this build has none.
enum msc_status msc_backend_set_isa(const char *level);
// The i-th level that this processor has, the lowest first; NULL: there are no more. From the first call on
// none can be set.
const char *msc_backend_isa(size_t i);

MSC_PUBLIC_END

#endif

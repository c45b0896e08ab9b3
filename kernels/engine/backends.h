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

// msc_backend_list returns the backends of this build, NULL-terminated; msc_backend_find returns
// the backend of a given name, or NULL.
const struct msc_backend_def *const *msc_backend_list(void);
const struct msc_backend_def *msc_backend_find(const char *name);
// Opens a device: "auto", "cpu", "vulkan", "vulkan:1", "vulkan:uuid=…", "vulkan:pci=…". *out is
// owned by the caller (msc_backend_close).
enum msc_status msc_backend_open(struct msc_backend **out, const char *device,
                                 const struct msc_backend_options *options);

// Limits the whole process, permanently, to the instructions of one level, such as "avx2". Machines
// with different processors give equal results at a level that all of them support. Call it before
// any backend is opened. On 64-bit Arm, levels are only for mscgym's own kernels, which give the
// same bits at every level: oneDNN cannot be limited there. MSC_E_INVALID: unknown level;
// MSC_E_DEVICE: this processor lacks it;
// MSC_E_STATE: another level is in use; MSC_E_UNSUPPORTED: this build has no levels.
enum msc_status msc_backend_set_isa(const char *level);
// The i-th level that this processor supports, lowest first; NULL if there are no more. After the
// first call of this function, no level can be set.
const char *msc_backend_isa(size_t i);

MSC_PUBLIC_END

#endif

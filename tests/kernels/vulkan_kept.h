// A vulkan backend that all tests of a program share. Tests are skipped if there is no device.
//
//     cmocka_run_group_tests(tests, open_kept, NULL)
//
// It is never closed, because drivers leak memory when they are unloaded.
#ifndef MSC_TESTS_VULKAN_KEPT_H
#define MSC_TESTS_VULKAN_KEPT_H

#include "kernels/backend.h"

#include "kernels/engine/backends.h"
#include "tests/msc_test.h"

static struct msc_backend *kept; // NULL: there is no device

static inline int open_kept(void **state) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    (void)state;
    o.n_threads = 4;
    if (msc_backend_open(&kept, "vulkan", &o) != MSC_OK) {
        print_message("%s\n", msc_status_message());
    }
    return 0;
}

static inline void skip_without_device(void) {
    if (!kept) {
        skip();
    }
}

#endif

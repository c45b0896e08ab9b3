// Tests of matrix units set MSC_VULKAN_MATRIX=1, which also uses those of software drivers.
#ifndef MSC_TESTS_VULKAN_MATRICES_H
#define MSC_TESTS_VULKAN_MATRICES_H

#include "kernels/vulkan/vulkan.h"
#include "tests/msc_test.h"

#include <stdlib.h>

// Skips a test that asks for matrix units if the device or this build has none.
static inline void skip_without_matrices(const struct msc_backend *vulkan) {
    char size[40];
    msc_vulkan_matrix(size, vulkan);
    if (getenv("MSC_VULKAN_MATRIX") && size[0] == '\0') {
        print_message("skipped: no matrix units\n");
        skip();
    }
}

#endif

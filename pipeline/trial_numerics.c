#include "pipeline/trial_numerics.h"

#include <string.h>

// The names excluded here belong to drivers that compute on the CPU.
bool msc_trial_numerics_is_gpu(const char *numerics) {
    return strncmp(numerics, "vulkan/", strlen("vulkan/")) == 0 && !strstr(numerics, "llvmpipe") &&
           !strstr(numerics, "SwiftShader");
}

const char *msc_trial_numerics(const struct msc_setup *setup) {
    return setup->options.numerics ? setup->options.numerics : msc_setup_numerics(setup);
}

bool msc_trial_numerics_need_gpu(const struct msc_setup *setup) {
    return msc_trial_numerics_is_gpu(msc_trial_numerics(setup));
}

bool msc_trial_numerics_are_foreign(const struct msc_setup *setup) {
    return strcmp(msc_trial_numerics(setup), msc_setup_numerics(setup)) != 0;
}

enum msc_status msc_trial_numerics_check(const struct msc_setup *setup) {
    return setup->options.cluster || !msc_trial_numerics_are_foreign(setup)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "--numerics is \"%s\", but this machine computes with \"%s\": other "
                          "numerics need workers (--cluster)",
                          setup->options.numerics, msc_setup_numerics(setup));
}

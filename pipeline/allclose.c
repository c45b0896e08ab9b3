#include "pipeline/allclose.h"

#include <math.h>

#define ROUNDING 0.01
#define INTEGERS_FOR_ONE 100

static double greatest_magnitude(const struct msc_array *array) {
    double most = 0;
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        double magnitude = fabs(msc_array_get_double(array, i));
        most = isfinite(magnitude) ? fmax(most, magnitude) : most;
    }
    return most;
}

static bool floats_allclose(int64_t *place, double *worst, const struct msc_array *found,
                            const struct msc_array *truth, double atol, double rtol) {
    double least = ROUNDING * rtol * greatest_magnitude(truth);
    for (int64_t i = 0; i < msc_array_n_elements(truth); i++) {
        double a = msc_array_get_double(found, i), b = msc_array_get_double(truth, i);
        double difference = fabs(a - b), limit = fmax(atol + rtol * fabs(b), least);
        // Equal covers infinities, which nothing else is near; two NaN are close as well.
        if (a != b && !(isnan(a) && isnan(b)) && !(isfinite(b) && difference <= limit)) {
            *place = i;
            return false;
        }
        *worst = isfinite(difference) ? fmax(*worst, difference) : *worst;
    }
    return true;
}

static bool integers_allclose(int64_t *place, const struct msc_array *found,
                              const struct msc_array *truth) {
    int64_t n = msc_array_n_elements(truth), n_different = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        if (msc_array_get_double(found, i) != msc_array_get_double(truth, i)) {
            *place = i;
            n_different++;
        }
    }
    return n_different <= n / INTEGERS_FOR_ONE;
}

bool msc_outputs_allclose(int64_t *place, double *worst, const struct msc_array *found,
                          const struct msc_array *truth, double atol, double rtol) {
    return msc_dtype_is_float(msc_array_dtype(truth))
               ? floats_allclose(place, worst, found, truth, atol, rtol)
               : integers_allclose(place, found, truth);
}

#include "model/allclose.h"

#include <math.h>

#define ROUNDING 0.01
#define TIMES_MOVED 10   // sums of thousands of terms round that much more than single terms
#define TIMES_ASKED 1000 // the requested tolerances still bound what rounding may add
#define INTEGERS_FOR_ONE 100

static double greatest_magnitude(const struct msc_array *array) {
    double most = 0;
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        double magnitude = fabs(msc_array_get_double(array, i));
        most = isfinite(magnitude) ? fmax(most, magnitude) : most;
    }
    return most;
}

// The allowed difference from the true value b.
static double limit_at(double b, double least, const struct msc_closeness *limits) {
    return limits->atol < 0 ? -1 : fmax(limits->atol + limits->rtol * fabs(b), least);
}

// The difference that rounding can explain in any element.
static double least_limit(const struct msc_array *truth, const struct msc_closeness *limits) {
    double most = greatest_magnitude(truth);
    double asked = limits->atol + limits->rtol * most;
    return fmax(ROUNDING * limits->rtol * most,
                fmin(TIMES_MOVED * limits->moved, TIMES_ASKED * asked));
}

static bool floats_allclose(int64_t *place, double *worst, const struct msc_array *found,
                            const struct msc_array *truth, const struct msc_closeness *limits) {
    double least = least_limit(truth, limits);
    for (int64_t i = 0; i < msc_array_n_elements(truth); i++) {
        double a = msc_array_get_double(found, i), b = msc_array_get_double(truth, i);
        double difference = fabs(a - b), limit = limit_at(b, least, limits);
        // a == b covers infinities, to which no other value is close. Two NaN are also close.
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
                          const struct msc_array *truth, const struct msc_closeness *limits) {
    return msc_dtype_is_float(msc_array_dtype(truth))
               ? floats_allclose(place, worst, found, truth, limits)
               : integers_allclose(place, found, truth);
}

enum msc_status msc_outputs_move(struct msc_array **out, const struct msc_array *truth,
                                 const struct msc_closeness *limits, double sign) {
    double least = least_limit(truth, limits);
    MSC_TRY(msc_array_convert(out, truth, MSC_DTYPE_F32));
    float *values = msc_array_data(*out);
    for (int64_t i = 0; sign != 0 && i < msc_array_n_elements(truth); i++) {
        double b = (double)values[i], limit = limit_at(b, least, limits);
        values[i] = isfinite(b) && limit > 0 ? (float)(b + sign * limit) : values[i];
    }
    return MSC_OK;
}

double msc_outputs_distance(const struct msc_array *a, const struct msc_array *b) {
    double most = 0;
    for (int64_t i = 0; msc_dtype_is_float(msc_array_dtype(a)) && i < msc_array_n_elements(a);
         i++) {
        double difference = fabs(msc_array_get_double(a, i) - msc_array_get_double(b, i));
        most = isfinite(difference) ? fmax(most, difference) : most;
    }
    return most;
}

// Observers: derive the range that integers should cover from the observed values of a tensor.
//
//   minmax      the smallest and largest value
//   percentile  the range without the outermost 100 - `percentile` percent of the values per side
//   mse         the range with the least squared rounding error. All schemes try CANDIDATES ranges
//               with both ends shrunk by the same factor. Asymmetric schemes then start from the
//               best of these ranges and move one end at a time to the best of CANDIDATES
//               positions, until neither end moves
//   hessian     the range with the least output error, for weights of convolutions and linear
//               layers (tools/rounding.h); for other weights minmax, and for activations mse
//
// Every range includes 0. Symmetric quantisation uses the end of greater magnitude on both sides.
#ifndef MSC_TOOLS_RANGE_H
#define MSC_TOOLS_RANGE_H

#include "graph/quant.h"

MSC_PUBLIC_BEGIN

#define MSC_HISTOGRAM_BINS 4096

enum msc_observer {
    MSC_OBSERVER_MINMAX,
    MSC_OBSERVER_PERCENTILE,
    MSC_OBSERVER_MSE,
    MSC_OBSERVER_HESSIAN,
    MSC_OBSERVER_COUNT
};

const char *msc_observer_name(enum msc_observer observer);
bool msc_observer_find(enum msc_observer *out, const char *name);

// How a weight's integers are found, given its scales (tools/rounding.h). Weights of joints other
// than convolutions and linear layers support only nearest.
enum msc_rounding {
    MSC_ROUNDING_NEAREST,
    MSC_ROUNDING_GPTQ,
    MSC_ROUNDING_DESCENT, // coordinate descent, starting from the result of GPTQ
    MSC_ROUNDING_COUNT
};

const char *msc_rounding_name(enum msc_rounding rounding);
bool msc_rounding_find(enum msc_rounding *out, const char *name);

// The correction of outputs after a weight is rounded; only for weights of convolutions and linear
// layers.
enum msc_correction {
    MSC_CORRECTION_NONE,
    MSC_CORRECTION_AFFINE, // a gain and a shift per output channel (tools/rounding.h)
    MSC_CORRECTION_COUNT,
};
const char *msc_correction_name(enum msc_correction correction);
bool msc_correction_find(enum msc_correction *out, const char *name);

struct msc_range {
    float low, high; // low <= 0 <= high
};

// Counts of finite values in equal bins from low to high; values at `high` fall in the last bin.
struct msc_histogram {
    float low, high;
    double counts[MSC_HISTOGRAM_BINS];
};

void msc_histogram_add(struct msc_histogram *h, const float x[], int64_t n);

// How a range is mapped to integers.
struct msc_scheme {
    int32_t bits;      // 2 … 16
    bool is_symmetric; // zero point 0
    bool is_weight;    // a weight: if symmetric, the lowest integer is not used
    bool has_lowest;   // a symmetric weight uses the lowest integer nevertheless
    // If positive: consumers treat all values below -cut alike, so -cut must be a whole number of
    // steps. An asymmetric range begins at -cut.
    float cut;
};

// The lowest and highest integer of a scheme.
void msc_scheme_limits(const struct msc_scheme *scheme, int32_t *low, int32_t *high);
// Scale and zero point for a range; an empty range gives scale 1. If the scheme's cut would be less
// than one step, the cut is ignored.
void msc_scheme_fit(const struct msc_scheme *scheme, struct msc_range range, float *scale,
                    int32_t *zero_point);

struct msc_observation {
    enum msc_observer observer;
    double percentile; // for MSC_OBSERVER_PERCENTILE: 50 < p <= 100
    struct msc_scheme scheme;
};

// The range of a tensor from its histogram, whose ends are the exact minimum and maximum. May fail
// with MSC_E_NOMEM.
enum msc_status msc_range_of_histogram(struct msc_range *out, const struct msc_histogram *h,
                                       const struct msc_observation *o);
// The range of n finite values. May fail with MSC_E_NOMEM.
enum msc_status msc_range_of_values(struct msc_range *out, const float x[], int64_t n,
                                    const struct msc_observation *o);

MSC_PUBLIC_END

#endif

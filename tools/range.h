// Observers: from what was seen of a tensor to the range that its integers should cover.
//
//   minmax      the smallest and greatest value
//   percentile  the central part of the values, `percentile` percent on either side
//   mse         the range, of shrunken ones, with the least squared rounding error: of CANDIDATES
//               with both ends shrunken alike; of integers that are not symmetric, from the best
//               of them one end after the other, of as many positions each, until neither moves
//   hessian     of weights, by the error of what they are multiplied into (tools/rounding.h); what is
//               asked for here is another one: mse of activations, minmax of other weights
//
// Every range includes 0. Symmetric quantisation uses the greater of its ends on both sides.
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

// How a weight's integers are found for its scales (tools/rounding.h). Weights of what is no
// convolution or linear layer are rounded to nearest, whatever is asked for.
enum msc_rounding {
    MSC_ROUNDING_NEAREST,
    MSC_ROUNDING_GPTQ,
    MSC_ROUNDING_DESCENT, // coordinate descent, from what GPTQ gives
    MSC_ROUNDING_COUNT
};

const char *msc_rounding_name(enum msc_rounding rounding);
bool msc_rounding_find(enum msc_rounding *out, const char *name);

// What is made up for once a weight is rounded. Weights of what is no convolution or linear layer
// stay as they are.
enum msc_correction {
    MSC_CORRECTION_NONE,
    MSC_CORRECTION_AFFINE, // each output channel by a gain and a shift (tools/rounding.h)
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

// How the range becomes integers.
struct msc_scheme {
    int32_t bits;      // 2 … 16
    bool is_symmetric; // zero point 0
    bool is_weight;    // symmetric weights leave out the lowest integer
    bool has_lowest;   // but for these
    // Positive: all below -cut is the same to what reads the tensor, and -cut is to be an integer
    // number of steps; without symmetry the range begins there.
    float cut;
};

// low and high integers of a scheme.
void msc_scheme_limits(const struct msc_scheme *scheme, int32_t *low, int32_t *high);
// Scale and zero point for a range; an empty range gives scale 1. A range that has no room for a cut
// of one step is fitted without.
void msc_scheme_fit(const struct msc_scheme *scheme, struct msc_range range, float *scale,
                    int32_t *zero_point);

struct msc_observation {
    enum msc_observer observer;
    double percentile; // of MSC_OBSERVER_PERCENTILE: 50 < p <= 100
    struct msc_scheme scheme;
};

// The range of a tensor known by its histogram (whose ends are the exact minimum and maximum).
// MSC_E_NOMEM.
enum msc_status msc_range_of_histogram(struct msc_range *out, const struct msc_histogram *h,
                                       const struct msc_observation *o);
// The range of n finite values. MSC_E_NOMEM.
enum msc_status msc_range_of_values(struct msc_range *out, const float x[], int64_t n,
                                    const struct msc_observation *o);

MSC_PUBLIC_END

#endif

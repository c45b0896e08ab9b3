#include "graph/passes/simplify.h"

#include "base/float_bits.h"
#include "graph/passes/fuse_internal.h"

#include <math.h>

static const char *not_finite(float x) {
    return isnan(x) ? "NaN" : "infinite";
}

// The first of n elements that is not finite; n if there is none. Compares bits, block by block, so
// that the compiler uses vectors.
static int64_t find_not_finite(const float x[], int64_t n) {
    enum { BLOCK = 1024 };
    const uint32_t exponent = UINT32_C(0xff) << 23;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        uint32_t n_found = 0;
        for (int64_t i = at; i < end; i++) {
            n_found += (msc_float_bits(x[i]) & exponent) == exponent;
        }
        for (int64_t i = at; n_found > 0 && i < end; i++) {
            if (!isfinite(x[i])) {
                return i;
            }
        }
    }
    return n;
}

static enum msc_status check_weight(const struct msc_graph *g,
                                    const struct msc_simplify_options *options, int32_t id) {
    const struct msc_tensor *t = msc_graph_tensor(g, id);
    if (t->dtype != MSC_DTYPE_F32 || t->data == NULL) {
        return MSC_OK;
    }
    const int32_t *holders;
    int32_t n_holders = msc_graph_consumers(g, id, &holders);
    bool is_constant = n_holders > 0 && msc_graph_joint(g, holders[0])->op == MSC_OP_CONSTANT;
    bool is_known = options->is_computed != NULL;
    bool is_computed = is_known && options->is_computed(options->payload, t->name);
    const float *x = msc_array_data(t->data);
    int64_t n = msc_array_n_elements(t->data);
    for (int64_t i = find_not_finite(x, n); i < n; i++) {
        bool may_be = is_constant && (is_computed || !is_known || isinf(x[i]));
        if (!isfinite(x[i]) && !may_be) {
            return MSC_FAIL(MSC_E_INVALID, "%s '%s': element %lld of %lld is %s",
                            is_computed ? "weight computed from constants"
                            : is_known  ? "initialiser"
                                        : "weight",
                            t->name, (long long)i, (long long)n, not_finite(x[i]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_graph_simplify(struct msc_graph *g,
                                   const struct msc_simplify_options *options) {
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        if (msc_graph_tensor(g, i)->producer == MSC_NO_ID) {
            MSC_TRY(check_weight(g, options, i));
        }
    }
    if (options->keep_joints) {
        return MSC_OK;
    }
    return msc_fuse_all(g, &(struct msc_fuse_options){.keep_batch_norm = options->keep_batch_norm});
}

// Importance of input channels from a file, in place of second moments measured on samples.
#include "base/file.h"
#include "tools/importance.h"
#include "tools/quantizer_internal.h"
#include "tools/second_moment.h"

#include <math.h>
#include <string.h>

// Columns of a block of the moment, of which only the diagonal is not 0. Groups of columns that
// share a scale are shorter, and divide it.
#define BLOCK_COLUMNS 256

static const struct msc_array *importance_of(const struct msc_quantizer *q, int32_t site) {
    const struct msc_site *s = &q->sites.sites[site];
    return s->kind == MSC_SITE_WEIGHT
               ? msc_array_list_find(&q->importance, msc_graph_tensor(q->graph, s->tensor)->name)
               : NULL;
}

bool msc_quantizer__has_importance(const struct msc_quantizer *q, int32_t site) {
    return importance_of(q, site) != NULL;
}

static enum msc_status check_entry(const struct msc_quantizer *q, int32_t site, const char *path) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    const struct msc_array *found = importance_of(q, site);
    int64_t n = t->n_dims == 2 && s->group_axes == 1 ? t->dims[s->group_axis] : -1;
    if (found && msc_array_n_elements(found) != n) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %lld channels of weight %s, which has %lld: the file is for another "
                        "model",
                        path, (long long)msc_array_n_elements(found), s->name, (long long)n);
    }
    return MSC_OK;
}

enum msc_status msc_quantizer__read_importance(struct msc_quantizer *q,
                                               const struct msc_quantizer_options *o) {
    const void *data;
    size_t n_bytes;
    int32_t n_found = 0;
    if (!o->imatrix) {
        return MSC_OK;
    }
    MSC_TRY(msc_importance_load(&q->importance, o->imatrix));
    MSC_TRY(msc_file_map(&data, &n_bytes, o->imatrix));
    q->importance_hash = msc_hash_bytes(data, n_bytes);
    msc_file_unmap(data, n_bytes);
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        MSC_TRY(check_entry(q, i, o->imatrix));
        n_found += msc_quantizer__has_importance(q, i);
    }
    return n_found > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: none of the model's weights is in the file, which has \"%s\"",
                          o->imatrix, q->importance.names[0]);
}

struct msc_hash msc_quantizer_importance_hash(const struct msc_quantizer *q) {
    return q->importance_hash;
}

// The exponent of two by which the largest number is at most 1. Only ratios of numbers count, and
// numbers up to 1 do not overflow in sums. Dividing by a power of two changes no digit.
static int exponent_of(const struct msc_array *importance) {
    double largest = 0;
    int exponent;
    for (int64_t k = 0; k < msc_array_n_elements(importance); k++) {
        largest = fmax(largest, msc_array_get_double(importance, k));
    }
    (void)frexp(largest, &exponent);
    return exponent;
}

enum msc_status msc_quantizer__importance_moment(struct msc_moment *out,
                                                 const struct msc_quantizer *q, int32_t site) {
    const struct msc_array *importance = importance_of(q, site);
    int64_t n = msc_array_n_elements(importance);
    int64_t block = n < BLOCK_COLUMNS ? n : BLOCK_COLUMNS;
    struct msc_moment m = {.n_groups = 1, .n_columns = n, .n_rows = 1, .block_columns = block};
    m.h = msc_alloc_zero((size_t)msc_moment_n_products(n, block) + 1, sizeof(m.h[0]));
    m.means = msc_alloc_zero((size_t)n + 1, sizeof(m.means[0]));
    if (!m.h || !m.means) {
        msc_moment_finish(&m);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    int exponent = exponent_of(importance);
    float *h = m.h;
    for (int64_t first = 0; first < n; first += block) {
        int64_t width = n - first < block ? n - first : block;
        for (int64_t k = 0; k < width; k++) {
            h[k * width + k] = (float)ldexp(msc_array_get_double(importance, first + k), -exponent);
        }
        h += width * width;
    }
    *out = m;
    return MSC_OK;
}

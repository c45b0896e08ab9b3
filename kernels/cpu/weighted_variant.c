#include "base/alloc.h"
#include "kernels/cpu/weighted.h"

#include <stdatomic.h>
#include <string.h>

// ---- Variants ---------------------------------------------------------------------------------

struct msc_weighted_variant {
    struct msc_quant quant; // bits is 0 for the float weights
    float *scales;
    int32_t *zero_points;
    bool is_integer, is_int8;
    _Atomic(struct msc_weighted_pack *) packs[MSC_WEIGHTED_UNIT_COUNT];
};

static void destroy_pack(struct msc_weighted_pack *p) {
    if (p) {
        msc_dense_weights_destroy(p->weights);
        msc_free(p->sums);
        msc_free(p);
    }
}

void msc_weighted_release_weights(void *weights) {
    struct msc_weighted_variant *v = weights;
    if (v) {
        for (int i = 0; i < MSC_WEIGHTED_UNIT_COUNT; i++) {
            destroy_pack(atomic_load(&v->packs[i]));
        }
        msc_free(v->scales);
        msc_free(v->zero_points);
        msc_free(v);
    }
}

bool msc_weighted_is_integer(const struct msc_weighted_variant *v) {
    return v->is_integer;
}

bool msc_weighted_is_int8(const struct msc_weighted_variant *v) {
    return v->is_int8;
}

float msc_weighted_scale(const struct msc_weighted_variant *v, int64_t c) {
    return v->scales[c % v->quant.n];
}

// Does every q - z lie in -127 ... 127?
static bool fits_int8(const struct msc_quant *q) {
    for (int32_t i = 0; i < q->n; i++) {
        if (q->low - q->zero_points[i] < -127 || q->high - q->zero_points[i] > 127) {
            return false;
        }
    }
    return true;
}

static enum msc_status set_edit(struct msc_weighted_variant *v, const struct msc_weighted *k,
                                const struct msc_quant *edit) {
    size_t n = (size_t)edit->n;
    v->scales = msc_alloc(n * sizeof(float));
    v->zero_points = msc_alloc(n * sizeof(int32_t));
    if (!v->scales || !v->zero_points) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    memcpy(v->scales, edit->scales, n * sizeof(float));
    memcpy(v->zero_points, edit->zero_points, n * sizeof(int32_t));
    v->quant = *edit;
    v->quant.scales = v->scales;
    v->quant.zero_points = v->zero_points;
    v->is_integer = msc_quant_is_integer(edit) && (edit->n == 1 || edit->axis == k->out_axis);
    v->is_int8 = v->is_integer && fits_int8(edit);
    return MSC_OK;
}

enum msc_status msc_weighted_weights(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_quant *edit, void **out, size_t *n_bytes) {
    (void)b;
    const struct msc_weighted *k = kernel;
    const struct msc_dense *dense;
    struct msc_weighted_variant *v = msc_alloc_zero(1, sizeof(*v));
    if (!v) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int i = 0; i < MSC_WEIGHTED_UNIT_COUNT; i++) {
        atomic_init(&v->packs[i], NULL);
    }
    enum msc_status status = edit ? set_edit(v, k, edit) : MSC_OK;
    if (status == MSC_OK) {
        status = msc_weighted_routine(&dense, k, MSC_WEIGHTED_FLOAT);
    }
    const struct msc_weighted_pack *pack;
    if (status == MSC_OK && !edit) {
        status = msc_weighted_pack(&pack, k, v, MSC_WEIGHTED_FLOAT);
    }
    if (status != MSC_OK) {
        msc_weighted_release_weights(v);
        return status;
    }
    // An edited weight is packed when a step shows which way it is multiplied; usually one.
    *n_bytes = msc_dense_weights_bytes(dense);
    *out = v;
    return MSC_OK;
}

// ---- Packing ----------------------------------------------------------------------------------

// Output channel of each element of the plain weight: it lies along `out_axis`, and for transposed
// convolutions groups lie along the input channels before it.
struct channel_map {
    int64_t inner;      // elements behind the axis
    int64_t per_group;  // length of the axis
    int64_t group_rows; // elements in all rows of one group; whole array for the others
};

static struct channel_map map_channels(const struct msc_weighted *k) {
    int n_dims = msc_array_n_dims(k->weight);
    const int64_t *dims = msc_array_dims(k->weight);
    const struct msc_dense_desc *d = &k->whole;
    struct channel_map m = {
        .inner = msc_dims_product(n_dims - k->out_axis - 1, dims + k->out_axis + 1),
        .per_group = dims[k->out_axis],
        .group_rows = msc_array_n_elements(k->weight),
    };
    if (d->kind == MSC_DENSE_CONV_TRANSPOSE) {
        m.group_rows /= d->groups;
    }
    return m;
}

static int64_t channel_of(const struct channel_map *m, int64_t i) {
    return i / m->group_rows * m->per_group + i / m->inner % m->per_group;
}

// Turns q into q - z in place and sums up channels.
static enum msc_status centre(struct msc_weighted_pack *p, const struct msc_weighted *k,
                              const struct msc_weighted_variant *v, int32_t q[]) {
    int64_t n = msc_array_n_elements(k->weight);
    struct channel_map m = map_channels(k);
    int64_t *largest = msc_alloc_zero((size_t)k->channels, sizeof(*largest));
    p->sums = msc_alloc_zero((size_t)k->channels, sizeof(*p->sums));
    if (!largest || !p->sums) {
        msc_free(largest);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    int64_t run = m.inner; // elements of one channel
    for (int64_t first = 0; first < n; first += run) {
        int64_t c = channel_of(&m, first);
        int32_t zero_point = v->zero_points[c % v->quant.n];
        int64_t sum = 0, absolute = 0;
        for (int64_t i = first; i < first + run; i++) {
            q[i] -= zero_point;
            sum += q[i];
            absolute += q[i] < 0 ? -q[i] : q[i];
        }
        p->sums[c] = (int32_t)(p->sums[c] + sum);
        largest[c] += absolute;
    }
    for (int64_t c = 0; c < k->channels; c++) {
        p->largest = largest[c] > p->largest ? largest[c] : p->largest;
    }
    msc_free(largest);
    return MSC_OK;
}

// Both narrower forms fit into the memory of the int32 numbers they replace.
static void to_floats(void *numbers, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int32_t q;
        memcpy(&q, (char *)numbers + (size_t)i * sizeof(q), sizeof(q));
        float f = (float)q;
        memcpy((char *)numbers + (size_t)i * sizeof(f), &f, sizeof(f));
    }
}

static void to_int8(void *numbers, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int32_t q;
        memcpy(&q, (char *)numbers + (size_t)i * sizeof(q), sizeof(q));
        ((int8_t *)numbers)[i] = (int8_t)q;
    }
}

static enum msc_status pack_integers(struct msc_weighted_pack *p, const struct msc_weighted *k,
                                     const struct msc_weighted_variant *v,
                                     const struct msc_dense *dense, bool is_int8) {
    struct msc_array *q;
    MSC_TRY(msc_quantize_array(&q, k->weight, &v->quant));
    int64_t n = msc_array_n_elements(q);
    enum msc_status status = centre(p, k, v, msc_array_data(q));
    if (status == MSC_OK) {
        if (is_int8) {
            to_int8(msc_array_data(q), n);
        } else {
            to_floats(msc_array_data(q), n);
        }
        status = msc_dense_pack(&p->weights, dense, msc_array_data(q));
    }
    msc_array_release(q);
    return status;
}

static enum msc_status pack_floats(struct msc_weighted_pack *p, const struct msc_weighted *k,
                                   const struct msc_weighted_variant *v,
                                   const struct msc_dense *dense) {
    if (v->quant.bits == 0) {
        return msc_dense_pack(&p->weights, dense, msc_array_data(k->weight));
    }
    struct msc_array *quantised;
    MSC_TRY(msc_fake_quantize_array(&quantised, k->weight, &v->quant));
    enum msc_status status = msc_dense_pack(&p->weights, dense, msc_array_data(quantised));
    msc_array_release(quantised);
    return status;
}

static enum msc_status make_pack(struct msc_weighted_pack **out, const struct msc_weighted *k,
                                 const struct msc_weighted_variant *v,
                                 enum msc_weighted_unit unit) {
    const struct msc_dense *dense;
    MSC_TRY(msc_weighted_routine(&dense, k, unit));
    struct msc_weighted_pack *p = msc_alloc_zero(1, sizeof(*p));
    if (!p) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    enum msc_status status = unit == MSC_WEIGHTED_FLOAT
                                 ? pack_floats(p, k, v, dense)
                                 : pack_integers(p, k, v, dense, unit >= MSC_WEIGHTED_INT8);
    if (status != MSC_OK) {
        destroy_pack(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}

enum msc_status msc_weighted_pack(const struct msc_weighted_pack **out,
                                  const struct msc_weighted *k,
                                  const struct msc_weighted_variant *v,
                                  enum msc_weighted_unit unit) {
    // A cache inside: what callers see of the variant never changes.
    struct msc_weighted_variant *cache = (struct msc_weighted_variant *)v;
    struct msc_weighted_pack *have =
        atomic_load_explicit(&cache->packs[unit], memory_order_acquire);
    if (!have) {
        struct msc_weighted_pack *made = NULL;
        MSC_TRY(make_pack(&made, k, v, unit));
        if (atomic_compare_exchange_strong(&cache->packs[unit], &have, made)) {
            have = made;
        } else {
            destroy_pack(made);
        }
    }
    *out = have;
    return MSC_OK;
}

#include "graph/edit.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// ---- Making -----------------------------------------------------------------------------------

static struct msc_hash hash_rounding(const struct msc_bias_rounding *r) {
    struct msc_hash h = msc_hash_add_u64(msc_hash_bytes("round bias", 10), (uint64_t)r->n);
    h = msc_hash_add_bytes(h, r->steps, (size_t)r->n * sizeof(r->steps[0]));
    return r->shift == 0 ? h : msc_hash_add_bytes(h, &r->shift, sizeof(r->shift));
}

static struct msc_hash hash_mask(const struct msc_channel_mask *m) {
    struct msc_hash h = msc_hash_bytes("keep channels", 13);
    h = msc_hash_add_u64(msc_hash_add_u64(h, (uint64_t)m->axis), (uint64_t)m->n);
    for (int32_t c = 0; c < m->n; c++) {
        const uint8_t bit = m->is_kept[c];
        h = msc_hash_add_bytes(h, &bit, 1);
    }
    return h;
}

// The hash of a single quantisation is quant.hash, because records and models contain that hash.
void msc_edit_seal(struct msc_edit *e) {
    switch (e->kind) {
    case MSC_EDIT_QUANTIZE:
        msc_quant_seal(&e->quant);
        e->hash = e->quant.hash;
        break;
    case MSC_EDIT_ROUND_BIAS:
        e->hash = hash_rounding(&e->rounding);
        break;
    case MSC_EDIT_KEEP_CHANNELS:
        e->hash = hash_mask(&e->mask);
        break;
    case MSC_EDIT_REPLACE:
        e->hash = msc_hash_combine(msc_hash_bytes("replace", 7), msc_array_hash(e->elements));
        break;
    }
    e->hash = e->next != NULL ? msc_hash_combine(e->hash, e->next->hash) : e->hash;
}

struct msc_edit msc_edit_quantize(struct msc_quant quant) {
    struct msc_edit e = {.kind = MSC_EDIT_QUANTIZE, .quant = quant};
    msc_edit_seal(&e);
    return e;
}

// ---- Queries ----------------------------------------------------------------------------------

static const struct msc_edit *find_kind(const struct msc_edit *e, enum msc_edit_kind kind) {
    while (e != NULL && e->kind != kind) {
        e = e->next;
    }
    return e;
}

const struct msc_quant *msc_edit_quant(const struct msc_edit *e) {
    const struct msc_edit *found = find_kind(e, MSC_EDIT_QUANTIZE);
    return found != NULL ? &found->quant : NULL;
}

const struct msc_bias_rounding *msc_edit_rounding(const struct msc_edit *e) {
    const struct msc_edit *found = find_kind(e, MSC_EDIT_ROUND_BIAS);
    return found != NULL ? &found->rounding : NULL;
}

// ---- Checking ---------------------------------------------------------------------------------

// Position of each kind in the order of edits, and the kinds of slots it applies to.
static const struct {
    const char *name;
    int turn;
    bool is_for[MSC_SITE_KINDS];
} kinds[] = {
    [MSC_EDIT_QUANTIZE] = {"quantised",
                           2,
                           {[MSC_SITE_WEIGHT] = true, [MSC_SITE_ACTIVATION] = true}},
    [MSC_EDIT_ROUND_BIAS] = {"rounded to int32", 2, {[MSC_SITE_BIAS] = true}},
    [MSC_EDIT_KEEP_CHANNELS] =
        {"masked",
         1,
         {[MSC_SITE_WEIGHT] = true, [MSC_SITE_ACTIVATION] = true, [MSC_SITE_BIAS] = true}},
    [MSC_EDIT_REPLACE] = {"replaced", 0, {[MSC_SITE_WEIGHT] = true, [MSC_SITE_BIAS] = true}},
};

static enum msc_status check_mask(const struct msc_channel_mask *m, const struct msc_tensor *t) {
    char text[MSC_DIMS_TEXT_BYTES];
    bool has_axis = m->axis >= 0 && m->axis < t->n_dims;
    if (!has_axis || (t->dims[m->axis] >= 0 && t->dims[m->axis] != m->n)) {
        return MSC_FAIL(
            MSC_E_INVALID, "tensor %s: a mask of %d channels along axis %d does not fit shape %s",
            t->name, (int)m->n, (int)m->axis, msc_dims_format(text, t->n_dims, t->dims));
    }
    return MSC_OK;
}

static enum msc_status check_rounding(const struct msc_bias_rounding *r,
                                      const struct msc_tensor *t) {
    int64_t length = t->n_dims > 0 ? t->dims[t->n_dims - 1] : 1;
    if (r->n != 1 && r->n != length) {
        return MSC_FAIL(MSC_E_INVALID, "bias %s: found %d rounding steps, expected 1 or %lld",
                        t->name, (int)r->n, (long long)length);
    }
    for (int32_t c = 0; c < r->n; c++) {
        if (!(r->steps[c] > 0) || isinf(r->steps[c])) {
            return MSC_FAIL(MSC_E_INVALID,
                            "bias %s: step %g of channel %d is not a positive number", t->name,
                            (double)r->steps[c], (int)c);
        }
    }
    if (!isfinite(r->shift)) {
        return MSC_FAIL(MSC_E_INVALID, "bias %s: shift %g is not a finite number", t->name,
                        (double)r->shift);
    }
    return MSC_OK;
}

static enum msc_status check_elements(const struct msc_array *a, const struct msc_tensor *t) {
    char found[MSC_DIMS_TEXT_BYTES], expected[MSC_DIMS_TEXT_BYTES];
    int n_dims = msc_array_n_dims(a);
    const int64_t *dims = msc_array_dims(a);
    if (msc_array_dtype(a) != t->dtype || n_dims != t->n_dims ||
        memcmp(dims, t->dims, (size_t)n_dims * sizeof(dims[0])) != 0) {
        return MSC_FAIL(MSC_E_INVALID, "tensor %s: its new elements are %s%s, expected %s%s",
                        t->name, msc_dtype_name(msc_array_dtype(a)),
                        msc_dims_format(found, n_dims, dims), msc_dtype_name(t->dtype),
                        msc_dims_format(expected, t->n_dims, t->dims));
    }
    return MSC_OK;
}

const struct msc_edit *msc_edit_at_slot(const struct msc_edit *e, const struct msc_slot *slot) {
    bool is_dynamic = e != NULL && e->kind == MSC_EDIT_QUANTIZE && e->quant.is_dynamic;
    return is_dynamic && !slot->takes_dynamic ? NULL : e;
}

// Checks only the number of chosen integers. Their range is checked when they are made.
static enum msc_status check_quant(const struct msc_quant *q, const struct msc_slot *slot,
                                   const struct msc_tensor *t) {
    int64_t n = q->integers ? msc_array_n_elements(q->integers) : 0;
    if (q->blocks != NULL) {
        return slot->kind == MSC_SITE_WEIGHT
                   ? msc_quant_check_integers(q, msc_dims_product(t->n_dims, t->dims))
                   : MSC_FAIL(MSC_E_INVALID, "tensor %s: only weights are stored in blocks",
                              t->name);
    }
    if (q->integers &&
        (slot->kind != MSC_SITE_WEIGHT || msc_dims_product(t->n_dims, t->dims) != n)) {
        return MSC_FAIL(MSC_E_INVALID, "tensor %s: %lld integers were chosen for it, but it %s",
                        t->name, (long long)n,
                        slot->kind == MSC_SITE_WEIGHT ? "has another number of elements"
                                                      : "is not a weight");
    }
    return !q->is_dynamic || slot->takes_dynamic
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "tensor %s: only the activation of a linear layer with a constant matrix "
                          "can be quantised dynamically",
                          t->name);
}

static enum msc_status check_one(const struct msc_edit *e, const struct msc_slot *slot,
                                 const struct msc_tensor *t) {
    switch (e->kind) {
    case MSC_EDIT_QUANTIZE:
        return check_quant(&e->quant, slot, t);
    case MSC_EDIT_ROUND_BIAS:
        return check_rounding(&e->rounding, t);
    case MSC_EDIT_KEEP_CHANNELS:
        return check_mask(&e->mask, t);
    case MSC_EDIT_REPLACE:
        return check_elements(e->elements, t);
    }
    return MSC_OK;
}

static bool has_known_kinds(const struct msc_edit *e) {
    while (e != NULL && (size_t)e->kind < sizeof(kinds) / sizeof(kinds[0])) {
        e = e->next;
    }
    return e == NULL;
}

enum msc_status msc_edit_check(const struct msc_edit *e, const struct msc_graph *g,
                               const struct msc_slot *slot) {
    static const char *const places[MSC_SITE_KINDS] = {[MSC_SITE_WEIGHT] = "a weight",
                                                       [MSC_SITE_ACTIVATION] = "an activation",
                                                       [MSC_SITE_BIAS] = "a bias"};
    const struct msc_tensor *t = msc_graph_tensor(g, slot->tensor);
    if (!has_known_kinds(e)) {
        return MSC_FAIL(MSC_E_INVALID, "tensor %s: the edit has an unknown kind", t->name);
    }
    for (; e != NULL; e = e->next) {
        if (!kinds[e->kind].is_for[slot->kind]) {
            return MSC_FAIL(MSC_E_INVALID, "tensor %s is %s, which cannot be %s", t->name,
                            places[slot->kind], kinds[e->kind].name);
        }
        // Several masks may follow each other. A channel remains only if all of them keep it.
        int step = e->next != NULL ? kinds[e->next->kind].turn - kinds[e->kind].turn : 1;
        if (step < 0 || (step == 0 && e->kind != MSC_EDIT_KEEP_CHANNELS)) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "tensor %s is %s before it is %s; order edits as replace, mask, then quantise "
                "or round",
                t->name, kinds[e->kind].name, kinds[e->next->kind].name);
        }
        if (e->next != NULL && e->next->kind == MSC_EDIT_QUANTIZE && e->next->quant.integers) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "tensor %s is %s, but the integers of its quantisation are already chosen", t->name,
                kinds[e->kind].name);
        }
        if (e->kind != MSC_EDIT_QUANTIZE && t->dtype != MSC_DTYPE_F32) {
            return MSC_FAIL(MSC_E_INVALID, "tensor %s is %s: only float32 can be %s", t->name,
                            msc_dtype_name(t->dtype), kinds[e->kind].name);
        }
        MSC_TRY(check_one(e, slot, t));
    }
    return MSC_OK;
}

// ---- Applying ---------------------------------------------------------------------------------

int32_t msc_bias_round(float bias, float step) {
    float q = rintf(bias / step);
    if (isnan(q)) {
        return 0;
    }
    // Compares with 2^31 because float32 cannot represent INT32_MAX.
    return q >= 0x1p31f ? INT32_MAX : q <= -0x1p31f ? INT32_MIN : (int32_t)q;
}

int32_t msc_bias_round_channel(const struct msc_bias_rounding *r, float bias, int64_t c) {
    return msc_bias_round(bias + r->shift, msc_bias_step(r, c));
}

void msc_mask_run(float out[], const float x[], int64_t outer, int64_t inner,
                  const struct msc_channel_mask *mask) {
    for (int64_t i = 0; i < outer * mask->n; i++, x += inner, out += inner) {
        if (!mask->is_kept[i % mask->n]) {
            memset(out, 0, (size_t)inner * sizeof(out[0]));
        } else if (out != x) {
            memcpy(out, x, (size_t)inner * sizeof(out[0]));
        }
    }
}

static enum msc_status mask_array(struct msc_array **out, const struct msc_array *x,
                                  const struct msc_channel_mask *mask) {
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    char text[MSC_DIMS_TEXT_BYTES];
    if (mask->axis >= n_dims || dims[mask->axis] != mask->n) {
        return MSC_FAIL(MSC_E_INVALID, "a mask of %d channels along axis %d does not fit shape %s",
                        (int)mask->n, (int)mask->axis, msc_dims_format(text, n_dims, dims));
    }
    MSC_TRY(msc_array_create(out, MSC_DTYPE_F32, n_dims, dims));
    msc_mask_run(msc_array_data(*out), msc_array_data(x), msc_dims_product(mask->axis, dims),
                 msc_dims_product(n_dims - mask->axis - 1, dims + mask->axis + 1), mask);
    return MSC_OK;
}

static enum msc_status round_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_bias_rounding *r) {
    MSC_TRY(msc_array_create(out, MSC_DTYPE_F32, msc_array_n_dims(x), msc_array_dims(x)));
    const float *from = msc_array_data(x);
    float *to = msc_array_data(*out);
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        int64_t c = i % r->n;
        to[i] = msc_bias_value(r, msc_bias_round_channel(r, from[i], c), c);
    }
    return MSC_OK;
}

static enum msc_status apply_one(struct msc_array **out, const struct msc_array *x,
                                 const struct msc_edit *e) {
    switch (e->kind) {
    case MSC_EDIT_QUANTIZE:
        return msc_fake_quantize_array(out, x, &e->quant);
    case MSC_EDIT_ROUND_BIAS:
        return round_array(out, x, &e->rounding);
    case MSC_EDIT_KEEP_CHANNELS:
        return mask_array(out, x, &e->mask);
    case MSC_EDIT_REPLACE:
        *out = msc_array_retain(e->elements);
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_INVALID, "the edit has an unknown kind");
}

static bool is_at_end(const struct msc_edit *e) {
    return e->kind == MSC_EDIT_QUANTIZE || e->kind == MSC_EDIT_ROUND_BIAS;
}

static enum msc_status apply_all(struct msc_array **out, const struct msc_array *x,
                                 const struct msc_edit *e, bool has_end) {
    struct msc_array *at = msc_array_retain(x);
    for (; e != NULL && (has_end || !is_at_end(e)); e = e->next) {
        struct msc_array *next;
        enum msc_status status = apply_one(&next, at, e);
        msc_array_release(at);
        MSC_TRY(status);
        at = next;
    }
    *out = at;
    return MSC_OK;
}

enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e) {
    return apply_all(out, x, e, true);
}

enum msc_status msc_edit_elements(struct msc_array **out, const struct msc_array *x,
                                  const struct msc_edit *e) {
    return apply_all(out, x, e, false);
}

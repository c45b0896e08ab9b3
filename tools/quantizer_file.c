// Saves and loads the scales and integers of a quantizer's choices.
#include "tools/quantizer_internal.h"

#include "base/str.h"
#include "tools/bias_edits.h"

#include <math.h>
#include <string.h>

#define IMPORTANCE "importance" // array with the hash of the importance file, as text

static enum msc_status entry_name(struct msc_str *out, const struct msc_quantizer *q, int32_t site,
                                  size_t choice, const char *what) {
    msc_str_clear(out);
    msc_str_printf(out, "%s/%s/%s", q->sites.sites[site].name, q->choices[choice].label, what);
    return msc_str_status(out);
}

static enum msc_status save_array(struct msc_array_list *list, const char *name,
                                  enum msc_dtype dtype, int64_t n, const void *data) {
    struct msc_array *array;
    MSC_TRY(msc_array_create_from(&array, dtype, 1, &n, data));
    enum msc_status status = msc_array_list_add(list, name, array);
    msc_array_release(array);
    return status;
}

// The hash of the importance file is kept, so that scales are not mixed with another file's.
static enum msc_status save_importance(const struct msc_quantizer *q, struct msc_array_list *list) {
    char text[MSC_HASH_TEXT_BYTES];
    msc_hash_format(text, q->importance_hash);
    return q->importance.n > 0
               ? save_array(list, IMPORTANCE, MSC_DTYPE_U8, MSC_HASH_TEXT_BYTES, text)
               : MSC_OK;
}

static enum msc_status check_importance(const struct msc_quantizer *q,
                                        const struct msc_array_list *list) {
    char text[MSC_HASH_TEXT_BYTES];
    const struct msc_array *kept = msc_array_list_find(list, IMPORTANCE);
    msc_hash_format(text, q->importance_hash);
    bool is_same = q->importance.n == 0 ? !kept
                                        : kept && msc_array_n_bytes(kept) == sizeof(text) &&
                                              memcmp(msc_array_data(kept), text, sizeof(text)) == 0;
    return is_same ? MSC_OK
                   : MSC_FAIL(MSC_E_STATE, "the importance file (imatrix) has changed since the "
                                           "scales were computed; put the old file back");
}

// The name of the array that is stored instead of scales if a site stays float (`left`).
static enum msc_status left_name(struct msc_str *out, const struct msc_quantizer *q, int32_t site) {
    msc_str_clear(out);
    msc_str_printf(out, "%s/left", q->sites.sites[site].name);
    return msc_str_status(out);
}

enum msc_status msc_quantizer_save(const struct msc_quantizer *q, struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(save_importance(q, list));
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        if (q->left[i]) {
            MSC_TRY_OUT(left_name(&name, q, i));
            MSC_TRY_OUT(save_array(list, msc_str_text(&name), MSC_DTYPE_BOOL, 1, &q->left[i]));
        }
        for (size_t c = 0; c < q->n_choices; c++) {
            const struct msc_quant *quant = msc_quantizer_quant(q, i, (int32_t)c);
            if (!quant || !msc_quantizer__has_scales(q, i, c)) {
                continue;
            }
            MSC_TRY_OUT(entry_name(&name, q, i, c, "scale"));
            MSC_TRY_OUT(
                save_array(list, msc_str_text(&name), MSC_DTYPE_F32, quant->n, quant->scales));
            MSC_TRY_OUT(entry_name(&name, q, i, c, "zero_point"));
            MSC_TRY_OUT(
                save_array(list, msc_str_text(&name), MSC_DTYPE_I32, quant->n, quant->zero_points));
            if (quant->integers) {
                MSC_TRY_OUT(entry_name(&name, q, i, c, "integers"));
                MSC_TRY_OUT(msc_array_list_add(list, msc_str_text(&name),
                                               (struct msc_array *)quant->integers));
            }
            if (quant->shifts) {
                MSC_TRY_OUT(entry_name(&name, q, i, c, "shift"));
                MSC_TRY_OUT(msc_array_list_add(list, msc_str_text(&name),
                                               (struct msc_array *)quant->shifts));
            }
            const struct msc_quantizer_held held = msc_quantizer_held(q, i, (int32_t)c);
            if (held.n_held > 0) {
                const int32_t numbers[2] = {held.n_held, (int32_t)held.fallback};
                MSC_TRY_OUT(entry_name(&name, q, i, c, "held_back"));
                MSC_TRY_OUT(save_array(list, msc_str_text(&name), MSC_DTYPE_I32, 2, numbers));
            }
        }
    }
out:
    msc_str_finish(&name);
    return status;
}

// Scales must be usable as divisors, and zero points must be within the choice's range of integers.
static enum msc_status check_quant_numbers(const struct msc_quantizer *q, int32_t site,
                                           size_t choice, const struct msc_array *scales,
                                           const struct msc_array *zeros) {
    struct msc_observation o = msc_quantizer__observation(q, site, (int32_t)choice);
    int32_t low, high;
    msc_scheme_limits(&o.scheme, &low, &high);
    bool fits = msc_array_dtype(scales) == MSC_DTYPE_F32 && msc_array_dtype(zeros) == MSC_DTYPE_I32;
    for (int64_t i = 0; fits && i < msc_array_n_elements(scales); i++) {
        double scale = msc_array_get_double(scales, i);
        fits = scale > 0 && isfinite(scale);
    }
    for (int64_t i = 0; fits && i < msc_array_n_elements(zeros); i++) {
        int64_t zero = msc_array_get_i64(zeros, i);
        fits = zero >= low && zero <= high;
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_STATE,
                           "parameters of %s, choice \"%s\": expected scales and zero points",
                           q->sites.sites[site].name, q->choices[choice].label);
}

// Checks the integers. They are optional: without integers, weights are rounded to nearest.
static enum msc_status check_integers(const struct msc_quantizer *q, int32_t site, size_t choice,
                                      const struct msc_array *integers) {
    const struct msc_tensor *t = msc_graph_tensor(q->graph, q->sites.sites[site].tensor);
    struct msc_quant form = msc_quantizer__form(q, site, (int32_t)choice);
    form.integers = integers;
    if (integers && q->sites.sites[site].kind != MSC_SITE_WEIGHT) {
        return MSC_FAIL(MSC_E_STATE, "parameters of %s: only weights may have integers", t->name);
    }
    if (msc_quant_check_integers(&form, msc_tensor_n_elements(t)) != MSC_OK) {
        return msc_status_prefix(MSC_E_STATE, "parameters of %s, choice \"%s\"",
                                 q->sites.sites[site].name, q->choices[choice].label);
    }
    return MSC_OK;
}

// Checks the shifts. They are optional, and only for weights whose biases can take them.
static enum msc_status check_shifts(const struct msc_quantizer *q, int32_t site, size_t choice,
                                    const struct msc_array *shifts) {
    bool fits =
        !shifts ||
        (q->sites.sites[site].kind == MSC_SITE_WEIGHT && msc_array_dtype(shifts) == MSC_DTYPE_F32 &&
         msc_bias_edits_take_shifts(q->graph, &q->sites, site, msc_array_n_elements(shifts)));
    for (int64_t i = 0; fits && shifts && i < msc_array_n_elements(shifts); i++) {
        fits = isfinite(msc_array_get_double(shifts, i));
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_STATE,
                           "parameters of %s, choice \"%s\": shifts do not fit its joints' biases",
                           q->sites.sites[site].name, q->choices[choice].label);
}

// Reads how a choice was judged; optional.
static enum msc_status load_held(struct msc_quantizer *q, int32_t site, size_t choice,
                                 const struct msc_array *held) {
    struct msc_quantizer_held *to = msc_quantizer__held(q, site, choice);
    *to = (struct msc_quantizer_held){.n_held = 0};
    if (!held) {
        return MSC_OK;
    }
    bool fits = msc_array_dtype(held) == MSC_DTYPE_I32 && msc_array_n_elements(held) == 2;
    int64_t fallback = fits ? msc_array_get_i64(held, 1) : -1;
    if (!fits || fallback < 0 || fallback >= MSC_N_FALLBACKS || msc_array_get_i64(held, 0) < 1) {
        return MSC_FAIL(MSC_E_STATE,
                        "parameters of %s, choice \"%s\": expected rows held back and a fallback",
                        q->sites.sites[site].name, q->choices[choice].label);
    }
    *to = (struct msc_quantizer_held){.n_held = (int32_t)msc_array_get_i64(held, 0),
                                      .fallback = (enum msc_fallback)fallback};
    return MSC_OK;
}

static enum msc_status load_quant(struct msc_quantizer *q, const struct msc_array_list *list,
                                  int32_t site, size_t choice, struct msc_str *name) {
    const struct msc_site *s = &q->sites.sites[site];
    MSC_TRY(entry_name(name, q, site, choice, "scale"));
    const struct msc_array *scales = msc_array_list_find(list, msc_str_text(name));
    MSC_TRY(entry_name(name, q, site, choice, "zero_point"));
    const struct msc_array *zeros = msc_array_list_find(list, msc_str_text(name));
    if (!scales || !zeros) {
        return MSC_FAIL(MSC_E_STATE, "no parameters for %s, choice \"%s\"", s->name,
                        q->choices[choice].label);
    }
    MSC_TRY(check_quant_numbers(q, site, choice, scales, zeros));
    MSC_TRY(entry_name(name, q, site, choice, "integers"));
    const struct msc_array *integers = msc_array_list_find(list, msc_str_text(name));
    MSC_TRY(check_integers(q, site, choice, integers));
    MSC_TRY(entry_name(name, q, site, choice, "shift"));
    const struct msc_array *shifts = msc_array_list_find(list, msc_str_text(name));
    MSC_TRY(check_shifts(q, site, choice, shifts));
    MSC_TRY(entry_name(name, q, site, choice, "held_back"));
    MSC_TRY(load_held(q, site, choice, msc_array_list_find(list, msc_str_text(name))));
    int64_t n = msc_array_n_elements(scales);
    int64_t expected = msc_quantizer__form(q, site, (int32_t)choice).n;
    if (n != expected || msc_array_n_elements(zeros) != n) {
        return MSC_FAIL(MSC_E_STATE, "parameters of %s, choice \"%s\": %lld scales, expected %lld",
                        s->name, q->choices[choice].label, (long long)n, (long long)expected);
    }
    const struct msc_quant found = {.scales = msc_array_data(scales),
                                    .zero_points = msc_array_data(zeros),
                                    .integers = integers,
                                    .shifts = shifts};
    return msc_quantizer__set(q, site, (int32_t)choice, &found);
}

enum msc_status msc_quantizer_load(struct msc_quantizer *q, const struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(check_importance(q, list));
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        MSC_TRY_OUT(left_name(&name, q, i));
        q->left[i] = msc_array_list_find(list, msc_str_text(&name)) != NULL;
    }
    MSC_TRY_OUT(msc_quantizer__drop_left(q));
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        for (size_t c = 0; c < q->n_choices && msc_quantizer__is_used(q, i); c++) {
            if (msc_quantizer__has_scales(q, i, c)) {
                MSC_TRY_OUT(load_quant(q, list, i, c, &name));
            }
        }
    }
out:
    msc_str_finish(&name);
    return status;
}

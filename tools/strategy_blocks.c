// Weights in blocks of GGUF, in a strategy file:
//
//     {"site": …, "tensor": …, "choice": "q4_k", "type": "q4_k", "axis": 1, "blocks": "base64"}
#include "base/base64.h"
#include "base/json.h"
#include "tools/strategy_internal.h"

enum msc_status msc_strategy__blocks_to_json(const struct msc_quant *q, cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "type", q->blocks->name));
    MSC_TRY(msc_json_add_number(object, "axis", q->axis));
    return msc_strategy__bytes_to_json(object, "blocks", msc_array_data(q->integers),
                                       msc_array_n_bytes(q->integers));
}

enum msc_status msc_strategy__read_blocks(struct msc_quant *q, const cJSON *object,
                                          const char *where) {
    static const char *const keys[] = {"site", "tensor", "joints", "choice",
                                       "type", "axis",   "blocks"};
    const char *name, *text;
    double axis;
    struct msc_array *bytes;
    size_t n_bytes;
    MSC_TRY(msc_json_check_keys(object, keys, sizeof(keys) / sizeof(keys[0]), where));
    MSC_TRY(msc_json_get_text(&name, object, "type", where));
    MSC_TRY(msc_json_get_double(&axis, object, "axis", where));
    MSC_TRY(msc_json_get_text(&text, object, "blocks", where));
    if (axis != 0 && axis != 1) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: axis is %g, expected 0 or 1", where, axis);
    }
    if (msc_base64_count(&n_bytes, text) != MSC_OK) {
        return msc_status_prefix(MSC_E_FORMAT, "%s: blocks", where);
    }
    int64_t n = (int64_t)n_bytes;
    MSC_TRY(msc_array_create_unset(&bytes, MSC_DTYPE_U8, 1, &n));
    if (msc_base64_read(msc_array_data(bytes), n_bytes, text) != MSC_OK) {
        msc_array_release(bytes);
        return msc_status_prefix(MSC_E_FORMAT, "%s: blocks", where);
    }
    *q = msc_quant_of_blocks(msc_gguf_block_type_named(name), (int32_t)axis, bytes);
    return MSC_OK;
}

enum msc_status msc_strategy__check_blocks(const struct msc_strategy_edit *e,
                                           const struct msc_tensor *t) {
    const struct msc_quant *q = &e->edit.quant;
    bool fits = t->n_dims == 2 && t->data && t->dims[q->axis] % q->blocks->n == 0;
    if (!fits || msc_quant_check_integers(q, msc_tensor_n_elements(t)) != MSC_OK) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has blocks %s for tensor %s, which do not fit it",
                        q->blocks->name, e->tensor);
    }
    return MSC_OK;
}

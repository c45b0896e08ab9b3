// The header of a safetensors file, and the order of its tensors.
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "data/safetensors_format.h"

#include <string.h>

#define ALIGN_BYTES 64u

// Orders tensors by the width of their elements, widest first; tensors of equal width keep their
// order. Every tensor is then aligned, and there are no gaps, which the reference implementation
// would reject.
static void order_by_width(size_t order[], const struct msc_array_form forms[], size_t n) {
    size_t k = 0;
    for (size_t n_bytes = 8; n_bytes > 0; n_bytes /= 2) {
        for (size_t i = 0; i < n; i++) {
            if (msc_dtype_bytes(forms[i].dtype) == n_bytes) {
                order[k++] = i;
            }
        }
    }
}

static void write_metadata(struct msc_str *header, const char *const (*metadata)[2], size_t n) {
    msc_str_append(header, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        msc_str_append(header, i ? "," : "");
        msc_json_write_text(header, metadata[i][0]);
        msc_str_char(header, ':');
        msc_json_write_text(header, metadata[i][1]);
    }
    msc_str_char(header, '}');
}

static void write_entry(struct msc_str *header, const struct msc_array_form *form, uint64_t begin,
                        uint64_t n_bytes) {
    msc_json_write_text(header, form->name);
    msc_str_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", msc_safetensors__code(form->dtype));
    for (int i = 0; i < form->n_dims; i++) {
        msc_str_append(header, i ? "," : "");
        msc_str_i64(header, form->dims[i]);
    }
    msc_str_append(header, "],\"data_offsets\":[");
    msc_str_u64(header, begin);
    msc_str_char(header, ',');
    msc_str_u64(header, begin + n_bytes);
    msc_str_append(header, "]}");
}

static uint64_t form_bytes(const struct msc_array_form *form) {
    return (uint64_t)msc_dims_product(form->n_dims, form->dims) * msc_dtype_bytes(form->dtype);
}

static void safetensors_write_header(struct msc_str *header, uint64_t places[],
                                     const struct msc_array_form forms[], const size_t order[],
                                     size_t n, const char *const (*metadata)[2],
                                     size_t n_metadata) {
    uint64_t place = 0;
    msc_str_char(header, '{');
    if (metadata && n_metadata > 0) {
        write_metadata(header, metadata, n_metadata);
    }
    for (size_t k = 0; k < n; k++) {
        const struct msc_array_form *form = &forms[order[k]];
        msc_str_append(header, header->length > 1 ? "," : "");
        write_entry(header, form, place, form_bytes(form));
        places[order[k]] = place;
        place += form_bytes(form);
    }
    msc_str_char(header, '}');
    while (!header->failed && (MSC_SAFETENSORS_LENGTH_BYTES + header->length) % ALIGN_BYTES != 0) {
        msc_str_char(header, ' ');
    }
}

static enum msc_status check_names(const struct msc_array_form forms[], size_t n,
                                   const char *path) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(forms[i].name, "__metadata__") == 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: a tensor cannot be named \"__metadata__\"; rename it", path);
        }
    }
    return MSC_OK;
}

enum msc_status msc_safetensors__lay_out(struct msc_str *header, uint64_t places[],
                                         const struct msc_array_form forms[], size_t n,
                                         const char *const (*metadata)[2], size_t n_metadata,
                                         const char *path) {
    enum msc_status status = MSC_OK;
    struct msc_str text = {0};
    size_t *order = msc_alloc_zero(n + 1, sizeof *order);
    if (!order) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory to order %zu tensors", path, n);
    }
    MSC_TRY_OUT(check_names(forms, n, path));
    order_by_width(order, forms, n);
    safetensors_write_header(&text, places, forms, order, n, metadata, n_metadata);
    MSC_TRY_OUT(msc_str_status(&text));
    for (unsigned i = 0; i < MSC_SAFETENSORS_LENGTH_BYTES; i++) {
        msc_str_char(header, (char)(uint8_t)((uint64_t)text.length >> (8 * i)));
    }
    msc_str_append_n(header, text.data, text.length);
    status = msc_str_status(header);
out:
    msc_str_finish(&text);
    msc_free(order);
    return status;
}

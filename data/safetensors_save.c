#include "data/safetensors.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/safetensors_format.h"

#include <string.h>

#define ALIGN_BYTES 64u

// Wider elements first, else as in the list: so every tensor is aligned to its own elements without
// gaps, which the reference implementation refuses.
static void order_by_width(size_t order[], const struct msc_array_list *list) {
    size_t n = 0;
    for (size_t n_bytes = 8; n_bytes > 0; n_bytes /= 2) {
        for (size_t i = 0; i < list->n; i++) {
            if (msc_dtype_bytes(msc_array_dtype(list->arrays[i])) == n_bytes) {
                order[n++] = i;
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

static void write_entry(struct msc_str *header, const char *name, const struct msc_array *array,
                        uint64_t begin) {
    msc_json_write_text(header, name);
    msc_str_printf(header, ":{\"dtype\":\"%s\",\"shape\":[",
                   msc_safetensors__code(msc_array_dtype(array)));
    for (int i = 0; i < msc_array_n_dims(array); i++) {
        msc_str_append(header, i ? "," : "");
        msc_str_i64(header, msc_array_dim(array, i));
    }
    msc_str_append(header, "],\"data_offsets\":[");
    msc_str_u64(header, begin);
    msc_str_char(header, ',');
    msc_str_u64(header, begin + msc_array_n_bytes(array));
    msc_str_append(header, "]}");
}

static enum msc_status safetensors_write_header(struct msc_str *header,
                                                const struct msc_array_list *list,
                                                const size_t order[],
                                                const char *const (*metadata)[2],
                                                size_t n_metadata) {
    msc_str_char(header, '{');
    if (metadata && n_metadata > 0) {
        write_metadata(header, metadata, n_metadata);
    }
    uint64_t place = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct msc_array *array = list->arrays[order[i]];
        msc_str_append(header, header->length > 1 ? "," : "");
        write_entry(header, list->names[order[i]], array, place);
        place += msc_array_n_bytes(array);
    }
    msc_str_char(header, '}');
    while (!header->failed && (MSC_SAFETENSORS_LENGTH_BYTES + header->length) % ALIGN_BYTES != 0) {
        msc_str_char(header, ' ');
    }
    return msc_str_status(header);
}

static enum msc_status check_names(const struct msc_array_list *list, const char *path) {
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], "__metadata__") == 0) {
            return MSC_FAIL(MSC_E_INVALID, "%s: a tensor cannot be named \"__metadata__\"", path);
        }
    }
    return MSC_OK;
}

enum msc_status msc_safetensors_save(const char *path, const struct msc_array_list *list,
                                     const char *const (*metadata)[2], size_t n_metadata) {
    MSC_TRY(check_names(list, path));
    enum msc_status status = MSC_OK;
    struct msc_str header = {0};
    struct msc_file_writer writer = {0};
    size_t *order = msc_alloc_zero(list->n + 1, sizeof *order);
    if (!order) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: no memory to order %zu tensors", path, list->n);
        goto out;
    }
    order_by_width(order, list);
    MSC_TRY_OUT(safetensors_write_header(&header, list, order, metadata, n_metadata));
    uint8_t length[MSC_SAFETENSORS_LENGTH_BYTES];
    for (unsigned i = 0; i < MSC_SAFETENSORS_LENGTH_BYTES; i++) {
        length[i] = (uint8_t)((uint64_t)header.length >> (8 * i));
    }
    MSC_TRY_OUT(msc_file_writer_begin(&writer, path));
    MSC_TRY_OUT(msc_file_writer_write(&writer, length, sizeof length));
    MSC_TRY_OUT(msc_file_writer_write(&writer, header.data, header.length));
    for (size_t i = 0; i < list->n; i++) {
        const struct msc_array *array = list->arrays[order[i]];
        MSC_TRY_OUT(
            msc_file_writer_write(&writer, msc_array_data(array), msc_array_n_bytes(array)));
    }
    MSC_TRY_OUT(msc_file_writer_commit(&writer));
out:
    msc_file_writer_abort(&writer);
    msc_str_finish(&header);
    msc_free(order);
    return status;
}

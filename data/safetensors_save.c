#include "data/safetensors.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/safetensors_format.h"

static enum msc_status write_tensors(struct msc_file_writer *writer, const struct msc_str *header,
                                     const uint64_t places[], const struct msc_array_list *list) {
    MSC_TRY(msc_file_writer_write_at(writer, 0, header->data, header->length));
    for (size_t i = 0; i < list->n; i++) {
        const struct msc_array *array = list->arrays[i];
        MSC_TRY(msc_file_writer_write_at(writer, header->length + places[i], msc_array_data(array),
                                         msc_array_n_bytes(array)));
    }
    return MSC_OK;
}

enum msc_status msc_safetensors_save(const char *path, const struct msc_array_list *list,
                                     const char *const (*metadata)[2], size_t n_metadata) {
    enum msc_status status = MSC_OK;
    struct msc_arena arena = {0};
    struct msc_str header = {0};
    struct msc_file_writer writer = {0};
    struct msc_array_form *forms = msc_arena_array(&arena, list->n + 1, sizeof *forms);
    uint64_t *places = msc_arena_array(&arena, list->n + 1, sizeof *places);
    if (!forms || !places) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for %zu tensors", path, list->n);
        goto out;
    }
    for (size_t i = 0; i < list->n; i++) {
        msc_array_form_of(&forms[i], list->names[i], list->arrays[i]);
    }
    MSC_TRY_OUT(
        msc_safetensors__lay_out(&header, places, forms, list->n, metadata, n_metadata, path));
    MSC_TRY_OUT(msc_file_writer_begin(&writer, path));
    MSC_TRY_OUT(write_tensors(&writer, &header, places, list));
    status = msc_file_writer_commit(&writer);
out:
    msc_file_writer_abort(&writer);
    msc_str_finish(&header);
    msc_arena_finish(&arena);
    return status;
}

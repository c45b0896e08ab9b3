#include "data/npy.h"

#include "base/file.h"
#include "data/npy_format.h"

enum msc_status msc_npy_load(struct msc_array **out, const char *path) {
    struct msc_stream stream = {0};
    enum msc_status status = msc_stream__open(&stream, path);
    if (status == MSC_OK) {
        status = msc_npy__read(out, &stream);
    }
    msc_stream__close(&stream);
    return status;
}

enum msc_status msc_npy_save(const char *path, const struct msc_array *array) {
    enum msc_status status = MSC_OK;
    struct msc_file_writer writer = {0};
    struct msc_array *known = NULL;
    MSC_TRY_OUT(msc_npy__known_to_numpy(&known, array));
    char header[MSC_NPY_HEADER_BYTES];
    size_t n = msc_npy__format_header(header, msc_array_dtype(known), msc_array_n_dims(known),
                                      msc_array_dims(known));
    MSC_TRY_OUT(msc_file_writer_begin(&writer, path));
    MSC_TRY_OUT(msc_file_writer_write(&writer, header, n));
    MSC_TRY_OUT(msc_file_writer_write(&writer, msc_array_data(known), msc_array_n_bytes(known)));
    MSC_TRY_OUT(msc_file_writer_commit(&writer));
out:
    msc_file_writer_abort(&writer);
    msc_array_release(known);
    return status;
}

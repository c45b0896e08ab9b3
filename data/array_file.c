#include "data/array_file.h"

#include "base/file.h"
#include "base/str.h"
#include "data/npy_format.h"
#include "data/safetensors_format.h"
#include "data/zip_write.h"

#include <string.h>
#include <zlib.h>

#define MOST_NAME_BYTES 65000u

// One array. In a .npz it is a zip member, which begins with the .npy header.
struct item {
    enum msc_dtype from, dtype; // type of the caller's elements, type in the file
    int64_t n_elements;
    uint64_t place; // offset of the first element in the file
    struct msc_zip_member member;
};

struct msc_array_file {
    struct msc_arena arena;
    struct msc_file_writer writer;
    bool is_npz;
    size_t n;
    struct item *items;
    uint64_t end; // offset after the last element
    uint64_t n_bytes;
};

void msc_array_form_of(struct msc_array_form *out, const char *name,
                       const struct msc_array *array) {
    *out = (struct msc_array_form){
        .name = name, .dtype = msc_array_dtype(array), .n_dims = msc_array_n_dims(array)};
    memcpy(out->dims, msc_array_dims(array), (size_t)out->n_dims * sizeof out->dims[0]);
}

// ---- Layout -----------------------------------------------------------------------------------

// Writes the .npy header of an array; its elements follow.
static enum msc_status place_member(struct msc_array_file *f, struct item *item,
                                    const struct msc_array_form *form) {
    char header[MSC_NPY_HEADER_BYTES];
    if (strlen(form->name) > MOST_NAME_BYTES) {
        return MSC_FAIL(MSC_E_INVALID, "%s: an array name has %zu bytes, a .npz allows at most %u",
                        f->writer.path, strlen(form->name), MOST_NAME_BYTES);
    }
    item->dtype = msc_npy__code(form->dtype) ? form->dtype : MSC_DTYPE_F32;
    item->member.name = msc_arena_printf(&f->arena, "%s.npy", form->name);
    MSC_TRY(MSC_ALLOCATED(item->member.name));
    size_t n = msc_npy__format_header(header, item->dtype, form->n_dims, form->dims);
    uint64_t begin = f->end + msc_zip__local_bytes(item->member.name);
    item->member.place = f->end;
    item->member.n_bytes = n + (uint64_t)item->n_elements * msc_dtype_bytes(item->dtype);
    item->place = begin + n;
    f->end = begin + item->member.n_bytes;
    return msc_file_writer_write_at(&f->writer, begin, header, n);
}

static enum msc_status place_tensors(struct msc_array_file *f,
                                     const struct msc_array_form forms[]) {
    struct msc_str header = {0};
    uint64_t *places = msc_arena_array(&f->arena, f->n + 1, sizeof *places);
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(places));
    MSC_TRY_OUT(msc_safetensors__lay_out(&header, places, forms, f->n, NULL, 0, f->writer.path));
    f->end = header.length;
    for (size_t i = 0; i < f->n; i++) {
        struct item *item = &f->items[i];
        item->place = header.length + places[i];
        f->end += (uint64_t)item->n_elements * msc_dtype_bytes(item->dtype);
    }
    status = msc_file_writer_write_at(&f->writer, 0, header.data, header.length);
out:
    msc_str_finish(&header);
    return status;
}

static enum msc_status place_all(struct msc_array_file *f, const struct msc_array_form forms[]) {
    for (size_t i = 0; i < f->n; i++) {
        f->items[i].from = f->items[i].dtype = forms[i].dtype;
        f->items[i].n_elements = msc_dims_product(forms[i].n_dims, forms[i].dims);
    }
    if (!f->is_npz) {
        return place_tensors(f, forms);
    }
    for (size_t i = 0; i < f->n; i++) {
        MSC_TRY(place_member(f, &f->items[i], &forms[i]));
    }
    return MSC_OK;
}

enum msc_status msc_array_file_begin(struct msc_array_file **out, enum msc_array_file_kind kind,
                                     const char *path, const struct msc_array_form forms[],
                                     size_t n) {
    if (n == 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: no arrays to save", path);
    }
    struct msc_array_file *f = msc_alloc_zero(1, sizeof *f);
    MSC_TRY(MSC_ALLOCATED(f));
    enum msc_status status = MSC_OK;
    f->is_npz = kind == MSC_ARRAY_FILE_NPZ;
    f->n = n;
    f->items = msc_arena_array(&f->arena, n, sizeof *f->items);
    MSC_TRY_OUT(MSC_ALLOCATED(f->items));
    MSC_TRY_OUT(msc_file_writer_begin(&f->writer, path));
    MSC_TRY_OUT(place_all(f, forms));
    *out = f;
    f = NULL;
out:
    msc_array_file_close(f);
    return status;
}

// ---- Elements ---------------------------------------------------------------------------------

// Converts elements of a type that numpy lacks to one that numpy has, and writes them.
static enum msc_status put_converted(struct msc_array_file *f, const struct item *item,
                                     int64_t first, const void *elements, int64_t n) {
    struct msc_array *given = NULL, *known = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_array_create_from(&given, item->from, 1, &n, elements));
    MSC_TRY_OUT(msc_array_convert(&known, given, item->dtype));
    status = msc_file_writer_write_at(&f->writer,
                                      item->place + (uint64_t)first * msc_dtype_bytes(item->dtype),
                                      msc_array_data(known), msc_array_n_bytes(known));
out:
    msc_array_release(known);
    msc_array_release(given);
    return status;
}

enum msc_status msc_array_file_put(struct msc_array_file *f, size_t i, int64_t first,
                                   const void *elements, int64_t n) {
    const struct item *item = &f->items[i];
    if (first < 0 || n < 0 || n > item->n_elements || first > item->n_elements - n) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: array %zu has %lld elements; cannot write %lld elements from element %lld on",
            f->writer.path, i, (long long)item->n_elements, (long long)n, (long long)first);
    }
    if (item->from != item->dtype) {
        return put_converted(f, item, first, elements, n);
    }
    uint64_t n_bytes = msc_dtype_bytes(item->dtype);
    return msc_file_writer_write_at(&f->writer, item->place + (uint64_t)first * n_bytes, elements,
                                    (size_t)((uint64_t)n * n_bytes));
}

// ---- Commit -----------------------------------------------------------------------------------

// Computes a member's checksum by reading the file back. This is needed if the member's elements
// were written out of order.
static enum msc_status sum_member(struct msc_array_file *f, struct msc_zip_member *m) {
    enum { CHUNK_BYTES = 1 << 16 };
    uint64_t place = m->place + msc_zip__local_bytes(m->name);
    char *chunk = msc_alloc(CHUNK_BYTES);
    enum msc_status status = MSC_ALLOCATED(chunk);
    m->crc = (uint32_t)crc32(0, NULL, 0);
    for (uint64_t done = 0; status == MSC_OK && done < m->n_bytes;) {
        uint64_t left = m->n_bytes - done;
        size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        status = msc_file_writer_read_at(&f->writer, place + done, chunk, n);
        if (status == MSC_OK) {
            m->crc = (uint32_t)crc32(m->crc, (const Bytef *)chunk, (uInt)n);
        }
        done += n;
    }
    msc_free(chunk);
    return status;
}

static enum msc_status write_directory(struct msc_array_file *f) {
    struct msc_str local = {0}, directory = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < f->n; i++) {
        struct msc_zip_member *m = &f->items[i].member;
        MSC_TRY_OUT(sum_member(f, m));
        msc_str_clear(&local);
        msc_zip__append_local(&local, m);
        MSC_TRY_OUT(msc_str_status(&local));
        MSC_TRY_OUT(msc_file_writer_write_at(&f->writer, m->place, local.data, local.length));
        msc_zip__append_central(&directory, m);
    }
    msc_zip__append_end(&directory, f->n, f->end, directory.length);
    MSC_TRY_OUT(msc_str_status(&directory));
    status = msc_file_writer_write_at(&f->writer, f->end, directory.data, directory.length);
    f->end += directory.length;
out:
    msc_str_finish(&directory);
    msc_str_finish(&local);
    return status;
}

enum msc_status msc_array_file_commit(struct msc_array_file *f) {
    if (f->is_npz) {
        MSC_TRY(write_directory(f));
    }
    f->n_bytes = f->end;
    return msc_file_writer_commit(&f->writer);
}

uint64_t msc_array_file_bytes(const struct msc_array_file *file) {
    return file->n_bytes;
}

void msc_array_file_close(struct msc_array_file *f) {
    if (f) {
        msc_file_writer_abort(&f->writer);
        msc_arena_finish(&f->arena);
        msc_free(f);
    }
}

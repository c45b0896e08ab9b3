#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/array_file.h"
#include "data/npy.h"
#include "data/npy_format.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#define SUFFIX ".npy"
#define SUFFIX_BYTES (sizeof SUFFIX - 1)
// Deflate's largest compression ratio.
#define MAX_DEFLATE_RATIO 1032u
// Every archive may unpack to this size. Beyond it, the limit is MAX_UNPACKED_RATIO times the
// archive's own size. Real data does not compress better, and without a limit a small malicious
// archive could exhaust memory.
#define FREE_UNPACKED_BYTES ((uint64_t)64 << 20)
#define MAX_UNPACKED_RATIO 200u

static int64_t npz_read_member(void *source, void *to, size_t n_bytes) {
    return zip_fread(source, to, n_bytes);
}

// Opens the archive and reports its size. Closes everything on failure.
static enum msc_status open_archive(zip_t **out, uint64_t *n_bytes, const char *path) {
    int descriptor = -1;
    int code = ZIP_ER_NOZIP;
    MSC_TRY(msc_file_open(&descriptor, n_bytes, path));
    // libzip accepts an empty file as an empty archive; here it counts as truncated.
    *out = *n_bytes > 0 ? zip_fdopen(descriptor, 0, &code) : NULL;
    if (*out) {
        return MSC_OK;
    }
    close(descriptor); // once the archive is open, it owns the descriptor
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    enum msc_status status = MSC_FAIL(
        code == ZIP_ER_OPEN || code == ZIP_ER_READ ? MSC_E_IO : MSC_E_FORMAT,
        "%s: the zip directory at its end cannot be read (%s); the file is truncated or not a "
        ".npz, copy it or write it again with numpy.savez",
        path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return status;
}

static bool has_suffix(const char *name) {
    size_t n = strlen(name);
    return n > SUFFIX_BYTES && strcmp(name + n - SUFFIX_BYTES, SUFFIX) == 0;
}

// Checks that numpy could have written the member, and that the member's sizes fit the archive.
static enum msc_status check_member(const zip_stat_t *info, uint64_t archive_bytes,
                                    const char *path) {
    if (!has_suffix(info->name)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: member \"%s\" is not a .npy array; remove it, or write the file again "
                        "with numpy.savez",
                        path, info->name);
    }
    if (info->encryption_method != ZIP_EM_NONE) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: member \"%s\" is encrypted; write the file again with numpy.savez",
                        path, info->name);
    }
    if (info->comp_method != ZIP_CM_STORE && info->comp_method != ZIP_CM_DEFLATE) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: member \"%s\" is packed with method %d, expected stored or deflated; "
                        "write the file again with numpy.savez",
                        path, info->name, (int)info->comp_method);
    }
    uint64_t ratio = info->comp_method == ZIP_CM_STORE ? 1 : MAX_DEFLATE_RATIO;
    if (info->comp_size > archive_bytes || info->size / ratio > info->comp_size) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: member \"%s\" claims %" PRIu64 " bytes compressed to %" PRIu64
                        ", which is impossible; the file is damaged, write it again",
                        path, info->name, (uint64_t)info->size, (uint64_t)info->comp_size);
    }
    return MSC_OK;
}

// Reads a member's directory entry without checking it.
static enum msc_status read_entry(zip_stat_t *info, zip_t *archive, uint64_t index,
                                  const char *path) {
    const uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                            ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    zip_stat_init(info);
    if (zip_stat_index(archive, index, 0, info) != 0 || (info->valid & needed) != needed) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: member %" PRIu64 " of the zip directory cannot be "
                        "read (%s); write the file again",
                        path, index, zip_strerror(archive));
    }
    return MSC_OK;
}

static enum msc_status stat_member(zip_stat_t *info, zip_t *archive, uint64_t index,
                                   uint64_t archive_bytes, const char *path) {
    MSC_TRY(read_entry(info, archive, index, path));
    return check_member(info, archive_bytes, path);
}

// Checks the total unpacked size of the members that are read, because members may share bytes of
// the archive.
static enum msc_status check_unpacked_size(zip_t *archive, const struct msc_array_pick *pick,
                                           uint64_t archive_bytes, const char *path) {
    uint64_t n_unpacked = 0;
    for (size_t i = 0; i < pick->n_names; i++) {
        if (!pick->takes(pick, pick->names[i])) {
            continue;
        }
        zip_stat_t info;
        MSC_TRY(stat_member(&info, archive, i, archive_bytes, path));
        n_unpacked = info.size > UINT64_MAX - n_unpacked ? UINT64_MAX : n_unpacked + info.size;
    }
    if (n_unpacked > FREE_UNPACKED_BYTES && n_unpacked / MAX_UNPACKED_RATIO > archive_bytes) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: its %" PRIu64 " bytes unpack to %" PRIu64
                        " bytes, more than %u times as many; if that is intended, save the arrays "
                        "with numpy.savez",
                        path, archive_bytes, n_unpacked, MAX_UNPACKED_RATIO);
    }
    return MSC_OK;
}

// Reads to the end of the member, which makes libzip compare its checksum.
static enum msc_status check_end(zip_file_t *file, const char *place) {
    char byte;
    int64_t n = zip_fread(file, &byte, 1);
    if (n == 0) {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s: %s; the file is damaged, copy or write it again", place,
                    n < 0 ? "the checksum does not match its bytes" : "it is longer than its size");
}

static enum msc_status load_member(struct msc_array_list *out, zip_t *archive, uint64_t index,
                                   uint64_t archive_bytes, const char *path) {
    enum msc_status status = MSC_OK;
    struct msc_str place = {0}, name = {0};
    zip_file_t *file = NULL;
    struct msc_array *array = NULL;
    zip_stat_t info;
    MSC_TRY_OUT(stat_member(&info, archive, index, archive_bytes, path));
    msc_str_printf(&place, "%s: member \"%s\"", path, info.name);
    msc_str_append_n(&name, info.name, strlen(info.name) - SUFFIX_BYTES);
    MSC_TRY_OUT(msc_str_status(&place));
    MSC_TRY_OUT(msc_str_status(&name));
    file = zip_fopen_index(archive, index, 0);
    if (!file) {
        status = MSC_FAIL(MSC_E_FORMAT,
                          "%s: cannot be opened (%s); the file is damaged, copy or "
                          "write it again",
                          msc_str_text(&place), zip_strerror(archive));
        goto out;
    }
    struct msc_stream stream = {.name = msc_str_text(&place),
                                .n_bytes = info.size,
                                .read = npz_read_member,
                                .source = file};
    MSC_TRY_OUT(msc_npy__read(&array, &stream));
    MSC_TRY_OUT(check_end(file, msc_str_text(&place)));
    status = msc_array_list_add(out, msc_str_text(&name), array);
    if (status != MSC_OK) {
        status = msc_status_prefix(status == MSC_E_INVALID ? MSC_E_FORMAT : status, "%s", path);
    }
out:
    msc_array_release(array);
    if (file) {
        zip_fclose(file);
    }
    msc_str_finish(&name);
    msc_str_finish(&place);
    return status;
}

// The names of all members, without their endings.
static enum msc_status list_names(const char ***out, size_t *n, struct msc_arena *arena,
                                  zip_t *archive, const char *path) {
    *n = (size_t)zip_get_num_entries(archive, 0);
    *out = msc_arena_array(arena, *n + 1, sizeof **out);
    for (size_t i = 0; *out && i < *n; i++) {
        zip_stat_t info;
        MSC_TRY(read_entry(&info, archive, i, path));
        size_t length = strlen(info.name) - (has_suffix(info.name) ? SUFFIX_BYTES : 0);
        (*out)[i] = msc_arena_strndup(arena, info.name, length);
        if (!(*out)[i]) {
            break;
        }
    }
    if (!*out || (*n > 0 && !(*out)[*n - 1])) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for %zu names", path, *n);
    }
    return MSC_OK;
}

enum msc_status msc_npz__load(struct msc_array_list *out, struct msc_array_pick *pick,
                              const char *path) {
    zip_t *archive;
    uint64_t n_bytes;
    enum msc_status status = MSC_OK;
    MSC_TRY(open_archive(&archive, &n_bytes, path));
    MSC_TRY_OUT(list_names(&pick->names, &pick->n_names, pick->arena, archive, path));
    MSC_TRY_OUT(check_unpacked_size(archive, pick, n_bytes, path));
    for (size_t i = 0; i < pick->n_names; i++) {
        if (pick->takes(pick, pick->names[i])) {
            MSC_TRY_OUT(load_member(out, archive, i, n_bytes, path));
        }
    }
out:
    zip_discard(archive);
    if (status != MSC_OK) {
        msc_array_list_finish(out);
    }
    return status;
}

enum msc_status msc_npz_load(struct msc_array_list *out, const char *path) {
    struct msc_arena arena = {0};
    struct msc_array_pick pick = {.takes = msc_array_pick__all, .arena = &arena};
    enum msc_status status = msc_npz__load(out, &pick, path);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_npz__names(const char ***out, size_t *n, struct msc_arena *arena,
                               const char *path) {
    zip_t *archive;
    uint64_t n_bytes;
    enum msc_status status = MSC_OK;
    MSC_TRY(open_archive(&archive, &n_bytes, path));
    MSC_TRY_OUT(list_names(out, n, arena, archive, path));
    for (size_t i = 0; i < *n; i++) {
        zip_stat_t info;
        MSC_TRY_OUT(stat_member(&info, archive, i, n_bytes, path));
    }
out:
    zip_discard(archive);
    return status;
}

enum msc_status msc_npz_save(const char *path, const struct msc_array_list *list) {
    enum msc_status status = MSC_OK;
    struct msc_array_file *file = NULL;
    struct msc_array_form *forms = msc_alloc_zero(list->n + 1, sizeof *forms);
    if (!forms) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for an archive of %zu arrays", path,
                        list->n);
    }
    for (size_t i = 0; i < list->n; i++) {
        msc_array_form_of(&forms[i], list->names[i], list->arrays[i]);
    }
    MSC_TRY_OUT(msc_array_file_begin(&file, MSC_ARRAY_FILE_NPZ, path, forms, list->n));
    for (size_t i = 0; i < list->n; i++) {
        const struct msc_array *array = list->arrays[i];
        MSC_TRY_OUT(
            msc_array_file_put(file, i, 0, msc_array_data(array), msc_array_n_elements(array)));
    }
    status = msc_array_file_commit(file);
out:
    msc_array_file_close(file);
    msc_free(forms);
    return status;
}

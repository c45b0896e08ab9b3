#include "results/event_file.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "events.out.tfevents."
#define SUFFIX ".mscgym"
#define VERSION "brain.Event:2"

enum { HEAD_BYTES = 12, TAIL_BYTES = 4, BUFFER_BYTES = 1 << 20 };

struct msc_event_file {
    char *path;
    int descriptor;
    struct msc_str buffer;
};

// ---- Frames -----------------------------------------------------------------------------------

static uint32_t masked_crc(const void *data, size_t n_bytes) {
    uint32_t crc = msc_crc32c(data, n_bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void put_little_endian(uint8_t *out, uint64_t value, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_little_endian(const uint8_t *bytes, size_t n_bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static void append_frame(struct msc_str *out, const uint8_t *data, size_t n_bytes) {
    uint8_t head[HEAD_BYTES], tail[TAIL_BYTES];
    put_little_endian(head, n_bytes, 8);
    put_little_endian(head + 8, masked_crc(head, 8), 4);
    put_little_endian(tail, masked_crc(data, n_bytes), 4);
    msc_str_append_n(out, (const char *)head, sizeof head);
    msc_str_append_n(out, (const char *)data, n_bytes);
    msc_str_append_n(out, (const char *)tail, sizeof tail);
}

// The data of the frame at the beginning of `bytes`; NULL if there is none or it is damaged.
static const uint8_t *read_frame(size_t *n_data, const uint8_t *bytes, size_t n_bytes) {
    if (n_bytes < HEAD_BYTES + TAIL_BYTES ||
        get_little_endian(bytes + 8, 4) != masked_crc(bytes, 8)) {
        return NULL;
    }
    uint64_t length = get_little_endian(bytes, 8);
    if (length > n_bytes - HEAD_BYTES - TAIL_BYTES) {
        return NULL;
    }
    const uint8_t *data = bytes + HEAD_BYTES;
    if (get_little_endian(data + length, 4) != masked_crc(data, length)) {
        return NULL;
    }
    *n_data = length;
    return data;
}

// ---- Files of a folder ------------------------------------------------------------------------

struct event_files {
    struct msc_arena arena;
    const char **names;
    size_t n, capacity;
};

static bool comes_before(const void *context, const void *a, const void *b) {
    (void)context;
    return strcmp(*(const char *const *)a, *(const char *const *)b) < 0;
}

static enum msc_status add_name(struct event_files *files, const char *name) {
    MSC_TRY(msc_grow(&files->names, &files->capacity, files->n + 1, sizeof *files->names));
    files->names[files->n] = msc_arena_strdup(&files->arena, name);
    return MSC_ALLOCATED(files->names[files->n++]);
}

static enum msc_status list_files(struct event_files *files, const char *folder) {
    enum msc_status status = MSC_OK;
    const char *spare;
    DIR *list = opendir(folder);
    if (!list) {
        return errno == ENOENT
                   ? MSC_OK
                   : MSC_FAIL(MSC_E_IO, "%s: cannot be read: %s", folder, strerror(errno));
    }
    for (const struct dirent *item; status == MSC_OK && (item = readdir(list)) != NULL;) {
        if (strstr(item->d_name, "tfevents")) {
            status = add_name(files, item->d_name);
        }
    }
    closedir(list);
    const struct msc_heap heap = {.elements = files->names,
                                  .element_bytes = sizeof *files->names,
                                  .spare = &spare,
                                  .is_before = comes_before};
    msc_heap_sort(&heap, files->n);
    return status;
}

static void finish_list(struct event_files *files) {
    msc_arena_finish(&files->arena);
    msc_free(files->names);
}

// ---- Writing ----------------------------------------------------------------------------------

// The time for the name of a new file: the current second or, if a file has a later or equal time,
// the second after the latest of them.
static int64_t second_of_name(const struct event_files *files) {
    int64_t second = (int64_t)msc_clock_wall_seconds();
    for (size_t i = 0; i < files->n; i++) {
        const char *name = files->names[i];
        size_t length = strlen(name), prefix = strlen(PREFIX), suffix = strlen(SUFFIX);
        char digits[24] = "";
        int64_t other;
        if (length > prefix + suffix && length - prefix - suffix < sizeof digits &&
            strncmp(name, PREFIX, prefix) == 0 && strcmp(name + length - suffix, SUFFIX) == 0) {
            memcpy(digits, name + prefix, length - prefix - suffix);
            second = msc_parse_i64(&other, digits) && other >= second ? other + 1 : second;
        }
    }
    return second;
}

static enum msc_status name_file(char **out, const char *folder) {
    struct event_files files = {0};
    struct msc_str path = {0};
    enum msc_status status = list_files(&files, folder);
    if (status == MSC_OK) {
        msc_str_printf(&path, "%s/%s%010lld%s", folder, PREFIX, (long long)second_of_name(&files),
                       SUFFIX);
        status = msc_str_take(out, &path);
    }
    finish_list(&files);
    return status;
}

static enum msc_status begin_file(struct msc_event_file *file, const char *folder) {
    MSC_TRY(name_file(&file->path, folder));
    file->descriptor = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->descriptor < 0) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot be created: %s", file->path, strerror(errno));
    }
    MscTb__Event event = MSC_TB__EVENT__INIT;
    char version[] = VERSION;
    event.wall_time = msc_clock_wall_seconds();
    event.what_case = MSC_TB__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    return msc_event_file_add(file, &event);
}

enum msc_status msc_event_file_create(struct msc_event_file **out, const char *folder) {
    MSC_TRY(msc_file_make_folders(folder));
    struct msc_event_file *file = msc_alloc_zero(1, sizeof *file);
    MSC_TRY(MSC_ALLOCATED(file));
    file->descriptor = -1;
    enum msc_status status = begin_file(file, folder);
    if (status != MSC_OK) {
        msc_event_file_close(file);
        return status;
    }
    *out = file;
    return MSC_OK;
}

enum msc_status msc_event_file_add(struct msc_event_file *file, const MscTb__Event *event) {
    size_t n_bytes = msc_tb__event__get_packed_size(event);
    uint8_t *data = msc_alloc(n_bytes);
    MSC_TRY(MSC_ALLOCATED(data));
    msc_tb__event__pack(event, data);
    append_frame(&file->buffer, data, n_bytes);
    msc_free(data);
    MSC_TRY(msc_str_status(&file->buffer));
    return file->buffer.length >= BUFFER_BYTES ? msc_event_file_flush(file) : MSC_OK;
}

enum msc_status msc_event_file_flush(struct msc_event_file *file) {
    const char *rest = msc_str_text(&file->buffer);
    size_t n_left = file->buffer.length;
    while (n_left > 0) {
        ssize_t n = write(file->descriptor, rest, n_left);
        if (n < 0 && errno != EINTR) {
            return MSC_FAIL(MSC_E_IO, "%s: cannot be written: %s", file->path, strerror(errno));
        }
        rest += n > 0 ? n : 0;
        n_left -= n > 0 ? (size_t)n : 0;
    }
    msc_str_clear(&file->buffer);
    return MSC_OK;
}

const char *msc_event_file_path(const struct msc_event_file *file) {
    return file->path;
}

void msc_event_file_close(struct msc_event_file *file) {
    if (!file) {
        return;
    }
    if (file->descriptor >= 0) {
        close(file->descriptor);
    }
    msc_str_finish(&file->buffer);
    msc_free(file->path);
    msc_free(file);
}

// ---- Reading ----------------------------------------------------------------------------------

static void *event_allocate(void *data, size_t n_bytes) {
    void *memory = msc_alloc(n_bytes);
    *(bool *)data |= !memory;
    return memory;
}

static void event_release(void *data, void *memory) {
    (void)data;
    msc_free(memory);
}

static enum msc_status read_events(const uint8_t *bytes, size_t n_bytes,
                                   enum msc_status (*take)(void *payload, const MscTb__Event *),
                                   void *payload) {
    bool is_short = false;
    ProtobufCAllocator allocator = {
        .alloc = event_allocate, .free = event_release, .allocator_data = &is_short};
    size_t n_data = 0;
    const uint8_t *data;
    while ((data = read_frame(&n_data, bytes, n_bytes)) != NULL) {
        MscTb__Event *event = msc_tb__event__unpack(&allocator, n_data, data);
        if (!event) {
            return MSC_ALLOCATED(!is_short);
        }
        enum msc_status status = take(payload, event);
        msc_tb__event__free_unpacked(event, &allocator);
        MSC_TRY(status);
        bytes = data + n_data + TAIL_BYTES;
        n_bytes -= HEAD_BYTES + n_data + TAIL_BYTES;
    }
    return MSC_OK;
}

enum msc_status msc_event_file_read_all(const char *folder,
                                        enum msc_status (*take)(void *payload,
                                                                const MscTb__Event *event),
                                        void *payload) {
    struct event_files files = {0};
    enum msc_status status = list_files(&files, folder);
    for (size_t i = 0; status == MSC_OK && i < files.n; i++) {
        const void *data = NULL;
        size_t n_bytes = 0;
        const char *path = msc_path_join(&files.arena, folder, files.names[i]);
        status =
            path ? msc_file_map(&data, &n_bytes, path) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
        if (status == MSC_OK) {
            status = read_events(data, n_bytes, take, payload);
            msc_file_unmap(data, n_bytes);
        }
    }
    finish_list(&files);
    return status;
}

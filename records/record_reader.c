#include "records/record_reader.h"

#include "base/alloc.h"
#include "base/file.h"
#include "records/record_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// Bytes per read: large enough to amortise calls, small enough for the cache.
#define READ_BYTES ((size_t)256 << 10)

enum msc_status msc_record__reader_open(struct msc_record_reader *reader, const char *path) {
    MSC_TRY(msc_file_open(&reader->descriptor, NULL, path));
    reader->path = path;
    return MSC_OK;
}

// Reads more bytes after the buffered ones. *n is 0 at the end of the file.
static enum msc_status reader_fill(size_t *n, struct msc_record_reader *reader) {
    size_t n_kept = reader->end - reader->at;
    if (reader->at > 0) {
        memmove(reader->buffer, reader->buffer + reader->at, n_kept);
        reader->at = 0;
        reader->end = n_kept;
    }
    if (n_kept == reader->capacity) {
        size_t need = n_kept > 0 ? n_kept + 1 : READ_BYTES;
        MSC_TRY(msc_grow(&reader->buffer, &reader->capacity, need, 1));
    }
    for (;;) {
        ssize_t got = pread(reader->descriptor, reader->buffer + n_kept, reader->capacity - n_kept,
                            (off_t)(reader->offset + n_kept));
        if (got >= 0) {
            *n = (size_t)got;
            reader->end += *n;
            return MSC_OK;
        }
        if (errno != EINTR) {
            return msc_record__fail_system("read the record", reader->path, errno);
        }
    }
}

enum msc_status msc_record__reader_next(const char **line, size_t *length,
                                        struct msc_record_reader *reader) {
    size_t n_searched = 0;
    for (;;) {
        size_t n_there = reader->end - reader->at;
        const char *begin = n_there > 0 ? reader->buffer + reader->at : NULL;
        const char *end =
            n_there > n_searched ? memchr(begin + n_searched, '\n', n_there - n_searched) : NULL;
        if (end) {
            *line = begin;
            *length = (size_t)(end - begin);
            reader->at += *length + 1;
            reader->offset += *length + 1;
            reader->number++;
            return MSC_OK;
        }
        size_t n = 0;
        n_searched = n_there;
        MSC_TRY(reader_fill(&n, reader));
        if (n == 0) {
            *line = NULL;
            return MSC_OK;
        }
    }
}

void msc_record__reader_seek(struct msc_record_reader *reader, uint64_t offset, size_t number) {
    reader->at = reader->end = 0;
    reader->offset = offset;
    reader->number = number - 1;
}

void msc_record__reader_close(struct msc_record_reader *reader) {
    if (reader->path) {
        close(reader->descriptor);
    }
    msc_free(reader->buffer);
    *reader = (struct msc_record_reader){0};
}

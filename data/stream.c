#include "data/stream.h"

#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t read_file(void *source, void *to, size_t n_bytes) {
    FILE *file = source;
    size_t n = fread(to, 1, n_bytes, file);
    return n == 0 && ferror(file) ? -1 : (int64_t)n;
}

enum msc_status msc_stream__open(struct msc_stream *stream, const char *path) {
    *stream = (struct msc_stream){.name = path, .read = read_file};
    int descriptor = -1;
    MSC_TRY(msc_file_open(&descriptor, &stream->n_bytes, path));
    stream->source = fdopen(descriptor, "rb");
    if (!stream->source) {
        int error = errno;
        close(descriptor);
        return MSC_FAIL(MSC_E_IO, "%s: cannot be opened: %s", path, strerror(error));
    }
    return MSC_OK;
}

void msc_stream__close(struct msc_stream *stream) {
    if (stream->source) {
        fclose(stream->source);
    }
    *stream = (struct msc_stream){0};
}

static enum msc_status fail_at_end(const struct msc_stream *stream, const char *what) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: byte %" PRIu64 ": the file ends in %s; it is truncated, copy or write it "
                    "again",
                    stream->name, stream->position, what);
}

enum msc_status msc_stream__read(struct msc_stream *stream, void *to, size_t n_bytes,
                                 const char *what) {
    if (n_bytes > stream->n_bytes - stream->position) {
        stream->position = stream->n_bytes;
        return fail_at_end(stream, what);
    }
    size_t done = 0;
    while (done < n_bytes) {
        int64_t n = stream->read(stream->source, (char *)to + done, n_bytes - done);
        if (n < 0) {
            return MSC_FAIL(MSC_E_IO,
                            "%s: byte %" PRIu64 ": %s cannot be read; the file or its "
                            "disk is damaged",
                            stream->name, stream->position, what);
        }
        if (n == 0) {
            return fail_at_end(stream, what);
        }
        done += (size_t)n;
        stream->position += (uint64_t)n;
    }
    return MSC_OK;
}

enum msc_status msc_stream__seek(struct msc_stream *stream, uint64_t position) {
    assert(stream->read == read_file && position <= stream->n_bytes);
    if (fseeko(stream->source, (off_t)position, SEEK_SET) != 0) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot seek to byte %" PRIu64 ": %s", stream->name, position,
                        strerror(errno));
    }
    stream->position = position;
    return MSC_OK;
}

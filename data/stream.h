// Reads a known number of bytes in order, from a file or from a member of an archive. Never reads
// past the end. Error messages give the file and the position. Internal to data/.
//
//     struct msc_stream stream;
//     MSC_TRY(msc_stream__open(&stream, "weights.npy"));
//     MSC_TRY_OUT(msc_stream__read(&stream, magic, 6, "the magic number"));
//     out: msc_stream__close(&stream);
#ifndef MSC_DATA_STREAM_H
#define MSC_DATA_STREAM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct msc_stream {
    const char *name;  // beginning of every error message; borrowed
    uint64_t n_bytes;  // total length
    uint64_t position; // offset of the next byte
    // Reads up to n_bytes. Returns 0 at the end, a negative number if the source cannot be read.
    int64_t (*read)(void *source, void *to, size_t n_bytes);
    void *source;
};

// Opens a file. `path` is borrowed until the stream is closed. MSC_E_NOT_FOUND if the file is
// absent; MSC_E_IO if it cannot be read or is not a regular file.
enum msc_status msc_stream__open(struct msc_stream *stream, const char *path);
// Closes a stream from msc_stream__open. Accepts a zeroed stream.
void msc_stream__close(struct msc_stream *stream);

// Reads exactly n_bytes, or fails with MSC_E_FORMAT: "NAME: byte N: the file ends in WHAT ...".
enum msc_status msc_stream__read(struct msc_stream *stream, void *to, size_t n_bytes,
                                 const char *what);
// Sets the position, at most n_bytes. Only for streams from msc_stream__open.
enum msc_status msc_stream__seek(struct msc_stream *stream, uint64_t position);

#endif

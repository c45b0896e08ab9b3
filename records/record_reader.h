// Reads the lines of a file that another process may be writing; memory is bounded by the longest
// line.
#ifndef MSC_RECORDS_RECORD_READER_H
#define MSC_RECORDS_RECORD_READER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct msc_record_reader { // zero-initialise
    const char *path;      // borrowed, for error messages
    int descriptor;        // valid while path is not NULL
    char *buffer;
    size_t capacity;
    size_t at, end;  // range of buffered bytes not yet returned
    uint64_t offset; // offset of buffer[at] in the file
    size_t number;   // number of the line last returned, from 1
};

// MSC_E_NOT_FOUND: the file does not exist.
enum msc_status msc_record__reader_open(struct msc_record_reader *reader, const char *path);
// The next complete line, without its newline, borrowed until the next call. NULL if there is no
// complete line yet; an incomplete line is in bytes [at, end) of the buffer.
enum msc_status msc_record__reader_next(const char **line, size_t *length,
                                        struct msc_record_reader *reader);
// Seeks to the line with this number; the line begins at `offset`.
void msc_record__reader_seek(struct msc_record_reader *reader, uint64_t offset, size_t number);
void msc_record__reader_close(struct msc_record_reader *reader); // accepts zeros

#endif

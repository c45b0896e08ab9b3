// Finds the process that is writing a record, without touching its lock: the system lists lock
// holders.
#ifndef MSC_RECORDS_RECORD_WRITER_H
#define MSC_RECORDS_RECORD_WRITER_H

#include <stdbool.h>
#include <stddef.h>

enum msc_record_written {
    MSC_RECORD_WRITTEN_NO,
    MSC_RECORD_WRITTEN_YES,
    MSC_RECORD_WRITTEN_UNKNOWN, // the system does not report it
};

struct msc_record_writer {
    enum msc_record_written is_written;
    long process;     // 0: unknown
    size_t n_threads; // threads of the process; 0: unknown
    double run_s;     // seconds since the process began; NaN: unknown
};

void msc_record_find_writer(struct msc_record_writer *out, const char *path);

#endif

// Who writes a record now, found without touching its lock: the system lists who holds one.
#ifndef MSC_RECORDS_RECORD_WRITER_H
#define MSC_RECORDS_RECORD_WRITER_H

#include <stdbool.h>
#include <stddef.h>

enum msc_record_written {
    MSC_RECORD_WRITTEN_NO,
    MSC_RECORD_WRITTEN_YES,
    MSC_RECORD_WRITTEN_UNKNOWN, // the system does not say
};

struct msc_record_writer {
    enum msc_record_written is_written;
    long process;     // 0: not known
    size_t n_threads; // of the process; 0: not known
    double run_s;     // since the process began; NaN: not known
};

void msc_record_find_writer(struct msc_record_writer *out, const char *path);

#endif

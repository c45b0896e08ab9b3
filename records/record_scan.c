#include "records/record_scan.h"

#include "records/record_internal.h"
#include "records/record_reader.h"

#include <math.h>
#include <sys/stat.h>

struct msc_record_scan {
    struct msc_record *record;
    struct msc_record_reader reader;
    double elapsed_s; // search time at the line last read
};

enum msc_status msc_record_scan_open(struct msc_record_scan **out, const char *path,
                                     const struct msc_log *log) {
    struct msc_record_scan *scan = msc_alloc_zero(1, sizeof *scan);
    enum msc_status status = scan ? msc_record__new(&scan->record, path, log)
                                  : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    if (status == MSC_OK) {
        status = msc_record__open_lines(scan->record, &scan->reader);
    }
    if (status != MSC_OK) {
        msc_record_scan_close(scan);
        return status;
    }
    *out = scan;
    return MSC_OK;
}

// A resumed search cuts off a torn end, which a scan never reads. It is an error if the file
// becomes shorter than the part that was already read.
static enum msc_status check_length(const struct msc_record_scan *scan) {
    struct stat now;
    return fstat(scan->reader.descriptor, &now) == 0 &&
                   (uint64_t)now.st_size < scan->record->n_bytes
               ? MSC_FAIL(MSC_E_STATE, "%s: the file became shorter while it was read",
                          scan->record->path)
               : MSC_OK;
}

// A line whose `measured` is damaged takes the time of the line before it.
static void settle_time(struct msc_record_scan *scan, struct msc_record_line *line) {
    line->elapsed_s = isnan(line->elapsed_s) ? scan->elapsed_s : line->elapsed_s;
    scan->elapsed_s = line->elapsed_s;
}

enum msc_status msc_record_scan_next(const struct msc_record_line **out,
                                     struct msc_record_scan *scan) {
    struct msc_record_line *line = NULL;
    MSC_TRY(msc_record__next_line(&line, scan->record, &scan->reader));
    if (line) {
        scan->record->n_trials++;
        settle_time(scan, line);
    }
    *out = line;
    return line ? MSC_OK : check_length(scan);
}

void msc_record__scan_seek(struct msc_record_scan *scan, int64_t id, uint64_t offset) {
    msc_record__reader_seek(&scan->reader, offset, 2 + (size_t)id);
    scan->record->n_trials = (size_t)id;
    scan->record->n_bytes = offset;
    scan->elapsed_s = 0.0;
}

uint64_t msc_record__scan_offset(const struct msc_record_scan *scan) {
    return scan->record->n_bytes;
}

struct msc_record *msc_record__scan_take(struct msc_record_scan *scan) {
    struct msc_record *record = scan->record;
    scan->record = NULL;
    return record;
}

const struct msc_record *msc_record_scan_record(const struct msc_record_scan *scan) {
    return scan->record;
}

bool msc_record_scan_is_named(const struct msc_record_scan *scan) {
    struct stat held;
    struct stat named;
    return fstat(scan->reader.descriptor, &held) == 0 && stat(scan->record->path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void msc_record_scan_warn(const struct msc_record_scan *scan) {
    msc_record__warn_measured(scan->record);
    msc_record__warn_cut(scan->record);
}

size_t msc_record_scan_memory(const struct msc_record_scan *scan) {
    return sizeof *scan + sizeof *scan->record + scan->reader.capacity +
           scan->record->arena.used_bytes;
}

void msc_record_scan_close(struct msc_record_scan *scan) {
    if (scan) {
        msc_record__reader_close(&scan->reader);
        msc_record_close(scan->record);
        msc_free(scan);
    }
}

enum msc_status msc_record_check(uint64_t *n_bytes, const char *path, const struct msc_log *log) {
    struct msc_record_scan *scan = NULL;
    const struct msc_record_line *line = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_record_scan_open(&scan, path, log));
    do {
        status = msc_record_scan_next(&line, scan);
    } while (status == MSC_OK && line);
    if (status == MSC_OK) {
        msc_record_scan_warn(scan);
        *n_bytes = msc_record_n_bytes(scan->record);
    }
    msc_record_scan_close(scan);
    return status;
}

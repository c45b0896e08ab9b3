// Internal to records/: the record struct, and functions shared by the files of this folder.
#ifndef MSC_RECORDS_RECORD_INTERNAL_H
#define MSC_RECORDS_RECORD_INTERNAL_H

#include "base/alloc.h"
#include "base/str.h"
#include "records/record.h"

// Length of ,"checksum":"<32 digits>"
#define MSC_RECORD_CHECKSUM_BYTES 46
// The first line of every record begins with this.
#define MSC_RECORD_MAGIC "{\"kind\":\"header\""
// Marks the trial line of a plan that the agent assembled early.
#define MSC_RECORD_ASSEMBLED ",\"assembled\":true"

struct msc_record_reader;
struct msc_record_packed;
struct msc_record_counts;
struct msc_record_scan;

struct msc_record_key { // "name": with quotes, escapes and colon
    const char *text;
    size_t length;
};

struct msc_record {
    char *path;
    int descriptor; // descriptor of the locked file; -1 if only reading or released
    const struct msc_log *log;
    const char *saved_path; // path of the saved copy after another program touched the file, or
                            // NULL
    struct cJSON *header;
    const char *header_line; // text of the header line with its newline
    struct msc_arena arena;  // memory of everything read from the header
    struct msc_space *space;
    struct msc_race race;
    struct msc_goal goal;
    const struct msc_record_key *keys;   // [n_metrics]
    const struct msc_record_key *labels; // [n_baselines], JSON texts without colon
    uint32_t *scratch;                   // [n_tasks]
    // The line last read; its pointers refer to the following members.
    struct msc_record_line line;
    double line_metrics[MSC_MAX_METRICS];
    char line_reason[MSC_REASON_BYTES];
    const char *numerics; // numerics id from the header
    uint64_t seed;
    uint32_t parallel;
    struct msc_record_packed **trials; // by id or, if only some are held, in the order of `held`
    size_t n_trials;
    int64_t *held; // sorted ids if only some trials are held, else NULL
    size_t n_held;
    struct msc_record_counts *counts; // counts over all trials if only some are held; else NULL
    size_t n_committed;
    size_t trials_capacity;
    struct msc_arena trial_arena; // memory of the trials
    struct msc_record_segment *segments;
    size_t n_segments;
    size_t n_committed_segments;
    size_t segments_capacity;
    struct msc_str buffer; // lines to be written
    uint64_t n_bytes;      // length that was written and synced
    bool is_broken;        // a write failed
    bool was_cut;
    size_t n_damaged;     // lines whose `measured` is damaged
    size_t first_damaged; // number of the first of them
};

enum msc_record_line_kind {
    MSC_RECORD_LINE_HEADER,
    MSC_RECORD_LINE_TRIAL,
    MSC_RECORD_LINE_SEGMENT,
    MSC_RECORD_LINE_UNKNOWN,
};

extern const char *const msc_record__cause_names[MSC_CAUSE_ENVIRONMENT + 1];
extern const char *const msc_record__warm_names[MSC_RECORD_WARM_COUNT];

// Appends a line with its newline.
void msc_record__write_header(struct msc_str *out, const struct cJSON *header);
void msc_record__write_trial(struct msc_str *out, const struct msc_record *record,
                             const struct msc_record_line *line);
void msc_record__write_segment(struct msc_str *out, const struct msc_record_segment *segment);

// record_sum.c. Appends the checksum of the bytes of `out` from `begin` on.
void msc_record__write_checksum(struct msc_str *out, size_t begin);
// Ends `measured` with its sum, then ends the line.
void msc_record__write_end(struct msc_str *out, size_t begin);

// True if the checksum matches; *n_body is the length that it covers. `line` has no newline.
bool msc_record__check_line(size_t *n_body, const char *line, size_t length);
// True if the line ends correctly and the sum of `measured` matches; *n_measured is the length that
// the sum covers.
bool msc_record__check_end(size_t *n_measured, const char *line, size_t length);
// Parses a header or segment, without checksum and `measured`. The lists of `warm`, taken from
// other records, remain text (msc_json_parse_lists). *out is owned by the caller.
enum msc_status msc_record__parse_body(struct cJSON **out, const char *line, size_t n_body,
                                       const char *name);
enum msc_record_line_kind msc_record__line_kind(const char *line, size_t length);
// Reads the line of the next trial into record->line. The checksum of the line was checked before.
// MSC_E_FORMAT, with a message that does not name the line.
enum msc_status msc_record__read_trial(struct msc_record *record, const char *line, size_t n_body,
                                       size_t length);
enum msc_status msc_record__read_segment(struct msc_record *record, const char *line, size_t n_body,
                                         size_t length);

// Resets a line before it is read. Entries of `rungs` beyond n_rungs are not cleared, to save time
// for millions of lines.
static inline void msc_record__begin_line(struct msc_record_line *line) {
    line->trial.id = 0;
    line->trial.proposal = (struct msc_proposal){0};
    line->trial.outcome = (struct msc_outcome){0};
    line->repeat_of = line->retry_of = line->baseline = -1;
    line->warm = MSC_RECORD_WARM_NONE;
    line->is_assembled = false;
    line->n_rungs = 0;
    line->elapsed_s = 0.0;
    line->is_left_out = false;
}

// record_features.c. The member "features" of a header: the order of choices and the features of a
// space with features of choices, unless they are very many numbers. Reading fills them in for a
// space whose tasks were read; a header without the member changes nothing.
enum msc_status msc_record__add_features(struct cJSON *header, const struct msc_space *space);
enum msc_status msc_record__read_features(struct msc_space *space, struct msc_task tasks[],
                                          struct msc_arena *arena, const struct cJSON *header,
                                          const char *where);

// record_store.c. Packs a line into the arena; NULL: out of memory.
struct msc_record_packed *msc_record__pack(struct msc_arena *arena, const struct msc_space *space,
                                           const struct msc_record_line *line);
// Choices, metrics and reason point into `packed`.
void msc_record__unpack(struct msc_record_line *out, struct msc_record_packed *packed, int64_t id,
                        const struct msc_space *space, const struct msc_goal *goal);
double *msc_record__elapsed(struct msc_record_packed *packed);
void msc_record__mark_left_out(struct msc_record_packed *packed);
// A measured value in thousandths, because it is written with three decimal places.
uint64_t msc_record__thousandths(double value);
// The number of trials held, and the i-th of them.
size_t msc_record__n_held(const struct msc_record *record);
void msc_record__held(struct msc_record_line *out, const struct msc_record *record, size_t i);
// The index of the baseline that a line measures, derived from its ids; -1: none.
int64_t msc_record__baseline_of(const struct msc_space *space, const struct msc_record_line *line);

// record_scan.c. Seeks to the line of trial `id`; the line begins at `offset`.
void msc_record__scan_seek(struct msc_record_scan *scan, int64_t id, uint64_t offset);
// The offset of the next trial's line, or of a segment before it.
uint64_t msc_record__scan_offset(const struct msc_record_scan *scan);
// Moves the record out of a scan, which then can only be closed.
struct msc_record *msc_record__scan_take(struct msc_record_scan *scan);

// record_measured.c. Notes that `measured` is damaged in line number `line`.
void msc_record__note_damage(struct msc_record *record, size_t line);
// After all lines are read: fills in lost times, and warns.
void msc_record__settle_measured(struct msc_record *record);
void msc_record__warn_measured(const struct msc_record *record); // warns of damage, if any
void msc_record__warn_cut(const struct msc_record *record);      // warns of a torn end

// record.c. Creates an empty record with its path; close it with msc_record_close.
enum msc_status msc_record__new(struct msc_record **out, const char *path,
                                const struct msc_log *log);
// Takes ownership of the header and derives the other members, such as space and goal, from it.
enum msc_status msc_record__take_header(struct msc_record *record, struct cJSON *header);
// Copies a line to the end of record->trials.
enum msc_status msc_record__add_trial(struct msc_record *record,
                                      const struct msc_record_line *line);
enum msc_status msc_record__add_segment(struct msc_record *record,
                                        const struct msc_record_segment *segment);
// Drops the lines that were added since the last commit.
void msc_record__forget_uncommitted(struct msc_record *record);
// record_load.c. Reads line 1; ignores its `measured` if that is damaged.
enum msc_status msc_record__read_header(struct msc_record *record, const char *line, size_t length);
// Opens the file and reads its header.
enum msc_status msc_record__open_lines(struct msc_record *record, struct msc_record_reader *reader);
// Reads on to the next trial, whose id must be n_trials. *out is &record->line, or NULL if no
// valid line follows (yet). Adds segments that come before this trial. Sets was_cut, and n_bytes to
// the length of the valid part. MSC_E_FORMAT: the invalid rest cannot be the torn end of one write.
enum msc_status msc_record__next_line(struct msc_record_line **out, struct msc_record *record,
                                      struct msc_record_reader *reader);
// Like msc_record__next_line, but for a damaged record: anything may follow the valid part.
enum msc_status msc_record__next_good(struct msc_record_line **out, struct msc_record *record,
                                      struct msc_record_reader *reader);
// Reads the whole file, or only its header.
enum msc_status msc_record__load(struct msc_record *record);
enum msc_status msc_record__load_header(struct msc_record *record);
// Reads the longest valid beginning of a file and sets n_bytes to its length; *out describes the
// rest. Fails only if the header is damaged or memory runs out.
enum msc_status msc_record__load_good(struct msc_record_salvaged *out, struct msc_record *record);
// record_salvage.c. Copies RECORD.params and RECORD.base.json, if they exist, so that they belong
// to the record `new_path`.
enum msc_status msc_record__copy_needed(const char *path, const char *new_path);
// Appends everything after n_bytes to RECORD.cut, and cuts it off the file.
enum msc_status msc_record__cut_tail(const struct msc_record *record);
// record_elsewhere.c. True if the path still names the file being written, with its length after
// our last write.
bool msc_record__is_in_place(const struct msc_record *record);
// Writes all lines, including buffered ones, to a new file, which is the record from now on.
enum msc_status msc_record__save_elsewhere(struct msc_record *record);
// True if a file contains only the beginning of a header line.
bool msc_record__is_torn_header(const char *text, size_t length);
// record_disk.c. Opens a file and takes its lock; `flags` as for open. MSC_E_STATE if the lock is
// held.
enum msc_status msc_record__open_locked(int *out, const char *path, int flags);
// Writes and syncs. `path` is for the error message.
enum msc_status msc_record__write_at(int descriptor, const char *data, size_t n_bytes,
                                     uint64_t offset, const char *path);
enum msc_status msc_record__fail_system(const char *what, const char *path, int error);

#endif

// The record of one search: a JSON-lines file with one header line, one line for each trial, and a
// segment line wherever the numerics changed or an agent was started warm. docs/record.md has
// every field.
//
//     struct msc_record *record;
//     MSC_TRY(msc_record_create(&record, "a.jsonl", header, log));     // or msc_record_open
//     MSC_TRY(msc_record_append_trial(record, &line));                // buffered
//     MSC_TRY(msc_record_commit(record));                             // one write, one sync
//     msc_record_close(record);
//
// A line counts when it ends in a newline and its checksum fits. What a crash in the middle of a
// commit leaves (a last line without its newline, or no more lines than a round has, all of them
// damaged) is passed over when reading; opened for appending it is added to RECORD.cut and cut off.
// Any other line that does not count is an error that names its number; msc_record_salvage saves
// what is before it. There is one writer at a time, by a lock on the open file. All trials are held
// in memory, so that queries need no file.
#ifndef MSC_RECORDS_RECORD_H
#define MSC_RECORDS_RECORD_H

#include "base/log.h"
#include "env/api/space.h"
#include "env/api/trial.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// Version of the record file's format (docs/record.md).
#define MSC_RECORD_SCHEMA 1

struct cJSON;
struct msc_record;

// Where a trial comes from that no agent asked for (search/warm.h).
enum msc_record_warm {
    MSC_RECORD_WARM_NONE,
    MSC_RECORD_WARM_TOLD,  // with its outcome, of another record: nothing was evaluated
    MSC_RECORD_WARM_TRIED, // a point of another record or of a strategy file
    MSC_RECORD_WARM_COUNT
};

#define MSC_RACE_MAX_RUNGS 8

// The trials of a round are compared after so many batches, with one another and with the best trial so
// far, and some of them go on (records/race.h).
struct msc_race {
    size_t n_rungs; // 0: there is no race
    uint32_t rungs[MSC_RACE_MAX_RUNGS];
    double keep;
    double margin;    // standard errors; 0: trials are compared with those of their round alone
    size_t n_batches; // of the samples; 0: not known
};

// One trial line: the trial, and what a line adds to it. A baseline is a probe, and its line does
// not say so.
struct msc_record_line {
    struct msc_trial trial;
    int64_t repeat_of; // id of the trial whose outcome this is, or -1
    int64_t retry_of;  // id of the failed trial that this one does again, or -1
    int64_t baseline;  // index in msc_space.baselines, or -1
    enum msc_record_warm warm;
    // The plan that the agent made of what it was told when the budget ended before its own; it is not
    // part of the agent's sequence, and never told to it.
    bool is_assembled;
    size_t n_rungs;                   // of the race that it has come to
    double rungs[MSC_RACE_MAX_RUNGS]; // what its loss had come to there
    double elapsed_s; // search time over all launches when the line was written; of `measured`
    // Not of the line: what it says did not come out again (msc_record_leave_out).
    bool is_left_out;
};

// Was it evaluated for this line? And does it count against budget.trials?
static inline bool msc_record_is_evaluated(const struct msc_record_line *line) {
    return line->repeat_of < 0 && line->warm != MSC_RECORD_WARM_TOLD;
}
static inline bool msc_record_is_budgeted(const struct msc_record_line *line) {
    return line->baseline < 0 && line->retry_of < 0 && line->warm != MSC_RECORD_WARM_TOLD &&
           !line->is_assembled;
}

// From trial `first` on, other numerics hold or an agent was started warm.
struct msc_record_segment {
    int64_t first;
    const char *numerics; // never NULL
    bool is_warm_start;   // the agent was told all trials before `first` and never asked for them
};

enum msc_record_mode {
    MSC_RECORD_HEADER, // no lock; the header alone, as if there were no lines
    MSC_RECORD_READ,   // no lock; sees what is complete on disk
    MSC_RECORD_APPEND, // holds the lock, cuts a torn end
};

// Writes a new record: the header line, synced, lock held. `header` is copied. MSC_E_STATE when
// there is a record already or the lock is held; MSC_E_FORMAT when the file is something else (it
// is left alone). A file that holds nothing but the beginning of a header is written over, once
// RECORD.cut has it.
enum msc_status msc_record_create(struct msc_record **out, const char *path,
                                  const struct cJSON *header, const struct msc_log *log);
// MSC_E_NOT_FOUND: no file, or one without a complete header. MSC_E_STATE: another process holds
// the lock. MSC_E_FORMAT: damaged beyond a torn end, or no record. *out is owned by the caller.
enum msc_status msc_record_open(struct msc_record **out, const char *path,
                                enum msc_record_mode mode, const struct msc_log *log);
// The same for reading, in memory that does not grow with the trials: what is held are the n_best best
// ones, the Pareto front and the uniform plans. The queries of records/record_query.h answer as if all
// were (msc_record_top up to n_best, what is left out taken off); msc_record_trial is only for what
// msc_record_holds.
enum msc_status msc_record_open_best(struct msc_record **out, const char *path, size_t n_best,
                                     const struct msc_log *log);
// Reads all lines and holds none: errors as of msc_record_open. *n_bytes is how far they count.
enum msc_status msc_record_check(uint64_t *n_bytes, const char *path, const struct msc_log *log);
// Does a file begin as a record does? MSC_E_NOT_FOUND: there is no such file.
enum msc_status msc_record_is_file(bool *out, const char *path);
// Gives the lock back; what was read or appended stays readable. Uncommitted lines are dropped.
void msc_record_release(struct msc_record *record);
void msc_record_close(struct msc_record *record); // accepts NULL

// Renames a record, with its RECORD.params, RECORD.base.json, RECORD.result.json, RECORD.rerank.json,
// RECORD.distill.json and RECORD.cut, to the first free of PATH.1, PATH.2, ..., which `log` is told, and
// removes its RECORD.attempt. Takes the lock for it (MSC_E_STATE when held). *new_path (NULL: not asked
// for) is owned by the caller (msc_free), NULL when there was no file. The name is free when this
// returns MSC_OK.
enum msc_status msc_record_set_aside(char **new_path, const char *path, const struct msc_log *log);

// Is there a record at PATH with a trial that an agent asked for, or one that cannot be read?
bool msc_record_is_begun(const char *path);
// Gives a record that was set aside its name again, unless it is not there any more. One that has the name by now
// is set aside in its turn, or removed with what lies beside it where it has no trials.
enum msc_status msc_record_take_back(const char *path, const char *aside,
                                     const struct msc_log *log);

// What msc_record_salvage found.
struct msc_record_salvaged {
    size_t n_trials;   // saved
    size_t line;       // number of the first line that was left out, if any
    size_t n_left_out; // lines from there on
    size_t n_sound;    // of them, those whose own checksum fits
};
// Copies the longest beginning of a record that counts (header, then lines with ids from 0 on) to a
// new file, with RECORD.params and RECORD.base.json, as a record that can be gone on with beside
// it. `path` is only read. MSC_E_INVALID when there is a file of the new name; MSC_E_FORMAT when
// the header is damaged.
enum msc_status msc_record_salvage(struct msc_record_salvaged *out, const char *path,
                                   const char *new_path);

// Adds a line to the buffer and to the trials in memory; a buffer that holds a round
// (msc_record_parallel) is committed before. The id must be msc_record_n_trials. Choices, metrics
// and reason are copied, objectives made from the metrics.
enum msc_status msc_record_append_trial(struct msc_record *record,
                                        const struct msc_record_line *line);
// Adds a segment line that begins at the next trial.
enum msc_status msc_record_append_segment(struct msc_record *record, const char *numerics,
                                          bool is_warm_start);
// Writes and syncs the buffered lines. When the path does not name the file any more, as long as it
// was left (somebody removed, renamed or changed it), the whole record is written anew as
// PATH.saved.1 (or the next free number) and goes on there: what stands at the path is left alone.
// An error is logged then, and msc_record_is_elsewhere says so. On MSC_E_IO (a full disk, say) the
// file is cut back to its last complete commit and the record takes no more lines.
enum msc_status msc_record_commit(struct msc_record *record);

// The record was taken away under its writer; msc_record_path names where it is now.
bool msc_record_is_elsewhere(const struct msc_record *record);

// All borrowed until close.
const char *msc_record_path(const struct msc_record *record);
const struct cJSON *msc_record_header(const struct msc_record *record);
const struct msc_space *msc_record_space(const struct msc_record *record); // no costs, no features
const struct msc_goal *msc_record_goal(const struct msc_record *record);
const struct msc_race *msc_record_race(const struct msc_record *record);
// Did the race end the trial, for which there would have been more batches?
bool msc_record_is_raced_out(const struct msc_record *record, const struct msc_record_line *line);
uint64_t msc_record_seed(const struct msc_record *record);
uint32_t msc_record_parallel(const struct msc_record *record); // proposals asked in one round
size_t msc_record_n_trials(const struct msc_record *record);
// A line is put together as it is asked for; what it points to is borrowed.
struct msc_record_line msc_record_trial(const struct msc_record *record, size_t id);
double
msc_record_elapsed_s(const struct msc_record *record); // of the latest that is held; 0: none is
bool msc_record_holds(const struct msc_record *record, int64_t id); // false also beyond its trials
// Number of a trial's line in the file, from 1.
size_t msc_record_line_number(const struct msc_record *record, int64_t id);
// From now on the trial is never best, and in no top or front.
void msc_record_leave_out(struct msc_record *record, int64_t id);
size_t msc_record_n_segments(const struct msc_record *record); // without the header's own
const struct msc_record_segment *msc_record_segment(const struct msc_record *record, size_t i);
// The numerics id under which a trial was (or the next one will be) evaluated.
const char *msc_record_numerics(const struct msc_record *record, int64_t id);
double msc_record_begun_s(const struct msc_record *record);   // seconds since 1970; NaN: not known
uint64_t msc_record_n_bytes(const struct msc_record *record); // committed
bool msc_record_was_cut(const struct msc_record *record);     // a torn end was found

MSC_PUBLIC_END

#endif

// The record of one search: a JSON-lines file with one header line, one line per trial, and a
// segment line whenever the numerics changed or an agent was warm-started. docs/record.md
// describes every field.
//
//     struct msc_record *record;
//     MSC_TRY(msc_record_create(&record, "a.jsonl", header, log));     // or msc_record_open
//     MSC_TRY(msc_record_append_trial(record, &line));                // buffered
//     MSC_TRY(msc_record_commit(record));                             // one write, one sync
//     msc_record_close(record);
//
// A line is valid if it ends in a newline and its checksum matches. A crash during a commit
// leaves a torn end: a last line without newline, or damaged lines, at most as many as one round
// has. Readers skip a torn end; opening for appending moves it to RECORD.cut. Any other invalid
// line is an error that names its number; msc_record_salvage saves the lines before it. A lock on
// the open file ensures a single writer. All trials are held in memory, so that queries do not need
// the file.
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

// The origin of a trial that no agent proposed (search/warm.h).
enum msc_record_warm {
    MSC_RECORD_WARM_NONE,
    MSC_RECORD_WARM_TOLD,  // observed with its outcome from another record, not evaluated
    MSC_RECORD_WARM_TRIED, // a point of another record or of a strategy file, evaluated
    MSC_RECORD_WARM_COUNT
};

#define MSC_RACE_MAX_RUNGS 8

// The rules of a race. At each rung (a number of batches) the trials of a round are compared with
// one another and with the best trial so far, and some end there (records/race.h).
struct msc_race {
    size_t n_rungs; // 0: no race
    uint32_t rungs[MSC_RACE_MAX_RUNGS];
    double keep;
    double margin;    // standard errors; 0: trials are compared only within their round
    size_t n_batches; // number of batches of the samples; 0: unknown
};

// One trial line: the trial, and members that only a line has. A baseline is a probe, but its line
// does not say so.
struct msc_record_line {
    struct msc_trial trial;
    int64_t repeat_of; // id of the trial whose outcome was reused, or -1
    int64_t retry_of;  // id of the failed trial that this one retries, or -1
    int64_t baseline;  // index in msc_space.baselines, or -1
    enum msc_record_warm warm;
    // The plan that the agent assembled from its observations when the budget ended early. It is
    // not part of the agent's sequence, and the agent never observes it.
    bool is_assembled;
    size_t n_rungs;                   // rungs of the race that the trial reached
    double rungs[MSC_RACE_MAX_RUNGS]; // loss of the trial at each of them
    double elapsed_s; // search time over all launches when the line was written; stored in the
                      // member `measured`
    // Not stored in the file: the result could not be reproduced (msc_record_leave_out).
    bool is_left_out;
};

// Whether the trial was evaluated for this line, and whether it counts against budget.trials.
static inline bool msc_record_is_evaluated(const struct msc_record_line *line) {
    return line->repeat_of < 0 && line->warm != MSC_RECORD_WARM_TOLD;
}
static inline bool msc_record_is_budgeted(const struct msc_record_line *line) {
    return line->baseline < 0 && line->retry_of < 0 && line->warm != MSC_RECORD_WARM_TOLD &&
           !line->is_assembled;
}

// A segment: from trial `first` on, the numerics differ or an agent was warm-started.
struct msc_record_segment {
    int64_t first;
    const char *numerics; // never NULL
    bool is_warm_start;   // the agent observed all trials before `first` without proposing them
};

enum msc_record_mode {
    MSC_RECORD_HEADER, // takes no lock; reads only the header, as if there were no lines
    MSC_RECORD_READ,   // takes no lock; reads the complete lines on disk
    MSC_RECORD_APPEND, // takes the lock, cuts a torn end
};

// Writes a new record: the header line, synced, with the lock held. `header` is copied.
// MSC_E_STATE: a record exists or the lock is held; MSC_E_FORMAT: there is a file of another kind,
// which is left unchanged. A file that contains only the beginning of a header is overwritten after
// it was saved in RECORD.cut.
enum msc_status msc_record_create(struct msc_record **out, const char *path,
                                  const struct cJSON *header, const struct msc_log *log);
// MSC_E_NOT_FOUND: no file, or no complete header. MSC_E_STATE: another process holds the lock.
// MSC_E_FORMAT: damaged beyond a torn end, or not a record. *out is owned by the caller.
enum msc_status msc_record_open(struct msc_record **out, const char *path,
                                enum msc_record_mode mode, const struct msc_log *log);
// Opens a record for reading, in memory that does not grow with the number of trials. Holds only
// the n_best best trials, the Pareto front and the uniform plans. The queries of
// records/record_query.h answer as if all trials were held, but msc_record_top lists at most n_best
// trials, and fewer if some of these are left out (msc_record_leave_out). msc_record_trial works
// only for ids that msc_record_holds.
enum msc_status msc_record_open_best(struct msc_record **out, const char *path, size_t n_best,
                                     const struct msc_log *log);
// Reads all lines without holding them; fails like msc_record_open. *n_bytes is the length of the
// valid part.
enum msc_status msc_record_check(uint64_t *n_bytes, const char *path, const struct msc_log *log);
// Sets *out: does the file begin like a record? MSC_E_NOT_FOUND: the file does not exist.
enum msc_status msc_record_is_file(bool *out, const char *path);
// Releases the lock; what was read or appended remains readable. Uncommitted lines are dropped.
void msc_record_release(struct msc_record *record);
void msc_record_close(struct msc_record *record); // accepts NULL

// Renames a record to the first free of PATH.1, PATH.2, ..., together with RECORD.params,
// RECORD.base.json, RECORD.result.json, RECORD.rerank.json, RECORD.distill.json and RECORD.cut, and
// logs the new name. Removes RECORD.attempt. Holds the lock while it works (MSC_E_STATE if another
// process holds the lock). *new_path is owned by the caller (msc_free), NULL if there was no file;
// new_path may be NULL. The path is free when this returns MSC_OK.
enum msc_status msc_record_set_aside(char **new_path, const char *path, const struct msc_log *log);

// True if PATH is a record with a trial that an agent proposed, or a record that cannot be read.
bool msc_record_is_begun(const char *path);
// Undoes msc_record_set_aside, unless the renamed record is gone. A record that now has the name
// is set aside itself or, if it has no trials, removed with its companion files.
enum msc_status msc_record_take_back(const char *path, const char *aside,
                                     const struct msc_log *log);

// The result of msc_record_salvage.
struct msc_record_salvaged {
    size_t n_trials;   // trials saved
    size_t line;       // number of the first line left out, if any
    size_t n_left_out; // number of lines left out: this line and all after it
    size_t n_sound;    // number of left-out lines whose checksums match
};
// Copies the longest valid beginning of a record (header, then lines with ids from 0 on) to a new
// file, with RECORD.params and RECORD.base.json, so that the search can continue from the copy.
// `path` is only read. MSC_E_INVALID if the new file exists; MSC_E_FORMAT if the header is
// damaged.
enum msc_status msc_record_salvage(struct msc_record_salvaged *out, const char *path,
                                   const char *new_path);

// Adds a line to the buffer and to the trials in memory. If the buffer already has a round
// (msc_record_parallel), commits it first. The line's id must equal msc_record_n_trials. Choices,
// metrics and reason are copied; objectives are computed from the metrics.
enum msc_status msc_record_append_trial(struct msc_record *record,
                                        const struct msc_record_line *line);
// Adds a segment line that begins at the next trial.
enum msc_status msc_record_append_segment(struct msc_record *record, const char *numerics,
                                          bool is_warm_start);
// Writes and syncs the buffered lines. If the path no longer names the file at its previous length
// (another program removed, renamed or changed it), the whole record is written to PATH.saved.1 (or
// the next free number). Further lines are appended there, and the file at the path is left
// unchanged. This is logged as an error, and msc_record_is_elsewhere reports it. On MSC_E_IO (such
// as a full disk) the file is cut back to its last complete commit and accepts no more lines.
enum msc_status msc_record_commit(struct msc_record *record);

// True if the record was moved because its file was taken away; msc_record_path is its new path.
bool msc_record_is_elsewhere(const struct msc_record *record);

// The results of these functions are borrowed until close.
const char *msc_record_path(const struct msc_record *record);
const struct cJSON *msc_record_header(const struct msc_record *record);
// Without costs and features.
const struct msc_space *msc_record_space(const struct msc_record *record);
const struct msc_goal *msc_record_goal(const struct msc_record *record);
const struct msc_race *msc_record_race(const struct msc_record *record);
// True if a race eliminated the trial before all batches were evaluated.
bool msc_record_is_raced_out(const struct msc_record *record, const struct msc_record_line *line);
uint64_t msc_record_seed(const struct msc_record *record);
uint32_t msc_record_parallel(const struct msc_record *record); // proposals per round
size_t msc_record_n_trials(const struct msc_record *record);
// The line is assembled on each call; its pointers are borrowed.
struct msc_record_line msc_record_trial(const struct msc_record *record, size_t id);
double msc_record_elapsed_s(const struct msc_record *record);       // search time so far; 0: none
bool msc_record_holds(const struct msc_record *record, int64_t id); // is the trial in memory?
// Number of a trial's line in the file, from 1.
size_t msc_record_line_number(const struct msc_record *record, int64_t id);
// From now on no query returns the trial as the best one, in a top list or in a front.
void msc_record_leave_out(struct msc_record *record, int64_t id);
size_t msc_record_n_segments(const struct msc_record *record); // not counting the header's
const struct msc_record_segment *msc_record_segment(const struct msc_record *record, size_t i);
// The id of the numerics with which a trial was evaluated. For the next trial's id, it is the id of
// the numerics with which the trial will be evaluated.
const char *msc_record_numerics(const struct msc_record *record, int64_t id);
double msc_record_begun_s(const struct msc_record *record);   // seconds since 1970; NaN: unknown
uint64_t msc_record_n_bytes(const struct msc_record *record); // committed length
bool msc_record_was_cut(const struct msc_record *record);     // was a torn end found?

MSC_PUBLIC_END

#endif

// Runs a search in a worker process, so that it survives the crash or hang of a trial.
//
// The program starts as the parent, which runs the same program again as the worker. The parent
// passes signals on, restarts the worker after a crash, and kills it if a trial exceeds its time
// limit or if it shows no sign of life for long (supervise/watchdog.h). Calibration, setup and
// evaluation all poll for requests to stop (base/cancel.h); every poll is a sign of life.
// RECORD.attempt (search/attempt.h) holds the trials in flight. The next worker runs each of these
// trials alone. A trial that crashes alone is recorded as failed. Time during which the parent was
// stopped does not count towards any limit. A worker whose device is lost (MSC_E_LOST) ends by
// itself. After some seconds another worker opens the device again, and no trial counts as failed.
//
//     int main(int argc, char **argv) {
//         if (!msc_worker_is_wanted()) {
//             struct msc_supervise_options options = {.argv = argv, .log = &log};
//             MSC_TRY(msc_supervise(&exit_code, &options));
//             return exit_code;
//         }
//         struct msc_worker worker;
//         static struct msc_cancel cancel;
//         MSC_TRY(msc_worker_open(&worker, &cancel));
//         ... status = msc_search_run with .cancel = &cancel, .worker = &worker ...
//         if (!msc_worker_leave(&worker, status)) { ... report it ... }
//         msc_worker_close(&worker);
//
// The worker has its own session, so only the parent receives signals of the terminal. The parent
// passes each SIGINT, SIGTERM and SIGHUP on once. The first sets the cancel level to 1 (the trials
// in flight are finished and written), the second to 2 (stop at once). A worker that still runs
// some seconds after the second is killed. If the parent dies, the worker is killed. When a worker
// has ended, the parent ends the rest of its session: external agents and the processes that they
// started.
#ifndef MSC_SUPERVISE_SUPERVISE_H
#define MSC_SUPERVISE_SUPERVISE_H

#include "base/cancel.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// The parent gives up after this many consecutive restarts without progress. Progress is a new line
// in the record, or a trial found to have failed.
#define MSC_SUPERVISE_MAX_RESTARTS 4

struct msc_supervise_options {
    char *const *argv;   // arguments of the worker, NULL-terminated
    const char *program; // file to execute; NULL: the running program's file
    const struct msc_log *log;
    double kill_after_s; // time from a second signal to the kill; <= 0: 5 seconds
    // Pause before a restart after a lost device, because drivers need time to recover. It doubles
    // with each such restart without progress. <= 0: 1 second.
    double lost_pause_s;
    // Optional: called with each line of `log`, to write it to the log file that the worker named.
    void (*append)(const char *path, enum msc_log_level level, const char *line);
    // Optional: called every MSC_SUPERVISE_BEAT_S. `is_busy`: are trials in flight?
    void (*beat)(bool is_busy);
};

#define MSC_SUPERVISE_BEAT_S 2.0

// Runs a worker to its end, with restarts. Call it early, from a process with one thread.
// *exit_code is the worker's exit code. MSC_E_STATE if restarts made no progress or if the worker
// had to be killed; MSC_E_DEVICE if its device remains lost. Sets OMP_WAIT_POLICY=passive for the
// worker unless it is set already. After a request to stop, SIGINT, SIGTERM and SIGHUP remain
// blocked, because the program is about to end.
enum msc_status msc_supervise(int *exit_code, const struct msc_supervise_options *options);

// How the previous worker ended.
enum msc_worker_death {
    MSC_WORKER_DEATH_NONE,
    MSC_WORKER_DEATH_CRASH,  // by its own signal, or by an exit before msc_worker_close
    MSC_WORKER_DEATH_KILLED, // by SIGKILL from outside, most often because memory ran out
    MSC_WORKER_DEATH_LIMIT,  // killed by the parent at a trial's time limit
    MSC_WORKER_DEATH_QUIET,  // killed by the parent: no sign of life
    MSC_WORKER_DEATH_LOST,   // ended by itself because its device is lost
};

struct msc_worker_page;

// The worker's side. Plain data, initialised by msc_worker_open.
struct msc_worker {
    struct msc_worker_page *page; // NULL: not supervised
    struct msc_cancel *cancel;    // the page counts its polls
};

// True in a process that msc_supervise started and that has not called msc_worker_open yet.
bool msc_worker_is_wanted(void);
// Takes over the shared page and makes SIGINT, SIGTERM and SIGHUP raise the cancel level. SIGPIPE
// and SIGXFSZ become errors of the failing call. `cancel` must outlive the process. In a process
// that is not supervised there is no page.
enum msc_status msc_worker_open(struct msc_worker *worker, struct msc_cancel *cancel);
// From now on the first signal sets level 2, for work of which nothing is kept when it stops.
void msc_worker_stop_at_once(void);
// Notes that the worker is about to end. An exit without this call counts as a crash, with any exit
// code, since a library may have called exit. Accepts a zeroed worker.
void msc_worker_close(struct msc_worker *worker);

// Functions for the search. All accept NULL and a worker without a page. Between begin and end,
// trials are in flight. If the end does not come within `seconds`, the parent kills the worker (<=
// 0: never).
void msc_worker_begin(struct msc_worker *worker, double seconds);
void msc_worker_end(struct msc_worker *worker);
// The worker counts as hung after at least this long without a sign of life; 0: never. Default: 10
// minutes.
void msc_worker_set_quiet(struct msc_worker *worker, double seconds);
// Notes the duration of one trial.
void msc_worker_add_trial(struct msc_worker *worker, uint64_t time_us);
// Should the worker end so that its successor opens the device again? True after MSC_E_LOST. True
// also after MSC_E_DEVICE if the previous worker ended because the device was lost, and there was
// no progress since; the device can then not be opened yet. A worker for which this is true ends
// without a message, and the parent reports msc_status_message. Without a parent: false.
bool msc_worker_leave(struct msc_worker *worker, enum msc_status status);
// The parent also writes its messages to this file, up to `level`.
void msc_worker_name_log(struct msc_worker *worker, const char *path, enum msc_log_level level);
// Notes that the file at `path` was moved to `aside` because a new search writes `record`. The file
// is the old record (msc_record_set_aside) or a strategy file. If the search fails before its
// agent's first trial, the parent moves the file back.
void msc_worker_note_aside(struct msc_worker *worker, const char *record, const char *path,
                           const char *aside);
// Notes progress: `n` lines were committed, or `n` trials were found to have failed.
void msc_worker_add_progress(struct msc_worker *worker, uint64_t n);
// The next two functions replace RECORD.attempt for a worker without a record. msc_worker_note_part
// stores the number of the part in flight (negative: none). msc_worker_take_part returns how the
// previous worker died, and the part that was in flight (negative: none). Later calls return
// MSC_WORKER_DEATH_NONE.
void msc_worker_note_part(struct msc_worker *worker, int64_t part);
enum msc_worker_death msc_worker_take_part(int64_t *part, int *signal_number,
                                           struct msc_worker *worker);
// Names the record being written, and returns how the previous worker died while writing that
// record, with its signal. Returns MSC_WORKER_DEATH_NONE on later calls, and if the worker ended
// because its device is lost.
enum msc_worker_death msc_worker_take_death(int *signal_number, struct msc_worker *worker,
                                            struct msc_hash record);

MSC_PUBLIC_END

#endif

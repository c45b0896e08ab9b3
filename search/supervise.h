// Parent and worker: a search survives the crash or hang of one trial.
//
// The program starts as parent, which starts itself again as worker, waits for it, passes signals
// on, starts it anew after a crash, and kills it when a trial runs over its time limit or when it
// shows no sign of life for long (search/watchdog.h): calibration, setup and evaluation all poll for
// requests to stop (base/cancel.h), and every poll is one. What was in flight then is in
// RECORD.attempt (search/attempt.h), so that the next worker runs those trials alone and records the
// one that crashes alone as failed. Time in which the parent itself was stopped does not count. A worker
// whose device is lost (MSC_E_LOST) leaves by itself, and another one opens the device anew, after
// some seconds: no trial is to blame.
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
//         if (!msc_worker_leave(&worker, status)) { ... tell it ... }
//         msc_worker_close(&worker);
//
// The worker is in a session of its own: only the parent hears the terminal, and it hands on each
// SIGINT, SIGTERM and SIGHUP once. The first sets the cancel level to 1 (the trials in
// flight are finished and written), the second to 2 (stop at once); a worker that is still there
// some seconds after the second is killed. If the parent dies, the worker is killed. When a worker
// has ended, the parent ends all that is left of its session: agents that are programs, and what
// they started.
#ifndef MSC_SEARCH_SUPERVISE_H
#define MSC_SEARCH_SUPERVISE_H

#include "base/cancel.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// Restarts without a new line in the record, or a trial more that is known to have failed, after
// which the parent gives up.
#define MSC_SUPERVISE_MAX_RESTARTS 4

struct msc_supervise_options {
    char *const *argv;   // of the worker, NULL-terminated
    const char *program; // file to execute; NULL: the running program
    const struct msc_log *log;
    double kill_after_s; // after a second signal; <= 0: 5 seconds
    // Before a worker is started whose device the one before has lost, and twice as long each time that
    // brought nothing new: drivers take a while to recover. <= 0: 1 second.
    double lost_pause_s;
    // Optional: gets the lines of `log` too, for the log file that the worker named.
    void (*append)(const char *path, enum msc_log_level level, const char *line);
    // Optional: called every MSC_SUPERVISE_BEAT_S, whatever the worker does. Are trials in flight?
    void (*beat)(bool is_busy);
};

#define MSC_SUPERVISE_BEAT_S 2.0

// Runs a worker to its end, through restarts. Call it early, from a process with one thread.
// *exit_code is the worker's own. MSC_E_STATE when restarts brought nothing new, or when the
// worker had to be killed; MSC_E_DEVICE when its device stays lost. OMP_WAIT_POLICY=passive is set for the worker unless it is set already.
// After a request to stop, SIGINT, SIGTERM and SIGHUP stay blocked: the program is about to end.
enum msc_status msc_supervise(int *exit_code, const struct msc_supervise_options *options);

// How the worker before this one ended.
enum msc_worker_death {
    MSC_WORKER_DEATH_NONE,
    MSC_WORKER_DEATH_CRASH,  // its own signal, or an exit before msc_worker_close
    MSC_WORKER_DEATH_KILLED, // SIGKILL from outside: out of memory, most often
    MSC_WORKER_DEATH_LIMIT,  // the parent, at a trial's time limit
    MSC_WORKER_DEATH_QUIET,  // the parent, for want of a sign of life
    MSC_WORKER_DEATH_LOST,   // it left: its device is lost
};

struct msc_worker_page;

// The worker's end. Plain data, init by msc_worker_open.
struct msc_worker {
    struct msc_worker_page *page; // NULL: not supervised
    struct msc_cancel *cancel;    // whose beats go to the page
};

// True in a process that msc_supervise started and that has not called msc_worker_open yet.
bool msc_worker_is_wanted(void);
// Takes the shared page over and lets SIGINT, SIGTERM and SIGHUP raise the cancel level; SIGPIPE
// and SIGXFSZ become errors of the call. `cancel` must outlive the process. Works in a process
// that is not supervised, too: then there is no page.
enum msc_status msc_worker_open(struct msc_worker *worker, struct msc_cancel *cancel);
// The worker is about to end. One that exits without this has died, whatever its exit code: a library
// has called exit. Accepts a zeroed one.
void msc_worker_close(struct msc_worker *worker);

// For the search. All accept NULL and a worker without a page.
// Between begin and end, trials are in flight; the parent kills after `seconds` (<= 0: never).
void msc_worker_begin(struct msc_worker *worker, double seconds);
void msc_worker_end(struct msc_worker *worker);
// The least time without a sign of life after which the worker counts as hung; 0: never. Until this
// is called: 10 minutes.
void msc_worker_set_quiet(struct msc_worker *worker, double seconds);
void msc_worker_add_trial(struct msc_worker *worker, uint64_t time_us); // how long one took
// Is this the end of the search, or shall the parent start another worker, which opens the device anew? That
// is so (true) after MSC_E_LOST, and after MSC_E_DEVICE where the worker before has left in this way
// and nothing new has come of it since: what was lost cannot be opened yet. The worker then ends
// without a word: the parent tells why, as msc_status_message does. Without a parent: false.
bool msc_worker_leave(struct msc_worker *worker, enum msc_status status);
// What the parent has to say stands in this file, too, up to `level`.
void msc_worker_name_log(struct msc_worker *worker, const char *path, enum msc_log_level level);
// The file at `path` was set aside, and is at `aside`, for a search that begins anew and writes `record`:
// that record (msc_record_set_aside), or a strategy file. Should the search end in failure before its agent's
// first trial, however that comes about, the parent takes the file back.
void msc_worker_note_aside(struct msc_worker *worker, const char *record, const char *path,
                           const char *aside);
// So many lines were committed, or trials found to have failed: restarts are worth their while.
void msc_worker_add_progress(struct msc_worker *worker, uint64_t n);
// For a worker without a record, in the place of RECORD.attempt: the part that is in flight, by a number of
// its own (negative: none). And whether the worker before this one died, which is told once, and of
// which part: negative where none was in flight.
void msc_worker_note_part(struct msc_worker *worker, int64_t part);
enum msc_worker_death msc_worker_take_part(int64_t *part, int *signal_number,
                                           struct msc_worker *worker);
// Names the record being written; returns how the last worker died while writing that record, and
// its signal. Later calls return MSC_WORKER_DEATH_NONE, and so does the first where a worker has left.
enum msc_worker_death msc_worker_take_death(int *signal_number, struct msc_worker *worker,
                                            struct msc_hash record);

MSC_PUBLIC_END

#endif

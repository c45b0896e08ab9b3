// Connects a coordinator with its workers: starts them, carries lines in both directions, and
// notices when a worker is gone. A bridge does not interpret the lines (cluster/pool.h does).
//
//     struct msc_bridge *bridge;
//     const struct msc_bridge_local_options options = {.argv = argv, .n_workers = 2};
//     MSC_TRY(msc_bridge_open_local(&bridge, &options));
//     MSC_TRY(msc_bridge_next(bridge, &event, 0.1)); // MSC_BRIDGE_UP, worker 0
//     MSC_TRY(msc_bridge_send(bridge, event.worker, line, length));
//     MSC_TRY(msc_bridge_next(bridge, &event, 0.1)); // MSC_BRIDGE_LINE: is it the right worker?
//     msc_bridge_ready(bridge, event.worker);
//     ...
//     msc_bridge_close(bridge);
#ifndef MSC_CLUSTER_BRIDGE_H
#define MSC_CLUSTER_BRIDGE_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msc_cancel;
struct msc_bridge;

enum msc_bridge_event_kind {
    MSC_BRIDGE_NOTHING, // no event within the timeout
    MSC_BRIDGE_UP,      // a worker has started: lines can be sent to it
    MSC_BRIDGE_DOWN,    // a worker ended or did not start; `text` says why. The worker's number is
                        // not reused
    MSC_BRIDGE_LINE,    // `text` is a line from the worker
    MSC_BRIDGE_NOTE,    // `text` is a message for people, not about one worker
};

struct msc_bridge_event {
    enum msc_bridge_event_kind kind;
    int32_t worker;
    const char *text; // no newline; borrowed until the next call
    size_t length;
};

// A kind of bridge. `state` begins with a struct msc_bridge.
struct msc_bridge_def {
    enum msc_status (*send)(struct msc_bridge *bridge, int32_t worker, const char *line,
                            size_t length);
    // Optional: not needed by a bridge that can tell from the lines sent to a worker whether it is
    // ready.
    void (*ready)(struct msc_bridge *bridge, int32_t worker);
    void (*drop)(struct msc_bridge *bridge, int32_t worker, bool for_good);
    // Optional: not needed by a bridge whose workers see the same files as this process.
    enum msc_status (*file)(struct msc_bridge *bridge, const char *path, bool is_head);
    enum msc_status (*next)(struct msc_bridge *bridge, struct msc_bridge_event *event,
                            double timeout_s);
    void (*close)(struct msc_bridge *bridge);
};
struct msc_bridge {
    const struct msc_bridge_def *def;
};

// Sends a line, which includes its newline. If the worker has ended, a later event reports it.
static inline enum msc_status msc_bridge_send(struct msc_bridge *bridge, int32_t worker,
                                              const char *line, size_t length) {
    return bridge->def->send(bridge, worker, line, length);
}
// Tells the bridge that a worker is ready. If several workers in a row end before they are ready,
// the bridge starts no more.
static inline void msc_bridge_ready(struct msc_bridge *bridge, int32_t worker) {
    if (bridge->def->ready) {
        bridge->def->ready(bridge, worker);
    }
}
// Ends a worker; no more events come from it. Another worker replaces it, unless `for_good`.
static inline void msc_bridge_drop(struct msc_bridge *bridge, int32_t worker, bool for_good) {
    bridge->def->drop(bridge, worker, for_good);
}
// Names a file that workers read before they can answer; `is_head`: the file grows, and only its
// first line is needed. Call it before the first line is sent. `path` is absolute.
static inline enum msc_status msc_bridge_file(struct msc_bridge *bridge, const char *path,
                                              bool is_head) {
    return bridge->def->file ? bridge->def->file(bridge, path, is_head) : MSC_OK;
}
// The next event within `timeout_s`. MSC_E_STATE: no worker is left and none will start.
static inline enum msc_status msc_bridge_next(struct msc_bridge *bridge,
                                              struct msc_bridge_event *event, double timeout_s) {
    return bridge->def->next(bridge, event, timeout_s);
}
static inline void msc_bridge_close(struct msc_bridge *bridge) { // accepts NULL
    if (bridge) {
        bridge->def->close(bridge);
    }
}

// Workers that are children of this process: n_workers processes of the program `argv` (`mscgym
// worker`). A worker that ends is started again, unless three in a row failed: they could not be
// started, or they ended or were dropped before they were ready. Raises the limit on open files if
// the workers' pipes need it.
struct msc_bridge_local_options {
    const char *const *argv; // NULL-terminated; all texts here are borrowed until close
    size_t n_workers;
    // argv[place_at] becomes the number of the worker's place, from 0 to n_workers - 1; 0: no word
    // does. May be one past the end. A worker that replaces another has the same place.
    size_t place_at;
    // `argv` submits a job that may wait in a queue for long. A worker then counts as up after its
    // first line. The worker's number is appended to its job's name, argv[name_at].
    bool are_jobs;
    size_t name_at;
    const char *job_name; // prefix of all job names
    // Optional: `begin` is called before the first job, and `end` after the last.
    enum msc_status (*begin)(void *payload);
    void (*end)(void *payload);
    void *payload;
    // A command, NULL-terminated. With a name as its last word, it ends all jobs whose names begin
    // with that name. It ends jobs of an earlier coordinator, and the job of a worker whose program
    // did not end by itself.
    const char *const *end_jobs;
    const char *hint; // added to the error if the program is not found; or NULL
};
enum msc_status msc_bridge_open_local(struct msc_bridge **out,
                                      const struct msc_bridge_local_options *options);
// Workers that the program `argv` starts elsewhere, such as `python3 -m mscgym_ray`. It first
// receives `requests` (a NULL-terminated array of JSON lines), and then speaks the protocol of
// docs/cluster.md. `name` and `hint` are for messages and are borrowed until close; the hint is
// added if the program ends without output. msc_bridge_next returns MSC_E_STATE if the program
// reports an error or ends.
enum msc_status msc_bridge_open_program(struct msc_bridge **out, const char *const argv[],
                                        const char *const requests[], const char *name,
                                        const char *hint);

#endif

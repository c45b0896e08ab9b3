// How a coordinator reaches its workers: who starts them, carries lines to and fro, and notices that
// one is gone. What the lines say is nothing to it (search/pool.h).
//
//     struct msc_bridge *bridge;
//     const struct msc_bridge_local_options options = {.argv = argv, .n_workers = 2};
//     MSC_TRY(msc_bridge_open_local(&bridge, &options));
//     MSC_TRY(msc_bridge_next(bridge, &event, 0.1)); // MSC_BRIDGE_UP, worker 0
//     MSC_TRY(msc_bridge_send(bridge, event.worker, line, length));
//     MSC_TRY(msc_bridge_next(bridge, &event, 0.1)); // MSC_BRIDGE_LINE: it is who it should be
//     msc_bridge_ready(bridge, event.worker);
//     ...
//     msc_bridge_close(bridge);
#ifndef MSC_SEARCH_BRIDGE_H
#define MSC_SEARCH_BRIDGE_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msc_cancel;
struct msc_bridge;

enum msc_bridge_event_kind {
    MSC_BRIDGE_NOTHING, // in the time given
    MSC_BRIDGE_UP,      // a worker is there, and can be sent to
    MSC_BRIDGE_DOWN, // it is gone, or could not be started; `text` says why. Its number is not used again
    MSC_BRIDGE_LINE, // it said `text`
    MSC_BRIDGE_NOTE, // of no worker: `text` is for people
};

struct msc_bridge_event {
    enum msc_bridge_event_kind kind;
    int32_t worker;
    const char *text; // without newline; borrowed until the next call
    size_t length;
};

// A kind of bridge. `state` begins with struct msc_bridge.
struct msc_bridge_def {
    enum msc_status (*send)(struct msc_bridge *bridge, int32_t worker, const char *line,
                            size_t length);
    // optional: default nothing, what is sent to a worker tells
    void (*ready)(struct msc_bridge *bridge, int32_t worker);
    void (*drop)(struct msc_bridge *bridge, int32_t worker, bool for_good);
    // optional: default nothing, workers find files where this process does
    enum msc_status (*file)(struct msc_bridge *bridge, const char *path, bool is_head);
    enum msc_status (*next)(struct msc_bridge *bridge, struct msc_bridge_event *event,
                            double timeout_s);
    void (*close)(struct msc_bridge *bridge);
};
struct msc_bridge {
    const struct msc_bridge_def *def;
};

// Sends a line with its newline. That a worker is gone shows as an event, not here.
static inline enum msc_status msc_bridge_send(struct msc_bridge *bridge, int32_t worker,
                                              const char *line, size_t length) {
    return bridge->def->send(bridge, worker, line, length);
}
// A worker does what it is there for. Where one after another ends before, no more are started.
static inline void msc_bridge_ready(struct msc_bridge *bridge, int32_t worker) {
    if (bridge->def->ready) {
        bridge->def->ready(bridge, worker);
    }
}
// Ends a worker, of which nothing more is heard. Another one comes in its place unless `for_good`.
static inline void msc_bridge_drop(struct msc_bridge *bridge, int32_t worker, bool for_good) {
    bridge->def->drop(bridge, worker, for_good);
}
// A file that workers read before they can answer; of one that grows (`is_head`) its first line alone. To be said
// before the first line is sent. `path` is absolute.
static inline enum msc_status msc_bridge_file(struct msc_bridge *bridge, const char *path,
                                              bool is_head) {
    return bridge->def->file ? bridge->def->file(bridge, path, is_head) : MSC_OK;
}
// What happens next, in at most `timeout_s`. MSC_E_STATE: no worker is there and none will come.
static inline enum msc_status msc_bridge_next(struct msc_bridge *bridge,
                                              struct msc_bridge_event *event, double timeout_s) {
    return bridge->def->next(bridge, event, timeout_s);
}
static inline void msc_bridge_close(struct msc_bridge *bridge) { // accepts NULL
    if (bridge) {
        bridge->def->close(bridge);
    }
}

// Workers that are children of this process: n_workers times the program `argv`, `mscgym worker` here. One
// that ends is started again, but not after three in a row that ended, or were dropped, before they were ready,
// or could not be started. Raises this process's limit on open files for their pipes where that is needed.
struct msc_bridge_local_options {
    const char *const *argv; // NULL-terminated, borrowed until close, as is all text here
    size_t n_workers;
    // Or what starts it elsewhere, as a job that may wait for its turn for long: such a worker is there when
    // it says its first word. Jobs have names: argv[name_at] becomes argv[name_at] NUMBER. of the worker.
    bool are_jobs;
    size_t name_at;
    const char *job_name; // what all names begin with
    // Optional: called before the first job, and after the last.
    enum msc_status (*begin)(void *payload);
    void (*end)(void *payload);
    void *payload;
    // Ends the jobs whose names begin with the last word, which stands in for NULL: those that a coordinator
    // before this one has left behind, and that of a program that ended otherwise than by itself.
    const char *const *end_jobs;
    const char *
        hint; // follows what is said where no worker could be started as its program is not found; or NULL
};
enum msc_status msc_bridge_open_local(struct msc_bridge **out,
                                      const struct msc_bridge_local_options *options);
// Workers that the program `argv` starts somewhere: `python3 -m mscgym_ray`, say. It is sent `requests`
// (NULL-terminated, lines of JSON) first, and speaks as docs/cluster.md says. `name` and `hint`, for
// messages, are borrowed until close; the hint follows what is said of a program that ended without a
// word. What it says of errors, and its end, are MSC_E_STATE.
enum msc_status msc_bridge_open_program(struct msc_bridge **out, const char *const argv[],
                                        const char *const requests[], const char *name,
                                        const char *hint);

#endif

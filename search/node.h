// The worker's side of a search on several machines: measures trials for a coordinator
// (search/pool.h), which sends requests as lines and reads answers as lines (docs/cluster.md).
//
//     < {"method":"init",…}                 > {"hello":{…}} or {"error":"…"}
//     < {"method":"evaluate","parts":…}     > {"id":7,"outcomes":[…]} for each part, as it is done
//
// It is supervised as a search is (search/supervise.h). When it dies in the middle of trials, the one
// that is started in its place says {"crashed":7,…}, the part, and waits for another init: what was sent before
// is not its own. One whose device is lost leaves, and the next says {"crashed":-1,"how":"lost",…}.
#ifndef MSC_SEARCH_NODE_H
#define MSC_SEARCH_NODE_H

#include "base/json.h"
#include "env/env.h"
#include "search/supervise.h"

// What init asked for.
struct msc_node_subject {
    struct msc_env *env; // owned by who made it
    const char *program; // "mscgym 0.1.0"
    const char *build;   // hash of the program's file
    const char *numerics;
    double trial_seconds; // time limit of a trial; <= 0: none
};

struct msc_node_options {
    enum msc_status (*open)(void *payload, struct msc_node_subject *out, const cJSON *init);
    // Says a line, with its newline, to who asks; false: nobody listens.
    bool (*say)(void *payload, const char *line, size_t length);
    void *payload;
    struct msc_worker *worker; // or NULL
    const struct msc_cancel *cancel;
};

struct msc_node;
// *out is owned by the caller.
enum msc_status msc_node_create(struct msc_node **out, const struct msc_node_options *options);
void msc_node_destroy(struct msc_node *node); // accepts NULL
// Says how the worker before this one died, if one did.
enum msc_status msc_node_tell_crash(struct msc_node *node);
// Takes a line, and answers it. MSC_E_IO: nobody listens; MSC_E_CANCELLED: it was stopped; MSC_E_LOST:
// it is to leave (msc_worker_leave). All else is an answer.
enum msc_status msc_node_take(struct msc_node *node, const char *line, size_t length);
// The same with all lines of a descriptor, until it ends, or a request to stop.
enum msc_status msc_node_run(struct msc_node *node, int input);

// Writes a line with its newline whole, also where another process writes lines to the same pipe:
// both lock it meanwhile. Without `waits` false at once where that is not possible now.
bool msc_node_write_line(int descriptor, const char *line, size_t length, bool waits);

#endif

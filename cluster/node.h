// The worker's side of a search on several machines. It measures trials for a coordinator
// (cluster/pool.h), which sends requests and reads answers as lines (docs/cluster.md).
//
//     < {"method":"init",…}                 > {"hello":{…}} or {"error":"…"}
//     < {"method":"evaluate","parts":…}     > {"id":7,"outcomes":[…]} for each part, once done
//
// It is supervised like a search (supervise/supervise.h). If it dies during trials, its successor
// sends the part with {"crashed":7,…} and waits for another init. Requests before that init are for
// the previous process. A worker whose device is lost ends, and its successor sends
// {"crashed":-1,"how":"lost",…}.
#ifndef MSC_CLUSTER_NODE_H
#define MSC_CLUSTER_NODE_H

#include "base/json.h"
#include "env/env.h"
#include "supervise/supervise.h"

// The environment and settings of an init request.
struct msc_node_subject {
    struct msc_env *env; // owned by its creator
    const char *program; // "mscgym 0.1.0"
    const char *build;   // hash of the program file
    const char *numerics;
    double trial_seconds; // time limit of a trial; <= 0: none
};

struct msc_node_options {
    enum msc_status (*open)(void *payload, struct msc_node_subject *out, const cJSON *init);
    // Sends a line with its newline to the coordinator; false if the coordinator no longer reads.
    bool (*say)(void *payload, const char *line, size_t length);
    void *payload;
    struct msc_worker *worker; // NULL: not supervised
    const struct msc_cancel *cancel;
};

struct msc_node;
// *out is owned by the caller.
enum msc_status msc_node_create(struct msc_node **out, const struct msc_node_options *options);
void msc_node_destroy(struct msc_node *node); // accepts NULL
// If the previous worker died, reports to the coordinator how it died.
enum msc_status msc_node_tell_crash(struct msc_node *node);
// Handles a line and answers it. MSC_E_IO: the coordinator no longer reads. MSC_E_CANCELLED: this
// process was stopped. MSC_E_LOST: this process must end (msc_worker_leave). Other errors are sent
// as answers.
enum msc_status msc_node_take(struct msc_node *node, const char *line, size_t length);
// Handles all lines read from `input`, until its end or a request to stop.
enum msc_status msc_node_run(struct msc_node *node, int input);

// Writes a line with its newline in one piece, even if another process writes lines to the same
// pipe: each holds a lock while it writes. If `waits` is false and the lock is taken, returns false
// at once.
bool msc_node_write_line(int descriptor, const char *line, size_t length, bool waits);

#endif

// Messages between coordinator and workers, as lines of JSON (docs/cluster.md).
#ifndef MSC_CLUSTER_NODE_MESSAGE_H
#define MSC_CLUSTER_NODE_MESSAGE_H

#include "base/json.h"
#include "env/env.h"

struct msc_str;

#define MSC_NODE_PROTOCOL 1

// Writes each double's bits as 16 hexadecimal digits, most significant first.
void msc_node_write_doubles(struct msc_str *out, const double values[], size_t n);
// Reads n doubles that msc_node_write_doubles wrote; false if the text has another form.
bool msc_node_read_doubles(double values[], size_t n, const char *text);

// The batches of a part; `n` 0 means the whole trial at once.
struct msc_node_range {
    size_t first, n;
};

// {"method":"evaluate","parts":[{"id":7,"first":0,"n":4},…],
//  "trials":[{"id":3,"choices":[…],"bound":0.5},…]}
// The caller chooses ids [n_parts]. If a part's `n` is 0, the part is the whole trial.
void msc_node_write_evaluate(struct msc_str *out, const struct msc_space *space,
                             const uint64_t ids[], const struct msc_node_range parts[],
                             size_t n_parts, struct msc_trial *const trials[],
                             const double bounds[], size_t n);

// The outcome of a trial on a part: `state` is COMPLETE, or why the trial stopped early.
struct msc_node_outcome {
    enum msc_trial_state state;
    enum msc_trial_cause cause;
    const char *reason; // borrowed; "" if there is none
    size_t n_batches;   // length of `values`: the first batches of the part
    const char *values; // [n_batches][n_sums], or the metrics of a whole trial
    double reuse_ratio;
    uint64_t time_us;
};
void msc_node_write_outcome(struct msc_str *out, int64_t id, const struct msc_node_outcome *o);
enum msc_status msc_node_read_outcome(struct msc_node_outcome *out, int64_t *id,
                                      const cJSON *object);

// Writes to text [MSC_HASH_TEXT_BYTES] the hash of the results of one plan on the first batch: the
// first uniform plan or, if there is none, the plan of all first choices. Machines with different
// hashes compute different results.
enum msc_status msc_node_canary(char *text, struct msc_env *env);

#endif

// What coordinator and workers say to one another, as lines of JSON (docs/cluster.md).
#ifndef MSC_SEARCH_NODE_MESSAGE_H
#define MSC_SEARCH_NODE_MESSAGE_H

#include "base/json.h"
#include "env/env.h"

struct msc_str;

#define MSC_NODE_PROTOCOL 1

// Doubles by their bits: 16 hexadecimal digits each, the first the most significant.
void msc_node_write_doubles(struct msc_str *out, const double values[], size_t n);
// False: the text is no [n] of them.
bool msc_node_read_doubles(double values[], size_t n, const char *text);

// Batches of a request, or 0 and all there are.
struct msc_node_range {
    size_t first, n;
};

// {"method":"evaluate","parts":[{"id":7,"first":0,"n":4},…],"trials":[{"id":3,"choices":[…],"bound":0.5},…]}
// Parts have ids [n_parts] from the caller; n 0: the trial as a whole.
void msc_node_write_evaluate(struct msc_str *out, const struct msc_space *space,
                             const uint64_t ids[], const struct msc_node_range parts[],
                             size_t n_parts, struct msc_trial *const trials[],
                             const double bounds[], size_t n);

// What a trial came to over a part: `state` COMPLETE, or why it did not get to its end.
struct msc_node_outcome {
    enum msc_trial_state state;
    enum msc_trial_cause cause;
    const char *reason; // borrowed; "" where there is none
    size_t n_batches;   // of the part, from its first on, that `values` has
    const char *values; // [n_batches][n_sums] by batch, or the metrics of a trial as a whole
    double reuse_ratio;
    uint64_t time_us;
};
void msc_node_write_outcome(struct msc_str *out, int64_t id, const struct msc_node_outcome *o);
enum msc_status msc_node_read_outcome(struct msc_node_outcome *out, int64_t *id,
                                      const cJSON *object);

// Hash of what the first uniform plan (else the first choices) gives on the first batch: machines
// that do not agree on it do not compute the same. `text` [MSC_HASH_TEXT_BYTES].
enum msc_status msc_node_canary(char *text, struct msc_env *env);

#endif

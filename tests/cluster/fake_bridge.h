// Bridge with workers inside this process and a simulated clock. Faults and their times are drawn
// from a seed. Lines are delayed, reordered, doubled or dropped. Workers are killed, crash, fall
// silent, write garbage, or join late.
#ifndef MSC_TESTS_SEARCH_FAKE_BRIDGE_H
#define MSC_TESTS_SEARCH_FAKE_BRIDGE_H

#include "base/cancel.h"
#include "cluster/bridge.h"
#include "cluster/node.h"

struct fake_bridge;

// Permanent fault of a worker.
enum fake_flaw {
    FLAW_NONE,
    FLAW_NUMERICS,
    FLAW_CANARY, // computes every trial wrongly, including the canary, whose result is known
    FLAW_LIES,   // computes the canary correctly but other trials wrongly
    FLAW_DEAF,   // never answers
};

struct fake_bridge_options {
    uint64_t seed;
    int n_workers;
    int n_faults;        // the largest number of faults that are injected
    enum fake_flaw flaw; // the flaw of the first worker
    // share of the terms that are wrong with FLAW_LIES; 0: only the last batch is wrong
    double lie_share;
    bool are_all_flawed;       // all workers have the flaw
    double slow_s;             // some parts take this long; 0: none
    double gap_s;              // sometimes the coordinator is busy for this long; 0: never
    struct msc_cancel *cancel; // raised once stop_s have passed; NULL: never
    const char *error;         // the bridge fails with this text after stop_s; NULL: never
    double stop_s;
    const struct msc_env_def *def;
    const char *env; // configuration of the environment
};

struct fake_figures {
    int n_kills, n_crashes, n_silences, n_drops, n_twice, n_garbage, n_joins, n_gaps, n_slow;
};

struct fake_bridge *fake_bridge_open(const struct fake_bridge_options *options);
struct msc_bridge *fake_bridge_bridge(struct fake_bridge *fake); // closing it frees the fake
double fake_bridge_now_s(void *fake);
// Adds the figures of this bridge to `figures` when it is closed. `figures` must outlive it.
void fake_bridge_count(struct fake_bridge *fake, struct fake_figures *figures);

#endif

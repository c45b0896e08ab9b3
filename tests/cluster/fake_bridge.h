// A bridge whose workers live in this process and whose time is made up: what goes wrong, and when, is
// drawn from a seed. Lines come late and in another order than they were sent, twice or not at all;
// workers are killed, crash, fall silent, talk nonsense, join.
#ifndef MSC_TESTS_SEARCH_FAKE_BRIDGE_H
#define MSC_TESTS_SEARCH_FAKE_BRIDGE_H

#include "base/cancel.h"
#include "cluster/bridge.h"
#include "cluster/node.h"

struct fake_bridge;

// A worker that is not what it should be.
enum fake_flaw {
    FLAW_NONE,
    FLAW_NUMERICS,
    FLAW_CANARY, // computes all differently
    FLAW_LIES,   // computes what was not tried differently
    FLAW_DEAF,   // never answers
};

struct fake_bridge_options {
    uint64_t seed;
    int n_workers;
    int n_faults;              // at most
    enum fake_flaw flaw;       // of the first worker
    double lie_share;          // of its numbers that are wrong; 0: none beyond the flaw
    bool are_all_flawed;       // of all
    double slow_s;             // at times a part takes so long; 0: never
    double gap_s;              // at times the coordinator does something else for so long; 0: never
    struct msc_cancel *cancel; // a first request to stop comes after stop_s; NULL: none
    const char *error;         // what the bridge ends with then; NULL: it does not
    double stop_s;
    const struct msc_env_def *def;
    const char *env; // its configuration
};

struct fake_figures {
    int n_kills, n_crashes, n_silences, n_drops, n_twice, n_garbage, n_joins, n_gaps, n_slow;
};

struct fake_bridge *fake_bridge_open(const struct fake_bridge_options *options);
struct msc_bridge *fake_bridge_bridge(struct fake_bridge *fake); // whose close frees it
double fake_bridge_now_s(void *fake);
// Where they are added up at the end; must outlive it.
void fake_bridge_count(struct fake_bridge *fake, struct fake_figures *figures);

#endif

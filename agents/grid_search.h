// What the modes of agent_grid_search.c share.
#ifndef MSC_AGENTS_GRID_SEARCH_H
#define MSC_AGENTS_GRID_SEARCH_H

#include "agents/agent.h"
#include "agents/assemble.h"
#include "agents/limits.h"

// Each task alone with the others dearest, then one assembled plan.
struct msc_grid_per_task {
    struct msc_assembler assembler;
    double *losses;                  // [n_entries], NaN: not told, or failed
    double *metrics[MSC_MAX_BOUNDS]; // [n_entries] for bounds on measured metrics, else NULL
    size_t task;                     // the next one to propose for
    uint32_t position;               // its choice, by place in dearest_first; 0: the dearest plan
    bool is_assembled;
};

// One change after another from the dearest plan.
struct msc_grid_greedy {
    uint32_t *choices; // [n_tasks], where the search stands
    double loss;       // NaN: not known
    double violation;
    bool has_begun; // the dearest plan was proposed
    bool is_wide;   // the step tries all cheaper choices, the next ones were in vain
    bool is_done;
    size_t n_candidates;
    size_t n_asked;
    uint32_t *tasks;    // [n_entries], by candidate
    uint32_t *changes;  // [n_entries], by candidate: the task's new choice
    double *losses;     // [n_entries], by entry; NaN: not told, or failed
    double *violations; // [n_entries], by entry
};

struct msc_grid_full {
    struct msc_walk walk;
};

struct msc_grid {
    int mode;
    int changes;
    struct msc_limits limits;
    struct msc_grid_per_task per_task;
    struct msc_grid_greedy greedy;
    struct msc_grid_full full;
};

enum {
    MSC_GRID_NEIGHBOURS,
    MSC_GRID_ALL,
};

struct msc_grid_mode {
    enum msc_status (*init)(struct msc_agent *agent, struct msc_grid *grid);
    enum msc_status (*ask)(struct msc_agent *agent, struct msc_grid *grid,
                           struct msc_proposal out[], size_t max, size_t *n);
    void (*tell)(struct msc_agent *agent, struct msc_grid *grid, const struct msc_trial *trial,
                 const struct msc_outcome *outcome);
    bool (*done)(const struct msc_grid *grid);
};

extern const struct msc_grid_mode msc_grid_mode_per_task;
extern const struct msc_grid_mode msc_grid_mode_greedy;
extern const struct msc_grid_mode msc_grid_mode_full;

// The first objective of an outcome that can be used, else NaN.
double msc_grid_loss(const struct msc_outcome *outcome);
// The one task in which the point differs from `base`; n_tasks when none does, SIZE_MAX when
// several do.
size_t msc_grid_difference(size_t n_tasks, const uint32_t base[], const uint32_t choices[]);

#endif

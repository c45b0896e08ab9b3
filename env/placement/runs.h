// Models of runs of groups: what backends are measured on.
//
//     MSC_TRY(msc_place_groups(groups, g, table));                           // [n_joints]
//     const struct msc_place_runs runs = {.g = g, .groups = groups, .folder = folder};
//     MSC_TRY(msc_place_write_run(&piece, &runs, 2, 4, "run", &arena));      // groups 2 to 4
#ifndef MSC_ENV_PLACEMENT_RUNS_H
#define MSC_ENV_PLACEMENT_RUNS_H

#include "env/placement/place_table.h"
#include "graph/graph.h"
#include "tools/runtime_chains.h"

// The group of each joint [n_joints], from the names in the table; -1 for shared joints. `g` has no
// fused joints. MSC_E_INVALID: the names do not fit the graph.
enum msc_status msc_place_groups(int32_t groups[], const struct msc_graph *g,
                                 const struct msc_place_table *p);

struct msc_place_runs {
    const struct msc_graph *g;
    const int32_t *groups;
    const char *folder;
};
// Writes the model of groups first ... last to FOLDER/KIND_FIRST_LAST.onnx. *out describes it,
// without a backend; its texts are in the arena.
enum msc_status msc_place_write_run(struct msc_runtime_piece *out,
                                    const struct msc_place_runs *runs, size_t first, size_t last,
                                    const char *kind, struct msc_arena *arena);

#endif

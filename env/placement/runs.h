// Models of runs of groups: what backends are measured on.
//
//     MSC_TRY(msc_place_groups(groups, g, table));                           // [n_joints]
//     MSC_TRY(msc_place_align(networks, paths, n_variants, n_groups, &arena));
//     const struct msc_place_runs runs = {.networks = networks, .folder = folder};
//     MSC_TRY(msc_place_write_run(&piece, &runs, 0, 2, 4, "run", &arena));   // groups 2 to 4
//
// Variants of a network have the same tensors at the cuts, by name, and they pass as floats. If a
// variant quantises such a tensor and nothing else reads it, the piece before the cut quantises it
// too, and passes the values of its integers: many runtimes compute a joint in integers only if its
// output is quantised. To quantise these values once more does not change them.
#ifndef MSC_ENV_PLACEMENT_RUNS_H
#define MSC_ENV_PLACEMENT_RUNS_H

#include "env/placement/place_table.h"
#include "graph/graph.h"
#include "tools/runtime_chains.h"

// The group of each joint [n_joints], from the names in the table; -1 for shared joints. `g` has no
// fused joints. MSC_E_INVALID: the names do not fit the graph.
enum msc_status msc_place_groups(int32_t groups[], const struct msc_graph *g,
                                 const struct msc_place_table *p);

// A network, or a variant of it.
struct msc_place_network {
    const struct msc_graph *g; // without fused joints
    int32_t *groups;           // [n_joints] -1: shared joints
    // [n_joints] of joints that quantise a tensor at a cut, or make floats of it again: the group
    // before the cut, which gets a copy of the joint; else -1. NULL: there are none.
    int32_t *ends;
};

// Cuts a variant where the network is cut, and fills groups and ends, in the arena. is_cut
// [n_groups - 1]: whether the network is cut after each group; cuts that the variant cannot have
// are cleared and left out. Joints that the tensor at a cut does not reach are on the side that
// needs them, and each output is in the same group as in the network. MSC_E_INVALID: the variant's
// inputs or outputs differ from the network's in name, type or shape. `path` is the variant's.
enum msc_status msc_place_cut_variant(struct msc_place_network *variant, bool is_cut[],
                                      const struct msc_place_network *network, size_t n_groups,
                                      const char *path, struct msc_arena *arena);
// The same for all variants networks[1] ... networks[n - 1]. MSC_E_INVALID: a cut is not possible.
enum msc_status msc_place_align(struct msc_place_network networks[], const char *const paths[],
                                size_t n, size_t n_groups, struct msc_arena *arena);

struct msc_place_runs {
    const struct msc_place_network *networks; // [n_variants]
    const char *folder;
};
// The graph of groups first ... last of a variant. *out is owned by the caller.
enum msc_status msc_place_extract_run(struct msc_graph **out, const struct msc_place_network *from,
                                      size_t first, size_t last, const char *name);
// Writes this graph to FOLDER/KINDVARIANT_FIRST_LAST.onnx, without VARIANT for the network itself.
// *out describes it, without a backend; its texts are in the arena.
enum msc_status msc_place_write_run(struct msc_runtime_piece *out,
                                    const struct msc_place_runs *runs, size_t variant, size_t first,
                                    size_t last, const char *kind, struct msc_arena *arena);

#endif

// Internal to model/: shared by the sources of placement.
#ifndef MSC_MODEL_PLACE_INTERNAL_H
#define MSC_MODEL_PLACE_INTERNAL_H

#include "base/scratch.h"
#include "env/placement/runs.h"
#include "model/place.h"

struct msc_place_seen;
// What measuring a table needs. Everything is in the arena except the runtime and the scratch
// folder.
struct msc_place_measure {
    const struct msc_graph *g;
    const struct msc_place_options *o;
    struct msc_arena arena;
    struct msc_scratch scratch;
    struct msc_runtime *runtime;
    size_t n_backends;
    const char **backends; // [n_backends] names; with variants, each name once for each variant
    size_t n_variants;
    struct msc_place_network networks[MSC_PLACE_MOST_VARIANTS]; // the first is `g`
    const char *paths[MSC_PLACE_MOST_VARIANTS];
    int32_t *groups; // [n_joints] of `g`
    size_t n_groups;
    struct msc_runtime_piece *singles; // [n_variants, n_groups] each group alone
    struct msc_place_seen *seen;       // latencies so far
    // The whole network on the backend that computes it fastest: other latencies are measured
    // relative to it. No model: no backend computes the whole network.
    struct msc_runtime_piece reference;
    size_t fastest; // this backend
    double reference_us;
};

// Pieces that follow one another; piece i has the groups firsts[i] ... firsts[i + 1] - 1.
struct msc_place_tiling {
    size_t n;
    size_t firsts[MSC_PLACE_MOST_GROUPS + 1];
};

// Divides choices into pieces, one for each run of equal choices.
void msc_place__tile(struct msc_place_tiling *t, const uint32_t choices[], size_t n_groups);

// Begins anew for the groups as they are now: writes the model of each, to FOLDER/KIND_I_I.onnx.
enum msc_status msc_place__begin(struct msc_place_measure *m, const char *kind);
// Measures the whole network on each backend, and takes the fastest as the reference.
enum msc_status msc_place__see_whole(struct msc_place_measure *m);
// Measures a tiling as chains, each piece in its place: on every backend, after every backend.
enum msc_status msc_place__see(struct msc_place_measure *m, const struct msc_place_tiling *t);
// A tiling with as many groups as possible in runs that were not measured yet; false: there are
// none.
bool msc_place__next(struct msc_place_tiling *t, const struct msc_place_measure *m);
// Fills the latencies of runs, and the prices of cuts, from everything that was measured.
void msc_place__conclude(struct msc_place_table *p, const struct msc_place_measure *m);
// Measures a point as a chain. The latencies of its runs become those that they have in it; NaN: a
// run was refused.
enum msc_status msc_place__see_point(struct msc_place_table *p, struct msc_place_measure *m,
                                     const uint32_t choices[]);

// Outputs that differ more than this, relative to their root mean square, are another result.
#define MSC_PLACE_MOST_ERROR 0.1

// The largest error that counts as the result of a variant. Losses decide about variants that are
// not the network itself, so only nonsense is refused.
static inline double msc_place__most_error(size_t variant) {
    return variant > 0 ? 1.0 : MSC_PLACE_MOST_ERROR;
}

// The network and its variants, cut as the table is; [n_variants of the table], in the arena.
enum msc_status msc_place__networks(struct msc_place_network networks[], const struct msc_graph *g,
                                    const struct msc_place_table *p,
                                    const struct msc_place_options *o, struct msc_arena *arena);
// Writes the pieces of a combination of variants to a folder, for mscgym's own kernels.
enum msc_status msc_place__split_variants(struct msc_pieces **out, const struct msc_graph *g,
                                          const struct msc_place_table *p,
                                          const uint32_t variants[],
                                          const struct msc_place_options *o, const char *folder);
// Writes the pieces of a point to a folder (msc_place_deliver).
enum msc_status msc_place__split(struct msc_pieces **out, const struct msc_graph *g,
                                 const struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o, const char *folder);
// Starts mscgym-runtime and checks that it has the backends.
enum msc_status msc_place__start(struct msc_runtime **out, const struct msc_place_options *o,
                                 const char *const backends[], size_t n);
// A request with the members that all measurements share.
struct msc_runtime_chains msc_place__job(const struct msc_place_options *o,
                                         struct msc_arena *arena);

#endif

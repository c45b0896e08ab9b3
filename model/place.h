// Finds which backend computes which part of a network (docs/placement.md): measures every run of
// groups on every backend, takes the best point of the table, and measures it whole.
//
//     MSC_TRY(msc_graph_split(&g, loaded));
//     MSC_TRY_OUT(msc_place_measure(&table, g, &o));
//     MSC_TRY_OUT(msc_place_find(&us, &is_cut_short, g, table, choices, &o));
//     MSC_TRY_OUT(msc_place_losses(losses, &loss, g, table, choices, &o));
//     MSC_TRY_OUT(msc_place_check(&check, g, table, choices, losses, &o)); // in fresh processes
//     MSC_TRY_OUT(msc_place_deliver(&pieces, g, table, check.best, &o));
#ifndef MSC_MODEL_PLACE_H
#define MSC_MODEL_PLACE_H

#include "env/placement/place_table.h"
#include "model/pieces.h"
#include "tools/latency.h"

#include <math.h>

enum { MSC_PLACE_MOST_PROCESSES = 64 };

// A model with the network's tensors at the cuts, such as one of 8 bits.
struct msc_place_given {
    const char *path;
    const struct msc_graph *g; // without fused joints
};

struct msc_place_options {
    const char *model;                      // path of the network's file
    const struct msc_place_given *variants; // [n_variants] other than the network itself
    size_t n_variants;
    double most_loss;            // of the network and of what is delivered; INFINITY: no bound
    int64_t most_losses;         // in the table; more are not measured
    const char *folder;          // gets the pieces and the manifest; exists
    const char *const *backends; // runtimes and devices of mscgym; none: every one found
                                 // that is not slow
    size_t n_backends;
    const char *inputs; // .npz of samples; NULL: random inputs
    int64_t batch;
    const struct msc_binding *bindings; // lengths of random inputs
    size_t n_bindings;
    int n_threads;
    int64_t n_rounds;
    int64_t n_processes; // fresh processes of a check, at most MSC_PLACE_MOST_PROCESSES
    int64_t most_groups; // groups of which every run is measured
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

#define MSC_PLACE_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .batch = 1, .n_threads = 1, .n_rounds = 20, .n_processes = 3, .most_groups = 10,           \
        .most_loss = INFINITY, .most_losses = 500                                                  \
    }

// Measures a table in one process. `g` has no fused joints. MSC_E_DEVICE: a backend is missing.
// MSC_E_STATE: no backend can run a part. *out is owned by the caller.
enum msc_status msc_place_measure(struct msc_place_table **out, const struct msc_graph *g,
                                  const struct msc_place_options *o);

// The point of least predicted latency within options' bound on the loss, which is measured with
// mscgym's own kernels on the samples of `inputs`, for combinations that the table lacks, until
// it has most_losses. *is_cut_short: this limit left the loss of a faster point unknown.
// MSC_E_NOT_FOUND and MSC_E_INVALID as msc_place_table_best_within.
enum msc_status msc_place_find(double *us, bool *is_cut_short, const struct msc_graph *g,
                               struct msc_place_table *p, uint32_t choices[],
                               const struct msc_place_options *o);
// Losses of the network's variants as a whole [n_variants of the table], and of a point. NaN if
// there are no samples.
enum msc_status msc_place_losses(double of_variants[], double *of_point, const struct msc_graph *g,
                                 struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o);
// The loss of delivered pieces in their backends.
enum msc_status msc_place_delivered_loss(double *loss, const struct msc_graph *g,
                                         struct msc_place_table *p, const struct msc_pieces *pieces,
                                         const struct msc_place_options *o);

// One way to run the whole network, in fresh processes.
struct msc_place_whole {
    const char *backend; // label in the table; NULL: the pieces
    const char *missing; // why it cannot run; NULL: measured
    double us;           // least over the processes of the median over the rounds
    // Greatest |ratio - 1| of a second copy to the first in a process; the ratio is the median over
    // the rounds.
    double spread;
    double error; // of the outputs, relative to their root mean square
};
struct msc_place_check {
    struct msc_arena arena;
    size_t n_wholes;
    struct msc_place_whole *wholes; // [n_backends] the network's own file
    struct msc_place_whole *forms;  // [n_backends] the piece that would be delivered alone
    // Index of the whole with the least latency, whose loss is within the bound; n_wholes: there is
    // none.
    size_t fastest;
    struct msc_place_whole mix; // the pieces of the point
    double ratio; // of the mix to the fastest whole, in the worst process; medians over the rounds
    // Of the mix to that backend's piece of the whole network, which the table has: the median over
    // the processes and both copies of the mix; NaN: there is none.
    double form_ratio;
    double spread; // the greatest of all spreads
    // ratio < 1 - spread, and the mix is not just the fastest whole's backend.
    bool wins;
    const uint32_t *best; // [n_groups] the point to deliver: the mix if it wins, else one backend
};
// Measures a point beside the whole network on each backend, all in turn, in each process.
// `losses` [n_variants of the table]: of whole variants. If no backend runs the whole network, the
// pieces win, and `ratio` is NaN. MSC_E_STATE: a piece of the point to deliver fails. `out` must be
// zeroed.
enum msc_status msc_place_check(struct msc_place_check *out, const struct msc_graph *g,
                                const struct msc_place_table *p, const uint32_t choices[],
                                const double losses[], const struct msc_place_options *o);
void msc_place_check_finish(struct msc_place_check *check);

// Writes the pieces of a point and their manifest. *out is owned by the caller. MSC_E_INVALID: the
// table is of another network.
enum msc_status msc_place_deliver(struct msc_pieces **out, const struct msc_graph *g,
                                  const struct msc_place_table *p, const uint32_t choices[],
                                  const struct msc_place_options *o);

#endif

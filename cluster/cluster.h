// Parses the option --cluster: which workers measure a search's trials.
#ifndef MSC_CLUSTER_CLUSTER_H
#define MSC_CLUSTER_CLUSTER_H

#include "base/status.h"

#include <stdint.h>

struct msc_arena;

enum msc_cluster_kind {
    MSC_CLUSTER_LOCAL, // processes of this machine
    MSC_CLUSTER_RAY,
    MSC_CLUSTER_SLURM,
};

struct msc_cluster {
    enum msc_cluster_kind kind;
    const char *address;   // address of Ray: HOST:PORT or auto
    const char *partition; // partition of Slurm; NULL: the default one
    int64_t n;             // number of workers; 0: all of Ray's, or one per node of Slurm
};

// "local:N", "ray:HOST:PORT[:N]", "ray:auto[:N]", "slurm[:PARTITION][:N]". Text is in the arena.
// MSC_E_INVALID: the message lists the accepted forms.
enum msc_status msc_cluster_read(struct msc_cluster *out, struct msc_arena *arena,
                                 const char *text);

#endif

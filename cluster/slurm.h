// Starts the workers of a search as jobs of Slurm.
#ifndef MSC_CLUSTER_SLURM_H
#define MSC_CLUSTER_SLURM_H

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/log.h"

struct msc_bridge;

struct msc_slurm_options {
    const char *record;    // record of the search; jobs are named after it
    const char *program;   // path of mscgym on the nodes
    const char *partition; // NULL: Slurm's default
    int64_t n_workers;     // 0: one per node that is up
    int n_threads;         // threads of a worker; 0: each worker has its own node
    uint64_t memory_bytes; // memory of a worker; 0: Slurm's default
    bool needs_gpu;
    // The folder on the nodes to which the workers' files are copied. NULL: the nodes share the
    // paths of this machine.
    const char *copy_to;
    // Names the files that workers read (msc_bridge_file). Called if copy_to is set.
    enum msc_status (*name_files)(void *payload, struct msc_bridge *bridge);
    void *payload;
    struct msc_arena *arena; // outlives the bridge
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

// One job for each worker. *out is owned by the caller; *o must outlive it.
enum msc_status msc_slurm_open(struct msc_bridge **out, const struct msc_slurm_options *o);

#endif

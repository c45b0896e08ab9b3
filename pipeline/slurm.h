// Workers of a session as jobs of Slurm.
#ifndef MSC_PIPELINE_SLURM_H
#define MSC_PIPELINE_SLURM_H

#include "pipeline/session.h"

struct msc_bridge;
struct msc_cluster;

// One job for each worker, on a node of its own unless --threads says less. *out is owned by the
// caller.
enum msc_status msc_slurm_open(struct msc_bridge **out, const struct msc_session *s,
                               const struct msc_cluster *c);

#endif

// Copies the files of workers under Slurm to nodes that share no path with this machine
// (--copy-to): an archive that `sbcast` sends to the node of each job.
#ifndef MSC_CLUSTER_SLURM_COPY_H
#define MSC_CLUSTER_SLURM_COPY_H

#include "cluster/slurm.h"

// Packs the files that workers read into an archive.
enum msc_status msc_slurm_pack_files(const struct msc_slurm_options *o, const char *archive);
// Text of slurm.sh, which lists its steps and their arguments: sh -c TEXT sh STEP ARGUMENT...
extern const char msc_slurm_script[];

#endif

// Copies the files of workers under Slurm to nodes that share no path with this machine
// (--copy-to): an archive that `sbcast` sends to the node of each job.
#ifndef MSC_PIPELINE_SLURM_COPY_H
#define MSC_PIPELINE_SLURM_COPY_H

#include "pipeline/session.h"

// Packs the files that workers read into an archive.
enum msc_status msc_slurm_pack_files(const struct msc_session *s, const char *archive);
// Scripts that unpack it: in the allocation of a job, and on its node.
extern const char msc_slurm_copy_script[], msc_slurm_node_script[];

#endif

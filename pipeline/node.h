// A worker of a search on several machines: implements `mscgym worker` (cluster/node.h,
// docs/cluster.md).
#ifndef MSC_PIPELINE_NODE_H
#define MSC_PIPELINE_NODE_H

#include "base/cancel.h"
#include "base/log.h"
#include "base/status.h"

struct msc_worker;

// Serves requests from descriptor `input` with answers on `output`, until the input ends.
enum msc_status msc_node_serve(int input, int output, struct msc_worker *worker,
                               const struct msc_cancel *cancel, const struct msc_log *log);

#endif

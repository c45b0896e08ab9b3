// A worker of a search on several machines: implements `mscgym worker` (cluster/node.h,
// docs/cluster.md).
#ifndef MSC_PIPELINE_NODE_H
#define MSC_PIPELINE_NODE_H

#include "base/cancel.h"
#include "base/log.h"
#include "base/status.h"

#include <stddef.h>

struct msc_worker;

// Serves requests from descriptor `input` with answers on `output`, until the input ends. Workers
// with the places 0, 1, 2, … on a machine take its equal GPUs in turn (msc_place_device).
enum msc_status msc_node_serve(int input, int output, size_t place, struct msc_worker *worker,
                               const struct msc_cancel *cancel, const struct msc_log *log);

#endif

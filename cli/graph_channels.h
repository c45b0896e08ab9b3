// The channels that can be pruned: `mscgym graph MODEL --channels`.
#ifndef MSC_CLI_GRAPH_CHANNELS_H
#define MSC_CLI_GRAPH_CHANNELS_H

#include "cli/cli.h"
#include "graph/graph.h"

// Prints groups of channels that must be pruned together, as text or as JSON. Symbolic lengths
// count as 1 in the shares of multiply-accumulates.
enum msc_status msc_cli_print_channels(const struct msc_graph *g, bool as_json);

#endif

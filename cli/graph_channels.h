// What pruning can take of a model: `mscgym graph MODEL --channels`.
#ifndef MSC_CLI_GRAPH_CHANNELS_H
#define MSC_CLI_GRAPH_CHANNELS_H

#include "cli/cli.h"
#include "graph/graph.h"

// Prints the groups of channels that go together, as text or as JSON. Lengths that are symbols count
// as 1 in shares of multiply-accumulates.
enum msc_status msc_cli_print_channels(const struct msc_graph *g, bool as_json);

#endif

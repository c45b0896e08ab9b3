// Where each joint of a model runs: `mscgym graph MODEL --placement`.
#ifndef MSC_CLI_PLACEMENT_H
#define MSC_CLI_PLACEMENT_H

#include "cli/cli.h"
#include "graph/graph.h"

// Plans the graph for the device and prints its steps, as text or as JSON. An unbound number of
// samples is 1.
enum msc_status msc_cli_print_placement(const struct msc_graph *g,
                                        const struct msc_binding bindings[], size_t n_bindings,
                                        const struct msc_cli_call *call,
                                        const struct msc_cli_common *common);

#endif

// The result of `mscgym place`: reading a plan from a record, and printing.
#ifndef MSC_CLI_PLACING_H
#define MSC_CLI_PLACING_H

#include "cli/cli.h"
#include "model/place.h"

struct msc_cli_placed {
    struct msc_graph *graph;
    struct msc_graph *graphs[MSC_PLACE_MOST_VARIANTS]; // of the variants other than the network
    struct msc_place_given variants[MSC_PLACE_MOST_VARIANTS];
    struct msc_place_table *table;
    uint32_t choices[MSC_PLACE_MOST_GROUPS]; // the point that was measured whole
    double predicted_us;
    double most_loss;                       // INFINITY: no bound
    double losses[MSC_PLACE_MOST_VARIANTS]; // of whole variants; NaN: unknown
    double loss;                            // of the point
    double delivered_loss;                  // of the pieces in their backends
    bool is_cut_short;                      // no more losses could be measured
    struct msc_place_check check;
    struct msc_pieces *pieces; // as delivered
};

// Reads the best trial of a search with the environment placement. MSC_E_INVALID: the record has
// no feasible trial, or is of another table.
enum msc_status msc_cli_read_placed(uint32_t choices[], const struct msc_place_table *p,
                                    const char *record);
enum msc_status msc_cli_print_placed(const struct msc_cli_placed *r);
enum msc_status msc_cli_print_placed_json(const struct msc_cli_placed *r);

#endif

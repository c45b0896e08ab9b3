// Functions shared by the files of codegen/.
#ifndef MSC_CODEGEN_CODEGEN_INTERNAL_H
#define MSC_CODEGEN_CODEGEN_INTERNAL_H

#include "graph/graph.h"

struct msc_str;

// What network.c says of a network.
struct msc_codegen_network {
    const struct msc_graph *graph; // split
    const char *model;             // name of the file that it was read from
    const char *name;              // of the program, an identifier
    const char *strategy;          // name of a file, or NULL
    const char *numerics;
    double tolerance;
};

// Writes the text of network.c.
enum msc_status msc_codegen__network(struct msc_str *out,
                                     const struct msc_codegen_network *network);

#endif

// Functions shared by the files of codegen/.
#ifndef MSC_CODEGEN_CODEGEN_INTERNAL_H
#define MSC_CODEGEN_CODEGEN_INTERNAL_H

#include "data/npy.h"
#include "graph/graph.h"

struct msc_arena;
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

// The names of a body's weights in weights.safetensors begin with a prefix, such as "if_1/0/" for
// body 0 of the joint if_1. `prefix` is that of the graph that has the joint. NULL if out of memory.
const char *msc_codegen__prefix(struct msc_arena *arena, const char *prefix,
                                const struct msc_joint *joint, int32_t body);
// Adds the arrays of weights.safetensors to a list. The codes of a weight (data/array_codes.h) are
// its scales, NAME:scales, and its zero points, NAME:zero_points.
enum msc_status msc_codegen__list_weights(struct msc_array_list *out, const struct msc_graph *g,
                                          const char *prefix);

// Writes the text of network.c.
enum msc_status msc_codegen__network(struct msc_str *out,
                                     const struct msc_codegen_network *network);

#endif

// Types in the signature of an external joint (graph/external.h). Only graph/ includes this header.
#ifndef MSC_GRAPH_EXTERNAL_INTERNAL_H
#define MSC_GRAPH_EXTERNAL_INTERNAL_H

#include "graph/external.h"
#include "graph/infer.h"

#define MSC_EXTERNAL_NAME_BYTES 64

// One type of a signature.
struct msc_external_type {
    enum msc_dtype dtype; // MSC_DTYPE_NONE: absent ("-")
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];                        // -1: a name
    char names[MSC_MAX_DIMS][MSC_EXTERNAL_NAME_BYTES]; // "" if a number
};

// Reads the type at *text and moves *text to the next one. False at the end of the text, at "->"
// (which is skipped) or at an error; *is_valid tells these apart.
bool msc_external__next_type(struct msc_external_type *out, const char **text, bool *is_valid);
void msc_external__write_type(struct msc_str *out, const struct msc_external_type *type);
// Writes the name of a length so that a signature can contain it.
void msc_external__clean_name(char out[MSC_EXTERNAL_NAME_BYTES], const char *name);
// The type of a tensor of the graph.
void msc_external__type_of(struct msc_external_type *out, const struct msc_graph *g,
                           enum msc_dtype dtype, int n_dims, const struct msc_dim dims[]);

#endif

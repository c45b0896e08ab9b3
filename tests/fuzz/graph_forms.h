// Checks for every graph that was read: it can be printed, written, read again and bound.
#ifndef MSC_TESTS_FUZZ_GRAPH_FORMS_H
#define MSC_TESTS_FUZZ_GRAPH_FORMS_H

#include "graph/graph.h"

// Writes all printed forms and both file formats, finds sites and costs, and binds a copy of a
// finalised graph. Aborts if a written form does not read as the same graph.
void fuzz_use_graph(const struct msc_graph *g);

#endif

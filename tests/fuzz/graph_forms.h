// What every graph that was read must bear: being printed, written, read again and bound.
#ifndef MSC_TESTS_FUZZ_GRAPH_FORMS_H
#define MSC_TESTS_FUZZ_GRAPH_FORMS_H

#include "graph/graph.h"

// All printed forms, both files, sites, costs and a bound copy of a finalized graph. Aborts when
// what was written does not read as the same graph.
void fuzz_use_graph(const struct msc_graph *g);

#endif

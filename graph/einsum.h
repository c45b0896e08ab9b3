// Parses equations of Einsum such as "bij,bjk->bik". Axes are numbered: first the axes of the
// output, in the output's order, then the axes that are summed over.
//
//     struct msc_einsum e;
//     const char *error = msc_einsum_parse(&e, "ij,jk->ik", 2, (const int[]){2, 2});
//     // e.n_output_axes 2; e.axes[0] = {0, 2}, e.axes[1] = {2, 1}
#ifndef MSC_GRAPH_EINSUM_H
#define MSC_GRAPH_EINSUM_H

#include "data/array.h"

#define MSC_EINSUM_OPERANDS 16
#define MSC_EINSUM_AXES 32

struct msc_einsum {
    int n_axes, n_output_axes;
    int axes[MSC_EINSUM_OPERANDS][MSC_MAX_DIMS]; // axis number of each dimension of an operand
};

// Returns NULL, or a text that says what is wrong with the equation. Without "->", the output has
// the axes of "...", followed by the letters that occur once, in alphabetical order.
const char *msc_einsum_parse(struct msc_einsum *out, const char *equation, int n_operands,
                             const int ranks[]);

#endif

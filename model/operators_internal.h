// Kinds of plug-ins for operators. Only model/operators*.c includes this header.
#ifndef MSC_MODEL_OPERATORS_INTERNAL_H
#define MSC_MODEL_OPERATORS_INTERNAL_H

#include "base/alloc.h"
#include "graph/operators_internal.h"

// Opens the plug-in at a path. The caller owns *out (its `close`) until it is added to a set.
enum msc_status msc_operators__open_library(struct msc_operators_source *out, const char *path);
enum msc_status msc_operators__open_program(struct msc_operators_source *out, const char *path);

#endif

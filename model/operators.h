// Opens plug-ins that compute external joints (graph/operators.h): shared libraries, and programs
// that answer requests (docs/operators.md). A graph that is loaded with them retains them.
#ifndef MSC_MODEL_OPERATORS_H
#define MSC_MODEL_OPERATORS_H

#include "base/status.h"

#include <stddef.h>

MSC_PUBLIC_BEGIN

struct msc_operators;

// Opens the plug-ins at `paths`: a name that ends in .so is a library, a name that ends in .py is
// run with python3, and any other file is a program. *out is owned by the caller; it is NULL if n
// is 0. Errors name the plug-in.
enum msc_status msc_operators_open(struct msc_operators **out, const char *const paths[], size_t n);
void msc_operators_close(struct msc_operators *operators); // accepts NULL

MSC_PUBLIC_END

#endif

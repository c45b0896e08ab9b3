// Internal to model/: shared by the sources of placement.
#ifndef MSC_MODEL_PLACE_INTERNAL_H
#define MSC_MODEL_PLACE_INTERNAL_H

#include "base/scratch.h"
#include "env/placement/runs.h"
#include "model/place.h"

// Outputs that differ more than this, relative to their root mean square, are another result.
#define MSC_PLACE_MOST_ERROR 0.1

// Writes the pieces of a point to a folder (msc_place_deliver).
enum msc_status msc_place__split(struct msc_pieces **out, const struct msc_graph *g,
                                 const struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o, const char *folder);
// Starts mscgym-runtime and checks that it has the backends.
enum msc_status msc_place__start(struct msc_runtime **out, const struct msc_place_options *o,
                                 const char *const backends[], size_t n);
// A request with the members that all measurements share.
struct msc_runtime_chains msc_place__job(const struct msc_place_options *o,
                                         struct msc_arena *arena);

#endif

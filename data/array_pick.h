// Which arrays of a file are read, where others may lie beside them. Internal to data/.
#ifndef MSC_DATA_ARRAY_PICK_H
#define MSC_DATA_ARRAY_PICK_H

#include "base/alloc.h"

#include <stdbool.h>

struct msc_array_list;

struct msc_array_pick {
    // Asked once for each name of the file, when `names` are there. Those that it does not want are not
    // looked at, so that types and forms which cannot be read do no harm.
    bool (*takes)(const struct msc_array_pick *pick, const char *name);
    const void *context;     // for `takes`
    struct msc_arena *arena; // takes the names
    const char **names;      // of all arrays in the file: filled in by whoever reads it
    size_t n_names;
};

// Takes every one.
bool msc_array_pick__all(const struct msc_array_pick *pick, const char *name);

#endif

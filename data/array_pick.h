// Selects which arrays of a file are read. Internal to data/.
#ifndef MSC_DATA_ARRAY_PICK_H
#define MSC_DATA_ARRAY_PICK_H

#include "base/alloc.h"

#include <stdbool.h>

struct msc_array_list;

struct msc_array_pick {
    // Called once for each name of the file, after `names` is filled in. Other arrays are
    // skipped, so their types and forms need not be readable.
    bool (*takes)(const struct msc_array_pick *pick, const char *name);
    const void *context;     // for `takes`
    struct msc_arena *arena; // owns the names
    const char **names;      // of all arrays in the file; filled in by the reader
    size_t n_names;
};

// Takes every array.
bool msc_array_pick__all(const struct msc_array_pick *pick, const char *name);

#endif

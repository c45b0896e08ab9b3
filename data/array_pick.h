// Selects the arrays of a file that are read. Internal to data/.
#ifndef MSC_DATA_ARRAY_PICK_H
#define MSC_DATA_ARRAY_PICK_H

#include "base/alloc.h"

#include <stdbool.h>

struct msc_array_list;

struct msc_array_pick {
    // Called once for each name in the file, after `names` is filled. If it returns false, the
    // array is skipped, so its type and form need not be readable.
    bool (*takes)(const struct msc_array_pick *pick, const char *name);
    const void *context;     // argument of `takes`
    struct msc_arena *arena; // owns the names
    const char **names;      // all names in the file; set by the reader
    size_t n_names;
};

// Takes every array.
bool msc_array_pick__all(const struct msc_array_pick *pick, const char *name);

#endif

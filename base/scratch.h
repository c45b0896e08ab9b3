// Temporary folders, in TMPDIR or /tmp, for models and samples that are passed to other programs.
//
//     struct msc_scratch scratch = {0};
//     MSC_TRY_OUT(msc_scratch_make(&scratch, &arena));
//     ... files in scratch.path ...
//     out: msc_scratch_remove(&scratch);
//
// A killed process leaves its folder. The owner therefore holds a lock on it, which ends with the
// owner in any case, and the next run of the program removes folders that nobody holds.
// mscgym-runtime creates its folders in the same way.
#ifndef MSC_BASE_SCRATCH_H
#define MSC_BASE_SCRATCH_H

#include "base/status.h"

struct msc_arena;

struct msc_scratch { // zero-initialise
    char *path;      // absolute, in the arena; NULL: none
    int lock;        // descriptor
};

enum msc_status msc_scratch_make(struct msc_scratch *out, struct msc_arena *arena);
// Removes the folder and its contents, as far as possible. Accepts one without a folder.
void msc_scratch_remove(struct msc_scratch *scratch);
// Removes this user's folders whose owners have ended. Safe while other runs create, hold and
// sweep.
void msc_scratch_sweep(void);

#endif

// Temporary folders, in TMPDIR or /tmp, for models and samples that are passed to other programs.
//
//     struct msc_scratch scratch = {0};
//     MSC_TRY_OUT(msc_scratch_make(&scratch, &arena));
//     ... files in scratch.path ...
//     out: msc_scratch_remove(&scratch);
//
// A killed process cannot remove its folder. The owner therefore holds a lock on the folder. The
// system releases the lock when the owner ends, however it ends. The next run of the program
// removes folders without a lock. mscgym-runtime creates its folders in the same way.
#ifndef MSC_BASE_SCRATCH_H
#define MSC_BASE_SCRATCH_H

#include "base/status.h"

struct msc_arena;

struct msc_scratch { // zero-initialise
    char *path;      // absolute path, in the arena; NULL: no folder
    int lock;        // descriptor of the lock
};

enum msc_status msc_scratch_make(struct msc_scratch *out, struct msc_arena *arena);
// Removes the folder and its contents, as far as possible. Does nothing if there is no folder.
void msc_scratch_remove(struct msc_scratch *scratch);
// Removes this user's folders whose owners have ended. Safe while other runs create, hold and sweep
// folders.
void msc_scratch_sweep(void);

#endif

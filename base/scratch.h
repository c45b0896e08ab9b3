// Folders for files that are needed for a while, where TMPDIR says or in /tmp: models and samples for
// other programs.
//
//     struct msc_scratch scratch = {0};
//     MSC_TRY_OUT(msc_scratch_make(&scratch, &arena));
//     ... files in scratch.path ...
//     out: msc_scratch_remove(&scratch);
//
// A process that is killed leaves its folder. So its owner holds a lock on it, which ends with the owner
// however that comes about, and the next run of the program sweeps away those that nobody holds.
// mscgym-runtime makes its folders in the same way.
#ifndef MSC_BASE_SCRATCH_H
#define MSC_BASE_SCRATCH_H

#include "base/status.h"

struct msc_arena;

struct msc_scratch { // zero-initialise
    char *path;      // absolute, in the arena; NULL: there is none
    int lock;        // descriptor
};

enum msc_status msc_scratch_make(struct msc_scratch *out, struct msc_arena *arena);
// With all that is in it, as far as that can be done. There may be none.
void msc_scratch_remove(struct msc_scratch *scratch);
// Removes this user's folders whose owners are gone; safe beside other runs that make, hold and sweep.
void msc_scratch_sweep(void);

#endif

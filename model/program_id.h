// Identifies the running program: its name with version, and the hash of its file. Models and
// records name the program that wrote them; workers must run the same file as the search.
#ifndef MSC_MODEL_PROGRAM_ID_H
#define MSC_MODEL_PROGRAM_ID_H

#include "base/alloc.h"

MSC_PUBLIC_BEGIN

// "mscgym 0.1.0"
const char *msc_program_name(void);
// Hash of the running program's file, in the arena.
enum msc_status msc_program_build(const char **out, struct msc_arena *arena);

MSC_PUBLIC_END

#endif

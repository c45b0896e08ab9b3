// The resources of this process: threads, memory, a cache folder.
#ifndef MSC_BASE_MACHINE_H
#define MSC_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

// Processors that this process may use, at least 1.
int msc_machine_n_threads(void);
// True if the processor can add products of signed and unsigned bytes directly to 32-bit sums. On
// x86 this needs AVX-512 VNNI or AVX-VNNI. Assumed true for other processors.
bool msc_machine_sums_bytes(void);
// Memory available without swapping, within the limits of this process's control groups. 0:
// unknown.
uint64_t msc_machine_free_bytes(void);
// Resident memory of this process, without pages of mapped files: the system frees these when other
// memory is needed. 0: unknown.
uint64_t msc_machine_resident_bytes(void);
// Upper bound of the memory that this process can hold: resident plus free memory. 0: unknown.
uint64_t msc_machine_limit_bytes(void);

// Gives memory that was freed back to the system, as far as the C library can.
void msc_machine_give_back_memory(void);

struct msc_arena;
// $XDG_CACHE_HOME/mscgym or ~/.cache/mscgym, which may not exist yet; NULL if neither is known.
char *msc_machine_cache_folder(struct msc_arena *arena);
// The folder of this program's executable, links resolved; NULL if unknown.
char *msc_machine_program_folder(struct msc_arena *arena);

#endif

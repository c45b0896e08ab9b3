// What the machine has for this process: threads, memory, a folder for what can be made again.
#ifndef MSC_BASE_MACHINE_H
#define MSC_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

// Processors that this process may use, at least 1.
int msc_machine_n_threads(void);
// Has it instructions that add products of signed and unsigned bytes to 32-bit sums (AVX-512 VNNI,
// AVX-VNNI), or adds them so without (processors other than x86)?
bool msc_machine_sums_bytes(void);
// Memory that can be had now without swapping, within the limits of the control groups that this
// process is in; 0: unknown.
uint64_t msc_machine_free_bytes(void);
// Memory that this process holds now; 0: unknown.
uint64_t msc_machine_resident_bytes(void);
// What it may come to hold: that, and what is free; 0: unknown.
uint64_t msc_machine_limit_bytes(void);

struct msc_arena;
// $XDG_CACHE_HOME/mscgym or ~/.cache/mscgym, which need not be there; NULL when neither is known.
char *msc_machine_cache_folder(struct msc_arena *arena);
// The folder that this program lies in, links resolved; NULL when it is not known.
char *msc_machine_program_folder(struct msc_arena *arena);

#endif

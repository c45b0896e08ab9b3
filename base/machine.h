// What the machine has: threads and memory for this process.
#ifndef MSC_BASE_MACHINE_H
#define MSC_BASE_MACHINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Processors that this process may use, at least 1.
int msc_machine_n_threads(void);
// Memory that can be had now without swapping, within the limits of the control group; 0: unknown.
uint64_t msc_machine_free_bytes(void);
// Memory that this process holds now; 0: unknown.
uint64_t msc_machine_resident_bytes(void);

#ifdef __cplusplus
}
#endif

#endif

// Internal to base/: shared by machine.c and its tests.
#ifndef MSC_BASE_MACHINE_INTERNAL_H
#define MSC_BASE_MACHINE_INTERNAL_H

#include <stdint.h>

// msc_machine_free_bytes for a machine whose /proc and /sys are under `root`; "" for this
// machine.
uint64_t msc_machine__free_bytes(const char *root);

#endif

// What machine.c and its tests share. Internal to base/.
#ifndef MSC_BASE_MACHINE_INTERNAL_H
#define MSC_BASE_MACHINE_INTERNAL_H

#include <stdint.h>

// msc_machine_free_bytes of the machine whose /proc and /sys lie in the folder `root`; "" is this one.
uint64_t msc_machine__free_bytes(const char *root);

#endif

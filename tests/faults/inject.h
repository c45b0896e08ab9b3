// Calls that fail at will (inject.c tells how).
#ifndef MSC_TESTS_FAULTS_INJECT_H
#define MSC_TESTS_FAULTS_INJECT_H

#include <stdbool.h>
#include <stddef.h>

enum kind {
    ALLOC,
    OUTSIDE, // allocations of libraries: oneDNN, libzip, libstdc++
    OPEN,
    STAT,
    READ,
    WRITE,
    SAY, // to people: a message that cannot be written cannot be told
    SYNC,
    CLOSE,
    NAME,
    SIZE,
    MAP,
    LOCK,
    PROCESS,
    DEVICE, // vulkan.c
    N_KINDS
};

// Counts a call; true: it fails, with errno as it is set.
bool is_refused(enum kind kind);

// heap.c, for libraries that take allocation functions of their own (cJSON's hooks).
void *__wrap_malloc(size_t n_bytes);

#endif

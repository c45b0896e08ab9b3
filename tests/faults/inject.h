// Calls that fail on request; inject.c explains how.
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
    SAY, // messages to the user: a failed one cannot be reported
    SYNC,
    CLOSE,
    NAME,
    SIZE,
    MAP,
    LOCK,
    PROCESS,
    DEVICE, // submissions to the Vulkan device (vulkan.c)
    N_KINDS
};

// Counts a call. Returns true if the call must fail; errno is then already set.
bool is_refused(enum kind kind);

// From heap.c, for libraries that take allocation functions (cJSON's hooks).
void *__wrap_malloc(size_t n_bytes);

#endif

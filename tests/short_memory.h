// Allocation functions that fail on request, for tests that make every allocation of a scenario
// fail once.
//
// In a test that is linked with short_memory.c and -Wl,--wrap=malloc,… (msc_short_memory in
// tests/CMakeLists.txt), the library's allocations call the functions of this file.
#ifndef MSC_TESTS_SHORT_MEMORY_H
#define MSC_TESTS_SHORT_MEMORY_H

#include "base/status.h"

#include <stdatomic.h>
#include <stddef.h>

// For libraries that accept allocation functions (cJSON's hooks).
void *__wrap_malloc(size_t n_bytes);
void __wrap_free(void *pointer);

// Which allocation returns NULL, counted from now; the n_failing - 1 allocations after it return
// NULL, too. INT_MAX: none does. The count is 0 or less once an allocation has failed.
extern atomic_int n_until_failure;
extern atomic_int n_failing; // 1 unless a test sets it
extern atomic_int n_calls;   // number of requested allocations, including failed ones
// Number of allocations that were not freed.
extern atomic_int n_live;

// Runs the scenario with its n-th allocation failing, for n = 1, 2, ..., until no allocation fails.
// At least `fewest_failures` runs must fail. Each failure must be MSC_E_NOMEM and leave nothing
// allocated.
void run_failing(enum msc_status (*scenario)(void), int fewest_failures);

#endif

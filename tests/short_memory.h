// Memory that runs short at will, for tests that make every allocation of a scenario fail once.
//
// A test that is linked with short_memory.c and -Wl,--wrap=malloc,… (msc_short_memory in
// tests/CMakeLists.txt) has the library's allocations come here.
#ifndef MSC_TESTS_SHORT_MEMORY_H
#define MSC_TESTS_SHORT_MEMORY_H

#include "base/status.h"

#include <stdatomic.h>
#include <stddef.h>

// For libraries that take allocation functions of their own (cJSON's hooks).
void *__wrap_malloc(size_t n_bytes);
void __wrap_free(void *pointer);

// The n-th allocation from now on returns NULL, and so do the next ones, n_failing in all; INT_MAX:
// none. n_until_failure is 0 or less once that happened.
extern atomic_int n_until_failure;
extern atomic_int n_failing; // 1 unless a test says otherwise
extern atomic_int n_calls;   // allocations that were asked for, failed ones too
// Allocations that were not freed.
extern atomic_int n_live;

// Runs the scenario with its n-th allocation failing, n = 1, 2, ..., until it gets through, after at
// least `fewest_failures`. Each failure must be MSC_E_NOMEM and leave nothing allocated.
void run_failing(enum msc_status (*scenario)(void), int fewest_failures);

#endif

// Memory that runs short at will, for tests that make every allocation of a scenario fail once.
//
// A test that is linked with short_memory.c and -Wl,--wrap=malloc,… (msc_short_memory in
// tests/CMakeLists.txt) has the library's allocations come here.
#ifndef MSC_TESTS_SHORT_MEMORY_H
#define MSC_TESTS_SHORT_MEMORY_H

#include <stddef.h>

// For libraries that take allocation functions of their own (cJSON's hooks).
void *__wrap_malloc(size_t n_bytes);
void __wrap_free(void *pointer);

// The n-th allocation from now on returns NULL; INT_MAX: none. It is 0 or less once that happened.
extern int n_until_failure;
// Allocations that were not freed.
extern int n_live;

#endif

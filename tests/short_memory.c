#include "tests/short_memory.h"

#include "tests/msc_test.h"

#include <limits.h>
#include <stdbool.h>

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t count, size_t element_bytes);
void *__real_realloc(void *pointer, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
void __real_free(void *pointer);
void *__wrap_calloc(size_t count, size_t element_bytes);
void *__wrap_realloc(void *pointer, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);

atomic_int n_until_failure = INT_MAX;
atomic_int n_failing = 1;
atomic_int n_calls;
atomic_int n_live;

static bool refused(void) {
    n_calls++;
    if (n_until_failure == INT_MAX) {
        return false;
    }
    int left = atomic_fetch_sub(&n_until_failure, 1) - 1;
    return left <= 0 && left > -n_failing;
}

static void *counted(void *pointer) {
    n_live += pointer != NULL;
    return pointer;
}

void *__wrap_malloc(size_t n_bytes) {
    return refused() ? NULL : counted(__real_malloc(n_bytes));
}

void *__wrap_calloc(size_t count, size_t element_bytes) {
    return refused() ? NULL : counted(__real_calloc(count, element_bytes));
}

void *__wrap_realloc(void *pointer, size_t n_bytes) {
    if (refused()) {
        return NULL;
    }
    void *moved = __real_realloc(pointer, n_bytes);
    return pointer ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes) {
    return refused() ? NULL : counted(__real_aligned_alloc(alignment, n_bytes));
}

void __wrap_free(void *pointer) {
    n_live -= pointer != NULL;
    __real_free(pointer);
}

void run_failing(enum msc_status (*scenario)(void), int fewest_failures) {
    for (int n = 1; n < 10000; n++) {
        int before = n_live;
        n_until_failure = n;
        enum msc_status status = scenario();
        bool failed = n_until_failure <= 0;
        n_until_failure = INT_MAX;
        assert_int_equal(n_live, before);
        if (!failed) {
            assert_ok(status);
            assert_true(n > fewest_failures); // at least `fewest_failures` allocations failed
            return;
        }
        assert_int_equal(status, MSC_E_NOMEM);
    }
    fail_msg("the scenario never got through");
}

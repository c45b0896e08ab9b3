// Included by every test: cmocka, the headers that must come before cmocka's own, and checks that
// print the error message if a call fails.
//
//     int main(int argc, char **argv) {
//         const struct CMUnitTest tests[] = {cmocka_unit_test(test_base_rng__pcg32)};
//         msc_test_select(argc, argv);
//         return cmocka_run_group_tests(tests, NULL, NULL);
//     }
#ifndef MSC_TESTS_MSC_TEST_H
#define MSC_TESTS_MSC_TEST_H

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

// If there is an argument, the program runs only the cases whose name matches it ("*" and "?" are
// wildcards).
static inline void msc_test_select(int argc, char **argv) {
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
}

static inline void msc_test_ok(enum msc_status status, const char *file, int line) {
    if (status != MSC_OK) {
        print_error("%s: %s\n", msc_status_name(status), msc_status_message());
        _fail(file, line);
    }
}

static inline void msc_test_message(const char *part, const char *file, int line) {
    if (!strstr(msc_status_message(), part)) {
        print_error("message \"%s\" lacks \"%s\"\n", msc_status_message(), part);
        _fail(file, line);
    }
}

#define assert_ok(call) msc_test_ok((call), __FILE__, __LINE__)
// Checks that the last error message contains `part`.
#define assert_message(part) msc_test_message((part), __FILE__, __LINE__)

#endif

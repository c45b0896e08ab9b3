// Limits on the CPU's instruction set. A limit cannot be lifted again, so each is tried in its
// own process.
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/engine/backends.h"
#include "tests/msc_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum answer { YES, NO, LACKING, WITHOUT_LEVELS };

static const char *const levels[] = {"sse41",
                                     "avx",
                                     "avx2",
                                     "avx2_vnni",
                                     "avx512_core",
                                     "avx512_core_vnni",
                                     "avx512_core_bf16",
                                     "avx512_core_amx"};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static enum answer ask(enum answer (*check)(const char *level), const char *level) {
    int how = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        _exit((int)check(level));
    }
    assert_true(pid > 0 && waitpid(pid, &how, 0) == pid && WIFEXITED(how));
    return (enum answer)WEXITSTATUS(how);
}

static void skip_without_levels(enum answer answer) {
    if (answer == WITHOUT_LEVELS) {
        print_message("skipped: this build has no levels\n");
        skip();
    }
}

static enum answer set_level(const char *level) {
    switch (msc_backend_set_isa(level)) {
    case MSC_OK:
        return YES;
    case MSC_E_DEVICE:
        return strstr(msc_status_message(), "lacks it") ? LACKING : NO;
    case MSC_E_UNSUPPORTED:
        return WITHOUT_LEVELS;
    default:
        return NO;
    }
}

// Checks that the level is the highest available one under the limit.
static bool is_the_highest(const char *level) {
    const char *last = NULL, *next;
    for (size_t i = 0; (next = msc_backend_isa(i)) != NULL; i++) {
        last = next;
    }
    return last && strcmp(last, level) == 0;
}

// True if the product is for this instruction set; NULL: there is no product.
static bool is_product(const struct msc_simd_product *product, const char *isa) {
    return isa ? product && strcmp(product->isa, isa) == 0 : !product;
}

// The numerics id names the level. A matrix product of our own is used only if every machine of the
// level can run it.
static enum answer computes_by(const char *level) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b = NULL;
    char expected[64];
    enum answer answer = set_level(level);
    if (answer != YES) {
        return answer;
    }
    snprintf(expected, sizeof expected, " %s int8-", level);
    if (msc_backend_open(&b, "cpu", &o) != MSC_OK) {
        return NO;
    }
    bool has_vnni = strncmp(level, "avx512_core_", strlen("avx512_core_")) == 0;
    bool is_avx2 = strcmp(level, "avx2") == 0, is_avx2_vnni = strcmp(level, "avx2_vnni") == 0;
    bool is_avx512 = strcmp(level, "avx512_core") == 0;
    const char *floats = has_vnni ? "avx512_vnni" : is_avx2 || is_avx2_vnni ? "avx2" : NULL;
    const char *bytes = has_vnni               ? "avx512_vnni"
                        : is_avx2_vnni         ? "avx2_vnni"
                        : is_avx2 || is_avx512 ? "avx2"
                                               : NULL;
    bool is_good = strstr(b->def->numerics(b), expected) && is_the_highest(level) &&
                   is_product(msc_cpu_from(b)->floats, floats) &&
                   is_product(msc_cpu_from(b)->bytes, bytes);
    msc_backend_close(b);
    // Setting the same level again is accepted.
    return is_good && set_level(level) == YES ? YES : NO;
}

static void test_kernels_cpu_isa__levels(void **state) {
    int n_here = 0;
    (void)state;
    for (int i = 0; i < N_LEVELS; i++) {
        enum answer answer = ask(computes_by, levels[i]);
        skip_without_levels(answer);
        assert_int_not_equal(answer, NO);
        n_here += answer == YES;
    }
    assert_true(n_here > 0);
}

static enum answer is_unknown(const char *level) {
    enum msc_status status = msc_backend_set_isa(level);
    return status == MSC_E_UNSUPPORTED ? WITHOUT_LEVELS
           : status == MSC_E_INVALID && strstr(msc_status_message(), "expected one of sse41, avx, ")
               ? YES
               : NO;
}

static void test_kernels_cpu_isa__unknown(void **state) {
    static const char *const texts[] = {"avx9", "AVX2", "", "avx512_mic", "isa-unknown"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum answer answer = ask(is_unknown, texts[i]);
        skip_without_levels(answer);
        assert_int_equal(answer, YES);
    }
}

static enum answer comes_too_late(const char *level) {
    if (!msc_backend_isa(0)) {
        return WITHOUT_LEVELS;
    }
    return is_the_highest(level) || (msc_backend_set_isa(level) == MSC_E_STATE &&
                                     strstr(msc_status_message(), "already"))
               ? YES
               : NO;
}

static void test_kernels_cpu_isa__too_late(void **state) {
    (void)state;
    for (int i = 0; i < N_LEVELS; i++) {
        enum answer answer = ask(comes_too_late, levels[i]);
        skip_without_levels(answer);
        assert_int_equal(answer, YES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_isa__levels),
        cmocka_unit_test(test_kernels_cpu_isa__unknown),
        cmocka_unit_test(test_kernels_cpu_isa__too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

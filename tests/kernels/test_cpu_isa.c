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

// A level, and the products of our own that it uses; NULL: none.
struct level {
    const char *name, *bytes, *floats;
};

#ifdef __aarch64__
static const struct level levels[] = {{"neon", "neon", "neon"},
                                      {"neon_dotprod", "neon_dotprod", "neon"},
                                      {"neon_i8mm", "neon_i8mm", "neon"}};
static const char expected_list[] = "expected one of neon, neon_dotprod, neon_i8mm";
enum { IS_NAMED = false }; // levels do not change bits
#else
static const struct level levels[] = {{"sse41", NULL, NULL},
                                      {"avx", NULL, NULL},
                                      {"avx2", "avx2", "avx2"},
                                      {"avx2_vnni", "avx2_vnni", "avx2"},
                                      {"avx512_core", "avx2", NULL},
                                      {"avx512_core_vnni", "avx512_vnni", "avx512_vnni"},
                                      {"avx512_core_bf16", "avx512_vnni", "avx512_vnni"},
                                      {"avx512_core_amx", "avx512_vnni", "avx512_vnni"}};
static const char expected_list[] = "expected one of sse41, avx, ";
enum { IS_NAMED = true };
#endif
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

static const struct level *level_of(const char *name) {
    const struct level *level = levels;
    while (strcmp(level->name, name) != 0) {
        level++;
    }
    return level;
}

// The numerics id names the level if levels give different bits. A matrix product of our own is
// used only if every machine of the level can run it.
static enum answer computes_by(const char *level) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b = NULL;
    char expected[64];
    enum answer answer = set_level(level);
    if (answer != YES) {
        return answer;
    }
    snprintf(expected, sizeof expected, "%s int8-", IS_NAMED ? level : "");
    if (msc_backend_open(&b, "cpu", &o) != MSC_OK) {
        return NO;
    }
    bool is_good = strstr(b->def->numerics(b), expected) && is_the_highest(level) &&
                   is_product(msc_cpu_from(b)->floats, level_of(level)->floats) &&
                   is_product(msc_cpu_from(b)->bytes, level_of(level)->bytes);
    msc_backend_close(b);
    // Setting the same level again is accepted.
    return is_good && set_level(level) == YES ? YES : NO;
}

static void test_kernels_cpu_isa__levels(void **state) {
    int n_here = 0;
    (void)state;
    for (int i = 0; i < N_LEVELS; i++) {
        enum answer answer = ask(computes_by, levels[i].name);
        skip_without_levels(answer);
        assert_int_not_equal(answer, NO);
        n_here += answer == YES;
    }
    assert_true(n_here > 0);
}

static enum answer is_unknown(const char *level) {
    enum msc_status status = msc_backend_set_isa(level);
    return status == MSC_E_UNSUPPORTED                                              ? WITHOUT_LEVELS
           : status == MSC_E_INVALID && strstr(msc_status_message(), expected_list) ? YES
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
        enum answer answer = ask(comes_too_late, levels[i].name);
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

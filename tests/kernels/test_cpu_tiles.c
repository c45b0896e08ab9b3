// Hardware tiles must work whatever the operating system does to a process: it switches threads,
// sends signals, makes child processes or refuses permission. Without tiles all tests are skipped;
// tests/long/check_amx.py runs them on an emulated machine.
//
// test_cpu_indirect.c checks the sums themselves.
#include "base/rng.h"
#include "kernels/cpu/simd_indirect.h"

#include "tests/msc_test.h"

#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WINDOWS = 70, MOST_CHANNELS = 70, MOST_DEPTH = 300, N_THREADS = 4, N_SIGNALS = 200 };
// Most of the time is spent in products, so that signals and thread switches interrupt them.
enum { ROUNDS = 6, REPEATS = 40 };

static const struct msc_simd_product *tiles_of_machine(void) {
    const struct msc_simd *table = msc_simd_of_machine(0);
    return table->tiles && msc_simd_get_tiles() ? table->tiles : NULL;
}

struct operands {
    uint8_t in[MOST_WINDOWS * MOST_DEPTH + MSC_SIMD_GROUP];
    int8_t weights[MOST_CHANNELS * MOST_DEPTH];
    int64_t at[MOST_WINDOWS], n, channels, depth;
};

static void draw(struct operands *o, struct msc_rng *rng) {
    o->n = 1 + msc_rng_below(rng, MOST_WINDOWS);
    o->channels = 1 + msc_rng_below(rng, MOST_CHANNELS);
    o->depth = 1 + msc_rng_below(rng, MOST_DEPTH);
    for (size_t i = 0; i < sizeof(o->in); i++) {
        o->in[i] = (uint8_t)msc_rng_below(rng, 256);
    }
    for (size_t i = 0; i < sizeof(o->weights); i++) {
        o->weights[i] = (int8_t)((int)msc_rng_below(rng, 256) - 128);
    }
    for (int64_t i = 0; i < o->n; i++) {
        o->at[i] = i * o->depth;
    }
}

enum { MOST_SUMS = MOST_WINDOWS * MOST_CHANNELS };

// Multiplies `repeats` times. If `expected` is given, all sums must equal it.
static bool multiply(int32_t sums[], const struct msc_simd_product *p, const struct operands *o,
                     const int32_t expected[], int repeats) {
    size_t packed_bytes = p->packed_bytes(o->channels, 1, o->depth);
    size_t n_bytes = sizeof(sums[0]) * (size_t)(o->n * o->channels);
    void *packed = aligned_alloc(64, (packed_bytes + 63) / 64 * 64);
    void *scratch = aligned_alloc(64, (p->scratch_bytes(1, o->depth) + 64) / 64 * 64);
    bool is_good = packed && scratch;
    if (is_good) {
        p->pack(packed, o->weights, o->channels, 1, o->depth);
    }
    for (int i = 0; is_good && i < repeats; i++) {
        memset(sums, 0, n_bytes);
        p->multiply(sums, &(struct msc_simd_indirect){.in = o->in,
                                                      .at = o->at,
                                                      .n = o->n,
                                                      .n_runs = 1,
                                                      .runs = (const int64_t[]){0},
                                                      .depth = o->depth,
                                                      .weights = packed,
                                                      .channels = o->channels,
                                                      .scratch = scratch});
        is_good = !expected || memcmp(sums, expected, n_bytes) == 0;
    }
    free(packed);
    free(scratch);
    return is_good;
}

// Runs rounds with operands drawn from `seed`. The sums of tiles must equal the sums of vectors.
static bool agree(uint64_t seed) {
    const struct msc_simd_product *tiles = tiles_of_machine();
    struct operands *o = malloc(sizeof(*o));
    int32_t *sums = malloc(sizeof(sums[0]) * MOST_SUMS);
    int32_t *expected = malloc(sizeof(sums[0]) * MOST_SUMS);
    bool is_good = tiles && o && sums && expected;
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 0);
    for (int round = 0; is_good && round < ROUNDS; round++) {
        draw(o, &rng);
        is_good = multiply(expected, msc_simd_of_machine(0)->bytes, o, NULL, 1) &&
                  multiply(sums, tiles, o, expected, REPEATS);
    }
    free(o);
    free(sums);
    free(expected);
    return is_good;
}

static void skip_without_tiles(void) {
    if (!tiles_of_machine()) {
        print_message("skipped: this machine grants no tiles\n");
        skip();
    }
}

// Runs the function in a child process and returns its exit code.
static int run_child(int (*run)(void)) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(run());
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

// ---- Permission -------------------------------------------------------------------------------

// Linux refuses tiles if a signal frame that contains them would not fit the alternate signal
// stack.
static int ask_on_small_stack(void) {
    static char memory[2048]; // the smallest size that sigaltstack accepts
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
    return sigaltstack(&stack, NULL) == 0 && tiles_of_machine() != NULL;
}

// This test must run first: a process keeps a permission once it is granted.
static void test_kernels_cpu_tiles__refused(void **state) {
    (void)state;
    assert_int_equal(run_child(ask_on_small_stack), 0);
}

static int agree_in_child(void) {
    return agree(9) ? 0 : 1;
}

static void test_kernels_cpu_tiles__child(void **state) {
    (void)state;
    skip_without_tiles();
    assert_true(agree(8));
    assert_int_equal(run_child(agree_in_child), 0);
    assert_true(agree(10));
}

// ---- State ------------------------------------------------------------------------------------

// Bits 17 and 18 of XINUSE are set while tiles have shapes or contents. Meanwhile, thread switches
// save the tiles.
__attribute__((target("xsave"))) static bool is_in_use(void) {
    return (_xgetbv(1) >> 17 & 3) != 0;
}

static void test_kernels_cpu_tiles__released(void **state) {
    (void)state;
    skip_without_tiles();
    assert_true(agree(7));
    assert_false(is_in_use());
}

// ---- Threads and signals ----------------------------------------------------------------------

struct worker {
    pthread_t thread;
    uint64_t seed;
    bool is_good;
};

static atomic_int n_signals;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

static void *run_worker(void *worker) {
    struct worker *w = worker;
    do {
        w->is_good = agree(w->seed);
    } while (w->is_good && atomic_load(&n_signals) < N_SIGNALS);
    return NULL;
}

static void set_timer(int microseconds) {
    const struct itimerval timer = {.it_interval = {0, microseconds},
                                    .it_value = {0, microseconds}};
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

// Several threads of a process use tiles at the same time. Each thread has tiles of its own.
static void test_kernels_cpu_tiles__threads(void **state) {
    (void)state;
    skip_without_tiles();
    struct worker workers[N_THREADS + 1]; // the last one is the main thread
    const struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    set_timer(500);
    for (int i = 0; i <= N_THREADS; i++) {
        workers[i].seed = 20 + (uint64_t)i;
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    run_worker(&workers[N_THREADS]);
    bool is_good = workers[N_THREADS].is_good;
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        is_good = is_good && workers[i].is_good;
    }
    set_timer(0);
    assert_true(is_good);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_tiles__refused),
        cmocka_unit_test(test_kernels_cpu_tiles__child),
        cmocka_unit_test(test_kernels_cpu_tiles__released),
        cmocka_unit_test(test_kernels_cpu_tiles__threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

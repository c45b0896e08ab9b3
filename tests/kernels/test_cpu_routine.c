// oneDNN routines created or packed by several threads at once must equal those made one after
// another.
#include "../msc_test.h"
#include "base/alloc.h"
#include "kernels/cpu/routine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// The first convolution of a network, over bytes: one channel, 3 x 3 taps, padding 1.
enum { BATCH = 4, SIDE = 8, CHANNELS = 16, TAPS = 9, ROUNDS = 8000 };
#define N_IN (BATCH * SIDE * SIDE)
#define N_OUT (N_IN * CHANNELS)

struct both {
    struct msc_routine_engine *engine;
    atomic_bool is_done;
};

static struct msc_gemm_desc describe(int64_t in_channels, int64_t out_channels, bool is_int8) {
    struct msc_gemm_desc d = {.kind = MSC_GEMM_CONV,
                              .is_int8 = is_int8,
                              .n_spatial = 2,
                              .batch = BATCH,
                              .groups = 1,
                              .in_channels = in_channels,
                              .out_channels = out_channels};
    for (int i = 0; i < 2; i++) {
        d.in[i] = d.out[i] = SIDE;
        d.kernel[i] = 3;
        d.strides[i] = d.dilation[i] = d.pad_begin[i] = d.pad_end[i] = 1;
    }
    return d;
}

static uint8_t input_at(int image, int y, int x) {
    bool is_inside = y >= 0 && y < SIDE && x >= 0 && x < SIDE;
    return is_inside ? (uint8_t)((image * SIDE * SIDE + y * SIDE + x) * 37 % 251) : 0;
}

static int8_t weight_at(int channel, int tap) {
    return (int8_t)((channel * TAPS + tap) * 29 % 63 - 31);
}

// Output i of the convolution, computed by definition.
static int32_t sum_at(int i) {
    int channel = i % CHANNELS, x = i / CHANNELS % SIDE, y = i / CHANNELS / SIDE % SIDE;
    int image = i / CHANNELS / SIDE / SIDE;
    int32_t sum = 0;
    for (int tap = 0; tap < TAPS; tap++) {
        sum += input_at(image, y + tap / 3 - 1, x + tap % 3 - 1) * weight_at(channel, tap);
    }
    return sum;
}

// The second thread. cmocka's checks work only on the main thread.
static void *make_floats(void *payload) {
    struct both *b = payload;
    struct msc_gemm_desc desc = describe(16, 32, false);
    enum msc_status status = MSC_OK;
    while (status == MSC_OK && !atomic_load(&b->is_done)) {
        struct msc_routine *d = NULL;
        status = msc_routine_create(&d, b->engine, &desc);
        msc_routine_destroy(d);
    }
    return status == MSC_OK ? b : NULL;
}

// Returns the number of wrong sums of a new routine.
static int count_wrong(struct msc_routine_engine *engine, const uint8_t in[],
                       const int8_t weights[], int32_t out[], const int32_t expected[]) {
    struct msc_routine *d;
    struct msc_routine_weights *packed;
    struct msc_gemm_desc desc = describe(1, CHANNELS, true);
    int n_wrong = 0;
    assert_ok(msc_routine_create(&d, engine, &desc));
    assert_ok(msc_routine_pack(&packed, d, weights));
    void *scratch = msc_alloc_aligned(msc_routine_scratch_bytes(d) + 1);
    assert_non_null(scratch);
    struct msc_routine_call call = {.a = in, .weights = packed, .out = out, .scratch = scratch};
    assert_ok(msc_routine_run(d, &call, 0));
    for (int i = 0; i < N_OUT; i++) {
        n_wrong += out[i] != expected[i];
    }
    msc_free_aligned(scratch);
    msc_routine_weights_destroy(packed);
    msc_routine_destroy(d);
    return n_wrong;
}

static void test_kernels_cpu_routine__made_at_once(void **state) {
    (void)state;
    struct both b = {.engine = NULL};
    int8_t weights[CHANNELS * TAPS];
    uint8_t *in = msc_alloc_aligned(N_IN);
    int32_t *out = msc_alloc_aligned(N_OUT * sizeof(int32_t));
    int32_t *expected = msc_alloc_aligned(N_OUT * sizeof(int32_t));
    pthread_t thread;
    void *answer = NULL;
    int n_wrong = 0;
    assert_true(in && out && expected);
    assert_ok(msc_routine_open(&b.engine, 1, 1));
    bool has_int8 = msc_routine_isa().has_int8;
    for (int i = 0; i < CHANNELS * TAPS; i++) {
        weights[i] = weight_at(i / TAPS, i % TAPS);
    }
    for (int i = 0; i < N_IN; i++) {
        in[i] = input_at(i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE);
    }
    for (int i = 0; i < N_OUT; i++) {
        expected[i] = sum_at(i);
    }
    if (has_int8) {
        assert_int_equal(pthread_create(&thread, NULL, make_floats, &b), 0);
        for (int i = 0; i < ROUNDS && n_wrong == 0; i++) {
            n_wrong = count_wrong(b.engine, in, weights, out, expected);
        }
        atomic_store(&b.is_done, true);
        assert_int_equal(pthread_join(thread, &answer), 0);
        assert_non_null(answer);
    }
    msc_routine_close(b.engine);
    msc_free_aligned(in);
    msc_free_aligned(out);
    msc_free_aligned(expected);
    if (!has_int8) {
        print_message("skipped: no integer products here\n");
        skip();
    }
    assert_int_equal(n_wrong, 0);
}

// ---- Weights packed at once -------------------------------------------------------------------

enum { PACKERS = 2, PROCESSES = 1000 };

struct packing {
    const struct msc_routine *routine;
    const int8_t *weights;
    atomic_int n_ready;
};

static void *pack(void *payload) {
    struct packing *p = payload;
    struct msc_routine_weights *packed = NULL;
    atomic_fetch_add(&p->n_ready, 1);
    while (atomic_load(&p->n_ready) < PACKERS) {
        continue;
    }
    enum msc_status status = msc_routine_pack(&packed, p->routine, p->weights);
    msc_routine_weights_destroy(packed);
    return status == MSC_OK ? p : NULL;
}

// Runs in a process of its own, because only the first packing in a process can go wrong.
// Sanitizers check the process when it exits.
static int pack_at_once(const struct msc_routine *routine, const int8_t weights[]) {
    struct packing p = {.routine = routine, .weights = weights};
    pthread_t threads[PACKERS];
    int n_failed = 0;
    for (int i = 0; i < PACKERS; i++) {
        if (pthread_create(&threads[i], NULL, pack, &p) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < PACKERS; i++) {
        void *answer = NULL;
        n_failed += pthread_join(threads[i], &answer) != 0 || !answer;
    }
    return n_failed > 0;
}

static void test_kernels_cpu_routine__packed_at_once(void **state) {
    (void)state;
    struct msc_routine_engine *engine;
    struct msc_routine *d = NULL;
    struct msc_gemm_desc desc = describe(1, CHANNELS, true);
    int8_t weights[CHANNELS * TAPS];
    int n_failed = 0;
    assert_ok(msc_routine_open(&engine, 1, 1));
    bool has_int8 = msc_routine_isa().has_int8;
    for (int i = 0; i < CHANNELS * TAPS; i++) {
        weights[i] = weight_at(i / TAPS, i % TAPS);
    }
    if (has_int8) {
        assert_ok(msc_routine_create(&d, engine, &desc));
    }
    for (int i = 0; has_int8 && i < PROCESSES; i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            exit(pack_at_once(d, weights));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        n_failed += status != 0;
    }
    msc_routine_destroy(d);
    msc_routine_close(engine);
    if (!has_int8) {
        print_message("skipped: no integer products here\n");
        skip();
    }
    assert_int_equal(n_failed, 0);
}

int main(int argc, char **argv) {
    // With its cache, oneDNN would create each routine only once.
    setenv("DNNL_PRIMITIVE_CACHE_CAPACITY", "0", 1);
    // The packing test comes first, so that its routines are new in each of its child processes.
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_cpu_routine__packed_at_once),
                                       cmocka_unit_test(test_kernels_cpu_routine__made_at_once)};
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

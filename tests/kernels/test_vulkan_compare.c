// Comparisons of tensors with references, and ranges of tensors, on the device: the same bits as on
// the host. Skipped if there is no Vulkan device.
#include "kernels/vulkan/vk_kernels.h"
#include "kernels/vulkan/vulkan.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/kernels/vulkan_kept.h"

#include <math.h>
#include <stdlib.h>

enum { N_ITEMS = 130, MOST = 4096 };

struct pair {
    float y[MOST], z[MOST];
    int64_t n_samples, n;
    double squares[MOST];
};

// A backend whose memory the host does not see, as that of a discrete GPU.
static struct msc_backend *open_hidden(void) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    setenv("MSC_VULKAN_STAGE", "1", 1);
    assert_ok(msc_backend_open(&b, "vulkan", &o));
    unsetenv("MSC_VULKAN_STAGE");
    return b;
}

static void fill(struct pair *p, int index) {
    static const int64_t forms[][2] = {{1, 1},  {1, 7},   {3, 8},    {2, 9},    {33, 31}, {33, 31},
                                       {1, 32}, {65, 33}, {1, 4096}, {4, 1001}, {9, 63},  {9, 64}};
    const size_t n_forms = sizeof(forms) / sizeof(forms[0]);
    struct msc_rng rng;
    msc_rng_seed(&rng, (uint64_t)index, 7);
    p->n_samples = forms[(size_t)index % n_forms][0];
    p->n = forms[(size_t)index % n_forms][1];
    assert_true(p->n_samples * p->n <= MOST);
    for (int64_t i = 0; i < p->n_samples * p->n; i++) {
        p->y[i] = (float)((msc_rng_double(&rng) - 0.5) * pow(2.0, (double)(i % 40) - 20));
        p->z[i] = p->y[i] + (float)(msc_rng_double(&rng) - 0.5);
    }
}

static double expected_square(const struct pair *p, int64_t sample) {
    return msc_squares_sum(p->y + sample * p->n, p->z + sample * p->n, p->n);
}

static struct msc_view view_of(enum msc_dtype dtype, int64_t n) {
    return (struct msc_view){.dtype = dtype, .n_dims = 1, .dims = {n}};
}

static void *upload(struct msc_backend *b, const void *x, size_t n_bytes) {
    void *memory = b->def->allocate(b, n_bytes);
    assert_non_null(memory);
    assert_ok(b->def->upload(b, memory, x, n_bytes));
    return memory;
}

static void compare(struct msc_backend *b, struct pair pairs[], size_t n) {
    struct msc_comparison items[N_ITEMS];
    void *y[N_ITEMS];
    for (size_t i = 0; i < n; i++) {
        struct pair *p = &pairs[i];
        struct msc_view z = view_of(MSC_DTYPE_F32, p->n_samples * p->n);
        y[i] = upload(b, p->y, msc_view_n_bytes(&z));
        z.data = upload(b, p->z, msc_view_n_bytes(&z));
        items[i] = (struct msc_comparison){y[i], z, p->n_samples, p->n, p->squares};
        assert_true(b->def->compares(b, &z, p->n));
    }
    assert_ok(b->def->compare(b, items, n));
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = msc_view_n_bytes(&items[i].z);
        b->def->release_memory(b, y[i], n_bytes);
        b->def->release_memory(b, items[i].z.data, n_bytes);
    }
}

static bool compares(struct msc_backend *b, int64_t n) {
    const struct msc_view z = view_of(MSC_DTYPE_F32, n);
    return b->def->compares(b, &z, n);
}

// More items than a dispatch takes, of several forms.
static void test_kernels_vulkan_compare__bits(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_hidden();
    struct pair *pairs = msc_alloc_zero(N_ITEMS, sizeof(pairs[0]));
    uint64_t n_bytes = 0;
    assert_non_null(pairs);
    for (int i = 0; i < N_ITEMS; i++) {
        fill(&pairs[i], i);
        n_bytes += (uint64_t)pairs[i].n_samples * sizeof(double);
    }
    assert_true(compares(b, 1)); // tests the device
    struct msc_backend_transfers before = msc_backend_get_transfers(b);
    compare(b, pairs, N_ITEMS);
    struct msc_backend_transfers after = msc_backend_get_transfers(b);
    assert_int_equal(after.to_host_bytes - before.to_host_bytes, n_bytes);
    assert_int_equal(after.n_waits - before.n_waits, 1);
    for (int i = 0; i < N_ITEMS; i++) {
        for (int64_t s = 0; s < pairs[i].n_samples; s++) {
            assert_true(pairs[i].squares[s] == expected_square(&pairs[i], s));
        }
    }
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_free(pairs);
    msc_backend_close(b);
}

static void test_kernels_vulkan_compare__special_values(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_hidden();
    struct pair *p = msc_alloc_zero(1, sizeof(*p));
    assert_non_null(p);
    p->n_samples = 5;
    p->n = 100;
    p->z[50] = 1e-40f; // a denormal
    p->z[150] = INFINITY;
    p->z[250] = NAN;
    p->z[350] = 3e38f; // its square is not a float
    compare(b, p, 1);
    for (int64_t s = 0; s < p->n_samples; s++) {
        double expected = expected_square(p, s);
        assert_true(p->squares[s] == expected || (isnan(expected) && isnan(p->squares[s])));
    }
    assert_true(p->squares[0] > 0 && isinf(p->squares[1]) && isnan(p->squares[2]));
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_free(p);
    msc_backend_close(b);
}

// Outputs that are stored as integers.
static void test_kernels_vulkan_compare__integers(void **state) {
    enum { N_SAMPLES = 3, N = 37, ALL = N_SAMPLES * N };
    const float scale = 0.037f;
    const int32_t zero = 3;
    struct msc_quant q = {.bits = 8, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero};
    float y[ALL], z[ALL];
    int8_t integers[ALL];
    double squares[N_SAMPLES];
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_hidden();
    q.low = -128;
    q.high = 127;
    msc_quant_seal(&q);
    for (int i = 0; i < ALL; i++) {
        integers[i] = (int8_t)(i * 7 % 256 - 128);
        y[i] = (float)(i % 13) * 0.11f;
        z[i] = (float)(integers[i] - zero) * scale;
    }
    struct msc_view view = view_of(MSC_DTYPE_I8, ALL);
    void *memory = upload(b, y, sizeof(y));
    view.quant = &q;
    view.data = upload(b, integers, sizeof(integers));
    assert_true(b->def->compares(b, &view, N));
    const struct msc_comparison item = {memory, view, N_SAMPLES, N, squares};
    assert_ok(b->def->compare(b, &item, 1));
    for (int s = 0; s < N_SAMPLES; s++) {
        assert_true(squares[s] == msc_squares_sum(y + s * N, z + s * N, N));
    }
    b->def->release_memory(b, memory, sizeof(y));
    b->def->release_memory(b, view.data, sizeof(integers));
    // The device has no kernel for one scale per channel, and none for other integers.
    const float scales[2] = {1, 2};
    const int32_t zeros[2] = {0, 0};
    q.axis = 0;
    q.n = 2;
    q.scales = scales;
    q.zero_points = zeros;
    msc_quant_seal(&q);
    assert_false(b->def->compares(b, &view, N));
    view.quant = NULL;
    assert_false(b->def->compares(b, &view, N));
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

// The host compares if it can read the device's memory, if samples are too large for a loop of the
// device, or if the device lacks doubles or rounds them differently.
static void test_kernels_vulkan_compare__refused(void **state) {
    (void)state;
    skip_without_device();
    assert_false(compares(kept, 1000));
    struct msc_backend *b = open_hidden();
    struct msc_vk_backend *v = msc_vk_from(b);
    int64_t most = 8 * (int64_t)v->vk->tuning.turns;
    assert_true(compares(b, most));
    assert_false(compares(b, most + 1));
    assert_false(compares(b, 0));
    v->squares = MSC_VK_SQUARES_INEXACT;
    assert_false(compares(b, 1000));
    v->squares = MSC_VK_SQUARES_UNKNOWN;
    v->vk->has_float64 = false;
    assert_false(compares(b, 1000));
    v->vk->has_float64 = true;
    assert_true(compares(b, 1000));
    msc_backend_close(b);
}

// ---- Ranges -----------------------------------------------------------------------------------

static void check_range(struct msc_backend *b, const float x[], int64_t n) {
    float expected[2] = {0, 0}, found[2];
    struct msc_view in = view_of(MSC_DTYPE_F32, n);
    in.data = upload(b, x, msc_view_n_bytes(&in));
    for (int64_t i = 0; i < n; i++) {
        expected[0] = x[i] < expected[0] ? x[i] : expected[0];
        expected[1] = x[i] > expected[1] ? x[i] : expected[1];
    }
    const struct msc_backend_transfers before = msc_backend_get_transfers(b);
    assert_ok(b->def->range(b, &in, &found[0], &found[1]));
    const struct msc_backend_transfers after = msc_backend_get_transfers(b);
    assert_memory_equal(found, expected, sizeof(found));
    assert_int_equal(after.to_host_bytes - before.to_host_bytes, sizeof(found));
    assert_int_equal(after.to_device_bytes, before.to_device_bytes);
    b->def->release_memory(b, in.data, msc_view_n_bytes(&in));
}

static void test_kernels_vulkan_compare__range(void **state) {
    enum { LARGE = 100003 };
    static const float few[][3] = {{3, 1, 2},         {-3, -1, -2},      {0, -0.0f, 0},
                                   {NAN, 1, -2},      {NAN, NAN, NAN},   {1e-40f, -1e-40f, 0},
                                   {INFINITY, 1, -1}, {-INFINITY, 1, 2}, {5, -7, 1e30f}};
    (void)state;
    skip_without_device();
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        check_range(kept, few[i], 3);
        check_range(kept, few[i], 1);
    }
    float *x = msc_alloc(LARGE * sizeof(x[0]));
    struct msc_rng rng;
    assert_non_null(x);
    msc_rng_seed(&rng, 5, 5);
    for (int i = 0; i < LARGE; i++) {
        x[i] = (float)(msc_rng_double(&rng) - 0.3);
    }
    x[LARGE - 1] = 7;
    check_range(kept, x, LARGE);
    struct msc_view empty = view_of(MSC_DTYPE_F32, 0);
    float ends[2];
    assert_int_equal(kept->def->range(kept, &empty, &ends[0], &ends[1]), MSC_E_UNSUPPORTED);
    assert_int_equal(msc_vulkan_n_messages(kept), 0);
    msc_free(x);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_compare__bits),
        cmocka_unit_test(test_kernels_vulkan_compare__special_values),
        cmocka_unit_test(test_kernels_vulkan_compare__integers),
        cmocka_unit_test(test_kernels_vulkan_compare__refused),
        cmocka_unit_test(test_kernels_vulkan_compare__range),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}

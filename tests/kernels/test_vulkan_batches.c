// Recorded work is divided into batches, so that none runs for seconds. Skipped if there is no
// Vulkan device.
#include "kernels/vulkan/vk_batch.h"
#include "kernels/vulkan/vk_gemm.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/kernels/vulkan_kept.h"

#include <math.h>

// Products of [N, N] matrices with the identity; the input of call i starts with i.
enum { N = 32, N_CALLS = 50, MOST = 7 };
static const double call_work = 2.0 * N * N * N;

static struct {
    PFN_vkCmdDispatch dispatch;
    PFN_vkQueueSubmit submit;
    uint32_t n_recorded, n_submitted, most; // numbers of calls
} seen;

static VKAPI_ATTR void VKAPI_CALL count_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                                 uint32_t z) {
    seen.n_recorded += z;
    seen.dispatch(commands, x, y, z);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_submit(VkQueue queue, uint32_t n,
                                                   const VkSubmitInfo *infos, VkFence fence) {
    seen.n_submitted += seen.n_recorded;
    seen.most = seen.n_recorded > seen.most ? seen.n_recorded : seen.most;
    seen.n_recorded = 0;
    return seen.submit(queue, n, infos, fence);
}

static struct msc_backend *open_counted(void) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    assert_ok(msc_backend_open(&b, "vulkan", &o));
    struct msc_vk_api *api = &msc_vk_from(b)->vk->api;
    seen.dispatch = api->vkCmdDispatch;
    seen.submit = api->vkQueueSubmit;
    seen.n_recorded = seen.n_submitted = seen.most = 0;
    api->vkCmdDispatch = count_dispatch;
    api->vkQueueSubmit = count_submit;
    return b;
}

// Runs all products at once and checks the results.
static void multiply(struct msc_vk_backend *b) {
    const struct msc_vk_gemm_desc desc = {.n_z = 1,
                                          .n_rows = N,
                                          .n_cols = N,
                                          .depth = N,
                                          .x_row = N,
                                          .y_row = N,
                                          .x_step = (int64_t)N * N,
                                          .w_step = (int64_t)N * N,
                                          .y_step = (int64_t)N * N};
    struct msc_vk_gemm *gemm;
    struct msc_vk_gemm_call calls[N_CALLS];
    struct msc_vk_block *x[N_CALLS], *y[N_CALLS], *w;
    float identity[N * N] = {0}, numbers[N * N];
    for (int k = 0; k < N; k++) {
        identity[k * N + k] = 1.0f;
    }
    msc_vk_lock(b->vk);
    assert_ok(msc_vk_gemm_create(&gemm, b, &desc));
    assert_ok(msc_vk_upload_new(b->vk, &w, identity, sizeof(identity)));
    for (int i = 0; i < N_CALLS; i++) {
        for (int k = 0; k < N * N; k++) {
            numbers[k] = (float)((k + i) % N);
        }
        assert_ok(msc_vk_upload_new(b->vk, &x[i], numbers, sizeof(numbers)));
        y[i] = msc_vk_allocate(b->vk, sizeof(numbers));
        assert_non_null(y[i]);
        calls[i] = (struct msc_vk_gemm_call){.x = x[i], .w = w, .y = y[i]};
    }
    assert_ok(msc_vk_gemm_run(gemm, b, MSC_VK_UNIT_FLOATS, calls, N_CALLS));
    for (int i = 0; i < N_CALLS; i++) {
        const struct msc_vk_copy copy = {numbers, y[i], sizeof(numbers)};
        assert_ok(msc_vk_download(b->vk, &copy, 1));
        for (int k = 0; k < N * N; k++) {
            assert_true(numbers[k] == (float)((k + i) % N));
        }
        msc_vk_free(b->vk, x[i]);
        msc_vk_free(b->vk, y[i]);
    }
    msc_vk_free(b->vk, w);
    msc_vk_gemm_destroy(gemm, b);
    msc_vk_unlock(b->vk);
}

// Calls are divided into batches by their work. A call larger than a batch gets a batch of its
// own.
static void test_kernels_vulkan_batches__work(void **state) {
    static const struct {
        double limit; // work of a batch, in calls
        uint32_t most;
    } rows[] = {{INFINITY, N_CALLS}, {MOST + 0.5, MOST}, {1.0, 1}, {0.1, 1}};
    (void)state;
    skip_without_device();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_backend *b = open_counted();
        msc_vk_from(b)->vk->batch_work = rows[i].limit * call_work;
        multiply(msc_vk_from(b));
        assert_int_equal(seen.n_submitted, N_CALLS);
        assert_int_equal(seen.most, rows[i].most);
        assert_int_equal(msc_vulkan_n_messages(b), 0);
        msc_backend_close(b);
    }
}

// If a kernel reports no work, its number of invocations is used.
static void test_kernels_vulkan_batches__elements(void **state) {
    enum { N_ELEMENTS = 1 << 20, N_TIMES = 12 };
    const float scale = 1.0f;
    const int32_t zero = 0;
    struct msc_quant q = {.bits = 8,
                          .low = 0,
                          .high = 255,
                          .axis = -1,
                          .n = 1,
                          .scales = &scale,
                          .zero_points = &zero};
    (void)state;
    skip_without_device();
    msc_quant_seal(&q);
    struct msc_backend *b = open_counted();
    void *from = b->def->allocate(b, N_ELEMENTS * sizeof(float));
    void *to = b->def->allocate(b, N_ELEMENTS);
    assert_true(from && to);
    struct msc_view in = {.data = from, .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {N_ELEMENTS}};
    struct msc_view out = {.data = to, .dtype = MSC_DTYPE_U8, .n_dims = 1, .dims = {N_ELEMENTS}};
    out.quant = &q;
    msc_vk_from(b)->vk->batch_work = N_ELEMENTS;
    for (int i = 0; i < N_TIMES; i++) {
        assert_ok(b->def->quantize(b, &in, &out, &q, 0));
    }
    msc_vk_lock(msc_vk_from(b)->vk);
    assert_ok(msc_vk_flush(msc_vk_from(b)->vk));
    msc_vk_unlock(msc_vk_from(b)->vk);
    assert_true(seen.n_submitted == N_TIMES && seen.most == 1);
    b->def->release_memory(b, from, N_ELEMENTS * sizeof(float));
    b->def->release_memory(b, to, N_ELEMENTS);
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_batches__work),
        cmocka_unit_test(test_kernels_vulkan_batches__elements),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}

// Commands that the device refuses, and lost devices: recorded work either runs, or everything
// fails from then on. Skipped if there is no Vulkan device.
#include "kernels/vulkan/vk_kernels.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/kernels/vulkan_kept.h"

enum { N = 1000, N_PAIRS = 3 };

// The calls that fail.
enum call { SUBMIT, END, WAIT };

static struct {
    PFN_vkQueueSubmit submit;
    PFN_vkEndCommandBuffer end;
    PFN_vkWaitSemaphores wait;
    enum call call;
    VkResult result;
    int n_left; // calls that still have to fail
} fault;

static bool fails(enum call call) {
    return fault.call == call && fault.n_left > 0 && fault.n_left-- > 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_submit(VkQueue queue, uint32_t n,
                                                    const VkSubmitInfo *infos, VkFence fence) {
    return fails(SUBMIT) ? fault.result : fault.submit(queue, n, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_end(VkCommandBuffer commands) {
    return fails(END) ? fault.result : fault.end(commands);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_wait(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                  uint64_t timeout) {
    return fails(WAIT) ? fault.result : fault.wait(device, info, timeout);
}

static struct msc_backend *open_faulty(void) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    assert_ok(msc_backend_open(&b, "vulkan", &o));
    struct msc_vk_api *api = &msc_vk_from(b)->vk->api;
    fault.submit = api->vkQueueSubmit;
    fault.end = api->vkEndCommandBuffer;
    fault.wait = api->vkWaitSemaphores;
    fault.n_left = 0;
    api->vkQueueSubmit = faulty_submit;
    api->vkEndCommandBuffer = faulty_end;
    api->vkWaitSemaphores = faulty_wait;
    return b;
}

// Floats and their quantised copies, recorded together.
struct pairs {
    struct msc_backend *b;
    struct msc_quant quant;
    float scale;
    int32_t zero;
    void *from[N_PAIRS], *to[N_PAIRS];
};

static void open_pairs(struct pairs *p) {
    float x[N];
    p->b = open_faulty();
    p->scale = 1.0f;
    p->zero = 0;
    p->quant = (struct msc_quant){.bits = 8,
                                  .low = 0,
                                  .high = 255,
                                  .axis = -1,
                                  .n = 1,
                                  .scales = &p->scale,
                                  .zero_points = &p->zero};
    msc_quant_seal(&p->quant);
    for (int i = 0; i < N_PAIRS; i++) {
        p->from[i] = p->b->def->allocate(p->b, sizeof(x));
        p->to[i] = p->b->def->allocate(p->b, N);
        assert_true(p->from[i] && p->to[i]);
        for (int k = 0; k < N; k++) {
            x[k] = (float)((k + i) % 256);
        }
        assert_ok(p->b->def->upload(p->b, p->from[i], x, sizeof(x)));
    }
}

static enum msc_status record(struct pairs *p, int i) {
    struct msc_view in = {.data = p->from[i], .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {N}};
    struct msc_view out = {.data = p->to[i], .dtype = MSC_DTYPE_U8, .n_dims = 1, .dims = {N}};
    out.quant = &p->quant;
    return p->b->def->quantize(p->b, &in, &out, &p->quant, 0);
}

static enum msc_status check(struct pairs *p, int i) {
    uint8_t bytes[N];
    MSC_TRY(p->b->def->download(p->b, bytes, p->to[i], N));
    for (int k = 0; k < N; k++) {
        assert_int_equal(bytes[k], (k + i) % 256);
    }
    return MSC_OK;
}

static void close_pairs(struct pairs *p) {
    for (int i = 0; i < N_PAIRS; i++) {
        p->b->def->release_memory(p->b, p->from[i], N * sizeof(float));
        p->b->def->release_memory(p->b, p->to[i], N);
    }
    assert_int_equal(msc_vulkan_n_messages(p->b), 0);
    msc_backend_close(p->b);
}

// A batch that is refused for lack of memory is submitted again later.
static void test_kernels_vulkan_lost__taken_later(void **state) {
    static const VkResult results[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY};
    (void)state;
    skip_without_device();
    for (size_t r = 0; r < 2; r++) {
        struct pairs p;
        open_pairs(&p);
        for (int i = 0; i < N_PAIRS; i++) {
            assert_ok(record(&p, i));
        }
        fault.call = SUBMIT;
        fault.result = results[r];
        fault.n_left = 1;
        for (int i = N_PAIRS - 1; i >= 0; i--) {
            assert_ok(check(&p, i));
        }
        assert_int_equal(fault.n_left, 0);
        close_pairs(&p);
    }
}

// After a batch is lost every later call fails, whichever caller recorded the batch.
static void test_kernels_vulkan_lost__for_good(void **state) {
    static const struct {
        enum call call;
        VkResult result;
        int n; // number of calls that fail
        const char *text;
    } rows[] = {
        {SUBMIT, VK_ERROR_OUT_OF_DEVICE_MEMORY, 2, "refused a batch of commands"},
        {SUBMIT, VK_ERROR_DEVICE_LOST, 1, "the device was lost"},
        {END, VK_ERROR_OUT_OF_HOST_MEMORY, 1, "refused a batch of commands"},
        {WAIT, VK_ERROR_DEVICE_LOST, 1, "the device was lost"},
    };
    (void)state;
    skip_without_device();
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct pairs p;
        float x[N] = {0};
        open_pairs(&p);
        for (int i = 0; i < N_PAIRS; i++) {
            assert_ok(record(&p, i));
        }
        fault.call = rows[r].call;
        fault.result = rows[r].result;
        fault.n_left = rows[r].n;
        for (int i = N_PAIRS - 1; i >= 0; i--) {
            assert_int_equal(check(&p, i), MSC_E_LOST);
            assert_message(rows[r].text);
        }
        assert_int_equal(record(&p, 0), MSC_E_LOST);
        assert_int_equal(p.b->def->upload(p.b, p.from[0], x, sizeof(x)), MSC_E_LOST);
        assert_message(rows[r].text);
        assert_int_equal(fault.n_left, 0);
        close_pairs(&p);
    }
}

// If waiting for a batch fails for lack of memory, nothing is lost.
static void test_kernels_vulkan_lost__waited_for_again(void **state) {
    struct pairs p;
    (void)state;
    skip_without_device();
    open_pairs(&p);
    assert_ok(record(&p, 0));
    fault.call = WAIT;
    fault.result = VK_ERROR_OUT_OF_HOST_MEMORY;
    fault.n_left = 1;
    assert_int_equal(check(&p, 0), MSC_E_NOMEM);
    assert_ok(check(&p, 0));
    close_pairs(&p);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_lost__taken_later),
        cmocka_unit_test(test_kernels_vulkan_lost__for_good),
        cmocka_unit_test(test_kernels_vulkan_lost__waited_for_again),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}

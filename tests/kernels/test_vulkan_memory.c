// Device memory: how much there is, behaviour when it is short, and what is released. A limit on
// the real device simulates a small one. Skipped if there is no Vulkan device.
#include "kernels/vulkan/vk_kernels.h"
#include "kernels/vulkan/vulkan.h"

#include "base/machine.h"

#include "tests/kernels/eval_case.h"
#include "tests/kernels/vulkan_kept.h"

#define MEGABYTE ((uint64_t)1 << 20)

// ---- A device with little memory --------------------------------------------------------------

enum { MAX_GIVEN = 4096 };

static struct {
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory free;
    uint64_t room_bytes; // memory that is left to allocate
    VkDeviceMemory given[MAX_GIVEN];
    uint64_t given_bytes[MAX_GIVEN];
    int n_asked, n_given, n_live;
} device;

static VKAPI_ATTR VkResult VKAPI_CALL allocate_of_little(VkDevice vk_device,
                                                         const VkMemoryAllocateInfo *info,
                                                         const VkAllocationCallbacks *callbacks,
                                                         VkDeviceMemory *out) {
    device.n_asked++;
    if (info->allocationSize > device.room_bytes) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    VkResult result = device.allocate(vk_device, info, callbacks, out);
    if (result == VK_SUCCESS) {
        assert_true(device.n_given < MAX_GIVEN);
        device.given[device.n_given] = *out;
        device.given_bytes[device.n_given++] = info->allocationSize;
        device.room_bytes -= info->allocationSize;
        device.n_live++;
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL free_of_little(VkDevice vk_device, VkDeviceMemory memory,
                                                 const VkAllocationCallbacks *callbacks) {
    device.free(vk_device, memory, callbacks);
    for (int i = 0; memory && i < device.n_given; i++) {
        if (device.given[i] == memory) {
            device.room_bytes += device.given_bytes[i];
            device.given[i] = VK_NULL_HANDLE;
            device.n_live--;
        }
    }
}

static struct msc_backend *open_backend(void) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    assert_ok(msc_backend_open(&b, "vulkan", &o));
    return b;
}

// Limits the device to `room_bytes`. The first arena has `arena_bytes`.
static struct msc_vk *leave_little(struct msc_backend *b, uint64_t arena_bytes,
                                   uint64_t room_bytes) {
    struct msc_vk *vk = msc_vk_from(b)->vk;
    memset(&device, 0, sizeof(device));
    device.allocate = vk->api.vkAllocateMemory;
    device.free = vk->api.vkFreeMemory;
    device.room_bytes = room_bytes;
    vk->api.vkAllocateMemory = allocate_of_little;
    vk->api.vkFreeMemory = free_of_little;
    vk->arena_bytes = arena_bytes;
    return vk;
}

// ---- Arenas -----------------------------------------------------------------------------------

// Fills the first arena, which already exists.
static struct msc_vk_block *fill_first(struct msc_vk *vk) {
    uint64_t n_bytes = vk->arenas[0]->holes[0].n_bytes;
    assert_int_equal(vk->n_arenas, 1);
    assert_int_equal(vk->arenas[0]->n_holes, 1);
    return msc_vk_allocate(vk, n_bytes);
}

// The remaining memory is allocated in a few large arenas, not block by block. A refused size is
// not requested again and again. If a block needs the memory of several empty arenas, these arenas
// are released.
static void test_kernels_vulkan_memory__arenas(void **state) {
    enum { MOST = 400 };
    struct msc_vk_block *blocks[MOST], *whole;
    int n = 0;
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_backend();
    struct msc_vk *vk = leave_little(b, 64 * MEGABYTE, 43 * MEGABYTE);
    msc_vk_lock(vk);
    struct msc_vk_block *first = fill_first(vk);
    assert_non_null(first);
    while (n < MOST && (blocks[n] = msc_vk_allocate(vk, MEGABYTE / 8)) != NULL) {
        n++;
    }
    assert_true(n >= 8 * 42 && n < MOST);
    assert_true(device.n_live <= 8);
    int n_asked = device.n_asked;
    assert_null(msc_vk_allocate(vk, MEGABYTE / 8));
    assert_true(device.n_asked <= n_asked + 2);
    assert_null(msc_vk_allocate(vk, 40 * MEGABYTE));
    assert_message("vulkan: not enough memory for a buffer of 41943040 bytes");
    while (n > 0) {
        msc_vk_free(vk, blocks[--n]);
    }
    whole = msc_vk_allocate(vk, 40 * MEGABYTE);
    assert_non_null(whole);
    assert_int_equal(device.n_live, 1);
    msc_vk_free(vk, whole);
    msc_vk_free(vk, first);
    msc_vk_unlock(vk);
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

// Recorded work still reads and writes memory that was freed after recording.
static void test_kernels_vulkan_memory__arenas_in_use(void **state) {
    enum { N = 3 << 20 };
    static uint8_t bytes[N], back[N];
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_backend();
    struct msc_vk *vk = leave_little(b, 4 * MEGABYTE, 50 * MEGABYTE);
    msc_vk_lock(vk);
    struct msc_vk_block *first = fill_first(vk);
    vk->stages_all = true; // copies are recorded instead of executed
    for (int i = 0; i < N; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    // Each block needs the memory of the previous one. Downloads later use their own 32 MiB.
    for (uint64_t n = 4; n <= 16; n++) {
        struct msc_vk_block *block = msc_vk_allocate(vk, n * MEGABYTE);
        struct msc_vk_copy copy = {back, block, N};
        assert_non_null(block);
        assert_ok(msc_vk_upload(vk, block, bytes, N));
        if (n % 4 == 0) {
            assert_ok(msc_vk_download(vk, &copy, 1));
            assert_memory_equal(back, bytes, N);
        }
        msc_vk_free(vk, block);
        assert_true(device.n_live <= 4);
    }
    assert_true(device.n_given >= 12);
    msc_vk_free(vk, first);
    msc_vk_unlock(vk);
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

// ---- How much there is ------------------------------------------------------------------------

static VkPhysicalDeviceMemoryBudgetPropertiesEXT told;

static VKAPI_ATTR void VKAPI_CALL tell_budget(VkPhysicalDevice physical,
                                              VkPhysicalDeviceMemoryProperties2 *out) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = out->pNext;
    (void)physical;
    memcpy(budget->heapBudget, told.heapBudget, sizeof(told.heapBudget));
    memcpy(budget->heapUsage, told.heapUsage, sizeof(told.heapUsage));
}

static void test_kernels_vulkan_memory__room(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_backend();
    struct msc_vk *vk = msc_vk_from(b)->vk;
    uint64_t arenas = vk->arenas[0]->n_bytes;
    uint32_t heap = vk->heap;
    // Simulates a GPU with its own memory that reports how much is left.
    vk->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    vk->has_budget = true;
    vk->api.vkGetPhysicalDeviceMemoryProperties2 = tell_budget;
    told.heapBudget[heap] = 500 * MEGABYTE;
    told.heapUsage[heap] = 100 * MEGABYTE;
    struct msc_backend_memory m = msc_backend_get_memory(b);
    assert_false(m.is_host);
    assert_int_equal(m.room_bytes, 400 * MEGABYTE + arenas - m.used_bytes);
    void *memory = b->def->allocate(b, 5 * MEGABYTE);
    assert_int_equal(msc_backend_get_memory(b).used_bytes, m.used_bytes + 5 * MEGABYTE);
    assert_int_equal(msc_backend_get_memory(b).room_bytes, m.room_bytes - 5 * MEGABYTE);
    told.heapUsage[heap] = 600 * MEGABYTE; // another program has allocated memory
    assert_int_equal(msc_backend_get_memory(b).room_bytes, arenas - m.used_bytes - 5 * MEGABYTE);
    b->def->release_memory(b, memory, 5 * MEGABYTE);
    // A device that does not report how much memory is left: only the heap's size is known.
    vk->has_budget = false;
    vk->memory_properties.memoryHeaps[heap].size = 3000 * MEGABYTE;
    assert_int_equal(msc_backend_get_memory(b).room_bytes, 3000 * MEGABYTE - m.used_bytes);
    // A device that uses host memory has no more memory than the host has free.
    vk->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    vk->memory_properties.memoryHeaps[heap].size = (uint64_t)1 << 60;
    m = msc_backend_get_memory(b);
    assert_true(m.is_host && m.room_bytes <= msc_machine_limit_bytes());
    assert_true(m.touched_bytes >= 5 * MEGABYTE);
    msc_backend_close(b);
}

// ---- Trials -----------------------------------------------------------------------------------

enum { N_TRIALS = 8, N_BATCHES = 4 };

static void run_trials(struct eval_results *r, struct eval_case *c, struct msc_backend *b,
                       uint64_t memory_bytes) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_eval_trial trials[N_TRIALS] = {{0}};
    struct eval_edits edits[N_TRIALS];
    struct msc_evaluator *ev;
    o.backend = b;
    o.memory_bytes = memory_bytes;
    eval_results_init(r, c);
    for (uint64_t t = 0; t < N_TRIALS; t++) {
        eval_draw_edits(c, t, &edits[t]);
    }
    assert_ok(msc_evaluator_create(&ev, c->g, c->data, c->wanted, c->n_wanted, &o));
    assert_ok(eval_run(ev, r, edits, trials, N_TRIALS));
    for (size_t t = 0; t < N_TRIALS; t++) {
        assert_string_equal(trials[t].message, "");
        assert_int_equal(trials[t].status, MSC_OK);
        assert_int_equal(r->ends[t], 1);
    }
    msc_evaluator_destroy(ev);
}

static void expect_equal(const struct eval_results *a, const struct eval_results *b) {
    for (size_t t = 0; t < N_TRIALS; t++) {
        for (size_t k = 0; k < N_BATCHES; k++) {
            const struct msc_array *x = a->values[t][k][0], *y = b->values[t][k][0];
            assert_int_equal(msc_array_n_bytes(x), msc_array_n_bytes(y));
            assert_memory_equal(msc_array_data(x), msc_array_data(y), msc_array_n_bytes(x));
        }
    }
}

// All trials are evaluated to the same bits, however little memory the device has beyond the
// evaluator's budget.
static void test_kernels_vulkan_memory__trials(void **state) {
    static struct eval_results roomy, tight;
    static const uint64_t rooms[] = {24, 8};
    struct eval_case c;
    (void)state;
    skip_without_device();
    eval_open_chain_of(&c, 128, 128, 2 * N_BATCHES, 2);
    struct msc_backend *b = open_backend();
    run_trials(&roomy, &c, b, 1024 * MEGABYTE);
    uint64_t held = msc_backend_get_memory(b).touched_bytes;
    msc_backend_close(b);
    assert_true(held > 36 * MEGABYTE);
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        b = open_backend();
        struct msc_vk *vk = leave_little(b, 64 * MEGABYTE, rooms[i] * MEGABYTE);
        msc_vk_lock(vk);
        struct msc_vk_block *first = fill_first(vk);
        msc_vk_unlock(vk);
        run_trials(&tight, &c, b, 1024 * MEGABYTE);
        expect_equal(&tight, &roomy);
        for (size_t t = 0; t < N_TRIALS; t++) {
            assert_true(i > 0 || tight.begins[t] == 1); // no trial restarted
        }
        assert_true(device.n_given <= 8 && device.n_asked <= 80);
        eval_results_finish(&tight);
        msc_vk_lock(vk);
        msc_vk_free(vk, first);
        msc_vk_unlock(vk);
        assert_int_equal(msc_vulkan_n_messages(b), 0);
        msc_backend_close(b);
    }
    eval_results_finish(&roomy);
    eval_close(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_memory__arenas),
        cmocka_unit_test(test_kernels_vulkan_memory__arenas_in_use),
        cmocka_unit_test(test_kernels_vulkan_memory__room),
        cmocka_unit_test(test_kernels_vulkan_memory__trials),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}

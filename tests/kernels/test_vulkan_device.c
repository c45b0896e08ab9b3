// The Vulkan layer below the kernels: opening and closing devices, memory, copies, the cache on
// disk, several threads, and joints that run on the host. Skipped if there is no Vulkan device.
// Expected numbers are calculated on the host.
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "kernels/vulkan/vk_kernels.h"
#include "kernels/vulkan/vulkan.h"

#include "kernels/engine/backends.h"
#include "tests/kernels/vulkan_kept.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct msc_backend *open_another(const char *cache_folder) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    o.cache_folder = cache_folder;
    assert_ok(msc_backend_open(&b, "vulkan", &o));
    return b;
}

// ---- Devices ----------------------------------------------------------------------------------

static void test_kernels_vulkan_device__lists(void **state) {
    struct msc_vulkan_device devices[16];
    (void)state;
    skip_without_device();
    int n = msc_vulkan_list(devices, 16);
    assert_true(n >= 1);
    for (int i = 0; i < n && i < 16; i++) {
        assert_int_equal(devices[i].index, i);
        assert_true(devices[i].name[0] != '\0' && devices[i].kind[0] != '\0');
        assert_true(!devices[i].is_usable || devices[i].memory_bytes > 0);
    }
    int gpu = msc_vulkan_first_gpu();
    assert_true(gpu < n && (gpu < 0 || devices[gpu].is_gpu));
}

// "auto" never selects a software driver.
static void test_kernels_vulkan_device__auto(void **state) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    (void)state;
    skip_without_device();
    assert_ok(msc_backend_open(&b, "auto", &o));
    assert_string_equal(b->def->name, msc_vulkan_first_gpu() >= 0 ? "vulkan" : "cpu");
    msc_backend_close(b);
}

static void test_kernels_vulkan_device__absent(void **state) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    (void)state;
    skip_without_device();
    assert_int_equal(msc_backend_open(&b, "vulkan:200", &o), MSC_E_DEVICE);
    assert_non_null(strstr(msc_status_message(), "no device 200"));
    assert_int_equal(msc_backend_open(&b, "vulkan:x", &o), MSC_E_INVALID);
}

// The real device presented as a GPU, without the feature that `hidden` names.
static enum hidden { NOTHING, BYTES, TIMELINE, BUFFERS, QUEUE, VERSION, N_HIDDEN } hidden;
static struct msc_vk_api real;

static VKAPI_ATTR void VKAPI_CALL gpu_properties(VkPhysicalDevice device,
                                                 VkPhysicalDeviceProperties *p) {
    real.vkGetPhysicalDeviceProperties(device, p);
    p->deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    p->apiVersion = hidden == VERSION ? VK_API_VERSION_1_1 : p->apiVersion;
    p->limits.maxPerStageDescriptorStorageBuffers =
        hidden == BUFFERS ? 12 : p->limits.maxPerStageDescriptorStorageBuffers;
}

static VKAPI_ATTR void VKAPI_CALL gpu_features(VkPhysicalDevice device,
                                               VkPhysicalDeviceFeatures2 *all) {
    real.vkGetPhysicalDeviceFeatures2(device, all);
    VkPhysicalDeviceVulkan12Features *has = all->pNext;
    has->storageBuffer8BitAccess = has->storageBuffer8BitAccess && hidden != BYTES;
    has->timelineSemaphore = has->timelineSemaphore && hidden != TIMELINE;
}

static VKAPI_ATTR void VKAPI_CALL gpu_queues(VkPhysicalDevice device, uint32_t *n,
                                             VkQueueFamilyProperties *families) {
    real.vkGetPhysicalDeviceQueueFamilyProperties(device, n, families);
    for (uint32_t i = 0; i < *n && hidden == QUEUE; i++) {
        families[i].queueFlags = VK_QUEUE_TRANSFER_BIT;
    }
}

// A GPU that lacks a required feature is not usable, so "auto" selects the next device or the
// host.
static void test_kernels_vulkan_device__lacks(void **state) {
    static const char *const lacks[N_HIDDEN] = {[BYTES] = "has no buffers of bytes",
                                                [TIMELINE] = "has no timeline semaphores",
                                                [BUFFERS] = "binds 12 buffers at a time",
                                                [QUEUE] = "has no queue with compute support",
                                                [VERSION] = "has version 1.1, expected 1.2"};
    struct msc_vulkan_device device;
    char lack[MSC_VK_LACK_BYTES];
    uint32_t family;
    (void)state;
    skip_without_device();
    const struct msc_vk *vk = msc_vk_from(kept)->vk;
    struct msc_vk_api api = real = vk->api;
    api.vkGetPhysicalDeviceProperties = gpu_properties;
    api.vkGetPhysicalDeviceFeatures2 = gpu_features;
    api.vkGetPhysicalDeviceQueueFamilyProperties = gpu_queues;
    for (hidden = NOTHING; hidden < N_HIDDEN; hidden++) {
        msc_vk_describe(&api, vk->physical, 3, &device);
        assert_true(device.is_gpu && device.index == 3);
        assert_int_equal(device.is_usable, hidden == NOTHING);
        assert_int_equal(msc_vk_has_all(lack, &family, &api, vk->physical), hidden == NOTHING);
        assert_true(hidden == NOTHING || strncmp(lack, lacks[hidden], strlen(lacks[hidden])) == 0);
    }
    hidden = NOTHING;
}

// Devices are found by the names that other tools use for them.
static void test_kernels_vulkan_device__by_name(void **state) {
    static const struct msc_vulkan_device devices[] = {
        {.index = 0, .name = "llvmpipe", .uuid = "6d657361-3232-2e33-2e36-000000000000"},
        {.index = 1,
         .name = "NVIDIA A100",
         .uuid = "3f2c6a10-0b1c-4d2e-8f90-a1b2c3d4e5f6",
         .pci = "0000:07:00.0"},
        {.index = 2,
         .name = "NVIDIA A100",
         .uuid = "3f2c77aa-0b1c-4d2e-8f90-a1b2c3d4e5f6",
         .pci = "0001:0a:00.1"},
    };
    static const struct {
        const char *name;
        int index;
    } good[] = {{"uuid=GPU-3f2c6a10-0b1c-4d2e-8f90-a1b2c3d4e5f6", 1},
                {"uuid=3f2c77aa", 2},
                {"uuid=3F2C7", 2},
                {"uuid=6d65", 0},
                {"pci=00000000:07:00.0", 1},
                {"pci=07:00.0", 1},
                {"pci=1:A:0.1", 2}};
    static const char *const missing[] = {"uuid=3f2c", "uuid=77aa6a10", "pci=0000:0a:00.1"};
    static const char *const bad[] = {"uuid=",        "uuid=3f2",
                                      "uuid=3f2cx",   "uuid",
                                      "pci=",         "pci=7",
                                      "pci=07:00.0x", "pci=0000:07:00",
                                      "serial=3f2",   "uuid=3f2c6a100b1c4d2e8f90a1b2c3d4e5f600"};
    int index = -1;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(msc_vulkan_pick(&index, devices, 3, good[i].name));
        assert_int_equal(index, good[i].index);
    }
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        assert_int_equal(msc_vulkan_pick(&index, devices, 3, missing[i]), MSC_E_DEVICE);
        assert_message("there are vulkan:0 llvmpipe (uuid=6d657361-3232-2e33-2e36-000000000000), "
                       "vulkan:1 NVIDIA A100 (uuid=3f2c6a10-0b1c-4d2e-8f90-a1b2c3d4e5f6, "
                       "pci=0000:07:00.0), vulkan:2");
    }
    assert_int_equal(msc_vulkan_pick(&index, devices, 3, "uuid=3f2c"), MSC_E_DEVICE);
    assert_message("several devices match");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(msc_vulkan_pick(&index, devices, 3, bad[i]), MSC_E_INVALID);
    }
    assert_int_equal(msc_vulkan_pick(&index, devices, 0, "pci=07:00.0"), MSC_E_DEVICE);
    assert_message("there are no Vulkan devices");
}

// This machine's device is found by its own UUID.
static void test_kernels_vulkan_device__own_uuid(void **state) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    struct msc_backend *b;
    char name[64];
    (void)state;
    skip_without_device();
    assert_true(msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES) >= 1);
    assert_int_equal(strlen(devices[0].uuid), 36);
    snprintf(name, sizeof name, "vulkan:uuid=%s", devices[0].uuid);
    assert_ok(msc_backend_open(&b, name, &o));
    assert_int_equal(b->options.device, 0);
    msc_backend_close(b);
    assert_int_equal(msc_backend_open(&b, "vulkan:pci=ffff:ff:1f.7", &o), MSC_E_DEVICE);
    assert_message(devices[0].uuid);
    assert_int_equal(msc_backend_open(&b, "cpu:uuid=3f2c6a10", &o), MSC_E_INVALID);
}

static void test_kernels_vulkan_device__numerics(void **state) {
    (void)state;
    skip_without_device();
    const char *id = kept->def->numerics(kept);
    assert_non_null(strstr(id, "vulkan/1 "));
    assert_non_null(strstr(id, "family "));
    assert_non_null(strstr(id, "shaders "));
}

static void test_kernels_vulkan_device__closes(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_another(NULL);
    void *memory = b->def->allocate(b, 1000);
    float x[250] = {0};
    assert_non_null(memory);
    assert_ok(b->def->upload(b, memory, x, sizeof(x)));
    b->def->release_memory(b, memory, 1000);
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

// ---- Memory -----------------------------------------------------------------------------------

#define N_BLOCKS 200

// Blocks of all sizes are allocated and freed. The content of the other blocks does not change.
static void test_kernels_vulkan_device__memory(void **state) {
    struct msc_rng rng;
    void *blocks[N_BLOCKS] = {NULL};
    size_t sizes[N_BLOCKS] = {0};
    static uint8_t bytes[40000], back[40000];
    (void)state;
    skip_without_device();
    msc_rng_seed(&rng, 3, 0);
    for (int i = 0; i < 2000; i++) {
        size_t k = msc_rng_u64(&rng) % N_BLOCKS;
        if (blocks[k]) {
            assert_ok(kept->def->download(kept, back, blocks[k], sizes[k]));
            memset(bytes, (int)k, sizes[k]);
            assert_memory_equal(back, bytes, sizes[k]);
            kept->def->release_memory(kept, blocks[k], sizes[k]);
            blocks[k] = NULL;
        } else {
            sizes[k] = 1 + msc_rng_u64(&rng) % sizeof(bytes);
            blocks[k] = kept->def->allocate(kept, sizes[k]);
            assert_non_null(blocks[k]);
            memset(bytes, (int)k, sizes[k]);
            assert_ok(kept->def->upload(kept, blocks[k], bytes, sizes[k]));
        }
    }
    for (int k = 0; k < N_BLOCKS; k++) {
        if (blocks[k]) {
            kept->def->release_memory(kept, blocks[k], sizes[k]);
        }
    }
}

// Requests for more than the device can allocate at once.
static void test_kernels_vulkan_device__too_large(void **state) {
    (void)state;
    skip_without_device();
    assert_null(kept->def->allocate(kept, (size_t)1 << 40));
    assert_null(kept->def->allocate(kept, (size_t)3 << 30));
}

static struct msc_view view_of(void *memory, enum msc_dtype dtype, int64_t n) {
    return (struct msc_view){.data = memory, .dtype = dtype, .n_dims = 1, .dims = {n}};
}

static void fill_scale(struct msc_quant *q, const float *scale, const int32_t *zero) {
    *q = (struct msc_quant){
        .bits = 8, .low = 0, .high = 255, .axis = -1, .n = 1, .scales = scale, .zero_points = zero};
    msc_quant_seal(q);
}

// Copies larger than the staging buffers, also while work is recorded. Memory is overwritten right
// after the last recorded read of it.
static void test_kernels_vulkan_device__order(void **state) {
    const int64_t n = 3 * 1024 * 1024 + 5; // a little more than 12 MiB of floats
    const float scale = 1.0f;
    const int32_t zero = 0;
    struct msc_quant q;
    (void)state;
    skip_without_device();
    fill_scale(&q, &scale, &zero);
    float *x = msc_alloc((size_t)n * sizeof(float));
    uint8_t *bytes = msc_alloc((size_t)n);
    void *from = kept->def->allocate(kept, (size_t)n * sizeof(float));
    void *to[3];
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = (float)((i * (round + 3)) % 256);
        }
        to[round] = kept->def->allocate(kept, (size_t)n);
        struct msc_view in = view_of(from, MSC_DTYPE_F32, n);
        struct msc_view out = view_of(to[round], MSC_DTYPE_U8, n);
        out.quant = &q;
        // Overwrites memory that the previous round may not have read yet.
        assert_ok(kept->def->upload(kept, from, x, (size_t)n * sizeof(float)));
        assert_ok(kept->def->quantize(kept, &in, &out, &q, 0));
    }
    for (int round = 0; round < 3; round++) {
        assert_ok(kept->def->download(kept, bytes, to[round], (size_t)n));
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(bytes[i], (i * (round + 3)) % 256);
        }
        kept->def->release_memory(kept, to[round], (size_t)n);
    }
    kept->def->release_memory(kept, from, (size_t)n * sizeof(float));
    msc_free(x);
    msc_free(bytes);
    assert_int_equal(msc_vulkan_n_messages(kept), 0);
}

// ---- Quantising -------------------------------------------------------------------------------

// Quantises to every format. Inputs have odd lengths and contain ties, infinities and NaN. Expected
// values follow the formula of edits.
static void test_kernels_vulkan_device__quantizes(void **state) {
    static const struct {
        int32_t bits, low, high, zero;
        enum msc_dtype dtype;
    } kinds[] = {
        {8, 0, 255, 113, MSC_DTYPE_U8},
        {8, -127, 127, 0, MSC_DTYPE_I8},
        {4, -8, 7, 0, MSC_DTYPE_I8},
        {12, 0, 4095, 1000, MSC_DTYPE_F32},
    };
    enum { N = 1003 };
    float x[N], fake[N], expected[N];
    uint8_t bytes[N];
    struct msc_rng rng;
    (void)state;
    skip_without_device();
    msc_rng_seed(&rng, 9, 0);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        float scale = 0.01f + 0.1f * (float)msc_rng_double(&rng);
        for (int i = 0; i < N; i++) {
            x[i] = i % 7 == 0 ? scale * ((float)(i % 300) + 0.5f)
                              : 40.0f * (float)(msc_rng_double(&rng) - 0.5);
        }
        x[1] = INFINITY;
        x[2] = -INFINITY;
        x[3] = -0.0f;
        struct msc_quant q = {.bits = kinds[k].bits,
                              .low = kinds[k].low,
                              .high = kinds[k].high,
                              .axis = -1,
                              .n = 1,
                              .scales = &scale,
                              .zero_points = &kinds[k].zero};
        msc_quant_seal(&q);
        void *from = kept->def->allocate(kept, sizeof(x)),
             *to = kept->def->allocate(kept, sizeof(x));
        struct msc_view in = view_of(from, MSC_DTYPE_F32, N);
        struct msc_view out = view_of(to, kinds[k].dtype, N);
        bool is_float = kinds[k].dtype == MSC_DTYPE_F32;
        out.quant = is_float ? NULL : &q;
        assert_ok(kept->def->upload(kept, from, x, sizeof(x)));
        assert_ok(kept->def->quantize(kept, &in, &out, &q, 0));
        if (is_float) {
            msc_fake_quantize_run(expected, x, N, scale, kinds[k].zero, q.low, q.high);
            assert_ok(kept->def->download(kept, fake, to, sizeof(fake)));
            assert_memory_equal(fake, expected, sizeof(fake));
        } else {
            assert_ok(kept->def->download(kept, bytes, to, sizeof(bytes)));
            for (int i = 0; i < N; i++) {
                int32_t e = msc_quantize_value(x[i], scale, kinds[k].zero, q.low, q.high);
                assert_int_equal(bytes[i], (uint8_t)e);
            }
        }
        kept->def->release_memory(kept, from, sizeof(x));
        kept->def->release_memory(kept, to, sizeof(x));
    }
}

// Rounding to 16-bit types gives the same bits as on the host. The values are all powers of two,
// their neighbours, ties, NaN and infinities.
static void test_kernels_vulkan_device__float_types(void **state) {
    static const enum msc_dtype types[] = {MSC_DTYPE_F16, MSC_DTYPE_BF16};
    enum { N = 4096 };
    float x[N], expected[N], found[N];
    struct msc_rng rng;
    (void)state;
    skip_without_device();
    msc_rng_seed(&rng, 5, 5);
    for (int i = 0; i < N; i++) {
        // Above 2^-126, because devices may flush smaller numbers to zero.
        uint32_t exponent = 1u + (uint32_t)i % 254u, low = (uint32_t)msc_rng_u64(&rng);
        uint32_t fraction = i % 3 == 0   ? low & 0x7ffu << 12
                            : i % 3 == 1 ? low & 3u
                                         : low & 0x7fffffu;
        uint32_t bits = (uint32_t)(i & 1024) << 21 | exponent << 23 | fraction;
        memcpy(&x[i], &bits, sizeof(bits));
    }
    x[0] = INFINITY;
    x[1] = -INFINITY;
    x[2] = NAN;
    void *device_x = kept->def->allocate(kept, sizeof(x));
    void *device_y = kept->def->allocate(kept, sizeof(x));
    assert_non_null(device_x);
    assert_non_null(device_y);
    assert_ok(kept->def->upload(kept, device_x, x, sizeof(x)));
    for (int k = 0; k < 2; k++) {
        struct msc_quant q = msc_quant_of_float(types[k]);
        struct msc_view in = view_of(device_x, MSC_DTYPE_F32, N);
        struct msc_view out = view_of(device_y, MSC_DTYPE_F32, N);
        assert_ok(kept->def->quantize(kept, &in, &out, &q, 0));
        assert_ok(kept->def->download(kept, found, device_y, sizeof(found)));
        msc_quant_apply_run(expected, x, N, &q);
        for (int i = 0; i < N; i++) {
            assert_true(isnan(x[i]) ? isnan(found[i])
                                    : memcmp(&found[i], &expected[i], sizeof(x[0])) == 0);
        }
    }
    kept->def->release_memory(kept, device_x, sizeof(x));
    kept->def->release_memory(kept, device_y, sizeof(x));
}

// Threads that quantise at the same time do not disturb each other.
static void test_kernels_vulkan_device__threads(void **state) {
    enum { N = 5000 };
    int n_wrong = 0;
    (void)state;
    skip_without_device();
#pragma omp parallel for num_threads(4) reduction(+ : n_wrong)
    for (int t = 0; t < 40; t++) {
        float scale = 1.0f + (float)t;
        int32_t zero = t;
        struct msc_quant q;
        float *x = msc_alloc(N * sizeof(float));
        uint8_t *bytes = msc_alloc(N);
        fill_scale(&q, &scale, &zero);
        void *from = kept->def->allocate(kept, N * sizeof(float));
        void *to = kept->def->allocate(kept, N);
        struct msc_view in = view_of(from, MSC_DTYPE_F32, N), out = view_of(to, MSC_DTYPE_U8, N);
        out.quant = &q;
        for (int i = 0; i < N; i++) {
            x[i] = (float)(i % 1000);
        }
        n_wrong += kept->def->upload(kept, from, x, N * sizeof(float)) != MSC_OK;
        n_wrong += kept->def->quantize(kept, &in, &out, &q, omp_get_thread_num()) != MSC_OK;
        n_wrong += kept->def->download(kept, bytes, to, N) != MSC_OK;
        for (int i = 0; i < N; i++) {
            n_wrong += bytes[i] != msc_quantize_value(x[i], scale, zero, 0, 255);
        }
        kept->def->release_memory(kept, from, N * sizeof(float));
        kept->def->release_memory(kept, to, N);
        msc_free(x);
        msc_free(bytes);
    }
    assert_int_equal(n_wrong, 0);
    assert_int_equal(msc_vulkan_n_messages(kept), 0);
}

// ---- The cache on disk ------------------------------------------------------------------------

static void damage(const char *path, size_t at) {
    char *data;
    size_t n_bytes;
    assert_ok(msc_file_read(&data, &n_bytes, path));
    assert_true(n_bytes > at);
    data[at] ^= 0x40;
    assert_ok(msc_file_write(path, data, n_bytes));
    msc_free(data);
}

// A file of another device, or one that is damaged or cut, must not cause a failure.
static void test_kernels_vulkan_device__cache(void **state) {
    char folder[] = "/tmp/msc_vulkan_XXXXXX", path[300];
    (void)state;
    skip_without_device();
    assert_non_null(mkdtemp(folder));
    struct msc_backend *b = open_another(folder);
    const VkPhysicalDeviceProperties *p = &msc_vk_from(b)->vk->properties;
    snprintf(path, sizeof(path), "%s/vulkan-%08x-%08x.cache", folder, p->vendorID, p->deviceID);
    msc_backend_close(b);
    assert_true(msc_file_exists(path));
    static const size_t places[] = {0, 8, 16, 30, 60, 90, 110};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        damage(path, places[i]);
        b = open_another(folder);
        assert_int_equal(msc_vk_from(b)->vk->cache_bytes, 0);
        msc_backend_close(b); // the file is written again
        b = open_another(folder);
        assert_true(msc_vk_from(b)->vk->cache_bytes > 0);
        msc_backend_close(b);
    }
    assert_ok(msc_file_write(path, "short", 5));
    b = open_another(folder);
    assert_int_equal(msc_vk_from(b)->vk->cache_bytes, 0);
    msc_backend_close(b);
    assert_ok(msc_file_remove(path));
    assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_device__lists),
        cmocka_unit_test(test_kernels_vulkan_device__auto),
        cmocka_unit_test(test_kernels_vulkan_device__absent),
        cmocka_unit_test(test_kernels_vulkan_device__lacks),
        cmocka_unit_test(test_kernels_vulkan_device__by_name),
        cmocka_unit_test(test_kernels_vulkan_device__own_uuid),
        cmocka_unit_test(test_kernels_vulkan_device__numerics),
        cmocka_unit_test(test_kernels_vulkan_device__closes),
        cmocka_unit_test(test_kernels_vulkan_device__memory),
        cmocka_unit_test(test_kernels_vulkan_device__too_large),
        cmocka_unit_test(test_kernels_vulkan_device__order),
        cmocka_unit_test(test_kernels_vulkan_device__quantizes),
        cmocka_unit_test(test_kernels_vulkan_device__float_types),
        cmocka_unit_test(test_kernels_vulkan_device__threads),
        cmocka_unit_test(test_kernels_vulkan_device__cache),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}

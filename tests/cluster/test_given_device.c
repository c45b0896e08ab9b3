// Tests which device a worker opens if its cluster assigned GPUs to it by CUDA_VISIBLE_DEVICES or
// GPU_DEVICE_ORDINAL. The Vulkan devices of this machine are hidden, and a script replaces
// nvidia-smi. Each row below lists a setting and the expected device.
#include "cluster/given_device.h"

#include "base/alloc.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[TEMP_FOLDER_BYTES];

static void set_variable(const char *name, const char *value) {
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

// Sets `variable` to a list and clears the other variable. If `list` is NULL, both are cleared.
static void give(const char *variable, const char *list) {
    set_variable("CUDA_VISIBLE_DEVICES", NULL);
    set_variable("GPU_DEVICE_ORDINAL", NULL);
    if (list) {
        set_variable(variable, list);
    }
}

static void write_tool(const char *script) {
    char path[TEMP_FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/nvidia-smi", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(script, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static int set_up(void **state) {
    char path[2 * TEMP_FOLDER_BYTES];
    (void)state;
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
    set_variable("PATH", path);
    set_variable("VK_DRIVER_FILES", "/dev/null");
    set_variable("VK_ICD_FILENAMES", "/dev/null");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

static const struct {
    const char *variable, *list, *device, *expected; // `expected` is NULL if the list is refused
} rows[] = {
    {"CUDA_VISIBLE_DEVICES", NULL, "auto", "auto"},
    {"CUDA_VISIBLE_DEVICES", NULL, "vulkan:1", "vulkan:1"},
    {"CUDA_VISIBLE_DEVICES", "GPU-3f2c6a10-0b1c", "auto", "vulkan:uuid=GPU-3f2c6a10-0b1c"},
    {"CUDA_VISIBLE_DEVICES", "GPU-3f2c,GPU-77aa", "vulkan:1", "vulkan:uuid=GPU-3f2c"},
    {"CUDA_VISIBLE_DEVICES", "GPU-3f2c", "cpu", "cpu"},
    {"CUDA_VISIBLE_DEVICES", "2,3", "auto", "vulkan:uuid=GPU-of-2"},
    {"GPU_DEVICE_ORDINAL", "1", "vulkan", "vulkan:uuid=GPU-of-1"},
    {"CUDA_VISIBLE_DEVICES", "", "auto", "cpu"},
    {"CUDA_VISIBLE_DEVICES", "NoDevFiles", "auto", "cpu"},
    {"CUDA_VISIBLE_DEVICES", "-1", "auto", "cpu"},
    // The cluster does not assign software drivers, so they may be used without an assigned GPU.
    {"CUDA_VISIBLE_DEVICES", "", "vulkan", "vulkan"},
    {"CUDA_VISIBLE_DEVICES", "MIG-77aa", "vulkan", NULL},
    {"CUDA_VISIBLE_DEVICES", "0x1", "auto", NULL},
    {"CUDA_VISIBLE_DEVICES", "7", "auto", NULL}, // nvidia-smi finds no such GPU
};

static void test_pipeline_given_device__names(void **state) {
    (void)state;
    write_tool("#!/bin/sh\n"
               "[ \"$1 $2\" = '--query-gpu=uuid --format=csv,noheader' ] || exit 2\n"
               "case $3 in --id=7) echo 'No devices were found'; exit 6;; esac\n"
               "echo \"GPU-of-${3#--id=}\"\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_arena arena = {0};
        const char *device = NULL;
        give(rows[i].variable, rows[i].list);
        enum msc_status status = msc_given_device(&device, &arena, rows[i].device, NULL);
        if (rows[i].expected) {
            assert_ok(status);
            assert_string_equal(device, rows[i].expected);
        } else {
            assert_int_equal(status, MSC_E_DEVICE);
            assert_message(rows[i].list);
        }
        msc_arena_finish(&arena);
    }
}

// CUDA_VISIBLE_DEVICES takes precedence over GPU_DEVICE_ORDINAL.
static void test_pipeline_given_device__one_list(void **state) {
    struct msc_arena arena = {0};
    const char *device = NULL;
    (void)state;
    give("CUDA_VISIBLE_DEVICES", "GPU-77aa");
    set_variable("GPU_DEVICE_ORDINAL", "0");
    assert_ok(msc_given_device(&device, &arena, "auto", NULL));
    assert_string_equal(device, "vulkan:uuid=GPU-77aa");
    msc_arena_finish(&arena);
}

static void test_pipeline_given_device__without_tool(void **state) {
    struct msc_arena arena = {0};
    const char *device = NULL;
    (void)state;
    write_tool("#!/bin/sh\nexit 9\n");
    give("CUDA_VISIBLE_DEVICES", "0");
    assert_int_equal(msc_given_device(&device, &arena, "vulkan", NULL), MSC_E_DEVICE);
    assert_message("CUDA_VISIBLE_DEVICES is 0: cannot identify it among 0 GPUs");
    msc_arena_finish(&arena);
}

// Two equal GPUs, another one, one that lacks what the backend needs, and a software driver.
static const struct msc_vulkan_device machine[] = {
    {.index = 0, .name = "llvmpipe", .driver = "llvmpipe 15", .is_usable = true},
    {.index = 1, .name = "A100", .driver = "NVIDIA 580", .is_gpu = true, .is_usable = true},
    {.index = 2, .name = "T4", .driver = "NVIDIA 580", .is_gpu = true, .is_usable = true},
    {.index = 3, .name = "A100", .driver = "NVIDIA 580", .is_gpu = true},
    {.index = 4, .name = "A100", .driver = "NVIDIA 580", .is_gpu = true, .is_usable = true},
};

static const struct {
    const char *device;
    size_t place;
    const char *expected;
} places[] = {
    {"auto", 0, "vulkan:1"},     {"auto", 1, "vulkan:4"},
    {"auto", 2, "vulkan:1"},     {"auto", 7, "vulkan:4"},
    {"vulkan", 1, "vulkan"}, // the first device equals no other
    {"vulkan:2", 1, "vulkan:2"}, {"vulkan:pci=0000:65:00.0", 1, "vulkan:pci=0000:65:00.0"},
    {"cpu", 1, "cpu"},
};

static void test_pipeline_given_device__places(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct msc_arena arena = {0};
        const char *device = NULL;
        assert_ok(msc_place_device(&device, &arena, places[i].device, places[i].place, machine,
                                   sizeof machine / sizeof machine[0]));
        assert_string_equal(device, places[i].expected);
        msc_arena_finish(&arena);
    }
}

static void test_pipeline_given_device__one_gpu(void **state) {
    struct msc_arena arena = {0};
    const char *device = NULL;
    (void)state;
    assert_int_equal(msc_place_count("auto", machine, 3), 1);
    assert_int_equal(msc_place_count("auto", machine, 5), 2);
    assert_int_equal(msc_place_count("cpu", machine, 5), 1);
    assert_ok(msc_place_device(&device, &arena, "auto", 1, machine, 3));
    assert_string_equal(device, "auto");
    assert_ok(msc_place_device(&device, &arena, "vulkan", 1, machine, 0));
    assert_string_equal(device, "vulkan");
    msc_arena_finish(&arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_given_device__names),
        cmocka_unit_test(test_pipeline_given_device__one_list),
        cmocka_unit_test(test_pipeline_given_device__without_tool),
        cmocka_unit_test(test_pipeline_given_device__places),
        cmocka_unit_test(test_pipeline_given_device__one_gpu),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

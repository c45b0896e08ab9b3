// Every shader as it stands in the program, by the validator of the SPIR-V tools.
#include "base/file.h"
#include "kernels/vulkan/vk_shaders.h"
#include "tests/temp_folder.h"

static bool is_valid(const struct msc_vk_shader_code *code, const char *path) {
    char command[TEMP_FOLDER_BYTES + 100];
    assert_ok(msc_file_write(path, code->words, code->n_bytes));
    snprintf(command, sizeof command, "'%s' --target-env vulkan1.2 '%s'", MSC_SPIRV_VAL, path);
    return system(command) == 0;
}

static void test_kernels_vulkan_shaders__valid(void **state) {
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    int n_bad = 0;
    (void)state;
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/shader.spv", folder);
    for (const struct msc_vk_shader_code *code = msc_vk_shader_codes; code->name; code++) {
        if (!is_valid(code, path)) {
            print_error("%s is not valid\n", code->name);
            n_bad++;
        }
    }
    temp_folder_remove(folder);
    assert_int_equal(n_bad, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_shaders__valid),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

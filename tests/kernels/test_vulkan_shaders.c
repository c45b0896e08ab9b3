// Every shader in the program, with and without optional float controls, is checked by the SPIR-V
// validator, and compared with the table of shaders.
#include "base/alloc.h"
#include "base/file.h"
#include "kernels/vulkan/vk.h"
#include "tests/temp_folder.h"

static bool is_valid(const struct msc_vk_shader_code *code, unsigned controls, const char *path) {
    char command[TEMP_FOLDER_BYTES + 100];
    uint32_t *words;
    size_t n_bytes;
    assert_ok(msc_vk_add_controls(&words, &n_bytes, code, controls));
    assert_ok(msc_file_write(path, words, n_bytes));
    msc_free(words);
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
        if (code->words &&
            (!is_valid(code, 0, path) || !is_valid(code, MSC_VK_ALL_CONTROLS, path))) {
            print_error("%s is not valid\n", code->name);
            n_bad++;
        }
    }
    temp_folder_remove(folder);
    assert_int_equal(n_bad, 0);
}

// Facts read from a compiled shader.
struct facts {
    uint32_t n_constants, n_bindings, push_bytes; // the shader uses at least this many
};

// Word `value` of the first instruction `op` whose word `key` is `wanted`, or 0. Instructions
// follow a header of five words. The first word of an instruction holds its length and its opcode.
static uint32_t find_word(const struct msc_vk_shader_code *code, uint32_t op, int key,
                          uint32_t wanted, int value) {
    size_t n = code->n_bytes / sizeof(uint32_t);
    for (size_t i = 5; i < n; i += code->words[i] >> 16) {
        const uint32_t *w = &code->words[i];
        if ((w[0] & 0xffff) == op && w[key] == wanted) {
            return w[value];
        }
    }
    return 0;
}

// Each control adds its capability and execution mode for float32, and changes nothing else.
static void test_kernels_vulkan_shaders__controls(void **state) {
    static const uint32_t capabilities[] = {4464, 4466, 4467}, modes[] = {4459, 4461, 4462};
    const struct msc_vk_shader_code *code = &msc_vk_shader_codes[MSC_VK_EWISE];
    uint32_t entry = find_word(code, 15, 1, 5, 2); // OpEntryPoint GLCompute
    (void)state;
    assert_true(entry > 0);
    for (unsigned controls = 0; controls <= MSC_VK_ALL_CONTROLS; controls++) {
        struct msc_vk_shader_code with = *code;
        uint32_t *words;
        size_t n = 0;
        assert_ok(msc_vk_add_controls(&words, &with.n_bytes, code, controls));
        with.words = words;
        for (int i = 0; i < 3; i++) {
            bool is_asked = (controls >> i & 1u) != 0;
            uint32_t has = find_word(&with, 17, 1, capabilities[i], 1);
            assert_int_equal(has, is_asked ? capabilities[i] : 0);
            assert_int_equal(find_word(&with, 16, 2, modes[i], 1), is_asked ? entry : 0);
            assert_int_equal(find_word(&with, 16, 2, modes[i], 3), is_asked ? 32 : 0);
            n += is_asked ? 6 : 0;
        }
        assert_int_equal(with.n_bytes, code->n_bytes + n * sizeof(uint32_t));
        msc_free(words);
    }
}

static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static struct facts read_facts(const struct msc_vk_shader_code *code) {
    enum { TYPE_POINTER = 32, VARIABLE = 59, DECORATE = 71, MEMBER_DECORATE = 72 };
    enum { SPEC_ID = 1, PUSH_CONSTANT = 9, BINDING = 33, OFFSET = 35 };
    struct facts f = {0};
    size_t n = code->n_bytes / sizeof(uint32_t);
    uint32_t pointer = find_word(code, VARIABLE, 3, PUSH_CONSTANT, 1);
    uint32_t block = find_word(code, TYPE_POINTER, 1, pointer, 3);
    for (size_t i = 5; i < n; i += code->words[i] >> 16) {
        const uint32_t *w = &code->words[i];
        uint32_t op = w[0] & 0xffff;
        if (op == DECORATE && w[2] == SPEC_ID) {
            f.n_constants = most(f.n_constants, w[3] + 1);
        } else if (op == DECORATE && w[2] == BINDING) {
            f.n_bindings = most(f.n_bindings, w[3] + 1);
        } else if (op == MEMBER_DECORATE && w[1] == block && w[3] == OFFSET) {
            f.push_bytes = most(f.push_bytes, w[4] + 4);
        }
    }
    return f;
}

// If a shader uses call rows, their buffer is bound after the bindings that the table lists. A
// shader may omit bindings that it does not use.
static void test_kernels_vulkan_shaders__as_the_table_says(void **state) {
    (void)state;
    for (int i = 0; i < MSC_VK_SHADER_COUNT; i++) {
        const struct msc_vk_shader_info *info = msc_vk_shader_info((enum msc_vk_shader)i);
        uint32_t n_bindings = info->n_texels + info->n_buffers;
        struct facts f = read_facts(&msc_vk_shader_codes[i]);
        if (!msc_vk_shader_codes[i].words) {
            assert_int_equal(i, MSC_VK_CONV_MATRIX); // glslc may be too old for it
            continue;
        }
        if (f.n_constants > (uint32_t)info->n_constants || f.n_bindings > n_bindings + 1 ||
            f.n_bindings < n_bindings || f.push_bytes == 0 || f.push_bytes > info->push_bytes) {
            fail_msg("%s: %u constants, %u bindings, %u bytes of push constants",
                     msc_vk_shader_name((enum msc_vk_shader)i), f.n_constants, f.n_bindings,
                     f.push_bytes);
        }
    }
    assert_null(msc_vk_shader_codes[MSC_VK_SHADER_COUNT].name);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_shaders__valid),
        cmocka_unit_test(test_kernels_vulkan_shaders__controls),
        cmocka_unit_test(test_kernels_vulkan_shaders__as_the_table_says),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

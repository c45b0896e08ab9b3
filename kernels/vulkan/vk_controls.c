// Makes shaders request exact float behaviour (SPV_KHR_float_controls, in SPIR-V since 1.4).
// Otherwise a driver may flush denormals to zero. It may also assume that no number is NaN or
// infinite; a clamp at 0 that keeps NaN (x < 0 ? 0 : x) may then give 0 for NaN. Shaders are
// compiled without such execution modes. Before a shader is passed to a device, the modes that the
// device supports are added to its code.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"

#include <string.h>

enum { OP_ENTRY_POINT = 15, OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17 };
enum { HEADER_WORDS = 5, CAPABILITY_WORDS = 2, MODE_WORDS = 4, FLOAT_BITS = 32 };

// Indexed by the bits of enum msc_vk_control.
static const struct {
    uint32_t capability, mode;
} rows[] = {
    {4464, 4459}, // DenormPreserve
    {4466, 4461}, // SignedZeroInfNanPreserve
    {4467, 4462}, // RoundingModeRTE
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static VkPhysicalDeviceFloatControlsProperties get_controls(const struct msc_vk *vk) {
    VkPhysicalDeviceFloatControlsProperties has = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &has};
    vk->api.vkGetPhysicalDeviceProperties2(vk->physical, &all);
    return has;
}

// Without independence, a shader must request the same behaviour for all widths that it uses.
bool msc_vk_can_mix_widths(const struct msc_vk *vk) {
    const VkPhysicalDeviceFloatControlsProperties has = get_controls(vk);
    return has.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
           has.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
}

void msc_vk_find_controls(struct msc_vk *vk) {
    const VkPhysicalDeviceFloatControlsProperties has = get_controls(vk);
    vk->controls = (has.shaderDenormPreserveFloat32 ? MSC_VK_KEEPS_DENORMALS : 0) |
                   (has.shaderSignedZeroInfNanPreserveFloat32 ? MSC_VK_KEEPS_SPECIALS : 0) |
                   (has.shaderRoundingModeRTEFloat32 ? MSC_VK_ROUNDS_TO_EVEN : 0);
}

static uint32_t first_word(int n_words, uint32_t op) {
    return (uint32_t)n_words << 16 | op;
}

// Finds the position after the entry point, at which execution modes may be inserted. Each of our
// shaders has one entry point.
static size_t find_modes(const uint32_t words[], size_t n, uint32_t *entry) {
    size_t i = HEADER_WORDS;
    while (i < n && (words[i] & 0xffffu) != OP_ENTRY_POINT && words[i] >> 16 > 0) {
        i += words[i] >> 16;
    }
    *entry = i + 2 < n ? words[i + 2] : 0;
    return i < n ? i + (words[i] >> 16) : n;
}

enum msc_status msc_vk_add_controls(uint32_t **out, size_t *n_bytes,
                                    const struct msc_vk_shader_code *code, unsigned controls) {
    size_t n = code->n_bytes / sizeof(uint32_t);
    uint32_t entry;
    size_t modes = find_modes(code->words, n, &entry);
    uint32_t *words =
        msc_alloc(code->n_bytes + N_ROWS * (CAPABILITY_WORDS + MODE_WORDS) * sizeof(uint32_t));
    MSC_TRY(MSC_ALLOCATED(words));
    uint32_t *to = words;
    memcpy(to, code->words, HEADER_WORDS * sizeof(uint32_t));
    to += HEADER_WORDS;
    for (int i = 0; i < N_ROWS; i++) {
        if ((controls >> i & 1u) != 0) {
            *to++ = first_word(CAPABILITY_WORDS, OP_CAPABILITY);
            *to++ = rows[i].capability;
        }
    }
    memcpy(to, code->words + HEADER_WORDS, (modes - HEADER_WORDS) * sizeof(uint32_t));
    to += modes - HEADER_WORDS;
    for (int i = 0; i < N_ROWS; i++) {
        if ((controls >> i & 1u) != 0) {
            const uint32_t mode[MODE_WORDS] = {first_word(MODE_WORDS, OP_EXECUTION_MODE), entry,
                                               rows[i].mode, FLOAT_BITS};
            memcpy(to, mode, sizeof(mode));
            to += MODE_WORDS;
        }
    }
    memcpy(to, code->words + modes, (n - modes) * sizeof(uint32_t));
    to += n - modes;
    *out = words;
    *n_bytes = (size_t)(to - words) * sizeof(uint32_t);
    return MSC_OK;
}

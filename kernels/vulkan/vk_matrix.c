// Matrix units: whether the device multiplies matrices of bytes (VK_KHR_cooperative_matrix), and
// of which size. msc_vk_compare_matrix then finds out whether that is fast.
#include "kernels/vulkan/vk_kernels.h"
#include "kernels/vulkan/vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sets vk->matrix to the size that multiplies the most bytes, of those that the tiles can use
// (vk_tiles.c); leaves it zero if there is none.
static enum msc_status choose_size(struct msc_vk *vk) {
    PFN_msc_vk_cooperative_matrices list =
        (PFN_msc_vk_cooperative_matrices)vk->api.vkGetInstanceProcAddr(
            vk->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    struct msc_vk_cooperative_matrix rows[64] = {{0}};
    uint32_t n = sizeof rows / sizeof rows[0];
    for (uint32_t i = 0; i < n; i++) {
        rows[i].sType = MSC_VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES;
    }
    VkResult result = list ? list(vk->physical, &n, rows) : VK_ERROR_EXTENSION_NOT_PRESENT;
    if (result != VK_INCOMPLETE) {
        MSC_TRY(msc_vk_check(result, "sizes of matrices"));
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct msc_vk_cooperative_matrix *r = &rows[i];
        bool is_bytes = r->AType == MSC_VK_COMPONENT_SINT8 && r->BType == r->AType &&
                        r->CType == MSC_VK_COMPONENT_SINT32 && r->ResultType == r->CType &&
                        !r->saturatingAccumulation && r->scope == MSC_VK_SCOPE_SUBGROUP;
        struct msc_vk_matrix size = {r->MSize, r->NSize, r->KSize, 0};
        if (is_bytes && msc_vk_matrix_fits_tiles(&size) &&
            size.rows * size.cols * size.depth >
                vk->matrix.rows * vk->matrix.cols * vk->matrix.depth) {
            vk->matrix = size;
        }
    }
    return MSC_OK;
}

// Subgroups of a known size without missing invocations, which a shader with matrices needs.
static uint32_t subgroup_of(const struct msc_vk *vk) {
    VkPhysicalDeviceSubgroupSizeControlFeatures has = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &has};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties usual = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &sizes};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &usual};
    vk->api.vkGetPhysicalDeviceFeatures2(vk->physical, &features);
    vk->api.vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    bool can_require = has.subgroupSizeControl && has.computeFullSubgroups &&
                       (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    return can_require ? usual.subgroupSize : 0;
}

static bool has_features(const struct msc_vk *vk) {
    struct msc_vk_cooperative_matrix_features matrix = {
        .sType = MSC_VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FEATURES};
    VkPhysicalDeviceVulkan12Features has = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &matrix};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &has};
    vk->api.vkGetPhysicalDeviceFeatures2(vk->physical, &features);
    return matrix.cooperativeMatrix && has.vulkanMemoryModel && has.shaderInt8;
}

enum msc_status msc_vk_find_matrix(struct msc_vk *vk) {
    const char *wish = getenv("MSC_VULKAN_MATRIX");
    bool has_matrix, has_sizes, is_software;
    is_software = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (!msc_vk_shader_codes[MSC_VK_CONV_MATRIX].words || vk->tuning.is_family_u ||
        (wish ? strcmp(wish, "1") != 0 : is_software)) {
        return MSC_OK;
    }
    MSC_TRY(msc_vk_find_extension(&has_matrix, vk, MSC_VK_COOPERATIVE_MATRIX_EXTENSION));
    MSC_TRY(msc_vk_find_extension(&has_sizes, vk, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME));
    if (!has_matrix || !has_sizes || !has_features(vk)) {
        return MSC_OK;
    }
    MSC_TRY(choose_size(vk));
    vk->matrix.subgroup = subgroup_of(vk);
    vk->has_matrix = vk->matrix.depth > 0 && vk->matrix.subgroup > 0;
    vk->matrix = vk->has_matrix ? vk->matrix : (struct msc_vk_matrix){0};
    return MSC_OK;
}

void msc_vulkan_matrix(char out[40], const struct msc_backend *b) {
    const struct msc_vk *vk = msc_vk_from(b)->vk;
    const struct msc_vk_matrix *m = &vk->matrix;
    out[0] = '\0';
    if (vk->has_matrix) {
        snprintf(out, 40, "%ux%ux%u", m->rows, m->cols, m->depth);
    }
}

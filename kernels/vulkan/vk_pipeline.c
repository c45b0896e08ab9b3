#include "kernels/vulkan/vk_pipeline.h"

#include "base/alloc.h"

#include <string.h>

static const struct msc_vk_shader_info infos[MSC_VK_SHADER_COUNT] = {
#define MSC_SHADER(id, source, texels, buffers, push_bytes, constants)                             \
    [MSC_VK_##id] = {texels, buffers, push_bytes, constants},
#include "kernels/vulkan/shaders.def"
};

#define MSC_SHADER(id, source, texels, buffers, push_bytes, constants)                             \
    _Static_assert(texels + buffers <= MSC_VK_MAX_BINDINGS && constants <= MSC_VK_MAX_CONSTANTS,   \
                   #id " has more bindings or constants than there is room for");
#include "kernels/vulkan/shaders.def"

const struct msc_vk_shader_info *msc_vk_shader_info(enum msc_vk_shader shader) {
    return &infos[shader];
}

const char *msc_vk_shader_name(enum msc_vk_shader shader) {
    return msc_vk_shader_codes[shader].name;
}

// ---- Layouts ----------------------------------------------------------------------------------

static enum msc_status create_module(struct msc_vk *vk, VkShaderModule *out,
                                     const struct msc_vk_shader_code *code) {
    VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    uint32_t *words;
    MSC_TRY(msc_vk_add_controls(&words, &info.codeSize, code, vk->controls));
    info.pCode = words;
    enum msc_status status =
        msc_vk_check(vk->api.vkCreateShaderModule(vk->device, &info, NULL, out), "a shader");
    msc_free(words);
    return status;
}

static enum msc_status create_layout(struct msc_vk *vk, enum msc_vk_shader shader) {
    struct msc_vk_layout *l = &vk->layouts[shader];
    VkDescriptorSetLayoutBinding bindings[MSC_VK_MAX_BINDINGS + 1];
    const struct msc_vk_shader_info *info = &infos[shader];
    uint32_t n = info->n_texels + info->n_buffers;
    for (uint32_t i = 0; i <= n; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = i < info->n_texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                                 : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    VkDescriptorSetLayoutCreateInfo set = {.sType =
                                               VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                           .bindingCount = n + 1,
                                           .pBindings = bindings};
    MSC_TRY(msc_vk_check(vk->api.vkCreateDescriptorSetLayout(vk->device, &set, NULL, &l->set),
                         "a descriptor layout"));
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, info->push_bytes};
    VkPipelineLayoutCreateInfo pipeline = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .setLayoutCount = 1,
                                           .pSetLayouts = &l->set,
                                           .pushConstantRangeCount = 1,
                                           .pPushConstantRanges = &push};
    MSC_TRY(msc_vk_check(vk->api.vkCreatePipelineLayout(vk->device, &pipeline, NULL, &l->pipeline),
                         "a pipeline layout"));
    MSC_TRY(create_module(vk, &l->module, &msc_vk_shader_codes[shader]));
    l->n_texels = info->n_texels;
    l->n_bindings = n;
    return MSC_OK;
}

enum msc_status msc_vk_pipelines_init(struct msc_vk *vk) {
    vk->layouts = msc_alloc_zero(MSC_VK_SHADER_COUNT, sizeof(vk->layouts[0]));
    MSC_TRY(MSC_ALLOCATED(vk->layouts));
    return MSC_OK;
}

void msc_vk_pipelines_finish(struct msc_vk *vk) {
    for (size_t i = 0; i < vk->n_pipelines; i++) {
        vk->api.vkDestroyPipeline(vk->device, vk->pipelines[i]->pipeline, NULL);
        msc_free(vk->pipelines[i]);
    }
    msc_free(vk->pipelines);
    for (int i = 0; vk->layouts && i < MSC_VK_SHADER_COUNT; i++) {
        vk->api.vkDestroyShaderModule(vk->device, vk->layouts[i].module, NULL);
        vk->api.vkDestroyPipelineLayout(vk->device, vk->layouts[i].pipeline, NULL);
        vk->api.vkDestroyDescriptorSetLayout(vk->device, vk->layouts[i].set, NULL);
    }
    msc_free(vk->layouts);
    vk->layouts = NULL;
    vk->n_pipelines = 0;
}

// ---- Pipelines --------------------------------------------------------------------------------

static enum msc_status create_pipeline(struct msc_vk *vk, struct msc_vk_pipeline *p) {
    VkSpecializationMapEntry entries[MSC_VK_MAX_CONSTANTS];
    uint32_t n = (uint32_t)infos[p->shader].n_constants;
    for (uint32_t i = 0; i < n; i++) {
        entries[i] =
            (VkSpecializationMapEntry){i, (uint32_t)(i * sizeof(uint32_t)), sizeof(uint32_t)};
    }
    VkSpecializationInfo special = {.mapEntryCount = n,
                                    .pMapEntries = entries,
                                    .dataSize = n * sizeof(uint32_t),
                                    .pData = p->constants};
    // The matrices of a subgroup are spread over all its invocations.
    bool has_matrices = p->shader == MSC_VK_CONV_MATRIX;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = vk->matrix.subgroup};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = has_matrices ? &subgroup : NULL,
                  .flags =
                      has_matrices ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = p->layout->module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = p->layout->pipeline};
    return msc_vk_check(
        vk->api.vkCreateComputePipelines(vk->device, vk->cache, 1, &info, NULL, &p->pipeline),
        "a compute pipeline");
}

static struct msc_vk_pipeline *find_pipeline(const struct msc_vk *vk, enum msc_vk_shader shader,
                                             const uint32_t constants[]) {
    size_t n = (size_t)infos[shader].n_constants;
    for (size_t i = 0; i < vk->n_pipelines; i++) {
        struct msc_vk_pipeline *p = vk->pipelines[i];
        if (p->shader == shader && memcmp(p->constants, constants, n * sizeof(constants[0])) == 0) {
            return p;
        }
    }
    return NULL;
}

enum msc_status msc_vk_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                enum msc_vk_shader shader, const uint32_t constants[]) {
    struct msc_vk_pipeline *p = find_pipeline(vk, shader, constants);
    if (p) {
        *out = p;
        return MSC_OK;
    }
    if (!vk->layouts[shader].module) {
        MSC_TRY(create_layout(vk, shader));
    }
    MSC_TRY(msc_grow(&vk->pipelines, &vk->pipeline_capacity, vk->n_pipelines + 1,
                     sizeof(vk->pipelines[0])));
    p = msc_alloc_zero(1, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    p->shader = shader;
    p->layout = &vk->layouts[shader];
    memcpy(p->constants, constants, (size_t)infos[shader].n_constants * sizeof(constants[0]));
    enum msc_status status = create_pipeline(vk, p);
    if (status != MSC_OK) {
        msc_free(p);
        return msc_status_prefix(status, "shader %s", msc_vk_shader_name(shader));
    }
    vk->pipelines[vk->n_pipelines++] = p;
    *out = p;
    return MSC_OK;
}

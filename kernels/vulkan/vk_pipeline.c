#include "kernels/vulkan/vk_pipeline.h"

#include "base/alloc.h"

#include <string.h>

// What each shader binds: texels first, then storage buffers; the rows of calls follow.
static const struct {
    const char *name;
    uint32_t n_texels, n_buffers;
    uint32_t push_bytes;
} shaders[MSC_VK_SHADER_COUNT] = {
    [MSC_VK_CONV_U_QUADS] = {"conv_u_quads", 2, 4, 64},
    [MSC_VK_CONV_U_FLOATS] = {"conv_u_floats", 2, 4, 64},
    [MSC_VK_CONV_G] = {"conv_g", 0, 6, 64},
    [MSC_VK_CONV_G_BYTES] = {"conv_g_bytes", 0, 6, 64},
    [MSC_VK_CONV_G_INT] = {"conv_g_int", 0, 6, 64},
    [MSC_VK_CONV_G_DOT] = {"conv_g_dot", 0, 6, 64},
    [MSC_VK_DEPTHWISE_U] = {"depthwise_u", 2, 4, 64},
    [MSC_VK_DEPTHWISE_G] = {"depthwise_g", 0, 6, 64},
    [MSC_VK_DEPTHWISE_G_BYTES] = {"depthwise_g_bytes", 0, 6, 64},
    [MSC_VK_EWISE] = {"ewise", 0, 11, 16},
    [MSC_VK_EWISE_POWER] = {"ewise_power", 0, 11, 16},
    [MSC_VK_QUANTIZE] = {"quantize", 0, 2, 16},
    [MSC_VK_EXPAND] = {"expand", 0, 2, 16},
    [MSC_VK_DIGITS] = {"digits", 0, 3, 32},
    [MSC_VK_MOVE] = {"move", 0, 3, 32},
    [MSC_VK_MOVE_BYTES] = {"move_bytes", 0, 3, 32},
    [MSC_VK_POOL] = {"pool", 0, 3, 16},
    [MSC_VK_REDUCE] = {"reduce", 0, 3, 32},
    [MSC_VK_SOFTMAX] = {"softmax", 0, 2, 32},
    [MSC_VK_LAYER_NORM] = {"layer_norm", 0, 3, 32},
    [MSC_VK_RESIZE] = {"resize", 0, 3, 32},
    [MSC_VK_TYPED] = {"typed", 0, 5, 32},
    [MSC_VK_GATHER] = {"gather", 0, 4, 16},
    [MSC_VK_CONV_PLAIN] = {"conv_plain", 0, 5, 16},
    [MSC_VK_POOL_PLAIN] = {"pool_plain", 0, 3, 16},
    [MSC_VK_POOL_PLAIN_INDICES] = {"pool_plain_indices", 0, 4, 16},
    [MSC_VK_CONTRACT] = {"contract", 0, 5, 32},
    [MSC_VK_ALONG] = {"along", 0, 3, 16},
    [MSC_VK_ALONG_TOPK] = {"along_topk", 0, 4, 16},
    [MSC_VK_NORM] = {"norm", 0, 4, 32},
    [MSC_VK_LRN] = {"lrn", 0, 2, 32},
    [MSC_VK_RECURRENT_1] = {"recurrent_1", 0, 10, 32},
    [MSC_VK_RECURRENT_2] = {"recurrent_2", 0, 11, 32},
    [MSC_VK_RECURRENT_3] = {"recurrent_3", 0, 12, 32},
    [MSC_VK_SCATTER] = {"scatter", 0, 6, 16},
    [MSC_VK_PICK] = {"pick", 0, 3, 32},
    [MSC_VK_GRID_SAMPLE] = {"grid_sample", 0, 3, 32},
    [MSC_VK_ROI_ALIGN] = {"roi_align", 0, 4, 48},
    [MSC_VK_LINEAR_QUANT] = {"linear_quant", 0, 4, 32},
    [MSC_VK_DYNAMIC_QUANT] = {"dynamic_quant", 0, 5, 16},
    [MSC_VK_INTEGER_CONV] = {"integer_conv", 0, 11, 32},
    [MSC_VK_INTEGER_MATMUL] = {"integer_matmul", 0, 11, 32},
    [MSC_VK_RESIZE_PLAIN] = {"resize_plain", 0, 3, 16},
    [MSC_VK_COL2IM] = {"col2im", 0, 3, 32},
    [MSC_VK_AFFINE_GRID] = {"affine_grid", 0, 2, 32},
    [MSC_VK_DEFORM_CONV] = {"deform_conv", 0, 7, 16},
    [MSC_VK_FOURIER] = {"fourier", 0, 4, 32},
    [MSC_VK_PROBE] = {"probe", 0, 2, 16},
};

const char *msc_vk_shader_name(enum msc_vk_shader shader) {
    return shaders[shader].name;
}

// ---- Layouts ----------------------------------------------------------------------------------

static const struct msc_vk_shader_code *find_code(const char *name) {
    for (const struct msc_vk_shader_code *c = msc_vk_shader_codes; c->name; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

static enum msc_status create_layout(struct msc_vk *vk, enum msc_vk_shader shader) {
    struct msc_vk_layout *l = &vk->layouts[shader];
    VkDescriptorSetLayoutBinding bindings[MSC_VK_MAX_BINDINGS + 1];
    uint32_t n = shaders[shader].n_texels + shaders[shader].n_buffers;
    for (uint32_t i = 0; i <= n; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = i < shaders[shader].n_texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
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
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, shaders[shader].push_bytes};
    VkPipelineLayoutCreateInfo pipeline = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .setLayoutCount = 1,
                                           .pSetLayouts = &l->set,
                                           .pushConstantRangeCount = 1,
                                           .pPushConstantRanges = &push};
    MSC_TRY(msc_vk_check(vk->api.vkCreatePipelineLayout(vk->device, &pipeline, NULL, &l->pipeline),
                         "a pipeline layout"));
    const struct msc_vk_shader_code *code = find_code(shaders[shader].name);
    if (!code) {
        return MSC_FAIL(MSC_E_STATE, "vulkan: shader %s was not built", shaders[shader].name);
    }
    VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                       .codeSize = code->n_bytes,
                                       .pCode = code->words};
    MSC_TRY(msc_vk_check(vk->api.vkCreateShaderModule(vk->device, &module, NULL, &l->module),
                         "a shader"));
    l->n_texels = shaders[shader].n_texels;
    l->n_bindings = n;
    return MSC_OK;
}

enum msc_status msc_vk_pipelines_init(struct msc_vk *vk) {
    vk->layouts = msc_alloc_zero(MSC_VK_SHADER_COUNT, sizeof(vk->layouts[0]));
    if (!vk->layouts) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
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
    for (int i = 0; i < p->n_constants; i++) {
        entries[i] = (VkSpecializationMapEntry){
            (uint32_t)i, (uint32_t)((size_t)i * sizeof(uint32_t)), sizeof(uint32_t)};
    }
    VkSpecializationInfo special = {.mapEntryCount = (uint32_t)p->n_constants,
                                    .pMapEntries = entries,
                                    .dataSize = (size_t)p->n_constants * sizeof(uint32_t),
                                    .pData = p->constants};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
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
                                             const uint32_t constants[], int n) {
    for (size_t i = 0; i < vk->n_pipelines; i++) {
        struct msc_vk_pipeline *p = vk->pipelines[i];
        if (p->shader == shader && p->n_constants == n &&
            memcmp(p->constants, constants, (size_t)n * sizeof(constants[0])) == 0) {
            return p;
        }
    }
    return NULL;
}

enum msc_status msc_vk_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                enum msc_vk_shader shader, const uint32_t constants[], int n) {
    struct msc_vk_pipeline *p = find_pipeline(vk, shader, constants, n);
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
    if (!p) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
    p->shader = shader;
    p->layout = &vk->layouts[shader];
    p->n_constants = n;
    memcpy(p->constants, constants, (size_t)n * sizeof(constants[0]));
    enum msc_status status = create_pipeline(vk, p);
    if (status != MSC_OK) {
        msc_free(p);
        return msc_status_prefix(status, "shader %s", shaders[shader].name);
    }
    vk->pipelines[vk->n_pipelines++] = p;
    *out = p;
    return MSC_OK;
}

#include "kernels/vulkan/vk_gemm.h"

#include "base/alloc.h"

#include <string.h>

// Six rows of four numbers, as shaders/conv.glsl names them.
enum { KERNEL, SIZE_IN, SIZE_OUT, STRIDE, DILATION, PADDING, N_ROWS };
typedef int32_t geometry[N_ROWS][4];

enum {
    HAS_SCALES = 1,
    HAS_BIAS = 2,
    HAS_LIMITS = 4,
    HAS_ONE_SCALE = 8,
};

struct push {
    uint32_t x_base, w_base, x_step, w_step, y_step;
    uint32_t n_rows, n_cols, y_row, w_row;
    uint32_t flags;
    float x_scale, low, high;
    uint32_t tail_step, n_channels, per_lane;
};

struct msc_vk_gemm {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *geometry;
    enum msc_vk_binding_kind x_kind, w_kind;
    uint32_t x_unit, w_unit; // floats in what is read at once
    uint32_t groups[3];
    struct push push;
};

// ---- Describing -------------------------------------------------------------------------------

static bool is_depthwise(const struct msc_dense_desc *d) {
    return d && d->kind == MSC_DENSE_CONV && d->groups > 1 && d->groups == d->in_channels;
}

void msc_vk_gemm_describe(struct msc_vk_gemm_desc *out, const struct msc_dense_desc *dense) {
    int64_t positions = dense->batch;
    bool is_conv = dense->kind != MSC_DENSE_LINEAR;
    for (int i = 0; is_conv && i < dense->n_spatial; i++) {
        positions *= dense->out[i];
    }
    *out = (struct msc_vk_gemm_desc){
        .window = is_conv ? dense : NULL,
        .n_z = dense->groups,
        .n_rows = positions,
        .n_cols = dense->out_channels / dense->groups,
        .depth = dense->in_channels / dense->groups,
        .x_row = dense->in_channels,
        .y_row = dense->out_channels,
        .x_step = dense->in_channels / dense->groups,
        .y_step = dense->out_channels / dense->groups,
    };
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(out);
    out->w_step = w.channels * w.row;
    for (int i = 0; is_conv && i < dense->n_spatial; i++) {
        out->w_step *= dense->kernel[i];
    }
    if (w.is_depthwise) {
        out->n_z = 1;
        out->n_cols = dense->out_channels;
    }
}

static int64_t round_up(int64_t n) {
    return (n + 3) / 4 * 4;
}

struct msc_vk_gemm_weight msc_vk_gemm_weight_shape(const struct msc_vk_gemm_desc *desc) {
    if (is_depthwise(desc->window)) {
        return (struct msc_vk_gemm_weight){1, desc->window->out_channels, true};
    }
    return (struct msc_vk_gemm_weight){round_up(desc->depth), round_up(desc->n_cols), false};
}

static bool is_pointwise(const struct msc_dense_desc *d) {
    bool is = d->kind == MSC_DENSE_CONV;
    for (int i = 0; i < d->n_spatial; i++) {
        is = is && d->kernel[i] == 1 && d->strides[i] == 1 && d->pad_begin[i] == 0 &&
             d->pad_end[i] == 0;
    }
    return is;
}

static void set_geometry(geometry g, const struct msc_vk_gemm_desc *desc) {
    const struct msc_dense_desc *d = desc->window;
    memset(g, 0, sizeof(geometry));
    for (int i = 0; i < 3; i++) {
        g[KERNEL][i] = g[SIZE_IN][i] = g[SIZE_OUT][i] = g[STRIDE][i] = g[DILATION][i] = 1;
    }
    for (int i = 0; d && i < d->n_spatial; i++) {
        int a = 3 - d->n_spatial + i;
        g[KERNEL][a] = (int32_t)d->kernel[i];
        g[SIZE_IN][a] = (int32_t)d->in[i];
        g[SIZE_OUT][a] = (int32_t)d->out[i];
        g[STRIDE][a] = (int32_t)d->strides[i];
        g[DILATION][a] = (int32_t)d->dilation[i];
        g[PADDING][a] = (int32_t)d->pad_begin[i];
    }
    g[KERNEL][3] = (int32_t)desc->depth;
    g[SIZE_IN][3] = (int32_t)msc_vk_gemm_weight_shape(desc).channels;
    g[SIZE_OUT][3] = (int32_t)desc->x_row;
    g[STRIDE][3] = d ? (int32_t)(d->out_channels / d->in_channels) : 1;
}

// ---- Choosing a shader ------------------------------------------------------------------------

static uint32_t power_of_two_above(int64_t n) {
    uint32_t p = 1;
    while (p < n) {
        p *= 2;
    }
    return p;
}

struct choice {
    enum msc_vk_shader shader;
    uint32_t constants[9];
    int n_constants;
};

static void choose_depthwise(struct msc_vk_gemm *g, struct choice *c, const struct msc_vk *vk,
                             const struct msc_vk_gemm_desc *desc) {
    bool is_u = vk->tuning.is_family_u;
    c->shader = is_u ? MSC_VK_DEPTHWISE_U : MSC_VK_DEPTHWISE_G;
    c->n_constants = 4;
    g->x_kind = g->w_kind = is_u ? MSC_VK_FLOATS : MSC_VK_READ;
    g->x_unit = g->w_unit = 1;
    g->groups[0] = msc_vk_spread(vk, (uint64_t)(desc->n_rows * desc->n_cols), &g->push.per_lane);
    g->groups[1] = g->groups[2] = 1;
    c->constants[0] = vk->tuning.lanes;
}

static void choose_u(struct msc_vk_gemm *g, struct choice *c, const struct msc_vk *vk,
                     const struct msc_vk_gemm_desc *desc) {
    const struct msc_vk_tuning *t = &vk->tuning;
    bool has_quads = desc->depth % 4 == 0 && desc->x_row % 4 == 0 && desc->x_step % 4 == 0;
    int64_t n_quads = msc_vk_gemm_weight_shape(desc).row / 4;
    uint32_t rows = t->u_rows;
    if (desc->n_rows < (int64_t)rows * 4) {
        rows = desc->n_rows == 1 ? 1 : 4;
    }
    uint32_t row_lanes = power_of_two_above((desc->n_rows + rows - 1) / rows);
    row_lanes = row_lanes < t->u_lanes ? row_lanes : t->u_lanes;
    uint32_t quads = n_quads % t->u_quads == 0 ? t->u_quads : 1;
    c->shader = has_quads ? MSC_VK_CONV_U_QUADS : MSC_VK_CONV_U_FLOATS;
    c->n_constants = 7;
    c->constants[0] = t->u_lanes;
    c->constants[4] = rows;
    c->constants[5] = quads;
    c->constants[6] = row_lanes;
    g->x_kind = has_quads ? MSC_VK_QUADS : MSC_VK_FLOATS;
    g->w_kind = MSC_VK_QUADS;
    g->x_unit = has_quads ? 4 : 1;
    g->w_unit = 4;
    g->groups[0] = msc_vk_groups((uint64_t)desc->n_rows, (uint64_t)row_lanes * rows);
    g->groups[1] = msc_vk_groups((uint64_t)n_quads, (uint64_t)(t->u_lanes / row_lanes) * quads);
    g->groups[2] = (uint32_t)desc->n_z;
}

static void choose_g(struct msc_vk_gemm *g, struct choice *c, const struct msc_vk *vk,
                     const struct msc_vk_gemm_desc *desc) {
    const struct msc_vk_tuning *t = &vk->tuning;
    c->shader = MSC_VK_CONV_G;
    c->n_constants = 9;
    c->constants[0] = t->g_rows / t->g_row * (t->g_cols / t->g_col);
    c->constants[4] = t->g_rows;
    c->constants[5] = t->g_cols;
    c->constants[6] = t->g_depth;
    c->constants[7] = t->g_row;
    c->constants[8] = t->g_col;
    g->x_kind = g->w_kind = MSC_VK_READ;
    g->x_unit = g->w_unit = 1;
    g->groups[0] = msc_vk_groups((uint64_t)desc->n_rows, t->g_rows);
    g->groups[1] = msc_vk_groups((uint64_t)desc->n_cols, t->g_cols);
    g->groups[2] = (uint32_t)desc->n_z;
}

// ---- Creating ---------------------------------------------------------------------------------

static enum msc_status init(struct msc_vk_gemm *g, struct msc_vk_backend *b,
                            const struct msc_vk_gemm_desc *desc) {
    struct choice c = {.constants = {0}};
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(desc);
    if (w.is_depthwise) {
        choose_depthwise(g, &c, b->vk, desc);
    } else if (b->vk->tuning.is_family_u) {
        choose_u(g, &c, b->vk, desc);
    } else {
        choose_g(g, &c, b->vk, desc);
    }
    c.constants[2] = !desc->window || is_pointwise(desc->window);
    c.constants[3] = desc->window && desc->window->kind == MSC_DENSE_CONV_TRANSPOSE;
    g->push.x_step = (uint32_t)(desc->x_step / g->x_unit);
    g->push.w_step = (uint32_t)(desc->w_step / g->w_unit);
    g->push.y_step = (uint32_t)desc->y_step;
    g->push.n_rows = (uint32_t)desc->n_rows;
    g->push.n_cols = (uint32_t)desc->n_cols;
    g->push.y_row = (uint32_t)desc->y_row;
    g->push.w_row = (uint32_t)w.row;
    g->push.tail_step = desc->window ? (uint32_t)desc->n_cols : 0;
    g->push.n_channels =
        (uint32_t)(desc->window && !w.is_depthwise ? desc->n_cols * desc->n_z : desc->n_cols);
    geometry numbers;
    set_geometry(numbers, desc);
    MSC_TRY(msc_vk_upload_new(b->vk, &g->geometry, numbers, sizeof(numbers)));
    return msc_vk_pipeline(&g->pipeline, b->vk, c.shader, c.constants, c.n_constants);
}

enum msc_status msc_vk_gemm_create(struct msc_vk_gemm **out, struct msc_vk_backend *b,
                                   const struct msc_vk_gemm_desc *desc) {
    struct msc_vk_gemm *g = msc_alloc_zero(1, sizeof(*g));
    if (!g) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
    enum msc_status status = init(g, b, desc);
    if (status != MSC_OK) {
        msc_vk_gemm_destroy(g, b);
        return status;
    }
    *out = g;
    return MSC_OK;
}

void msc_vk_gemm_destroy(struct msc_vk_gemm *g, struct msc_vk_backend *b) {
    if (g) {
        msc_vk_free(b->vk, g->geometry);
        msc_free(g);
    }
}

// ---- Running ----------------------------------------------------------------------------------

// Where a block begins for the shader: bound buffers begin at it, texels at their arena.
static uint32_t base_of(const struct msc_vk_block *block, enum msc_vk_binding_kind kind,
                        uint32_t unit) {
    return kind == MSC_VK_READ ? 0 : (uint32_t)(block->offset / (unit * sizeof(float)));
}

enum msc_status msc_vk_gemm_run(const struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                const struct msc_vk_gemm_call *call) {
    struct push push = g->push;
    push.x_base = base_of(call->x, g->x_kind, g->x_unit);
    push.w_base = base_of(call->w, g->w_kind, g->w_unit);
    push.flags = (call->has_scales ? HAS_SCALES : 0) | (call->has_bias ? HAS_BIAS : 0) |
                 (call->has_limits ? HAS_LIMITS : 0) | (call->has_one_scale ? HAS_ONE_SCALE : 0);
    push.x_scale = call->x_scale;
    push.low = call->low;
    push.high = call->high;
    struct msc_vk_dispatch d = {.pipeline = g->pipeline,
                                .n_bindings = 5,
                                .bindings = {{call->x, g->x_kind},
                                             {call->w, g->w_kind},
                                             {call->y, MSC_VK_WRITE},
                                             {call->tail ? call->tail : b->nothing, MSC_VK_READ},
                                             {g->geometry, MSC_VK_READ}},
                                .push = &push,
                                .push_bytes = sizeof(push),
                                .groups = {g->groups[0], g->groups[1], g->groups[2]}};
    return msc_vk_dispatch(b->vk, &d);
}

#include "kernels/vulkan/vk_gemm.h"

#include "base/alloc.h"

#include <string.h>

// The geometry for shaders: six rows of four numbers, named as in shaders/conv.glsl.
enum { KERNEL, SIZE_IN, SIZE_OUT, STRIDE, DILATION, PADDING, N_ROWS };
typedef int32_t geometry[N_ROWS][4];

enum {
    HAS_SCALES = 1,
    HAS_BIAS = 2,
    HAS_LIMITS = 4,
    HAS_ONE_SCALE = 8,
    HAS_Y = 16,
    HAS_INTEGER_BIAS = 32,
};

// The words of a call's row of parameters (shaders/conv.glsl).
enum {
    FLAGS,
    X_SCALE,
    BYTES,
    FORMS = BYTES + MSC_VK_BYTES_WORDS,
    N_ROW = FORMS + MSC_VK_QUANTIZED_WORDS
};

struct push {
    uint32_t x_step, w_step, y_step;
    uint32_t n_z, n_rows, n_cols, y_row, w_row;
    float low, high;
    uint32_t tail_step, n_channels, per_lane;
    uint32_t first[3];
};

struct msc_vk_gemm {
    struct msc_vk_gemm_desc desc;
    struct msc_vk_gemm_weight weight;
    bool is_pointwise, is_transposed, has_x_quads, has_x_sixteens, has_y_quads;
    struct msc_vk_block *geometry;
    struct push push;          // strides in floats
    struct msc_vk_shape shape; // of the last run; no rows: there was none
    int tile;                  // that is taken for this shape
    int forced;                // tile for every shape; -1: none
    // Pipelines by types of the factors and by tile, made when first used.
    struct msc_vk_pipeline *pipelines[MSC_VK_UNIT_COUNT][MSC_VK_MAX_TILES];
};

// ---- Describing -------------------------------------------------------------------------------

static bool is_depthwise(const struct msc_gemm_desc *d) {
    return d && d->kind == MSC_GEMM_CONV && d->groups > 1 && d->groups == d->in_channels;
}

void msc_vk_gemm_describe(struct msc_vk_gemm_desc *out, const struct msc_gemm_desc *joint) {
    int64_t positions = joint->batch;
    bool is_conv = joint->kind != MSC_GEMM_LINEAR;
    for (int i = 0; is_conv && i < joint->n_spatial; i++) {
        positions *= joint->out[i];
    }
    *out = (struct msc_vk_gemm_desc){
        .window = is_conv ? joint : NULL,
        .n_z = joint->groups,
        .n_rows = positions,
        .n_cols = joint->out_channels / joint->groups,
        .depth = joint->in_channels / joint->groups,
        .x_row = joint->in_channels,
        .y_row = joint->out_channels,
        .x_step = joint->in_channels / joint->groups,
        .y_step = joint->out_channels / joint->groups,
    };
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(out);
    out->w_step = w.channels * w.row;
    for (int i = 0; is_conv && i < joint->n_spatial; i++) {
        out->w_step *= joint->kernel[i];
    }
    if (w.is_depthwise) {
        out->n_z = 1;
        out->n_cols = joint->out_channels;
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

static bool is_pointwise(const struct msc_gemm_desc *d) {
    bool is = d->kind == MSC_GEMM_CONV;
    for (int i = 0; i < d->n_spatial; i++) {
        is = is && d->kernel[i] == 1 && d->strides[i] == 1 && d->pad_begin[i] == 0 &&
             d->pad_end[i] == 0;
    }
    return is;
}

static void set_geometry(geometry g, const struct msc_vk_gemm_desc *desc) {
    const struct msc_gemm_desc *d = desc->window;
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

// ---- Loop iterations --------------------------------------------------------------------------

static int64_t n_taps(const struct msc_vk_gemm_desc *desc) {
    const struct msc_gemm_desc *d = desc->window;
    int64_t n = 1;
    for (int i = 0; d && i < d->n_spatial; i++) {
        n *= d->kernel[i];
    }
    return n;
}

// Loop iterations of depthwise.comp per output: over planes, rows and columns of the window, then
// over the quantised variants of the output.
static uint64_t depthwise_turns(const struct msc_gemm_desc *d) {
    uint64_t turns = 0;
    for (int i = d->n_spatial - 1; i >= 0; i--) {
        turns = (uint64_t)d->kernel[i] * (turns + 1) + 1;
    }
    return turns + 2 * (3 - (uint64_t)d->n_spatial) + 6 * (MSC_VK_MAX_QUANTIZED + 1);
}

// True if the device allows the loop iterations that the sums and the quantised variants of the
// outputs need.
static bool vk_gemm_can_turn(const struct msc_vk_gemm_desc *desc, const struct msc_vk *vk) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(desc);
    uint64_t taps = (uint64_t)n_taps(desc), channels = (uint64_t)w.channels;
    const uint64_t more = 64 * (MSC_VK_MAX_QUANTIZED + 1);
    if (w.is_depthwise) {
        return msc_vk_can_spread(vk, (uint64_t)(desc->n_rows * desc->n_cols),
                                 depthwise_turns(desc->window));
    }
    // For each tap, family U loops over groups of four channels (quads). Family G loops over the
    // terms of a tile's sums, and takes further iterations to load the next terms.
    return msc_vk_can_turn(
        vk, more + (vk->tuning.is_family_u ? taps * (channels / 4 + 2) : 2 * taps * channels));
}

// ---- Creating ---------------------------------------------------------------------------------

static enum msc_status vk_gemm_init(struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                    const struct msc_vk_gemm_desc *desc) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(desc);
    if (!vk_gemm_can_turn(desc, b->vk)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "vulkan: sums have too many products for the loops of a shader");
    }
    if (!msc_vk_fits(b, desc->n_z * desc->w_step * (int64_t)sizeof(float))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "vulkan: weights padded to a multiple of 4 channels are too large");
    }
    g->desc = *desc;
    g->weight = w;
    g->is_pointwise = !desc->window || is_pointwise(desc->window);
    g->is_transposed = desc->window && desc->window->kind == MSC_GEMM_CONV_TRANSPOSE;
    g->has_x_quads = desc->depth % 4 == 0 && desc->x_row % 4 == 0 && desc->x_step % 4 == 0;
    g->has_x_sixteens = desc->depth % 16 == 0 && desc->x_row % 16 == 0 && desc->x_step % 16 == 0;
    g->has_y_quads = desc->n_cols % 4 == 0 && desc->y_row % 4 == 0 && desc->y_step % 4 == 0;
    g->push = (struct push){
        .x_step = (uint32_t)desc->x_step,
        .w_step = (uint32_t)desc->w_step,
        .y_step = (uint32_t)desc->y_step,
        .n_z = (uint32_t)desc->n_z,
        .n_rows = (uint32_t)desc->n_rows,
        .n_cols = (uint32_t)desc->n_cols,
        .y_row = (uint32_t)desc->y_row,
        .w_row = (uint32_t)w.row,
        .tail_step = desc->window ? (uint32_t)desc->n_cols : 0,
        .n_channels =
            (uint32_t)(desc->window && !w.is_depthwise ? desc->n_cols * desc->n_z : desc->n_cols)};
    geometry numbers;
    set_geometry(numbers, desc);
    return msc_vk_upload_new(b->vk, &g->geometry, numbers, sizeof(numbers));
}

enum msc_status msc_vk_gemm_create(struct msc_vk_gemm **out, struct msc_vk_backend *b,
                                   const struct msc_vk_gemm_desc *desc) {
    struct msc_vk_gemm *g = msc_alloc_zero(1, sizeof(*g));
    MSC_TRY(MSC_ALLOCATED(g));
    g->forced = -1;
    enum msc_status status = vk_gemm_init(g, b, desc);
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

void msc_vk_gemm_set_limits(struct msc_vk_gemm *g, float low, float high) {
    g->push.low = low;
    g->push.high = high;
}

bool msc_vk_gemm_has(const struct msc_vk_gemm *g, const struct msc_vk_backend *b,
                     enum msc_vk_unit unit) {
    bool is_g = !b->vk->tuning.is_family_u;
    return unit == MSC_VK_UNIT_FLOATS ||
           (is_g && (unit == MSC_VK_UNIT_BYTES || !g->weight.is_depthwise));
}

// ---- Choosing a shader ------------------------------------------------------------------------

// The shader of a dispatch, and how its calls are divided into workgroups.
struct choice {
    enum msc_vk_shader shader;
    uint32_t constants[MSC_VK_CONV_MATRIX_CONSTANTS]; // conv_matrix has the most constants
    enum msc_vk_kind x_kind, w_kind;
    uint32_t groups[3];
    uint32_t per_lane;
};

static void choose_depthwise(struct choice *c, const struct msc_vk_gemm *g, const struct msc_vk *vk,
                             enum msc_vk_unit unit) {
    static const enum msc_vk_shader shaders[2][2] = {
        {MSC_VK_DEPTHWISE_G, MSC_VK_DEPTHWISE_G_BYTES},
        {MSC_VK_DEPTHWISE_G_QUADS, MSC_VK_DEPTHWISE_G_BYTES_QUADS}};
    bool is_u = vk->tuning.is_family_u;
    bool has_quads = !is_u && g->desc.n_cols % 4 == 0 && g->desc.n_cols == g->desc.x_row &&
                     g->desc.n_cols == g->desc.y_row;
    c->shader = is_u ? MSC_VK_DEPTHWISE_U : shaders[has_quads][unit == MSC_VK_UNIT_BYTES];
    c->constants[0] = vk->tuning.lanes;
    c->x_kind = c->w_kind = is_u ? MSC_VK_FLOATS : MSC_VK_READ;
    c->groups[0] =
        msc_vk_spread(vk, (uint64_t)(g->desc.n_rows * g->desc.n_cols / (has_quads ? 4 : 1)),
                      depthwise_turns(g->desc.window), &c->per_lane);
    c->groups[1] = c->groups[2] = 1;
}

static uint32_t power_of_two_above(int64_t n) {
    uint32_t p = 1;
    while (p < n) {
        p *= 2;
    }
    return p;
}

static void choose_u(struct choice *c, const struct msc_vk_gemm *g,
                     const struct msc_vk_tile *tile) {
    int64_t n_rows = g->desc.n_rows, n_quads = g->weight.row / 4;
    uint32_t lanes = tile->rows / tile->row * (tile->cols / tile->col);
    uint32_t rows = tile->row;
    if (n_rows < (int64_t)rows * 4) {
        rows = n_rows == 1 ? 1 : 4;
    }
    uint32_t row_lanes = power_of_two_above((n_rows + rows - 1) / rows);
    row_lanes = row_lanes < lanes ? row_lanes : lanes;
    uint32_t quads = n_quads % (tile->col / 4) == 0 ? tile->col / 4 : 1;
    c->shader = g->has_x_quads ? MSC_VK_CONV_U_QUADS : MSC_VK_CONV_U_FLOATS;
    c->constants[0] = lanes;
    c->constants[4] = rows;
    c->constants[5] = quads;
    c->constants[6] = row_lanes;
    c->x_kind = g->has_x_quads ? MSC_VK_QUADS : MSC_VK_FLOATS;
    c->w_kind = MSC_VK_QUADS;
    c->groups[0] = msc_vk_groups((uint64_t)n_rows, (uint64_t)row_lanes * rows);
    c->groups[1] = msc_vk_groups((uint64_t)n_quads, (uint64_t)(lanes / row_lanes) * quads);
    c->groups[2] = (uint32_t)g->desc.n_z;
}

static void choose_g(struct choice *c, const struct msc_vk_gemm *g, const struct msc_vk *vk,
                     enum msc_vk_unit unit, const struct msc_vk_tile *tile) {
    const enum msc_vk_shader shaders[MSC_VK_UNIT_COUNT] = {
        [MSC_VK_UNIT_FLOATS] = MSC_VK_CONV_G,
        [MSC_VK_UNIT_BYTES] = MSC_VK_CONV_G_BYTES,
        [MSC_VK_UNIT_INT] = vk->has_dot ? MSC_VK_CONV_G_DOT : MSC_VK_CONV_G_INT};
    c->shader = tile->is_matrix ? MSC_VK_CONV_MATRIX : shaders[unit];
    c->constants[0] = msc_vk_tile_lanes(vk, tile);
    c->constants[4] = tile->rows;
    c->constants[5] = tile->cols;
    c->constants[6] = tile->depth;
    c->constants[7] = tile->row;
    c->constants[8] = tile->col;
    c->constants[9] = g->has_x_quads;
    c->constants[10] = g->has_y_quads;
    if (tile->is_matrix) {
        c->constants[11] = vk->matrix.rows;
        c->constants[12] = vk->matrix.cols;
        c->constants[13] = vk->matrix.depth;
        c->constants[14] = g->has_x_sixteens;
    }
    c->x_kind = c->w_kind = MSC_VK_READ;
    c->groups[0] = msc_vk_groups((uint64_t)g->desc.n_rows, tile->rows);
    c->groups[1] = msc_vk_groups((uint64_t)g->desc.n_cols, tile->cols);
    c->groups[2] = (uint32_t)g->desc.n_z;
}

// The number of products per sum, over taps and channels.
static uint64_t depth_of(const struct msc_vk_gemm *g) {
    return (uint64_t)(g->desc.depth * n_taps(&g->desc));
}

static bool is_same_shape(const struct msc_vk_shape *a, const struct msc_vk_shape *b) {
    return a->rows == b->rows && a->cols == b->cols && a->depth == b->depth &&
           a->is_integer == b->is_integer;
}

// The tile for a shape. Choosing takes long if many choices are kept, so it is done once for each
// shape that runs in a row.
static int tile_of(struct msc_vk_gemm *g, const struct msc_vk *vk,
                   const struct msc_vk_shape *shape) {
    if (vk->forced_tile >= 0) {
        return vk->forced_tile;
    }
    if (!is_same_shape(&g->shape, shape)) {
        g->shape = *shape;
        g->tile = msc_vk_choose_tile(vk, shape);
    }
    bool can_force = g->forced >= 0 && msc_vk_tile_is_possible(vk, g->forced, shape->is_integer);
    return can_force ? g->forced : g->tile;
}

static enum msc_status vk_gemm_choose(struct choice *c, struct msc_vk_pipeline **pipeline,
                                      struct msc_vk_gemm *g, struct msc_vk *vk,
                                      enum msc_vk_unit unit, int n_calls) {
    struct msc_vk_shape shape = {.rows = (uint64_t)(g->desc.n_rows * g->desc.n_z * n_calls),
                                 .cols = (uint64_t)g->desc.n_cols,
                                 .depth = depth_of(g),
                                 .is_integer = unit == MSC_VK_UNIT_INT};
    int tile = g->weight.is_depthwise ? 0 : tile_of(g, vk, &shape);
    memset(c, 0, sizeof(*c));
    if (g->weight.is_depthwise) {
        choose_depthwise(c, g, vk, unit);
    } else if (vk->tuning.is_family_u) {
        choose_u(c, g, msc_vk_tile(vk, tile));
    } else {
        choose_g(c, g, vk, unit, msc_vk_tile(vk, tile));
    }
    c->constants[1] = !vk->divides_exactly;
    c->constants[2] = g->is_pointwise;
    c->constants[3] = g->is_transposed;
    if (!g->pipelines[unit][tile]) {
        MSC_TRY(msc_vk_pipeline(&g->pipelines[unit][tile], vk, c->shader, c->constants));
    }
    *pipeline = g->pipelines[unit][tile];
    return MSC_OK;
}

// ---- Variants ---------------------------------------------------------------------------------

static bool is_offered(const struct msc_vk *vk, int tile, bool is_integer) {
    return msc_vk_tile_is_possible(vk, tile, is_integer) && msc_vk_tile_is_tried(vk, tile);
}

bool msc_vk_gemm_variants(const struct msc_vk_gemm *g, const struct msc_vk *vk,
                          struct msc_variants *out) {
    const struct msc_vk_shape *s = &g->shape;
    if (s->rows == 0) {
        return false;
    }
    int by_rule = msc_vk_choose_by_rule(vk, s), kept = msc_vk_kept_tile(vk, s);
    *out = (struct msc_variants){.work = msc_vk_work_of(s), .by_rule = 0, .kept = -1};
    for (int tile = 0; tile < msc_vk_n_tiles(vk) && out->n < MSC_MOST_VARIANTS; tile++) {
        if (is_offered(vk, tile, s->is_integer) || tile == by_rule || tile == kept) {
            out->by_rule = tile == by_rule ? out->n : out->by_rule;
            out->kept = tile == kept ? out->n : out->kept;
            msc_vk_tile_text(out->names[out->n++], msc_vk_tile(vk, tile));
        }
    }
    return true;
}

void msc_vk_gemm_choose_variant(struct msc_vk_gemm *g, const struct msc_vk *vk, int variant) {
    struct msc_variants v;
    g->forced = -1;
    if (variant >= 0 && msc_vk_gemm_variants(g, vk, &v) && variant < v.n) {
        g->forced = msc_vk_find_tile(vk, v.names[variant], g->shape.is_integer);
    }
}

// ---- Running ----------------------------------------------------------------------------------

static void vk_gemm_fill_call(struct msc_vk_call *c, const struct msc_vk_gemm_call *call,
                              const struct msc_vk_gemm *g, const struct msc_vk_backend *b) {
    c->blocks[0] = call->x;
    c->blocks[1] = call->w;
    c->blocks[3] = call->tail ? call->tail : b->nothing;
    c->blocks[4] = g->geometry;
    static const uint32_t biases[] = {[MSC_VK_NO_BIAS] = 0,
                                      [MSC_VK_FLOAT_BIAS] = HAS_BIAS,
                                      [MSC_VK_INTEGER_BIAS] = HAS_INTEGER_BIAS};
    c->row[FLAGS] = (call->has_scales ? HAS_SCALES : 0) | biases[call->bias] |
                    (call->has_limits ? HAS_LIMITS : 0) |
                    (call->has_one_scale ? HAS_ONE_SCALE : 0) | (call->y ? HAS_Y : 0);
    memcpy(&c->row[X_SCALE], &call->x_scale, sizeof(call->x_scale));
    msc_vk_put_bytes(&c->row[BYTES], &call->bytes);
    msc_vk_put_quantized(c, &c->row[FORMS], call->quantized, call->n_quantized);
    // The binding of an output that is not written gets the block of the other output, so that the
    // dispatch does not have to wait for a third block.
    c->blocks[2] = call->y ? call->y : &c->quantized;
    c->blocks[5] = call->n_quantized > 0 ? &c->quantized : call->y;
}

static double n_groups(const uint32_t groups[3]) {
    return (double)groups[0] * groups[1] * groups[2];
}

// Runs as many dispatches as the device's limits require, nearly always one. `work` is the total
// work of all dispatches.
static enum msc_status dispatch_parts(struct msc_vk *vk, struct msc_vk_dispatch *d,
                                      struct push *push, const uint32_t groups[3], double work) {
    const uint32_t *most = vk->properties.limits.maxComputeWorkGroupCount;
    uint64_t first[3];
    for (first[2] = 0; first[2] < groups[2]; first[2] += most[2]) {
        for (first[1] = 0; first[1] < groups[1]; first[1] += most[1]) {
            for (first[0] = 0; first[0] < groups[0]; first[0] += most[0]) {
                for (int i = 0; i < 3; i++) {
                    uint32_t rest = groups[i] - (uint32_t)first[i];
                    push->first[i] = (uint32_t)first[i];
                    d->groups[i] = rest < most[i] ? rest : most[i];
                }
                push->n_z = d->groups[2];
                d->work = work * (n_groups(d->groups) / n_groups(groups));
                MSC_TRY(msc_vk_dispatch(vk, d));
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_vk_gemm_run(struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                enum msc_vk_unit unit, const struct msc_vk_gemm_call calls[],
                                int n) {
    struct choice c;
    struct msc_vk_pipeline *pipeline;
    struct push push = g->push;
    struct msc_vk_dispatch d;
    MSC_TRY(vk_gemm_choose(&c, &pipeline, g, b->vk, unit, n));
    const enum msc_vk_kind kinds[] = {c.x_kind,    c.w_kind,    MSC_VK_WRITE,
                                      MSC_VK_READ, MSC_VK_READ, MSC_VK_WRITE};
    msc_vk_dispatch_init(&d, pipeline, 6, kinds);
    push.per_lane = c.per_lane;
    push.x_step /= c.x_kind == MSC_VK_QUADS ? 4 : 1;
    push.w_step /= c.w_kind == MSC_VK_QUADS || unit == MSC_VK_UNIT_INT ? 4 : 1;
    MSC_VK_CHECK_PUSH(MSC_VK_CONV_G, push);
    MSC_VK_CHECK_PUSH(MSC_VK_CONV_MATRIX, push);
    MSC_VK_CHECK_PUSH(MSC_VK_CONV_U_QUADS, push);
    MSC_VK_CHECK_PUSH(MSC_VK_DEPTHWISE_G, push);
    d.push = &push;
    d.push_bytes = sizeof(push);
    d.n_row = N_ROW;
    for (int i = 0; i < n; i++) {
        vk_gemm_fill_call(msc_vk_add_call(&d), &calls[i], g, b);
    }
    double work = 2.0 * (double)(g->desc.n_rows * g->desc.n_cols * g->desc.n_z);
    return dispatch_parts(b->vk, &d, &push, c.groups, work * (double)depth_of(g));
}

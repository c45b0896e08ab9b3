// Conversions between floats and quantised integers.
#include "kernels/vulkan/vk_kernels.h"

#include <assert.h>
#include <string.h>

// ---- Forms ------------------------------------------------------------------------------------

bool msc_vk_can_write(const struct msc_quantized quantized[], int32_t n) {
    for (int32_t i = 1; i < n; i++) {
        if (msc_vk_block_of(&quantized[i].view)->arena !=
            msc_vk_block_of(&quantized[0].view)->arena) {
            return false;
        }
    }
    return n <= MSC_VK_MAX_QUANTIZED;
}

static void put_float(uint32_t *word, float value) {
    memcpy(word, &value, sizeof(*word));
}

// The kind of a variant, numbered as in shaders/forms.glsl.
static uint32_t vk_quantize_kind_of(const struct msc_quantized *variant) {
    enum { BYTES, FLOATS, F16, BF16 };
    if (variant->view.dtype != MSC_DTYPE_F32) {
        return BYTES;
    }
    enum msc_dtype type = variant->quant->type;
    return type == MSC_DTYPE_F16 ? F16 : type == MSC_DTYPE_BF16 ? BF16 : FLOATS;
}

static void put_variant(uint32_t row[6], const struct msc_quantized *variant, uint64_t begin) {
    const struct msc_quant *q = variant->quant;
    int64_t zero = q->zero_points[0];
    row[0] = (uint32_t)((msc_vk_block_of(&variant->view)->offset - begin) / sizeof(uint32_t));
    row[1] = vk_quantize_kind_of(variant);
    put_float(&row[2], q->scales[0]);
    row[3] = (uint32_t)zero;
    put_float(&row[4], (float)(q->low - zero));
    put_float(&row[5], (float)(q->high - zero));
}

void msc_vk_put_quantized(struct msc_vk_call *c, uint32_t row[],
                          const struct msc_quantized quantized[], int32_t n) {
    memset(row, 0, MSC_VK_QUANTIZED_WORDS * sizeof(row[0]));
    row[0] = (uint32_t)n;
    if (n > 0) {
        c->quantized = *msc_vk_block_of(&quantized[0].view);
    }
    for (int32_t i = 1; i < n; i++) {
        const struct msc_vk_block *block = msc_vk_block_of(&quantized[i].view);
        uint64_t begin = c->quantized.offset, end = begin + c->quantized.n_bytes;
        begin = block->offset < begin ? block->offset : begin;
        end = block->offset + block->n_bytes > end ? block->offset + block->n_bytes : end;
        c->quantized.offset = begin;
        c->quantized.n_bytes = end - begin;
    }
    for (int32_t i = 0; i < n; i++) {
        put_variant(&row[1 + 6 * i], &quantized[i], c->quantized.offset);
    }
}

// ---- Bytes ------------------------------------------------------------------------------------

struct msc_vk_bytes msc_vk_bytes_digit(const struct msc_view *in, int shift, int32_t mask) {
    return (struct msc_vk_bytes){in->dtype == MSC_DTYPE_I8, in->quant->zero_points[0], shift, mask,
                                 1.0f};
}

struct msc_vk_bytes msc_vk_bytes_integer(const struct msc_view *in) {
    return msc_vk_bytes_digit(in, 0, -1);
}

struct msc_vk_bytes msc_vk_bytes_value(const struct msc_view *in) {
    struct msc_vk_bytes bytes = msc_vk_bytes_integer(in);
    bytes.factor = in->quant->scales[0];
    return bytes;
}

void msc_vk_put_bytes(uint32_t row[], const struct msc_vk_bytes *bytes) {
    row[0] = bytes->is_signed;
    row[1] = (uint32_t)bytes->zero;
    row[2] = (uint32_t)bytes->shift;
    row[3] = (uint32_t)bytes->mask;
    put_float(&row[4], bytes->factor);
}

// ---- Kernels ----------------------------------------------------------------------------------

enum msc_status msc_vk_quantize(struct msc_vk_backend *b, const struct msc_vk_quantizing items[],
                                int n, uint64_t n_elements) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_WRITE};
    uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly};
    uint32_t push[2] = {(uint32_t)n_elements, 0};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_QUANTIZE, constants);
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, MSC_VK_QUANTIZE, constants));
    msc_vk_dispatch_init(&d, pipeline, 2, kinds);
    for (int i = 0; i < n; i++) {
        if (items[i].out.quant->n != 1) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "a step that writes an activation cannot quantise it in groups "
                            "or by channel");
        }
        struct msc_vk_call *c = msc_vk_add_call(&d);
        msc_vk_put_quantized(c, c->row, &items[i].out, 1);
        c->blocks[0] = items[i].in;
        c->blocks[1] = &c->quantized;
    }
    d.groups[0] = msc_vk_spread(b->vk, n_elements, 1, &push[1]);
    MSC_VK_CHECK_PUSH(MSC_VK_QUANTIZE, push);
    d.push = push;
    d.push_bytes = sizeof(push);
    d.n_row = MSC_VK_QUANTIZED_WORDS;
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_quantize_results(struct msc_vk_backend *b, const struct msc_call calls[],
                                        const struct msc_vk_block *const results[], int n,
                                        uint64_t n_elements) {
    struct msc_vk_quantizing items[MSC_VK_MAX_CALLS];
    int n_items = 0;
    for (int i = 0; i < n; i++) {
        for (int32_t f = 0; f < calls[i].n_quantized; f++) {
            items[n_items++] = (struct msc_vk_quantizing){results[i], calls[i].quantized[f]};
            if (n_items == MSC_VK_MAX_CALLS) {
                MSC_TRY(msc_vk_quantize(b, items, n_items, n_elements));
                n_items = 0;
            }
        }
    }
    return n_items > 0 ? msc_vk_quantize(b, items, n_items, n_elements) : MSC_OK;
}

enum msc_status msc_vk_expand(struct msc_vk_backend *b, const struct msc_vk_expanding items[],
                              int n, uint64_t n_elements) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_WRITE};
    uint32_t push[2] = {(uint32_t)n_elements, 0};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_EXPAND, b->vk->tuning.lanes);
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, MSC_VK_EXPAND, &b->vk->tuning.lanes));
    msc_vk_dispatch_init(&d, pipeline, 2, kinds);
    for (int i = 0; i < n; i++) {
        struct msc_vk_call *c = msc_vk_add_call(&d);
        c->blocks[0] = items[i].in;
        c->blocks[1] = items[i].out;
        msc_vk_put_bytes(c->row, &items[i].bytes);
    }
    d.groups[0] = msc_vk_spread(b->vk, (n_elements + 3) / 4, 4, &push[1]);
    MSC_VK_CHECK_PUSH(MSC_VK_EXPAND, push);
    d.push = push;
    d.push_bytes = sizeof(push);
    d.n_row = MSC_VK_BYTES_WORDS;
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_expand_input(struct msc_vk_block *made[], struct msc_vk_backend *b,
                                    const struct msc_call calls[], int n, int32_t input) {
    struct msc_vk_expanding items[MSC_VK_MAX_CALLS];
    uint64_t n_elements = (uint64_t)msc_view_n_elements(&calls[0].inputs[input]);
    int n_items = 0;
    memset(made, 0, (size_t)n * sizeof(made[0]));
    for (int i = 0; i < n; i++) {
        const struct msc_view *x = &calls[i].inputs[input];
        if (!x->quant) {
            continue;
        }
        MSC_TRY(msc_vk_take(&made[i], b, 1, n_elements * sizeof(float)));
        if (msc_quant_is_by_channel(x->quant)) {
            MSC_TRY(msc_vk_expand_channels(b, x, made[i], true));
        } else {
            items[n_items++] =
                (struct msc_vk_expanding){msc_vk_block_of(x), made[i], msc_vk_bytes_value(x)};
        }
    }
    return n_items > 0 ? msc_vk_expand(b, items, n_items, n_elements) : MSC_OK;
}

// Numbered as in shaders/digits.comp.
enum stage {
    SET,
    ADD,
    FINISH,
};

struct digits_push {
    uint32_t n, per_lane, channels;
    int32_t shift;
    uint32_t n_scales;
};

static enum msc_status run_digits(struct msc_vk_backend *b, enum stage stage, enum msc_vk_bias bias,
                                  const struct msc_vk_summing items[], int n,
                                  struct digits_push *push) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ_WRITE, MSC_VK_READ_WRITE, MSC_VK_READ};
    uint32_t constants[] = {b->vk->tuning.lanes, 0, stage, bias};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_DIGITS, constants);
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, MSC_VK_DIGITS, constants));
    msc_vk_dispatch_init(&d, pipeline, 3, kinds);
    for (int i = 0; i < n; i++) {
        struct msc_vk_call *c = msc_vk_add_call(&d);
        c->blocks[0] = items[i].product;
        c->blocks[1] = items[i].sums;
        c->blocks[2] = items[i].tail ? items[i].tail : b->nothing;
        put_float(&c->row[0], items[i].scale);
    }
    push->n_scales = items[0].tail != NULL;
    d.groups[0] = msc_vk_spread(b->vk, push->n, 1, &push->per_lane);
    MSC_VK_CHECK_PUSH(MSC_VK_DIGITS, *push);
    d.push = push;
    d.push_bytes = sizeof(*push);
    d.n_row = 1;
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_add_digits(struct msc_vk_backend *b, const struct msc_vk_summing items[],
                                  int n, uint64_t n_elements, int shift, bool is_first) {
    struct digits_push push = {.n = (uint32_t)n_elements, .channels = 1, .shift = shift};
    return run_digits(b, is_first ? SET : ADD, MSC_VK_NO_BIAS, items, n, &push);
}

enum msc_status msc_vk_finish_sums(struct msc_vk_backend *b, const struct msc_vk_summing items[],
                                   int n, uint64_t n_elements, int64_t channels,
                                   enum msc_vk_bias bias) {
    struct digits_push push = {.n = (uint32_t)n_elements, .channels = (uint32_t)channels};
    return run_digits(b, FINISH, bias, items, n, &push);
}

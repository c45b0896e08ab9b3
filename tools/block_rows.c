#include "tools/block_rows.h"

#include "base/alloc.h"
#include "tools/block_fit.h"

#define DESCENT_PASSES 4
// In place of 0, which integers cannot be divided by. Its elements stay below every float16.
#define SMALLEST_SCALE 1e-30F

struct encoding {
    const struct msc_weight_rows *w;
    const struct msc_block_rows_options *o;
    uint8_t *bytes;
    size_t n_row_bytes;
};

bool msc_block_rows_fits(const struct msc_tensor *weight, int32_t axis, int32_t n_axes,
                         const struct msc_gguf_block_type *type) {
    return weight->n_dims == 2 && n_axes == 1 && weight->dims[axis] % type->n == 0;
}

// The diagonal of the second moments, [n_columns] in the arena.
static enum msc_status take_diagonal(float **out, const struct encoding *c,
                                     struct msc_arena *arena) {
    int64_t n = c->w->n_columns, block = c->w->block_columns;
    const float *h = c->o->h;
    *out = msc_arena_array(arena, (size_t)n, sizeof((*out)[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (int64_t first = 0; first < n; first += block) {
        int64_t width = n - first < block ? n - first : block;
        for (int64_t k = 0; k < width; k++) {
            (*out)[first + k] = h[k * width + k];
        }
        h += width * width;
    }
    return MSC_OK;
}

static enum msc_status fit_rows(const struct encoding *c, struct msc_arena *arena) {
    float *importance = NULL;
    MSC_TRY(c->o->h ? take_diagonal(&importance, c, arena) : MSC_OK);
#pragma omp parallel for num_threads(c->o->n_threads) schedule(dynamic)
    for (int64_t row = 0; row < c->w->n_rows; row++) {
        msc_block_fit_rows(c->bytes + (size_t)row * c->n_row_bytes,
                           c->w->values + row * c->w->n_columns, 1, c->w->n_columns, importance,
                           c->o->type);
    }
    return MSC_OK;
}

// ---- Codes ------------------------------------------------------------------------------------

// Sets scales, zeros and shifted elements of a row.
static void unpack_row(const struct encoding *c, int64_t row, struct msc_rounded_rows *rounded,
                       float shifted[]) {
    const struct msc_gguf_block_type *type = c->o->type;
    const uint8_t *bytes = c->bytes + (size_t)row * c->n_row_bytes;
    int64_t n = c->w->n_columns, n_parts = type->n / type->n_in_part;
    float scales[MSC_GGUF_MAX_PARTS], minimums[MSC_GGUF_MAX_PARTS];
    struct msc_gguf_block block;
    for (int64_t i = 0; i < n; i++) {
        int64_t in_block = i % type->n, part = in_block / type->n_in_part;
        if (in_block == 0) {
            msc_gguf_unpack(&block, bytes + i / type->n * type->n_bytes, type);
            msc_gguf_scales(scales, minimums, &block, type);
        }
        int64_t at = row * (n / type->n_in_part) + i / type->n * n_parts + part;
        rounded->scales[at] = scales[part] != 0 ? scales[part] : SMALLEST_SCALE;
        rounded->zero_points[at] = type->zero;
        shifted[row * n + i] = c->w->values[row * n + i] + minimums[part];
    }
}

static void pack_row(const struct encoding *c, int64_t row, const int32_t integers[]) {
    const struct msc_gguf_block_type *type = c->o->type;
    struct msc_gguf_block block;
    for (int64_t first = 0; first < c->w->n_columns; first += type->n) {
        uint8_t *bytes = c->bytes + (size_t)row * c->n_row_bytes + first / type->n * type->n_bytes;
        msc_gguf_unpack(&block, bytes, type);
        for (int i = 0; i < type->n; i++) {
            block.codes[i] = (uint8_t)integers[row * c->w->n_columns + first + i];
        }
        msc_gguf_pack(bytes, &block, type);
    }
}

static enum msc_status round_some(void *payload, struct msc_rounding_rows *rows, int64_t group,
                                  int64_t first) {
    const struct encoding *c = payload;
    (void)group;
    (void)first;
    MSC_TRY(msc_rounding_gptq(rows, c->o->orders));
    return c->o->rounding == MSC_ROUNDING_DESCENT ? msc_rounding_descend(rows, DESCENT_PASSES)
                                                  : MSC_OK;
}

static enum msc_status round_codes(struct encoding *c, struct msc_arena *arena) {
    const struct msc_gguf_block_type *type = c->o->type;
    size_t n = (size_t)(c->w->n_rows * c->w->n_columns), n_scales = n / (size_t)type->n_in_part;
    float *shifted = msc_arena_array(arena, n, sizeof(shifted[0]));
    struct msc_weight_rows rows = *c->w;
    struct msc_rounded_rows rounded = {
        .rows = &rows,
        .form = {.group_size = type->n_in_part, .group_axes = 1, .n = (int32_t)n_scales},
        .scheme = {.bits = type->bits, .is_weight = true},
        .n_blocks = c->w->n_columns / type->n_in_part,
        .scales = msc_arena_array(arena, n_scales, sizeof(float)),
        .zero_points = msc_arena_array(arena, n_scales, sizeof(int32_t)),
        .integers = msc_arena_array(arena, n, sizeof(int32_t))};
    MSC_TRY(MSC_ALLOCATED(shifted && rounded.scales && rounded.zero_points && rounded.integers));
    for (int64_t row = 0; row < rows.n_rows; row++) {
        unpack_row(c, row, &rounded, shifted);
    }
    rows.values = shifted;
    MSC_TRY(msc_weight_rows_each(&rounded, c->o->h, c->o->n_threads, round_some, c));
    for (int64_t row = 0; row < rows.n_rows; row++) {
        pack_row(c, row, rounded.integers);
    }
    return MSC_OK;
}

enum msc_status msc_block_rows_round(struct msc_quant *out, const struct msc_weight_rows *w,
                                     const struct msc_block_rows_options *o) {
    struct encoding c = {.w = w, .o = o};
    struct msc_array *bytes = NULL;
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    c.n_row_bytes = (size_t)(w->n_columns / o->type->n) * (size_t)o->type->n_bytes;
    int64_t n_bytes = w->n_rows * (int64_t)c.n_row_bytes;
    MSC_TRY_OUT(msc_array_create_unset(&bytes, MSC_DTYPE_U8, 1, &n_bytes));
    c.bytes = msc_array_data(bytes);
    MSC_TRY_OUT(fit_rows(&c, &arena));
    if (o->h && o->rounding != MSC_ROUNDING_NEAREST) {
        MSC_TRY_OUT(round_codes(&c, &arena));
    }
    struct msc_quant quant = msc_quant_of_blocks(o->type, o->axis, bytes);
    status = msc_quant_copy(out, &quant);
out:
    msc_array_release(bytes);
    msc_arena_finish(&arena);
    return status;
}

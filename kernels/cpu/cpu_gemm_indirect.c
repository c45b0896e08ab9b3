// Computes convolutions and linear layers by products of our own (simd_indirect.h). A window
// consists of several runs of the input, each contiguous in memory.
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <string.h>

// ---- Geometry ---------------------------------------------------------------------------------

// The shape of a window. Without dilation, all positions in a row of the window form one run; with
// dilation, each position is a run.
struct shape {
    int64_t rows, columns; // rows * columns runs per window
    int64_t depth;         // elements per run
    int64_t per_position;
};

// Rows and columns are the last two spatial axes, if these exist.
static struct shape cpu_gemm_indirect_shape_of(const struct msc_gemm_desc *d) {
    int n = d->kind == MSC_GEMM_LINEAR ? 0 : d->n_spatial;
    struct shape s = {.rows = n > 1 ? d->kernel[n - 2] : 1,
                      .columns = n > 0 ? d->kernel[n - 1] : 1,
                      .depth = d->in_channels,
                      .per_position = d->in_channels};
    if (n == 0 || d->dilation[n - 1] == 1) {
        s.depth *= s.columns;
        s.columns = 1;
    }
    return s;
}

static int64_t count_runs(const struct shape *s) {
    return s->rows * s->columns;
}

static int64_t cpu_gemm_indirect_element_bytes(enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT ? 1 : (int64_t)sizeof(float);
}

static bool is_point(const struct msc_gemm_desc *d) {
    for (int i = 0; d->kind == MSC_GEMM_CONV && i < d->n_spatial; i++) {
        if (d->kernel[i] > 1 || d->pad_begin[i] > 0 || d->pad_end[i] > 0) {
            return false;
        }
    }
    return true;
}

static bool has_windows(const struct msc_gemm_desc *d, enum msc_cpu_gemm_unit unit) {
    bool is_conv = d->kind == MSC_GEMM_CONV;
    return (is_conv || d->kind == MSC_GEMM_LINEAR) && d->groups == 1 &&
           (!is_conv || d->n_spatial <= 2) && (unit == MSC_CPU_GEMM_INDIRECT || is_point(d));
}

const struct msc_simd_product *msc_cpu_gemm_choose_product(const struct msc_cpu_gemm *k,
                                                           enum msc_cpu_gemm_unit unit) {
    const struct msc_cpu_backend *b = k->backend;
    const struct msc_gemm_desc *d = &k->chunks[unit].desc;
    bool is_float = unit == MSC_CPU_GEMM_FLOAT_INDIRECT;
    const struct msc_simd_product *plain = is_float ? b->floats : b->bytes;
    if (!plain || !has_windows(d, unit)) {
        return NULL;
    }
    // If much of the packed weights would be padding, a routine is faster than the product.
    struct shape s = cpu_gemm_indirect_shape_of(d);
    int64_t n_runs = count_runs(&s), depth = s.depth * cpu_gemm_indirect_element_bytes(unit);
    size_t n_bytes = plain->packed_bytes(d->out_channels, n_runs, depth);
    int64_t most_padded = is_float ? 2 : 4; // packed weights for each weight
    int64_t most = msc_array_n_elements(k->weight) * plain->weight_bytes * most_padded;
    if (n_bytes > (size_t)most) {
        return NULL;
    }
    // The product by tiles, which also pads windows, is used only if the padding is not too large.
    if (!is_float && b->tiles) {
        size_t filled = b->tiles->packed_bytes(d->out_channels, n_runs, depth);
        return filled <= (size_t)most && filled <= 2 * n_bytes ? b->tiles : plain;
    }
    return plain;
}

bool msc_cpu_gemm_indirect_read_beyond(const struct msc_cpu_gemm *k) {
    return cpu_gemm_indirect_shape_of(&k->chunks[MSC_CPU_GEMM_INDIRECT].desc).depth %
               MSC_SIMD_GROUP !=
           0;
}

// ---- Weights ----------------------------------------------------------------------------------

// Puts the weights of each output channel in the order of the elements of a window.
static void order_weights(char *out, const char *in, const struct msc_gemm_desc *d,
                          int64_t element) {
    struct shape s = cpu_gemm_indirect_shape_of(d);
    int64_t area = count_runs(&s) * s.depth / s.per_position;
    int64_t channel = d->is_input_first ? 1 : s.per_position * area;
    int64_t position = d->is_input_first ? d->out_channels : area;
    for (int64_t c = 0; c < d->out_channels; c++) {
        for (int64_t a = 0; a < area; a++) {
            for (int64_t i = 0; i < s.per_position; i++, out += element) {
                memcpy(out, in + (c * channel + i * position + a) * element, (size_t)element);
            }
        }
    }
}

// True if the weights are [inputs][outputs], which some products pack as they are.
static bool has_rows(const struct msc_gemm_desc *d, const struct shape *s, int64_t n_runs) {
    return d->is_input_first && n_runs == 1 && s->depth == s->per_position;
}

enum msc_status msc_cpu_gemm_pack_indirect(void **out, const struct msc_cpu_gemm *k,
                                           enum msc_cpu_gemm_unit unit, const void *weights) {
    const struct msc_simd_product *product = msc_cpu_gemm_product(k, unit);
    const struct msc_gemm_desc *d = &k->chunks[unit].desc;
    struct shape s = cpu_gemm_indirect_shape_of(d);
    int64_t element = cpu_gemm_indirect_element_bytes(unit), depth = s.depth * element,
            n_runs = count_runs(&s);
    void *packed = msc_alloc_aligned(product->packed_bytes(d->out_channels, n_runs, depth));
    if (packed && product->pack_rows && has_rows(d, &s, n_runs)) {
        product->pack_rows(packed, weights, d->out_channels, s.depth, element);
        *out = packed;
        return MSC_OK;
    }
    void *ordered = msc_alloc_aligned((size_t)(msc_array_n_elements(k->weight) * element));
    if (!ordered || !packed) {
        msc_free_aligned(ordered);
        msc_free_aligned(packed);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    order_weights(ordered, weights, d, element);
    product->pack(packed, ordered, d->out_channels, n_runs, depth);
    msc_free_aligned(ordered);
    *out = packed;
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

static int64_t count_windows(const struct msc_cpu_gemm_chunks *c) {
    return c->out / c->desc.out_channels;
}

// Offsets of the parts of scratch: first the window offsets, then the run offsets, then the scratch
// of the product.
struct places {
    size_t runs, scratch, end;
};

static struct places find_places(const struct msc_cpu_gemm *k, enum msc_cpu_gemm_unit unit) {
    const struct msc_cpu_gemm_chunks *c = &k->chunks[unit];
    struct shape s = cpu_gemm_indirect_shape_of(&c->desc);
    int64_t n_runs = count_runs(&s);
    struct places p = {.runs = msc_cpu_round_up((size_t)count_windows(c) * sizeof(int64_t))};
    p.scratch = p.runs + msc_cpu_round_up((size_t)n_runs * sizeof(int64_t));
    p.end = p.scratch + msc_cpu_gemm_product(k, unit)->scratch_bytes(
                            n_runs, s.depth * cpu_gemm_indirect_element_bytes(unit));
    return p;
}

size_t msc_cpu_gemm_indirect_scratch(const struct msc_cpu_gemm *k, enum msc_cpu_gemm_unit unit) {
    return find_places(k, unit).end;
}

// Sets the offset of each window. `unit` is the number of bytes per input position.
static void set_windows(int64_t at[], const struct msc_gemm_desc *d, int64_t unit) {
    int n = d->kind == MSC_GEMM_LINEAR ? 0 : d->n_spatial;
    int64_t out_rows = n > 1 ? d->out[n - 2] : 1, out_cols = n > 0 ? d->out[n - 1] : 1;
    int64_t in_rows = n > 1 ? d->in[n - 2] : 1, in_cols = n > 0 ? d->in[n - 1] : 1;
    int64_t row_step = n > 1 ? d->strides[n - 2] : 1, col_step = n > 0 ? d->strides[n - 1] : 1;
    for (int64_t image = 0; image < d->batch; image++) {
        for (int64_t y = 0; y < out_rows; y++) {
            int64_t row = (image * in_rows + y * row_step) * in_cols;
            for (int64_t x = 0; x < out_cols; x++) {
                *at++ = (row + x * col_step) * unit;
            }
        }
    }
}

static void set_runs(int64_t runs[], const struct msc_gemm_desc *d, const struct shape *s,
                     int64_t unit) {
    int n = d->kind == MSC_GEMM_LINEAR ? 0 : d->n_spatial;
    int64_t row = n > 1 ? d->dilation[n - 2] * d->in[n - 1] : 0;
    int64_t column = n > 0 ? d->dilation[n - 1] : 0;
    for (int64_t y = 0; y < s->rows; y++) {
        for (int64_t x = 0; x < s->columns; x++) {
            *runs++ = (y * row + x * column) * unit;
        }
    }
}

struct msc_simd_indirect msc_cpu_gemm_indirect(const struct msc_cpu_gemm *k,
                                               enum msc_cpu_gemm_unit unit, const void *packed,
                                               void *memory) {
    const struct msc_cpu_gemm_chunks *c = &k->chunks[unit];
    struct shape s = cpu_gemm_indirect_shape_of(&c->desc);
    struct places p = find_places(k, unit);
    int64_t *at = memory, *runs = (int64_t *)(void *)((char *)memory + p.runs);
    set_windows(at, &c->desc, s.per_position * cpu_gemm_indirect_element_bytes(unit));
    set_runs(runs, &c->desc, &s, s.per_position * cpu_gemm_indirect_element_bytes(unit));
    return (struct msc_simd_indirect){
        .at = at,
        .n = count_windows(c),
        .n_runs = count_runs(&s),
        .runs = runs,
        .depth = s.depth * cpu_gemm_indirect_element_bytes(unit),
        .weights = packed,
        .channels = c->desc.out_channels,
        .scratch = (char *)memory + p.scratch,
    };
}

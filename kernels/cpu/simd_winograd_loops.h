// Winograd's algorithm F(4 x 4, 3 x 3) on integers.
//
// A tile is 4 x 4 outputs of one channel; it reads 6 x 6 inputs. With the matrices below, the
// outputs of a tile are
//
//     Y = sum over input channels of A' [(G g G') * (B' d B)] A / (D D'),
//
// where * multiplies element by element. All matrices have integer elements: the fractions of the
// usual form are in D, whose elements are 3 * 2^k with k = 3, 2, 1, 1. The order of computation:
//
//     inputs     V = B' d B of int8: at most 100 * 128 in magnitude, so int16 holds V
//     weights    U = G g G' of int8: at most 49 * 128 in magnitude, so int16 holds U
//     products   M = sum over channels of U * V, modulo 2^32: one matrix product of int16 for each
//                of the 36 elements
//     outputs    9 * 2^n * Y = A' M A modulo 2^32, with n up to 6. A multiplication by the inverse
//                of 9 and a shift give Y, if Y is below 2^25 in magnitude
//
// A batch of tiles, from any of the images, is computed at a time, so that V and the products of
// one block of channels stay in the second-level cache.
//
//     V          [element][tile][input channel], the channels padded to whole vectors
//     M          [element][tile][vector][channel] of one block
#ifndef MSC_KERNELS_CPU_SIMD_WINOGRAD_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_WINOGRAD_LOOPS_H

#include "kernels/cpu/simd_winograd_weights.h"

enum {
    OUT = 4,            // outputs along each axis of a tile
    SHORTS = 2 * LANES, // int16 per vector
    BATCH_BYTES = 512 * 1024,
    LEAST_TILES = 24, // multiples of MOST_WINDOWS
    MOST_TILES = 96,
};

// ---- Batches ----------------------------------------------------------------------------------

// A batch of tiles with its parts of scratch.
struct batch {
    const struct msc_simd_image_windows *w;
    int64_t first, n;      // tiles
    int64_t rows, columns; // tiles per image along each axis
    int64_t most;          // tiles of a full batch
    int64_t row;           // bytes from one tile of `inputs` to the next
    char *inputs;          // V
    char *products;        // M
    int64_t *at;           // [most] offsets of the tiles of V
};

// The distance between two elements of V or M, in lines: odd, so that the elements of a tile are in
// different sets of the first-level cache.
static int64_t element_stride(int64_t n_bytes) {
    return n_bytes / LINE % 2 == 0 ? n_bytes + LINE : n_bytes;
}

static int64_t shorts_per_tile(int64_t in_channels) {
    return round_up(in_channels, SHORTS);
}

static int64_t tiles_at_once(int64_t in_channels) {
    int64_t bytes = ELEMENTS * (shorts_per_tile(in_channels) * (int64_t)sizeof(int16_t) +
                                MOST_VECTORS * VECTOR);
    int64_t n = BATCH_BYTES / bytes / MOST_WINDOWS * MOST_WINDOWS;
    return n < LEAST_TILES ? LEAST_TILES : n > MOST_TILES ? MOST_TILES : n;
}

static int64_t input_stride(int64_t in_channels, int64_t most) {
    return element_stride(most * shorts_per_tile(in_channels) * (int64_t)sizeof(int16_t));
}

static int64_t product_stride(int64_t vectors, int64_t most) {
    return element_stride(most * vectors * VECTOR);
}

static size_t scratch_bytes(int64_t in_channels) {
    int64_t most = tiles_at_once(in_channels);
    return (size_t)(ELEMENTS *
                        (input_stride(in_channels, most) + product_stride(MOST_VECTORS, most)) +
                    round_up(most * (int64_t)sizeof(int64_t), VECTOR));
}

static struct batch begin_batch(const struct msc_simd_image_windows *w) {
    struct batch b = {.w = w,
                      .rows = (w->out_height + OUT - 1) / OUT,
                      .columns = (w->out_width + OUT - 1) / OUT,
                      .most = tiles_at_once(w->in_channels),
                      .row = shorts_per_tile(w->in_channels) * (int64_t)sizeof(int16_t),
                      .inputs = w->scratch};
    char *end = (char *)w->scratch + ELEMENTS * input_stride(w->in_channels, b.most);
    b.products = end;
    b.at = (int64_t *)(void *)(end + ELEMENTS * product_stride(MOST_VECTORS, b.most));
    for (int64_t i = 0; i < b.most; i++) {
        b.at[i] = i * b.row;
    }
    return b;
}

// Where a tile's outputs begin.
struct place {
    int64_t image, y, x;
};

static struct place place_of(const struct batch *b, int64_t tile) {
    int64_t per_image = b->rows * b->columns, i = tile % per_image;
    return (struct place){tile / per_image, i / b->columns * OUT, i % b->columns * OUT};
}

// ---- Inputs -----------------------------------------------------------------------------------

// B' d for one column of d.
VECTOR_INLINE void transform_inputs(vshort v[], const vshort d[]) {
    vshort e = vs_subtract(d[4], vs_four_times(d[2]));
    vshort f = vs_subtract(d[3], vs_four_times(d[1]));
    vshort g = vs_subtract(d[4], d[2]);
    vshort h = vs_twice(vs_subtract(d[3], d[1]));
    v[0] = vs_add(vs_four_times(vs_subtract(d[0], d[2])), g);
    v[1] = vs_add(e, f);
    v[2] = vs_subtract(e, f);
    v[3] = vs_add(g, h);
    v[4] = vs_subtract(g, h);
    v[5] = vs_subtract(vs_subtract(d[5], d[3]), vs_twice(h));
}

// The addresses of a tile's inputs.
static void find_inputs(const uint8_t *in[ELEMENTS], const struct batch *b, int64_t tile) {
    const struct msc_simd_image_windows *w = b->w;
    struct place at = place_of(b, tile);
    int64_t step = w->in_channels, left = at.x - w->pad_left;
    for (int64_t i = 0; i < SIDE; i++, in += SIDE) {
        int64_t y = at.y - w->pad_top + i;
        int64_t row = ((at.image * w->in_height + y) * w->in_width + left) * step;
        bool is_inside = y >= 0 && y < w->in_height;
        int64_t begin = left < 0 ? -left : 0, end = is_inside ? w->in_width - left : 0;
        for (int64_t x = 0; x < SIDE; x++) {
            in[x] = x >= begin && x < end ? w->in + row + x * step : w->blank;
        }
    }
}

// B' d B of the channels from `c` on, of which n are in use.
VECTOR_INLINE void take_channels(char *to, int64_t element, const uint8_t *const in[ELEMENTS],
                                 int64_t c, int64_t n, uint8_t flip) {
    vshort half[ELEMENTS], d[SIDE], v[SIDE];
    UNROLL for (int y = 0; y < SIDE; y++) {
        UNROLL for (int x = 0; x < SIDE; x++) {
            d[x] = vs_load_bytes(in[y * SIDE + x] + c, n, flip);
        }
        transform_inputs(half + y * SIDE, d);
    }
    UNROLL for (int x = 0; x < SIDE; x++) {
        UNROLL for (int y = 0; y < SIDE; y++) {
            d[y] = half[y * SIDE + x];
        }
        transform_inputs(v, d);
        UNROLL for (int y = 0; y < SIDE; y++) {
            vs_store((int16_t *)(void *)(to + (y * SIDE + x) * element), v[y]);
        }
    }
}

VECTOR_TARGET static void take_tile(const struct batch *b, int64_t i) {
    const struct msc_simd_image_windows *w = b->w;
    const uint8_t *in[ELEMENTS];
    int64_t element = input_stride(w->in_channels, b->most), c = 0;
    char *to = b->inputs + i * b->row;
    find_inputs(in, b, b->first + i);
    for (; c + SHORTS <= w->in_channels; c += SHORTS, to += VECTOR) {
        take_channels(to, element, in, c, SHORTS, w->flip);
    }
    if (c < w->in_channels) {
        take_channels(to, element, in, c, w->in_channels - c, w->flip);
    }
}

// ---- Products ---------------------------------------------------------------------------------

typedef void (*block_function)(const struct block *b);

#define DEFINE_SUMS(n_vectors)                                                                     \
    VECTOR_TARGET static void multiply_pairs_##n_vectors(const struct block *b) {                  \
        run_block(OF_PAIRS, SUMS, n_vectors, b);                                                   \
    }

// M of one block of channels. `weights` are those of the block.
static void multiply_elements(const struct batch *b, const char *weights, int64_t vectors,
                              const block_function functions[]) {
    static const int64_t no_run = 0;
    int64_t depth = depth_bytes(b->w->in_channels);
    int64_t input = input_stride(b->w->in_channels, b->most);
    int64_t product = product_stride(vectors, b->most);
    struct msc_simd_indirect windows = {.at = b->at,
                                        .n = b->n,
                                        .n_runs = 1,
                                        .runs = &no_run,
                                        .depth = depth,
                                        .channels = vectors * LANES};
    for (int64_t k = 0; k < ELEMENTS; k++) {
        windows.in = b->inputs + k * input;
        struct block block = {.w = &windows,
                              .kind = SUMS,
                              .vectors = vectors,
                              .weights = weights + k * depth / GROUP * vectors * VECTOR,
                              .n_lanes = vectors * LANES,
                              .out = b->products + k * product,
                              .out_step = vectors * VECTOR,
                              .end = b->n};
        functions[vectors - 1](&block);
    }
}

// ---- Outputs ----------------------------------------------------------------------------------

// A' m for one column of m.
VECTOR_INLINE void transform_products(vint y[], int step, const vint m[]) {
    vint a = vi_add(m[1], m[2]), b = vi_subtract(m[1], m[2]);
    vint c = vi_add(m[3], m[4]), d = vi_subtract(m[3], m[4]);
    y[0] = vi_add(vi_add(m[0], vi_four_times(a)), c);
    y[step] = vi_add(vi_twice(b), d);
    y[2 * step] = vi_add(a, c);
    y[3 * step] = vi_add(vi_add(b, vi_twice(d)), m[5]);
}

// The sums of a tile less `offset`, in one vector of channels. The sum of row y and column x is
// written to s[(y * OUT + x) * step].
VECTOR_INLINE void give_tile(vint s[], int step, const char *products, int64_t element,
                             vint offset) {
    static const int bits[OUT] = {3, 2, 1, 1};
    const vint inverse = vi_set(0x38e38e39); // of 9, modulo 2^32
    vint half[OUT * SIDE], m[SIDE];
    UNROLL for (int x = 0; x < SIDE; x++) {
        UNROLL for (int y = 0; y < SIDE; y++) {
            m[y] = vi_load(products + (y * SIDE + x) * element);
        }
        transform_products(half + x, SIDE, m);
    }
    UNROLL for (int y = 0; y < OUT; y++) {
        vint out[OUT];
        transform_products(out, 1, half + y * SIDE);
        UNROLL for (int x = 0; x < OUT; x++) {
            vint sum = vi_shift_right(vi_multiply(out[x], inverse), bits[y] + bits[x]);
            s[(y * OUT + x) * step] = vi_subtract(sum, offset);
        }
    }
}

// Finishes the tiles of a batch, in one block of channels.
VECTOR_INLINE void finish_tiles(enum kind kind, int vectors, const struct block *given,
                                const struct batch *b) {
    const struct block own = *given;
    const struct msc_simd_image_windows *w = b->w;
    int64_t element = product_stride(vectors, b->most);
    for (int64_t i = 0; i < b->n; i++) {
        struct place to = place_of(b, b->first + i);
        int64_t rows = w->out_height - to.y, columns = w->out_width - to.x;
        int64_t first = (to.image * w->out_height + to.y) * w->out_width + to.x;
        vint s[OUT * OUT * MOST_VECTORS];
        for (int64_t y = 0; (kind == FLOATS || kind == ANY) && y < OUT && y < rows; y++) {
            announce_epilogue(OUT, vectors, &own, first + y * w->out_width);
        }
        UNROLL for (int c = 0; c < vectors; c++) {
            vint offset = kind == SUMS ? vi_set(0) : vi_load(own.offsets + c * LANES);
            give_tile(s + c, vectors, b->products + (i * vectors + c) * VECTOR, element, offset);
        }
        for (int64_t y = 0; y < OUT && y < rows; y++) {
            int64_t at = first + y * w->out_width;
            vint *row = s + y * OUT * vectors;
            if (columns >= OUT) {
                finish_windows(OF_BYTES, kind, row, OUT, vectors, &own, at);
                continue;
            }
            for (int64_t x = 0; x < columns; x++) {
                finish_windows(OF_BYTES, kind, row + x * vectors, 1, vectors, &own, at + x);
            }
        }
    }
}

// ---- Entries ----------------------------------------------------------------------------------

typedef void (*finish_function)(const struct block *block, const struct batch *b);

#define DEFINE_FINISH(kind, n_vectors)                                                             \
    VECTOR_TARGET static void finish_##kind##_##n_vectors(const struct block *block,               \
                                                          const struct batch *b) {                 \
        finish_tiles(kind, n_vectors, block, b);                                                   \
    }
#if VECTOR_TILE == 1
#define DEFINE_FINISHES(kind)                                                                      \
    DEFINE_FINISH(kind, 1)                                                                         \
    static const finish_function finish_##kind[MOST_VECTORS] = {finish_##kind##_1};
DEFINE_SUMS(1)
static const block_function products[MOST_VECTORS] = {multiply_pairs_1};
#else
#define DEFINE_FINISHES(kind)                                                                      \
    DEFINE_FINISH(kind, 1)                                                                         \
    DEFINE_FINISH(kind, 2)                                                                         \
    DEFINE_FINISH(kind, 3)                                                                         \
    DEFINE_FINISH(kind, 4)                                                                         \
    static const finish_function finish_##kind[MOST_VECTORS] = {                                   \
        finish_##kind##_1, finish_##kind##_2, finish_##kind##_3, finish_##kind##_4};
DEFINE_SUMS(1)
DEFINE_SUMS(2)
DEFINE_SUMS(3)
DEFINE_SUMS(4)
static const block_function products[MOST_VECTORS] = {multiply_pairs_1, multiply_pairs_2,
                                                      multiply_pairs_3, multiply_pairs_4};
#endif

DEFINE_FINISHES(SUMS)
DEFINE_FINISHES(FLOATS)
DEFINE_FINISHES(BYTES)
DEFINE_FINISHES(ANY)

static const finish_function *const finishes[KIND_COUNT] = {finish_SUMS, finish_FLOATS,
                                                            finish_BYTES, finish_ANY};

VECTOR_TARGET static void run_batches(const struct msc_simd_image_windows *w, struct block *block,
                                      void *sums, const block_function functions[]) {
    struct batch b = begin_batch(w);
    int64_t n_tiles = w->images * b.rows * b.columns, n = count_vectors(w->channels);
    int64_t vector_bytes = ELEMENTS * depth_bytes(w->in_channels) / GROUP * VECTOR;
    for (; b.first < n_tiles; b.first += b.n) {
        b.n = n_tiles - b.first < b.most ? n_tiles - b.first : b.most;
        for (int64_t i = 0; i < b.n; i++) {
            take_tile(&b, i);
        }
        for (int64_t v = 0; v < n; v += block->vectors) {
            enter_block(block, v, sums);
            multiply_elements(&b, (const char *)w->weights + v * vector_bytes, block->vectors,
                              functions);
            finishes[block->kind][block->vectors - 1](block, &b);
        }
    }
}

VECTOR_TARGET static void multiply_with(const block_function functions[], int32_t sums[],
                                        const struct msc_simd_image_windows *w) {
    const struct msc_simd_indirect windows = {.channels = w->channels};
    struct block block = begin_sums(&windows);
    run_batches(w, &block, sums, functions);
}

VECTOR_TARGET static void multiply_epilogue_with(const block_function functions[],
                                                 const struct msc_simd_image_windows *w,
                                                 const struct msc_simd_epilogue *epilogue) {
    const struct msc_simd_indirect windows = {.channels = w->channels};
    struct bytes quantized[MSC_SIMD_MAX_QUANTIZED];
    struct block block = begin_epilogue(&windows, epilogue, quantized);
    run_batches(w, &block, NULL, functions);
}

static void multiply(int32_t sums[], const struct msc_simd_image_windows *w) {
    multiply_with(products, sums, w);
}

static void multiply_epilogue(const struct msc_simd_image_windows *w,
                              const struct msc_simd_epilogue *epilogue) {
    multiply_epilogue_with(products, w, epilogue);
}

#endif

// Sums of products for a tile of columns at once.
#include "graph/reference/reference_internal.h"

#include "base/platform.h"

#include <string.h>

MSC_SIMD static void dot_tile_clones(float out[MSC_DOT_WIDTH], const float a[], int64_t step,
                                     const float tile[], int64_t depth) {
    float sums[MSC_DOT_WIDTH] = {0};
    for (int64_t k = 0; k < depth; k++) {
        float factor = a[k * step];
        const float *row = tile + k * MSC_DOT_WIDTH;
        for (int p = 0; p < MSC_DOT_WIDTH; p++) {
            sums[p] += factor * row[p];
        }
    }
    memcpy(out, sums, sizeof(sums));
}

void msc_reference__dot_tile(float out[MSC_DOT_WIDTH], const float a[], int64_t step,
                             const float tile[], int64_t depth) {
    dot_tile_clones(out, a, step, tile, depth);
}

enum { LANES = 16, VECTORS = MSC_DOT_WIDTH / LANES };
// A vector of floats, and the same vector in memory of any alignment. Sums in variables of type
// `lanes` remain in registers.
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef float lanes_at
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

// Callers pass a constant number of rows, so that the compiler unrolls the loops over rows.
MSC_INLINE void dot_rows(float out[], const float a[], int64_t a_row, int64_t step,
                         const float tile[], int64_t depth, int rows) {
    lanes sums[MSC_DOT_ROWS][VECTORS] = {{{0}}};
    for (int64_t k = 0; k < depth; k++) {
        const lanes_at *w = (const lanes_at *)(const void *)(tile + k * MSC_DOT_WIDTH);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] += a[r * a_row + k * step] * w[v];
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        lanes_at *to = (lanes_at *)(void *)(out + r * MSC_DOT_WIDTH);
        for (int v = 0; v < VECTORS; v++) {
            to[v] = sums[r][v];
        }
    }
}

MSC_SIMD static void dot_tiles_clones(float out[], const float a[], int64_t a_row, int64_t step,
                                      int64_t n_rows, const float tile[], int64_t depth) {
    int64_t i = 0;
    for (; i + MSC_DOT_ROWS <= n_rows; i += MSC_DOT_ROWS) {
        dot_rows(out + i * MSC_DOT_WIDTH, a + i * a_row, a_row, step, tile, depth, MSC_DOT_ROWS);
    }
    for (; i < n_rows; i++) {
        dot_rows(out + i * MSC_DOT_WIDTH, a + i * a_row, a_row, step, tile, depth, 1);
    }
}

void msc_reference__dot_tiles(float out[], const float a[], int64_t a_row, int64_t step,
                              int64_t n_rows, const float tile[], int64_t depth) {
    dot_tiles_clones(out, a, a_row, step, n_rows, tile, depth);
}

// Transposes by tiles of registers, whose functions the including file defines. Rows and columns
// that do not fill a tile are copied element by element.
//
// Tiles are computed strip by strip: a strip has so few columns that the parts of cache lines which
// its tiles write stay in the first-level cache until the next rows fill the lines.
#ifndef MSC_KERNELS_CPU_SIMD_TRANSPOSE_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_TRANSPOSE_LOOPS_H

#include "kernels/cpu/simd_vector.h"

#include <string.h>

typedef void (*tile_function)(char *out, int64_t out_row, const char *in, int64_t in_row);

static void copy_elements(char *out, int64_t out_row, const char *in, int64_t in_row, int64_t rows,
                          int64_t cols, size_t element) {
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++) {
            memcpy(out + c * out_row + r * (int64_t)element, in + r * in_row + c * (int64_t)element,
                   element);
        }
    }
}

// Distances between rows are in bytes. `side` is the number of rows and columns of a tile.
VECTOR_INLINE void transpose(tile_function tile, int64_t side, int64_t strip, size_t element,
                             char *out, int64_t out_row, const char *in, int64_t in_row,
                             int64_t rows, int64_t cols) {
    int64_t n_bytes = (int64_t)element, whole_rows = rows / side * side;
    for (int64_t first = 0; first < cols; first += strip) {
        int64_t end = first + strip < cols ? first + strip : cols;
        int64_t whole = first + (end - first) / side * side;
        for (int64_t r = 0; r < whole_rows; r += side) {
            for (int64_t c = first; c < whole; c += side) {
                tile(out + c * out_row + r * n_bytes, out_row, in + r * in_row + c * n_bytes,
                     in_row);
            }
            copy_elements(out + whole * out_row + r * n_bytes, out_row,
                          in + r * in_row + whole * n_bytes, in_row, side, end - whole, element);
        }
        copy_elements(out + first * out_row + whole_rows * n_bytes, out_row,
                      in + whole_rows * in_row + first * n_bytes, in_row, rows - whole_rows,
                      end - first, element);
    }
}

#endif

#include "agents/cholesky.h"

#include <math.h>
#include <string.h>

// Rows and columns of a tile, whose sums stay in registers.
#define ROWS 4
#define COLUMNS 4

// Subtracts from the tile u[i, j] the products of the first i rows: each element loses one product
// of each row, in order.
static void subtract_rows(double u[], size_t i, size_t j, size_t stride) {
    double tile[ROWS][COLUMNS];
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(tile[r], u + (i + r) * stride + j, sizeof tile[r]);
    }
    for (size_t k = 0; k < i; k++) {
        const double *left = u + k * stride + i, *top = u + k * stride + j;
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t c = 0; c < COLUMNS; c++) {
                tile[r][c] -= left[r] * top[c];
            }
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(u + (i + r) * stride + j, tile[r], sizeof tile[r]);
    }
}

// Subtracts the products of rows `first` to i - 1 from row i, from column j to n.
static void subtract_from_row(double u[], size_t first, size_t i, size_t j, size_t n,
                              size_t stride) {
    double *row = u + i * stride;
    for (size_t k = first; k < i; k++) {
        const double *above = u + k * stride;
        double factor = above[i];
        for (size_t c = j; c < n; c++) {
            row[c] -= factor * above[c];
        }
    }
}

// Each element is computed by the same operations, in the same order, as without tiles.
bool msc_cholesky_factorise(double u[], size_t n, size_t stride) {
    for (size_t i = 0; i < n; i += ROWS) {
        size_t n_rows = n - i < ROWS ? n - i : ROWS, n_tiled = i;
        for (; n_rows == ROWS && n_tiled + COLUMNS <= n; n_tiled += COLUMNS) {
            subtract_rows(u, i, n_tiled, stride);
        }
        for (size_t r = i; r < i + n_rows; r++) {
            double *row = u + r * stride;
            // The tiles cover the columns before n_tiled; the rows of this band remain.
            subtract_from_row(u, 0, r, n_tiled > r ? n_tiled : r, n, stride);
            subtract_from_row(u, i, r, r, n_tiled > r ? n_tiled : r, stride);
            if (!(row[r] > 0.0)) {
                return false;
            }
            double root = sqrt(row[r]);
            for (size_t c = r; c < n; c++) {
                row[c] /= root;
            }
        }
    }
    return true;
}

void msc_cholesky_solve_lower(const double u[], double x[], size_t n, size_t stride) {
    for (size_t k = 0; k < n; k++) {
        const double *row = u + k * stride;
        x[k] /= row[k];
        for (size_t j = k + 1; j < n; j++) {
            x[j] -= row[j] * x[k];
        }
    }
}

void msc_cholesky_solve_upper(const double u[], double x[], size_t n, size_t stride) {
    for (size_t k = n; k-- > 0;) {
        const double *row = u + k * stride;
        double sum = x[k];
        for (size_t j = k + 1; j < n; j++) {
            sum -= row[j] * x[j];
        }
        x[k] = sum / row[k];
    }
}

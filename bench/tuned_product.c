// A blocked product of two matrices whose blocks, order and unrolling are set at compile time, for
// quality_tables.py: it prints the least time of some runs, in microseconds. Settings that break a
// constraint do not compile, as in kernels of the same kind on accelerators.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 240
#define RUNS 7

_Static_assert(N % BLOCK_I == 0 && N % BLOCK_J == 0 && N % BLOCK_K == 0, "blocks must divide N");
_Static_assert(BLOCK_I % ROWS == 0 && BLOCK_J % COLUMNS == 0, "tiles must divide blocks");
_Static_assert(BLOCK_K % UNROLL == 0, "the unrolling must divide the block");
_Static_assert(ROWS *COLUMNS <= 64, "a tile must fit in registers");
_Static_assert((PACKED ? BLOCK_K * BLOCK_J * 4 : 0) <= 16384, "a packed block must fit in L1");

static float a[N][N], b[N][N], c[N][N], packed[BLOCK_K][BLOCK_J];

static void tile(int i, int j, int k0, int j0) {
    float sums[ROWS][COLUMNS] = {{0}};
    for (int k = 0; k < BLOCK_K; k += UNROLL) {
        for (int u = 0; u < UNROLL; u++) {
            const float *row = PACKED ? &packed[k + u][j - j0] : &b[k0 + k + u][j];
            for (int r = 0; r < ROWS; r++) {
                for (int s = 0; s < COLUMNS; s++) {
                    sums[r][s] += a[i + r][k0 + k + u] * row[s];
                }
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int s = 0; s < COLUMNS; s++) {
            c[i + r][j + s] += sums[r][s];
        }
    }
}

static void block(int i0, int j0, int k0) {
    for (int k = 0; PACKED && k < BLOCK_K; k++) {
        for (int j = 0; j < BLOCK_J; j++) {
            packed[k][j] = b[k0 + k][j0 + j];
        }
    }
    for (int i = i0; i < i0 + BLOCK_I; i += ROWS) {
        for (int j = j0; j < j0 + BLOCK_J; j += COLUMNS) {
            tile(i, j, k0, j0);
        }
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int main(void) {
    double least = 1e30;
    for (int i = 0; i < N * N; i++) {
        a[i / N][i % N] = (float)(i % 7);
        b[i / N][i % N] = (float)(i % 5);
    }
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        for (int k = 0; k < N; k += BLOCK_K) {
            for (int i = 0; i < N; i += BLOCK_I) {
                for (int j = 0; j < N; j += BLOCK_J) {
                    block(i, j, k);
                }
            }
        }
        double time = now() - start;
        least = time < least ? time : least;
    }
    printf("%.2f\n", least);
    return c[N - 1][N - 1] > 0.0f ? EXIT_SUCCESS : EXIT_FAILURE;
}

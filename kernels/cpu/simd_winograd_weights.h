// Packs the weights of Winograd's algorithm (simd_winograd_loops.h): U = G g G', 36 elements for
// each pair of an output channel and an input channel.
//
//     pack(packed, weights, channels, in_channels); // packed_bytes(channels, in_channels) bytes
//
// Packed weights are [block][element][input channel / 2][vector][channel][2 int16]. If the number
// of input channels is odd, the last int16 of a pair is 0.
#ifndef MSC_KERNELS_CPU_SIMD_WINOGRAD_WEIGHTS_H
#define MSC_KERNELS_CPU_SIMD_WINOGRAD_WEIGHTS_H

#include "kernels/cpu/simd_indirect_tiles.h"

enum {
    SIDE = 6, // inputs along each axis of a tile
    ELEMENTS = SIDE * SIDE,
};

static int64_t depth_bytes(int64_t in_channels) {
    return round_up(in_channels * (int64_t)sizeof(int16_t), GROUP);
}

static size_t packed_bytes(int64_t channels, int64_t in_channels) {
    return (size_t)(ELEMENTS * round_up(channels, LANES) * depth_bytes(in_channels));
}

// The weights of one input channel, for one block of output channels: element k of channel c is
// at [k][c].
enum { WIDTH = MOST_VECTORS * LANES };
typedef int16_t block_row[WIDTH];

// G g for one column of weights: `step` rows from one element to the next, in g and in u.
VECTOR_INLINE void transform_weights(block_row u[], int u_step, block_row g[], int g_step) {
    for (int c = 0; c < WIDTH; c++) {
        int16_t first = g[0][c], middle = g[g_step][c], last = g[2 * g_step][c];
        u[0][c] = (int16_t)(6 * first);
        u[u_step][c] = (int16_t)(-first - middle - last);
        u[2 * u_step][c] = (int16_t)(-first + middle - last);
        u[3 * u_step][c] = (int16_t)(first + 2 * middle + 4 * last);
        u[4 * u_step][c] = (int16_t)(first - 2 * middle + 4 * last);
        u[5 * u_step][c] = (int16_t)(6 * last);
    }
}

VECTOR_INLINE void pack_channel(block_row u[ELEMENTS], const int8_t *weights, int64_t step,
                                int64_t n) {
    block_row g[9] = {{0}}, half[3 * SIDE];
    for (int64_t c = 0; c < n; c++) {
        for (int k = 0; k < 9; k++) {
            g[k][c] = weights[c * step + k];
        }
    }
    for (int x = 0; x < 3; x++) {
        transform_weights(half + x, 3, g + x, 3);
    }
    for (int y = 0; y < SIDE; y++) {
        transform_weights(u + y * SIDE, 1, half + 3 * y, 1);
    }
}

VECTOR_TARGET static void pack(void *packed, const int8_t weights[], int64_t channels,
                               int64_t in_channels) {
    int64_t n = count_vectors(channels), vectors, pairs = depth_bytes(in_channels) / GROUP;
    char *to = packed;
    for (int64_t v = 0; v < n; v += vectors) {
        vectors = block_vectors(v, n);
        int64_t left = channels - v * LANES, width = vectors * LANES;
        left = left < width ? left : width;
        for (int64_t pair = 0; pair < pairs; pair++) {
            const int8_t *from = weights + (v * LANES * in_channels + 2 * pair) * 9;
            block_row u[2][ELEMENTS];
            pack_channel(u[0], from, in_channels * 9, left);
            pack_channel(u[1], from + 9, in_channels * 9, 2 * pair + 1 < in_channels ? left : 0);
            for (int k = 0; k < ELEMENTS; k++) {
                int16_t *out = (int16_t *)(void *)(to + (k * pairs + pair) * width * GROUP);
                for (int64_t c = 0; c < width; c++) {
                    out[2 * c] = u[0][k][c];
                    out[2 * c + 1] = u[1][k][c];
                }
            }
        }
        to += ELEMENTS * pairs * width * GROUP;
    }
}

#endif

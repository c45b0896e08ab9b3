// Convolutions and matrix products, family G: y[r][c] = sum over taps and channels of x * w, by
// tiles in shared memory: for GPUs. Sums run over k in order, as family U's do.
// Buffers: 0 x, 1 w [z][taps * channels][w_row], 2 y, 3 scales and biases, 4 geometry.
// Constants: 0 lanes = (TILE_ROWS / ROWS) * (TILE_COLS / COLS), 2 pointwise, 3 transposed, 4 and 5
// rows and columns of the tile, 6 its depth, 7 and 8 those of an invocation.
// Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x_id = 0) in;
layout(constant_id = 4) const uint TILE_ROWS = 64;
layout(constant_id = 5) const uint TILE_COLS = 64;
layout(constant_id = 6) const uint DEPTH = 16;
layout(constant_id = 7) const uint ROWS = 4;
layout(constant_id = 8) const uint COLS = 4;
layout(binding = 0) readonly buffer X { float xs[]; };
layout(binding = 1) readonly buffer W { float ws[]; };
#include "conv.glsl"

shared float x_tile[DEPTH * (TILE_ROWS + 1)];
shared float w_tile[DEPTH * TILE_COLS];

// Element k of the sum of an output row.
float load(uint z, uint row, int k) {
    int tap = IS_POINTWISE ? 0 : k / size_in.w;
    int c = k - tap * size_in.w;
    int from = int(row);
    if (row >= n_rows || c >= kernel.w) {
        return 0.0;
    }
    if (!IS_POINTWISE) {
        ivec3 first;
        int image;
        locate(row, first, image);
        from = source(first, image, ivec3(tap / (kernel.y * kernel.z),
                                          tap / kernel.z % kernel.y, tap % kernel.z));
    }
    return from < 0 ? 0.0 : xs[z * x_step + uint(from * size_out.w + c)];
}

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint z = gl_WorkGroupID.z;
    uint row0 = gl_WorkGroupID.x * TILE_ROWS;
    uint col0 = gl_WorkGroupID.y * TILE_COLS;
    uint col_lanes = TILE_COLS / COLS, row_lanes = TILE_ROWS / ROWS;
    uint my_col = lane % col_lanes, my_row = lane / col_lanes;
    int depth = (IS_POINTWISE ? 1 : kernel.x * kernel.y * kernel.z) * size_in.w;
    precise float sums[ROWS * COLS];
    for (uint i = 0; i < ROWS * COLS; i++) {
        sums[i] = 0.0;
    }
    for (int k0 = 0; k0 < depth; k0 += int(DEPTH)) {
        for (uint i = lane; i < DEPTH * TILE_ROWS; i += gl_WorkGroupSize.x) {
            uint k = i % DEPTH, row = i / DEPTH;
            x_tile[k * (TILE_ROWS + 1) + row] =
                k0 + int(k) < depth ? load(z, row0 + row, k0 + int(k)) : 0.0;
        }
        for (uint i = lane; i < DEPTH * TILE_COLS; i += gl_WorkGroupSize.x) {
            uint k = i / TILE_COLS, col = i % TILE_COLS;
            bool is_there = k0 + int(k) < depth && col0 + col < w_row;
            w_tile[i] = is_there ? ws[z * w_step + uint(k0 + int(k)) * w_row + col0 + col] : 0.0;
        }
        barrier();
        for (uint k = 0; k < DEPTH; k++) {
            float a[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                a[r] = x_tile[k * (TILE_ROWS + 1) + my_row + r * row_lanes];
            }
            [[unroll]] for (uint c = 0; c < COLS; c++) {
                float b = w_tile[k * TILE_COLS + my_col + c * col_lanes];
                [[unroll]] for (uint r = 0; r < ROWS; r++) {
                    precise float part = a[r] * b;
                    sums[r * COLS + c] = sums[r * COLS + c] + part;
                }
            }
        }
        barrier();
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            uint row = row0 + my_row + r * row_lanes, col = col0 + my_col + c * col_lanes;
            if (row < n_rows && col < n_cols) {
                finish(z, row, col, sums[r * COLS + c]);
            }
        }
    }
}

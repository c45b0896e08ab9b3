// Convolutions and matrix products, family G (for GPUs): y[r][c] = sum over taps and channels of
// x * w, with tiles in shared memory. While one tile is multiplied, the next is loaded.
//
// Compile-time variants: by default x and w are floats; BYTES: x is stored bytes, converted to
// floats; INTEGER: both are bytes, four channels per word, with int32 sums (DOT: by the device's
// instruction). A step of the sum is one channel of a tap or, with INTEGER, one word of four
// channels. w is [z][steps][w_row]. Float sums run over the steps in order; each step is one fused
// multiply-add.
// Constants: 0 = lanes, which is (TILE_ROWS / ROWS) * (TILE_COLS / COLS); 1 = repair; 2 = whether
// pointwise; 3 = whether transposed; 4 and 5 = rows and columns of the tile; 6 = depth of the tile
// in steps; 7 and 8 = rows and columns per invocation; 9 and 10 = whether the channels of x and of
// y are a multiple of 4.
// All sizes except lanes are multiples of 4. Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x_id = 0) in;
layout(constant_id = 4) const uint TILE_ROWS = 64;
layout(constant_id = 5) const uint TILE_COLS = 64;
layout(constant_id = 6) const uint DEPTH = 16;
layout(constant_id = 7) const uint ROWS = 4;
layout(constant_id = 8) const uint COLS = 4;
layout(constant_id = 9) const bool HAS_X_QUADS = false;
layout(constant_id = 10) const bool HAS_Y_QUADS = false;
#include "conv.glsl"
#include "conv_items.glsl"

const uint LANES = TILE_ROWS / ROWS * (TILE_COLS / COLS);
const uint X_ITEMS = DEPTH * PER_STEP / 4u; // per row
const uint X_LOADS = (TILE_ROWS * X_ITEMS + LANES - 1u) / LANES;
const uint W_LOADS = (DEPTH * TILE_COLS / 4u + LANES - 1u) / LANES;
const uint X_ROW = TILE_ROWS / 4u + 1u; // + 1: writes then use different banks of shared memory
const uint W_ROW = TILE_COLS / 4u;
shared QUAD x_tile[DEPTH * X_ROW];
shared QUAD w_tile[DEPTH * W_ROW];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint z = first_z + gl_WorkGroupID.z % n_z;
    begin_call(gl_WorkGroupID.z / n_z);
    uint row0 = (first_x + gl_WorkGroupID.x) * TILE_ROWS;
    uint col0 = (first_y + gl_WorkGroupID.y) * TILE_COLS;
    const uint col_lanes = TILE_COLS / COLS, row_lanes = TILE_ROWS / ROWS;
    uint my_col = lane % col_lanes, my_row = lane / col_lanes;
    int n_taps = IS_POINTWISE ? 1 : kernel.x * kernel.y * kernel.z;
    int depth = n_taps * size_in.w; // products per sum
    uint n_steps = uint(depth) / PER_STEP;
    ivec3 first[X_LOADS];
    int image[X_LOADS];
    [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
        uint row = row0 + (lane + j * LANES) / X_ITEMS;
        image[j] = int(row);
        if (!IS_POINTWISE) {
            locate(min(row, n_rows - 1), first[j], image[j]);
        }
    }
    precise SUMS sums[ROWS * (COLS / 4u)];
    [[unroll]] for (uint i = 0; i < ROWS * (COLS / 4u); i++) {
        sums[i] = SUMS(0);
    }
    X_ITEM next_x[X_LOADS];
    QUAD next_w[W_LOADS];
    for (uint k0 = 0; k0 < n_steps + DEPTH; k0 += DEPTH) {
        if (k0 > 0) {
            // The values fetched in the previous round become the tile.
            barrier();
            [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
                uint i = lane + j * LANES, k = i % X_ITEMS, row = i / X_ITEMS;
                if (row < TILE_ROWS) {
#if defined(INTEGER)
                    x_tile[k * X_ROW + row / 4][row % 4] = next_x[j];
#else
                    [[unroll]] for (uint c = 0; c < 4; c++) {
                        x_tile[(4 * k + c) * X_ROW + row / 4][row % 4] = next_x[j][c];
                    }
#endif
                }
            }
            [[unroll]] for (uint j = 0; j < W_LOADS; j++) {
                uint i = lane + j * LANES;
                if (i < DEPTH * W_ROW) {
                    w_tile[i] = next_w[j];
                }
            }
            barrier();
        }
        if (k0 < n_steps) {
            [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
                uint i = lane + j * LANES;
                int k = int(k0 * PER_STEP + 4 * (i % X_ITEMS));
                int tap = IS_POINTWISE ? 0 : k / size_in.w;
                int from = row0 + i / X_ITEMS < n_rows && k < depth ? image[j] : -1;
                if (!IS_POINTWISE && from >= 0) {
                    from = source(first[j], image[j], ivec3(tap / (kernel.y * kernel.z),
                                                            tap / kernel.z % kernel.y,
                                                            tap % kernel.z));
                }
                next_x[j] = load(z, from, k - tap * size_in.w);
            }
            [[unroll]] for (uint j = 0; j < W_LOADS; j++) {
                uint i = lane + j * LANES;
                uint k = k0 + i / W_ROW, col = col0 + 4 * (i % W_ROW);
                bool is_there = k < n_steps && col < w_row;
                next_w[j] = is_there ? w_quads[(begin_of(1) + z * w_step + k * w_row + col) / 4]
                                     : QUAD(0);
            }
        }
        if (k0 == 0) {
            continue;
        }
        for (uint k = 0; k < DEPTH; k++) {
            QUAD a[ROWS / 4u];
            [[unroll]] for (uint r = 0; r < ROWS / 4u; r++) {
                a[r] = x_tile[k * X_ROW + my_row + r * row_lanes];
            }
            [[unroll]] for (uint c = 0; c < COLS / 4u; c++) {
                QUAD b = w_tile[k * W_ROW + my_col + c * col_lanes];
                [[unroll]] for (uint r = 0; r < ROWS; r++) {
                    MULTIPLY(sums[r * (COLS / 4u) + c], a[r / 4u][r % 4u], b);
                }
            }
        }
    }
    vec4 values[ROWS * (COLS / 4u)];
    [[unroll]] for (uint c = 0; c < COLS / 4u; c++) {
        [[unroll]] for (uint k = 0; k < 4; k++) {
            uint col = min(col0 + 4 * (my_col + c * col_lanes) + k, n_cols - 1);
            End end = end_of(z * tail_step + col);
#if defined(INTEGER)
            int more = integer_more(z * tail_step + col);
#endif
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                uint i = r * (COLS / 4u) + c;
#if defined(INTEGER)
                float sum = float(sums[i][k] + more);
#else
                float sum = with_integer_bias(end, sums[i][k]);
#endif
                values[i][k] = finished(end, sum);
            }
        }
    }
    uint n_written = (flags & HAS_Y) != 0 ? n_forms() + 1 : n_forms();
    // Writes the quantised variants (forms), then the values themselves.
    for (uint f = 0; f < n_written; f++) {
        bool is_form = f < n_forms();
        Form form = form_of(is_form ? f : 0);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLS / 4u; c++) {
                uint row = row0 + 4 * (my_row + r / 4u * row_lanes) + r % 4u;
                uint col = col0 + 4 * (my_col + c * col_lanes);
                uint at = z * y_step + row * y_row + col;
                if (row < n_rows) {
                    write(is_form, form, at, col, values[r * (COLS / 4u) + c]);
                }
            }
        }
    }
}

// Convolutions and matrix products of bytes with int32 sums, as conv_g.comp computes them with
// INTEGER, but by the device's matrix units (GL_KHR_cooperative_matrix). The sums are exact
// integers, so the results are the same bits.
//
// A workgroup computes a tile of outputs, each subgroup of it ROWS x COLS of them. Shared memory
// holds the factors in words of four channels: row r of x at r * STRIDE, column c of w at
// c * STRIDE. While one tile is multiplied, the next is loaded.
//
// Constants: 0 to 6, 9 and 10 as in conv_g.comp, except that lanes is the number of subgroups,
// (TILE_ROWS / ROWS) * (TILE_COLS / COLS), times their size; 7 and 8 = rows and columns of a
// subgroup; 11, 12 and 13 = rows, columns and depth (in bytes) of a matrix; 14 = whether the
// channels of x are a multiple of 16.
// ROWS is a multiple of MATRIX_ROWS, COLS of MATRIX_COLS, 4 * DEPTH of MATRIX_DEPTH, DEPTH of 4.
// Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 0) in;
layout(constant_id = 4) const uint TILE_ROWS = 64;
layout(constant_id = 5) const uint TILE_COLS = 64;
layout(constant_id = 6) const uint DEPTH = 16;
layout(constant_id = 7) const uint ROWS = 32;
layout(constant_id = 8) const uint COLS = 32;
layout(constant_id = 9) const bool HAS_X_QUADS = false;
layout(constant_id = 10) const bool HAS_Y_QUADS = false;
layout(constant_id = 11) const uint MATRIX_ROWS = 16;
layout(constant_id = 12) const uint MATRIX_COLS = 16;
layout(constant_id = 13) const uint MATRIX_DEPTH = 32;
layout(constant_id = 14) const bool HAS_X_SIXTEENS = false;
#define INTEGER
#include "conv.glsl"
#include "conv_items.glsl"
layout(binding = 0) readonly buffer XSixteens { uvec4 x_sixteens[]; };

const uint LANES = gl_WorkGroupSize.x;
// The rows of a matrix in shared memory begin at multiples of 16 bytes, as the extension requires;
// the padding puts successive rows into different banks.
const uint STRIDE = DEPTH + 4u;
const uint X_LOADS = (TILE_ROWS * (DEPTH / 4u) + LANES - 1u) / LANES;
const uint W_LOADS = (DEPTH * (TILE_COLS / 4u) + LANES - 1u) / LANES;
const uint ROW_MATRICES = ROWS / MATRIX_ROWS, COL_MATRICES = COLS / MATRIX_COLS;
const uint MATRIX_QUADS = MATRIX_COLS / 4u; // per row of a matrix
shared uint x_tile[TILE_ROWS * STRIDE];
shared uint w_tile[TILE_COLS * STRIDE];
// One matrix of sums for each subgroup.
shared int sums_tile[TILE_ROWS / ROWS * (TILE_COLS / COLS) * MATRIX_ROWS * MATRIX_COLS];

// The positions of an input row that this invocation loads.
struct Place {
    ivec3 first;
    int image;
    bool is_there;
};

// Reads products k … k + 15 of a row's sums, of `depth` products.
uvec4 load_sixteen(uint z, Place place, int k, int depth) {
    uvec4 item;
    [[unroll]] for (int j = 0; j < 4; j++) {
        int at = k + 4 * j;
        int tap = IS_POINTWISE ? 0 : at / size_in.w;
        int from = place.is_there && at < depth ? place.image : -1;
        if (!IS_POINTWISE && from >= 0) {
            from = source(place.first, place.image, ivec3(tap / (kernel.y * kernel.z),
                                                          tap / kernel.z % kernel.y,
                                                          tap % kernel.z));
        }
        int channel = at - tap * size_in.w;
        if (HAS_X_SIXTEENS && from >= 0) {
            item = x_sixteens[(begin_of(0) + (z * x_step + uint(from * size_out.w + channel)) / 4) /
                              4];
            return word(QUANT_ROW) != 0 ? item : item ^ 0x80808080u;
        }
        item[j] = load(z, from, channel);
    }
    return item;
}

// Writes the sums of one matrix, whose first output is (row0, col0). `at` is its place in
// sums_tile.
void write_sums(uint z, uint at, uint row0, uint col0) {
    for (uint i = gl_SubgroupInvocationID; i < MATRIX_ROWS * MATRIX_QUADS; i += gl_SubgroupSize) {
        uint row = row0 + i / MATRIX_QUADS, col = col0 + 4 * (i % MATRIX_QUADS);
        vec4 values;
        if (row >= n_rows || col >= n_cols) {
            continue;
        }
        [[unroll]] for (uint k = 0; k < 4; k++) {
            uint channel = z * tail_step + min(col + k, n_cols - 1);
            values[k] = finished(end_of(channel),
                                 float(sums_tile[at + 4 * i + k] + integer_more(channel)));
        }
        write_all(z * y_step + row * y_row + col, col, values);
    }
}

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint z = first_z + gl_WorkGroupID.z % n_z;
    begin_call(gl_WorkGroupID.z / n_z);
    uint row0 = (first_x + gl_WorkGroupID.x) * TILE_ROWS;
    uint col0 = (first_y + gl_WorkGroupID.y) * TILE_COLS;
    uint my_row = gl_SubgroupID / (TILE_COLS / COLS) * ROWS;
    uint my_col = gl_SubgroupID % (TILE_COLS / COLS) * COLS;
    int n_taps = IS_POINTWISE ? 1 : kernel.x * kernel.y * kernel.z;
    int depth = n_taps * size_in.w; // products per sum
    uint n_steps = uint(depth) / 4u;
    Place places[X_LOADS];
    [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
        uint row = row0 + (lane + j * LANES) / (DEPTH / 4u);
        places[j] = Place(ivec3(0), int(row), row < n_rows);
        if (!IS_POINTWISE) {
            locate(min(row, n_rows - 1), places[j].first, places[j].image);
        }
    }
    coopmat<int, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_COLS, gl_MatrixUseAccumulator>
        sums[ROW_MATRICES * COL_MATRICES];
    [[unroll]] for (uint i = 0; i < ROW_MATRICES * COL_MATRICES; i++) {
        sums[i] = coopmat<int, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_COLS,
                          gl_MatrixUseAccumulator>(0);
    }
    uvec4 next_x[X_LOADS], next_w[W_LOADS];
    for (uint k0 = 0; k0 < n_steps + DEPTH; k0 += DEPTH) {
        if (k0 > 0) {
            // The values fetched in the previous round become the tile.
            barrier();
            [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
                uint i = lane + j * LANES, row = i / (DEPTH / 4u), k = 4 * (i % (DEPTH / 4u));
                [[unroll]] for (uint c = 0; c < 4 && row < TILE_ROWS; c++) {
                    x_tile[row * STRIDE + k + c] = next_x[j][c];
                }
            }
            [[unroll]] for (uint j = 0; j < W_LOADS; j++) {
                uint i = lane + j * LANES, k = i % DEPTH, col = 4 * (i / DEPTH);
                [[unroll]] for (uint c = 0; c < 4 && col < TILE_COLS; c++) {
                    w_tile[(col + c) * STRIDE + k] = next_w[j][c];
                }
            }
            barrier();
        }
        if (k0 < n_steps) {
            [[unroll]] for (uint j = 0; j < X_LOADS; j++) {
                uint i = lane + j * LANES;
                next_x[j] = load_sixteen(z, places[j], int(4 * k0 + 16 * (i % (DEPTH / 4u))),
                                         depth);
            }
            [[unroll]] for (uint j = 0; j < W_LOADS; j++) {
                uint i = lane + j * LANES;
                uint k = k0 + i % DEPTH, col = col0 + 4 * (i / DEPTH);
                bool is_there = k < n_steps && col < w_row;
                next_w[j] = is_there ? w_quads[(begin_of(1) + z * w_step + k * w_row + col) / 4]
                                     : uvec4(0);
            }
        }
        if (k0 == 0) {
            continue;
        }
        for (uint k = 0; k < DEPTH; k += MATRIX_DEPTH / 4u) {
            coopmat<int8_t, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_DEPTH, gl_MatrixUseA>
                a[ROW_MATRICES];
            [[unroll]] for (uint r = 0; r < ROW_MATRICES; r++) {
                coopMatLoad(a[r], x_tile, (my_row + r * MATRIX_ROWS) * STRIDE + k, STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint c = 0; c < COL_MATRICES; c++) {
                coopmat<int8_t, gl_ScopeSubgroup, MATRIX_DEPTH, MATRIX_COLS, gl_MatrixUseB> b;
                coopMatLoad(b, w_tile, (my_col + c * MATRIX_COLS) * STRIDE + k, STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint r = 0; r < ROW_MATRICES; r++) {
                    sums[r * COL_MATRICES + c] =
                        coopMatMulAdd(a[r], b, sums[r * COL_MATRICES + c]);
                }
            }
        }
    }
    uint at = gl_SubgroupID * MATRIX_ROWS * MATRIX_COLS;
    [[unroll]] for (uint r = 0; r < ROW_MATRICES; r++) {
        [[unroll]] for (uint c = 0; c < COL_MATRICES; c++) {
            subgroupBarrier();
            coopMatStore(sums[r * COL_MATRICES + c], sums_tile, at, MATRIX_COLS,
                         gl_CooperativeMatrixLayoutRowMajor);
            subgroupBarrier();
            write_sums(z, at, row0 + my_row + r * MATRIX_ROWS, col0 + my_col + c * MATRIX_COLS);
        }
    }
}

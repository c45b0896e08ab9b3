// Convolutions and matrix products, family U (for software drivers): y[r][c] = sum over taps and
// channels of x * w, with register tiles that read uniform texels, without shared memory. With
// QUADS (compile-time), a texel holds four channels of x.
// Texels: 0 = x; 1 = w [z][taps * channels][w_row].
// Constants: 0 = lanes; 2 = whether pointwise; 3 = whether transposed; 4 = rows per invocation;
// 5 = quads (groups of four) of columns per invocation; 6 = row_lanes, the lanes along rows (the
// others run along columns).
// Tile: (row_lanes * rows) x (lanes / row_lanes * quads * 4). Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x_id = 0) in;
layout(constant_id = 4) const uint ROWS = 8;
layout(constant_id = 5) const uint QUADS_PER = 2;
layout(constant_id = 6) const uint ROW_LANES = 32;
layout(binding = 0) uniform samplerBuffer xs;
layout(binding = 1) uniform samplerBuffer ws;
#include "conv.glsl"

// Reads channels c … c + 3 of an input row; zero outside of the image and after the last channel.
vec4 load(uint base, int row, int c) {
#ifdef QUADS
    int at = row * (size_out.w / 4) + c / 4;
    vec4 value = texelFetch(xs, int(base) + (row < 0 ? 0 : at));
    return row < 0 ? vec4(0.0) : value;
#else
    int at = int(base) + (row < 0 ? 0 : row * size_out.w);
    vec4 value = vec4(0.0);
    [[unroll]] for (int k = 0; k < 4; k++) {
        if (c + k < kernel.w) {
            value[k] = row < 0 ? 0.0 : texelFetch(xs, at + c + k).x;
        }
    }
    return value;
#endif
}

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint z = first_z + gl_WorkGroupID.z % n_z;
    begin_call(gl_WorkGroupID.z / n_z);
    uint row0 = (first_x + gl_WorkGroupID.x) * ROW_LANES * ROWS + lane % ROW_LANES;
    uint quad0 = (first_y + gl_WorkGroupID.y) * (gl_WorkGroupSize.x / ROW_LANES) * QUADS_PER +
                 lane / ROW_LANES * QUADS_PER;
    uint n_quads = w_row / 4;
    uint x_at = begin_of(0) + z * x_step;
    int w_at = int(begin_of(1) + z * w_step + min(quad0, n_quads - QUADS_PER));
    ivec3 first[ROWS];
    int image[ROWS];
    precise vec4 sums[ROWS * QUADS_PER];
    [[unroll]] for (uint p = 0; p < ROWS; p++) {
        uint row = min(row0 + p * ROW_LANES, n_rows - 1);
        image[p] = int(row);
        if (!IS_POINTWISE) {
            locate(row, first[p], image[p]);
        }
        [[unroll]] for (uint q = 0; q < QUADS_PER; q++) {
            sums[p * QUADS_PER + q] = vec4(0.0);
        }
    }
    int n_taps = IS_POINTWISE ? 1 : kernel.x * kernel.y * kernel.z;
    for (int tap = 0; tap < n_taps; tap++) {
        ivec3 t = ivec3(tap / (kernel.y * kernel.z), tap / kernel.z % kernel.y, tap % kernel.z);
        int from[ROWS];
        [[unroll]] for (uint p = 0; p < ROWS; p++) {
            from[p] = IS_POINTWISE ? image[p] : source(first[p], image[p], t);
        }
        for (int c = 0; c < size_in.w; c += 4) {
            vec4 a[ROWS];
            [[unroll]] for (uint p = 0; p < ROWS; p++) {
                a[p] = load(x_at, from[p], c);
            }
            [[unroll]] for (int k = 0; k < 4; k++) {
                [[unroll]] for (uint q = 0; q < QUADS_PER; q++) {
                    vec4 w = texelFetch(ws, w_at + int(q));
                    [[unroll]] for (uint p = 0; p < ROWS; p++) {
                        precise vec4 part = a[p][k] * w;
                        sums[p * QUADS_PER + q] = sums[p * QUADS_PER + q] + part;
                    }
                }
                w_at += int(n_quads);
            }
        }
    }
    [[unroll]] for (uint p = 0; p < ROWS; p++) {
        uint row = row0 + p * ROW_LANES;
        [[unroll]] for (uint q = 0; q < QUADS_PER; q++) {
            uint col = 4 * (quad0 + q);
            [[unroll]] for (uint k = 0; k < 4; k++) {
                if (row < n_rows && col + k < n_cols) {
                    finish(z, row, col + k, sums[p * QUADS_PER + q][k]);
                }
            }
        }
    }
}

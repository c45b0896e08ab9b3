// Depthwise convolutions: y[r][c] = sum over taps of x[tap of r][c / multiple] * w[tap][c].
// Lanes run along channels. At compile time: FAMILY_U reads x and w as texels, BYTES reads x as
// stored bytes, else x and w are floats in buffers.
// w is [taps][channels]. Constants: 0 lanes, 1 repair, 3 transposed (never).
// Tile: lanes * per_lane outputs. Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x_id = 0) in;
#include "conv.glsl"
#if defined(FAMILY_U)
layout(binding = 0) uniform samplerBuffer xs;
layout(binding = 1) uniform samplerBuffer ws;
#define LOAD_X(i) texelFetch(xs, int(begin_of(0)) + (i)).x
#define LOAD_W(i) texelFetch(ws, int(begin_of(1)) + (i)).x
#else
layout(binding = 1) readonly buffer W { float ws[]; };
#define LOAD_W(i) ws[int(begin_of(1)) + (i)]
#if defined(BYTES)
#include "bytes.glsl"
layout(binding = 0) readonly buffer X { uint xs[]; };
#define LOAD_X(i) float_of(byte_of(xs[int(begin_of(0)) + (i) / 4], uint(i) % 4u))
#else
layout(binding = 0) readonly buffer X { float xs[]; };
#define LOAD_X(i) xs[int(begin_of(0)) + (i)]
#endif
#endif

void main() {
    begin_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = begin + e * gl_WorkGroupSize.x;
        uint row = i / n_cols, col = i % n_cols;
        if (row >= n_rows) {
            break;
        }
        ivec3 first;
        int image;
        locate(row, first, image);
        int channel = int(col) / stride.w;
        int at = int(col);
        precise float sum = 0.0;
        for (int kz = 0; kz < kernel.x; kz++) {
            for (int ky = 0; ky < kernel.y; ky++) {
                for (int kx = 0; kx < kernel.z; kx++) {
                    int from = source(first, image, ivec3(kz, ky, kx));
                    if (from >= 0) {
                        precise float part = LOAD_X(from * size_out.w + channel) * LOAD_W(at);
                        sum = sum + part;
                    }
                    at += int(w_row);
                }
            }
        }
        finish(0, row, col, sum);
    }
}

// Depthwise convolutions: y[r][c] = sum over taps of x[tap of r][c / multiple] * w[tap][c].
// `multiple` is the number of output channels per input channel. Lanes run along channels.
// Compile-time variants: FAMILY_U reads x and w as texels, BYTES reads x as stored bytes, otherwise
// x and w are floats in buffers. QUADS computes four channels at a time; the number of channels is
// then a multiple of 4, and `multiple` is 1.
// w is [taps][channels]. Constants: 0 = lanes; 1 = repair; 3 = whether transposed (always false).
// Tile: lanes * per_lane outputs, or quads of outputs. Dispatched by vk_gemm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x_id = 0) in;
#include "conv.glsl"
#if defined(BYTES)
#include "bytes.glsl"
#endif
#if defined(FAMILY_U)
layout(binding = 0) uniform samplerBuffer xs;
layout(binding = 1) uniform samplerBuffer ws;
#elif defined(BYTES)
layout(binding = 0) readonly buffer X { uint xs[]; };
#elif defined(QUADS)
layout(binding = 0) readonly buffer X { vec4 xs[]; };
#else
layout(binding = 0) readonly buffer X { float xs[]; };
#endif
#if defined(QUADS)
#define VALUE vec4
#define PER_LANE 4u
layout(binding = 1) readonly buffer W { vec4 ws[]; };
#else
#define VALUE float
#define PER_LANE 1u
#if !defined(FAMILY_U)
layout(binding = 1) readonly buffer W { float ws[]; };
#endif
#endif

VALUE load_x(uint i) {
#if defined(FAMILY_U)
    return texelFetch(xs, int(begin_of(0) + i)).x;
#elif defined(BYTES) && defined(QUADS)
    uint bytes = xs[begin_of(0) + i / 4];
    return vec4(float_of(byte_of(bytes, 0)), float_of(byte_of(bytes, 1)),
                float_of(byte_of(bytes, 2)), float_of(byte_of(bytes, 3)));
#elif defined(BYTES)
    return float_of(byte_of(xs[begin_of(0) + i / 4], i % 4));
#else
    return xs[(begin_of(0) + i) / PER_LANE];
#endif
}

VALUE load_w(uint i) {
#if defined(FAMILY_U)
    return texelFetch(ws, int(begin_of(1) + i)).x;
#else
    return ws[(begin_of(1) + i) / PER_LANE];
#endif
}

void main() {
    begin_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = PER_LANE * (begin + e * gl_WorkGroupSize.x);
        uint row = i / n_cols, col = i % n_cols;
        if (row >= n_rows) {
            break;
        }
        ivec3 first;
        int image;
        locate(row, first, image);
        int channel = int(col) / stride.w;
        uint at = col;
        precise VALUE sum = VALUE(0.0);
        for (int kz = 0; kz < kernel.x; kz++) {
            for (int ky = 0; ky < kernel.y; ky++) {
                for (int kx = 0; kx < kernel.z; kx++) {
                    int from = source(first, image, ivec3(kz, ky, kx));
                    if (from >= 0) {
                        precise VALUE part =
                            load_x(uint(from * size_out.w + channel)) * load_w(at);
                        sum = sum + part;
                    }
                    at += w_row;
                }
            }
        }
#if defined(QUADS)
        finish_quad(0, row, col, sum);
#else
        finish(0, row, col, sum);
#endif
    }
}

// Element-wise operators over elements of any type, with broadcasting: y[i] = op(a, b, c at i).
// Integers are computed in 64 bits, all floats in float32.
// Buffers: 0 … 2 = operands; 3 = y; 4 = dims: {n lengths, then n strides per operand}.
// Constants: 0 = lanes; 1 = repair; 2 = operator (typed_ops.glsl); 3 = whether operands are
// converted to floats; 4 ... 6 = types of the operands; 7 = type of y; 8 = number of dims;
// 9 ... 11 = how each operand is read: 0 at i, 1 by strides, 2 one number. The limits of a clip are
// p and q, or the operands low and high, which are single numbers.
// Tile: lanes * per_lane elements. Dispatched by vk_typed.c and vk_mask.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 5
#define ROW 0
#define HAS_POWER
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
#include "numeric.glsl"
#include "power.glsl"
#include "ewise_ops.glsl"
#include "angles.glsl"
#include "typed_ops.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint OP = 0;
layout(constant_id = 3) const bool TAKES_FLOATS = false;
layout(constant_id = 4) const uint TYPE_A = 0;
layout(constant_id = 5) const uint TYPE_B = 0;
layout(constant_id = 6) const uint TYPE_C = 0;
layout(constant_id = 7) const uint TYPE_Y = 0;
layout(constant_id = 8) const int N_DIMS = 1;
layout(constant_id = 9) const uint MODE_A = 0;
layout(constant_id = 10) const uint MODE_B = 0;
layout(constant_id = 11) const uint MODE_C = 0;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { uint c[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 4) readonly buffer Dims { int dims[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; float p; float q; uvec2 low, high; };
READER(read_a, a)
READER(read_b, b)
READER(read_c, c)
WRITER(write_y, y_words, y_bytes)

uint place(uint mode, int operand, uint i) {
    uint at = 0;
    for (int d = N_DIMS - 1; mode == 1 && d >= 0; d--) {
        at += i % uint(dims[d]) * uint(dims[N_DIMS * (operand + 1) + d]);
        i /= uint(dims[d]);
    }
    return mode == 0 ? i : at;
}

uvec2 compute(uint i) {
    uvec2 x = read_a(TYPE_A, begin_of(0), place(MODE_A, 0, i));
    uvec2 z = n_operands(OP) > 1 ? read_b(TYPE_B, begin_of(1), place(MODE_B, 1, i)) : uvec2(0);
    if (OP == WHERE) {
        return x.x != 0 || x.y != 0 ? z : read_c(TYPE_C, begin_of(2), place(MODE_C, 2, i));
    }
    if (OP == CAST) {
        return TAKES_FLOATS ? bits_of_real(TYPE_Y, real(TYPE_A, x))
                            : bits_of_whole(TYPE_Y, whole(TYPE_A, x));
    }
    bool reads_low = OP == CLIP && MODE_B == 2, reads_high = OP == CLIP && MODE_C == 2;
    uvec2 c0 = reads_high ? read_c(TYPE_C, begin_of(2), 0) : uvec2(0);
    z = reads_low ? read_b(TYPE_B, begin_of(1), 0) : z;
    if (!TAKES_FLOATS) {
        int64_t result = apply_integer(OP, whole(TYPE_A, x), whole(TYPE_B, z),
                                     reads_low ? whole(TYPE_B, z) : packInt2x32(ivec2(low)),
                                     reads_high ? whole(TYPE_C, c0) : packInt2x32(ivec2(high)));
        return bits_of_whole(TYPE_Y, result);
    }
    float v = apply_real(OP, real(TYPE_A, x), real(TYPE_B, z),
                         reads_low ? real(TYPE_B, z) : p, reads_high ? real(TYPE_C, c0) : q);
    return answers(OP) ? bits_of_whole(TYPE_Y, int64_t(v)) : bits_of_real(TYPE_Y, v);
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        write_y(TYPE_Y, begin_of(3), i, compute(i));
    }
}

// Sums of products over named axes: y[o] = alpha * sum of a * b + beta * c, in the order of the
// summed axes. Covers matrix products of all shapes and types, and every Einsum of two operands.
// Buffers: 0 = a; 1 = b; 2 = c; 3 = y; 4 = numbers: {length, stride in a, in b, in c} for each axis
// of y, then for each summed axis.
// Constants: 0 = lanes; 2 and 3 = numbers of output and summed axes; 4 ... 7 = types of a, b, c, y;
// 8 = whether elements are integers; 9 = flags: 1 b is present, 2 c is present.
// Tile: lanes * per_lane outputs. Dispatched by vk_contract.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 5
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int N_OUT = 1;
layout(constant_id = 3) const int N_SUMMED = 1;
layout(constant_id = 4) const uint TYPE_A = 0;
layout(constant_id = 5) const uint TYPE_B = 0;
layout(constant_id = 6) const uint TYPE_C = 0;
layout(constant_id = 7) const uint TYPE_Y = 0;
layout(constant_id = 8) const bool IS_WHOLE = false;
layout(constant_id = 9) const uint HAS = 1;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { uint c[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 4) readonly buffer Numbers { ivec4 axes[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int count; float alpha; float beta; };
READER(read_a, a)
READER(read_b, b)
READER(read_c, c)
WRITER(write_y, y_words, y_bytes)

// Offsets in a, b and c of index i of the axes [first, end).
ivec3 places(int i, int first, int end) {
    ivec3 at = ivec3(0);
    for (int d = end - 1; d >= first; d--) {
        at += i % axes[d].x * axes[d].yzw;
        i /= axes[d].x;
    }
    return at;
}

float sum_reals(ivec3 base) {
    precise float sum = 0.0;
    for (int i = 0; i < count; i++) {
        ivec3 at = base + places(i, N_OUT, N_OUT + N_SUMMED);
        precise float part = real(TYPE_A, read_a(TYPE_A, begin_of(0), uint(at.x)));
        if ((HAS & 1u) != 0) {
            part = part * real(TYPE_B, read_b(TYPE_B, begin_of(1), uint(at.y)));
        }
        sum = sum + part;
    }
    if (alpha != 1.0) {
        sum = sum * alpha;
    }
    if ((HAS & 2u) != 0) {
        precise float more = beta * real(TYPE_C, read_c(TYPE_C, begin_of(2), uint(base.z)));
        sum = sum + more;
    }
    return sum;
}

int64_t sum_wholes(ivec3 base) {
    int64_t sum = int64_t(0);
    for (int i = 0; i < count; i++) {
        ivec3 at = base + places(i, N_OUT, N_OUT + N_SUMMED);
        int64_t part = whole(TYPE_A, read_a(TYPE_A, begin_of(0), uint(at.x)));
        if ((HAS & 1u) != 0) {
            part *= whole(TYPE_B, read_b(TYPE_B, begin_of(1), uint(at.y)));
        }
        sum += part;
    }
    return sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        uint o = first + e * gl_WorkGroupSize.x;
        ivec3 base = places(int(o), 0, N_OUT);
        write_y(TYPE_Y, begin_of(3), o, IS_WHOLE ? bits_of_whole(TYPE_Y, sum_wholes(base))
                                                 : bits_of_real(TYPE_Y, sum_reals(base)));
    }
}

// Converts floats to integers with a scale, and back (QuantizeLinear and DequantizeLinear):
//   0 to integers: y = clamp(roundEven(x / scale) + zero, low, high); NaN becomes low
//   1 to floats:   y = (x - zero) * scale
// x is viewed as [outer, length, inner]. There is one scale per position of the axis or, with
// `block`, one per `block` positions of the axis and per inner position.
// Buffers: 0 = x; 1 = scales; 2 = zero points; 3 = y. Constants: 0 = lanes; 1 = repair;
// 2 = direction (0 or 1, as above); 3 ... 6 = types of the buffers; 7 = whether there are zero
// points.
// Push: length (0: one scale), inner, block (0: none), blocks along the axis, low, high.
// Tile: lanes * per_lane elements. Dispatched by vk_linear_quant.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 4
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint IS_BACK = 0;
layout(constant_id = 3) const uint TYPE_X = 0;
layout(constant_id = 4) const uint TYPE_SCALE = 0;
layout(constant_id = 5) const uint TYPE_ZERO = 0;
layout(constant_id = 6) const uint TYPE_Y = 0;
layout(constant_id = 7) const bool HAS_ZERO = false;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Scales { uint scales[]; };
layout(binding = 2) readonly buffer Zeros { uint zeros[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; uint extent; uint inner; uint block; uint blocks; float low; float high;
};
READER(read_x, x)
READER(read_scale, scales)
READER(read_zero, zeros)
WRITER(write_y, y_words, y_bytes)

uint scale_of(uint i) {
    if (extent == 0) {
        return 0;
    }
    uint at = i / inner % extent;
    return block == 0 ? at : (i / (inner * extent) * blocks + at / block) * inner + i % inner;
}

uvec2 convert(uint i) {
    uint k = scale_of(i);
    float scale = real(TYPE_SCALE, read_scale(TYPE_SCALE, begin_of(1), k));
    int64_t zero =
        HAS_ZERO ? whole(TYPE_ZERO, read_zero(TYPE_ZERO, begin_of(2), k)) : int64_t(0);
    uvec2 bits = read_x(TYPE_X, begin_of(0), i);
    if (IS_BACK == 1) {
        precise float value = float(whole(TYPE_X, bits) - zero) * scale;
        return bits_of_real(TYPE_Y, value);
    }
    precise float q = roundEven(divide(real(TYPE_X, bits), scale)) + float(zero);
    return bits_of_whole(TYPE_Y, widen(int(q >= low ? (q <= high ? q : high) : low)));
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        write_y(TYPE_Y, begin_of(3), i, convert(i));
    }
}

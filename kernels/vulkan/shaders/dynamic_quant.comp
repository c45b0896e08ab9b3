// Quantises to uint8 over the range of all elements, extended to contain 0 (DynamicQuantizeLinear):
//   stage 0, once:            range = 0
//   stage 1, over elements:   range = bits of {greatest, -least}, each at least 0; nonnegative
//                             floats are ordered like their bits
//   stage 2, over elements:   scale = (greatest - least) / 255, zero = round(-least / scale),
//                             y = clamp(roundEven(x / scale) + zero, 0, 255)
// Buffers: 0 = x; 1 = y; 2 = scale; 3 = zero point; 4 = range. Constants: 0 = lanes; 1 = repair;
// 2 = stage.
// Tile: lanes * per_lane elements. Dispatched by vk_linear_quant.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define BINDINGS 5
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint STAGE = 0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { uint8_t y[]; };
layout(binding = 2) writeonly buffer Scale { float scale_out[]; };
layout(binding = 3) writeonly buffer Zero { uint8_t zero_out[]; };
layout(binding = 4) buffer Range { uint range[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

float quantize(float v, float scale, float zero) {
    precise float q = roundEven(divide(v, scale)) + zero;
    return q >= 0.0 ? min(q, 255.0) : 0.0;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    uint r = begin_of(4);
    float greatest = 0.0, least = 0.0, scale = 1.0, zero = 0.0;
    if (STAGE == 2) {
        greatest = uintBitsToFloat(range[r]);
        least = -uintBitsToFloat(range[r + 1]);
        precise float width = greatest - least;
        scale = greatest > least ? divide(width, 255.0) : 1.0;
        zero = quantize(-least, scale, 0.0);
    }
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (STAGE == 0) {
            range[r] = 0;
            range[r + 1] = 0;
        } else if (STAGE == 1) {
            float v = x[begin_of(0) + i];
            greatest = v > greatest ? v : greatest;
            least = v < least ? v : least;
        } else {
            y[4 * begin_of(1) + i] = uint8_t(uint(quantize(x[begin_of(0) + i], scale, zero)));
        }
    }
    if (STAGE == 1 && (greatest > 0.0 || least < 0.0)) {
        atomicMax(range[r], floatBitsToUint(greatest));
        atomicMax(range[r + 1], floatBitsToUint(abs(least)));
    }
    if (STAGE == 2 && first == 0) {
        scale_out[begin_of(2)] = scale;
        zero_out[4 * begin_of(3)] = uint8_t(uint(zero));
    }
}

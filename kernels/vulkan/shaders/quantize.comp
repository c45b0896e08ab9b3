// q = clamp(rint(x / scale), low, high) + zero, four elements to an invocation's step, stored as
// bytes of a word (FORMAT 0) or, as (q - zero) * scale, in float32 (FORMAT 1).
// Buffers: 0 x [n] float, 1 out [n] bytes or floats. Constants: 0 lanes, 1 repair, 2 format.
// low and high are less the zero point. Tile: lanes * per_lane words. Dispatched by vk_quantize.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint FORMAT = 0;
layout(binding = 0) readonly buffer In { float x[]; };
layout(binding = 1) writeonly buffer Out { uint words[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; float scale; int zero; float low; float high;
};

float rounded(float value) {
    float r = roundEven(divide(value, scale));
    r = r > low ? r : low;
    return r < high ? r : high;
}

void main() {
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint at = 4 * (first + e * gl_WorkGroupSize.x);
        uint word = 0;
        for (uint k = 0; k < 4 && at + k < n; k++) {
            float r = rounded(x[at + k]);
            if (FORMAT == 1) {
                precise float back = r * scale;
                uint bits = floatBitsToUint(back);
                words[at + k] = bits == 0x80000000u ? 0u : bits; // 0 has no sign
            } else {
                word |= (uint(int(r) + zero) & 0xffu) << (8 * k);
            }
        }
        if (FORMAT == 0 && at < n) {
            words[at / 4] = word;
        }
    }
}

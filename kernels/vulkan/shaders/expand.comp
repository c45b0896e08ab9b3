// Converts stored bytes to floats (see bytes.glsl).
// Buffers: 0 = q [n] bytes; 1 = out [n] float. Constants: 0 = lanes.
// Tile: lanes * per_lane words of four bytes. Dispatched by vk_quantize.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 5
#define QUANT_ROW 0
#include "call.glsl"
#include "bytes.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer In { uint words[]; };
layout(binding = 1) writeonly buffer Out { float y[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint at = 4 * (first + e * gl_WorkGroupSize.x);
        uint bytes = at < n ? words[begin_of(0) + at / 4] : 0;
        for (uint k = 0; k < 4 && at + k < n; k++) {
            y[begin_of(1) + at + k] = float_of(byte_of(bytes, k));
        }
    }
}

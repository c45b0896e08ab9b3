// results[i] = {pairs[i].x / pairs[i].y, root of |pairs[i].x|}, to see how the device rounds these.
// Buffers: 0 pairs [n] vec2, 1 results [n] vec2. Constants: 0 lanes, 1 repair. Tile: lanes * per_lane
// elements. Dispatched by vk_probe.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer Pairs { vec2 pairs[]; };
layout(binding = 1) writeonly buffer Results { vec2 results[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

void main() {
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i < n) {
            vec2 p = pairs[i];
            results[i] = vec2(divide(p.x, p.y), root(abs(p.x)));
        }
    }
}

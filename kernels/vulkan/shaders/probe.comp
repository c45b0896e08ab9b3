// Shows how the device rounds, and how it treats small numbers. With p = pairs[i] and a = |p.x|,
// results[5 * i + ...] = p.x / p.y, sqrt(a), a clamped to 0 ... p.y, a / 2, and fma(a, 0.5, a).
// Buffers: 0 = pairs [n] vec2; 1 = results [n][5]. Constants: 0 = lanes; 1 = repair.
// Tile: lanes * per_lane elements. Dispatched by vk_probe.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer Pairs { vec2 pairs[]; };
layout(binding = 1) writeonly buffer Results { float results[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

void main() {
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i < n) {
            vec2 p = pairs[i];
            float a = abs(p.x), at_least = a < 0.0 ? 0.0 : a;
            precise float half_of = 0.5 * a, more = fma(0.5, a, a);
            results[5 * i] = divide(p.x, p.y);
            results[5 * i + 1] = root(a);
            results[5 * i + 2] = at_least > p.y ? p.y : at_least;
            results[5 * i + 3] = half_of;
            results[5 * i + 4] = more;
        }
    }
}

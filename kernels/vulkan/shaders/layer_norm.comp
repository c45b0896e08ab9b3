// Normalisation over the last axes: (x - mean) / sqrt(variance + epsilon) * gamma + beta. Sums are
// computed in order.
// Buffers: 0 = x [n_rows][n]; 1 = y; 2 = gamma [n] and beta [n]. Constants: 0 = lanes; 1 = repair.
// Each invocation computes per_lane rows. Dispatched by vk_reduce.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer Scale { float scale[]; };
layout(push_constant) uniform Push { uint n_rows; uint n; float epsilon; uint per_lane; };

void normalise(uint row) {
    uint from = begin_of(0) + row * n, to = begin_of(1) + row * n;
    precise float sum = 0.0;
    for (uint i = 0; i < n; i++) {
        sum = sum + x[from + i];
    }
    float mean = divide(sum, float(n));
    precise float squares = 0.0;
    for (uint i = 0; i < n; i++) {
        precise float d = x[from + i] - mean;
        squares = squares + d * d;
    }
    precise float spread = divide(squares, float(n)) + epsilon;
    float factor = divide(1.0, root(spread));
    for (uint i = 0; i < n; i++) {
        precise float v = (x[from + i] - mean) * factor * scale[i] + scale[n + i];
        y[to + i] = v;
    }
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n_rows; e++) {
        normalise(first + e * gl_WorkGroupSize.x);
    }
}

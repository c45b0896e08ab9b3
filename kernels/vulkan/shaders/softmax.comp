// Softmax (or its logarithm) along one axis: e / sum(e) with e = exp(x - max), summed in order.
// Buffers: 0 x [outer][n][inner], 1 y. Constants: 0 lanes, 1 repair, 2 the logarithm instead?
// An invocation takes one row, lanes run along `inner`. Dispatched by vk_reduce.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "numeric.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool IS_LOG = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint n_rows; uint n; uint inner; };

void main() {
    find_call(gl_WorkGroupID.z);
    uint x0 = begin_of(0), y0 = begin_of(1);
    uint row = gl_GlobalInvocationID.x;
    if (row >= n_rows) {
        return;
    }
    uint base = row / inner * n * inner + row % inner;
    float top = uintBitsToFloat(0xff800000u);
    for (uint i = 0; i < n; i++) {
        float v = x[x0 + base + i * inner];
        top = v > top ? v : top;
    }
    precise float sum = 0.0;
    for (uint i = 0; i < n; i++) {
        precise float d = x[x0 + base + i * inner] - top;
        float e = exp_one(d);
        sum = sum + e;
        y[y0 + base + i * inner] = IS_LOG ? d : e;
    }
    float rest = IS_LOG ? log_one(sum) : 0.0;
    for (uint i = 0; i < n; i++) {
        float v = y[y0 + base + i * inner];
        precise float less = v - rest;
        y[y0 + base + i * inner] = IS_LOG ? less : divide(v, sum);
    }
}
